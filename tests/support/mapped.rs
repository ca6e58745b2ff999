//! The smallest shop that keeps its own tables: stock, orders and their lines.

use handback::core::words::ResourceType;
use handback::store::Db;
use handback::store::mapped::{DocumentsSpec, LedgerSpec, Spec};

use super::database::TestDb;
use super::shop::START_MS;

/// The shop's tables, and a store that is tied to them. Handback's own `orders` is in the same database here, so
/// theirs has another name.
pub async fn mapped_store(db: &TestDb) -> Db {
    for sql in [
        "CREATE TABLE inventory (sku_id BIGINT PRIMARY KEY, available INT NOT NULL, locked INT NOT NULL)",
        "CREATE TABLE shop_orders (order_no VARCHAR(32) PRIMARY KEY, status VARCHAR(16) NOT NULL)",
        "CREATE TABLE order_item (id BIGINT PRIMARY KEY, order_no VARCHAR(32) NOT NULL, sku_id BIGINT NOT NULL, qty INT NOT NULL)",
        "INSERT INTO inventory VALUES (1001, 0, 100), (1002, 0, 0)",
        "INSERT INTO shop_orders VALUES ('A-1', 'PENDING'), ('A-2', 'CLOSED')",
        "INSERT INTO order_item VALUES (1, 'A-1', 1001, 2), (2, 'A-1', 1001, 1), (3, 'A-2', 1002, 1)",
    ] {
        db.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let name = |text: &str| Some(text.to_owned());
    let stock = LedgerSpec {
        resource: ResourceType::Stock,
        table: "inventory".into(),
        key: "sku_id".into(),
        available: name("available"),
        locked: name("locked"),
        sold: None,
        version: None,
        status: None,
        holder: None,
        expires: None,
        values: Vec::new(),
        zone: None,
    };
    let orders = DocumentsSpec {
        table: "shop_orders".into(),
        no: "order_no".into(),
        status: "status".into(),
        counted: "PENDING".into(),
        items_table: "order_item".into(),
        items_order: "order_no".into(),
        items_key: "sku_id".into(),
        items_qty: "qty".into(),
    };
    let mut store = Db::open(&db.url, true, 8).await.unwrap();
    store.map(&Spec { ledgers: vec![stock], orders: Some(orders), returns: None }).await.unwrap().unwrap();
    store
}

/// A row as a shop writes it when it closes an order of its own.
pub async fn outbox(db: &TestDb, order_no: &str, sku: &str, qty: i64) {
    let sql = format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at, created_at) \
         VALUES ('{order_no}', 1, '{sku}', {qty}, {START_MS}, {START_MS})"
    );
    db.execute(&sql).await.unwrap();
}
