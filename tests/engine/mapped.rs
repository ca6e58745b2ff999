//! E2, R12, R16, R17: ledgers that are tables of the shop, in the shapes of the seeds. The effect, its flow row and
//! its task are one transaction; a row of the shop changes only where it still has what the plan counted on.

use handback::core::Core;
use handback::core::clock::Clock;
use handback::core::order::close::Closed;
use handback::core::order::pay::Paid;
use handback::core::order::place::{Lacking, Placed};
use handback::core::policy::Policy;
use handback::core::reconcile;
use handback::core::release::act::{ForceClose, ForceClosed, Resolution, force_close};
use handback::core::returns::detect::{Detected, detect};
use handback::core::words::{Action, FailureKind, OrderStatus, ResourceType, TaskStatus};
use handback::store::mapped::{self, DocumentsSpec, LedgerSpec, Spec, documents};
use handback::store::{Db, task};

use crate::support::database::{Engine, TestDb, on_every_engine};
use crate::support::shop::{Ordering, START_MS, Shop, an_order, operator, worker};

use ResourceType::{Coupon, Funds, Quota, Slot, Stock};

/// The tables of the three seeds. Handback's own `orders` is in the same database here, so theirs has another name.
async fn seed_tables(db: &TestDb) {
    let datetime = if db.engine == Engine::Postgres { "TIMESTAMP" } else { "DATETIME" };
    for sql in [
        "CREATE TABLE inventory (sku_id BIGINT PRIMARY KEY, available INT NOT NULL, locked INT NOT NULL)",
        "CREATE TABLE account (uid BIGINT PRIMARY KEY, available BIGINT NOT NULL, frozen BIGINT NOT NULL)",
        &format!(
            "CREATE TABLE user_coupon (id BIGINT PRIMARY KEY, status VARCHAR(16) NOT NULL, order_no VARCHAR(32), expire_at {datetime} NOT NULL)"
        ),
        "CREATE TABLE sku_stock (sku_id VARCHAR(32) PRIMARY KEY, available INT NOT NULL, occupied INT NOT NULL, version INT NOT NULL)",
        "CREATE TABLE seat (seat_id INT PRIMARY KEY, state SMALLINT NOT NULL, order_no VARCHAR(32))",
        "CREATE TABLE shop_orders (id BIGINT PRIMARY KEY, status VARCHAR(16) NOT NULL)",
        "CREATE TABLE order_item (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL, sku_id BIGINT NOT NULL, qty INT NOT NULL)",
        "CREATE TABLE return_orders (id BIGINT PRIMARY KEY, status VARCHAR(16) NOT NULL)",
        "CREATE TABLE return_order_items (id BIGINT PRIMARY KEY, return_id BIGINT NOT NULL, sku_id BIGINT NOT NULL, quantity INT NOT NULL)",
        "INSERT INTO inventory VALUES (1001, 10, 0), (1002, 5, 0)",
        "INSERT INTO account VALUES (7, 500, 0)",
        // A session in +08:00 wrote these: 30 Dec 2026, and an end that passes while an order waits.
        "INSERT INTO user_coupon VALUES (1, 'UNUSED', NULL, '2026-12-30 23:59:59'), (2, 'UNUSED', NULL, '2026-11-30 18:10:00')",
        "INSERT INTO sku_stock VALUES ('A-1', 10, 0, 3)",
        "INSERT INTO seat VALUES (12, 0, NULL)",
    ] {
        db.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

fn counted(resource: ResourceType, table: &str, key: &str, available: &str, locked: &str) -> LedgerSpec {
    let name = |text: &str| Some(text.to_owned());
    LedgerSpec {
        resource,
        table: table.into(),
        key: key.into(),
        available: name(available),
        locked: name(locked),
        sold: None,
        version: None,
        status: None,
        holder: None,
        expires: None,
        values: Vec::new(),
        zone: None,
    }
}

fn single(resource: ResourceType, table: &str, key: &str, status: &str, values: &[(&str, &str)]) -> LedgerSpec {
    let values = values.iter().map(|(ours, theirs)| ((*ours).to_owned(), (*theirs).to_owned())).collect();
    let holder = Some("order_no".to_owned());
    let none = counted(resource, table, key, "", "");
    LedgerSpec { available: None, locked: None, status: Some(status.into()), holder, values, ..none }
}

fn documents_spec(table: &str, counted: &str, items: [&str; 4]) -> DocumentsSpec {
    DocumentsSpec {
        table: table.into(),
        no: "id".into(),
        status: "status".into(),
        counted: counted.into(),
        items_table: items[0].into(),
        items_order: items[1].into(),
        items_key: items[2].into(),
        items_qty: items[3].into(),
    }
}

/// Seed A's stock, funds and coupons; seed B's counter with a version, as quota; a seat with numbers for words.
fn spec() -> Spec {
    let words = [("unused", "UNUSED"), ("locked", "LOCKED"), ("used", "USED"), ("expired", "EXPIRED")];
    let coupon = LedgerSpec {
        expires: Some("expire_at".into()),
        zone: Some("Asia/Shanghai".into()),
        ..single(Coupon, "user_coupon", "id", "status", &words)
    };
    let quota = LedgerSpec {
        version: Some("version".into()),
        ..counted(Quota, "sku_stock", "sku_id", "available", "occupied")
    };
    Spec {
        ledgers: vec![
            counted(Stock, "inventory", "sku_id", "available", "locked"),
            coupon,
            counted(Funds, "account", "uid", "available", "frozen"),
            quota,
            single(Slot, "seat", "seat_id", "state", &[("free", "0"), ("held", "1"), ("sold", "2")]),
        ],
        orders: Some(documents_spec("shop_orders", "PENDING", ["order_item", "order_id", "sku_id", "qty"])),
        returns: Some(documents_spec(
            "return_orders",
            "COMPLETED",
            ["return_order_items", "return_id", "sku_id", "quantity"],
        )),
    }
}

async fn mapped_shop(db: &TestDb) -> Shop {
    seed_tables(db).await;
    with_spec(db, &spec()).await
}

async fn with_spec(db: &TestDb, spec: &Spec) -> Shop {
    let clock = Clock::test(START_MS);
    let mut store = Db::open(&db.url, true, 8).await.unwrap();
    store.map(spec).await.unwrap().unwrap();
    Shop { core: Core::new(store, clock.clone(), Policy::default()), clock }
}

async fn text(db: &TestDb, column: &str, from: &str) -> String {
    let cast = if db.engine == Engine::Mariadb { "CHAR" } else { "TEXT" };
    db.texts(&format!("SELECT CAST(COALESCE({column}, 'none') AS {cast}) FROM {from}")).await.remove(0)
}

async fn inventory(db: &TestDb, sku: i64) -> (i64, i64) {
    let figure = async |column: &str| {
        let cast = if db.engine == Engine::Mariadb { "SIGNED" } else { "BIGINT" };
        db.count(&format!("SELECT CAST({column} AS {cast}) FROM inventory WHERE sku_id = {sku}")).await
    };
    (figure("available").await, figure("locked").await)
}

/// One of everything.
fn a_full_order(order_no: &str) -> handback::core::order::place::NewOrder {
    let order = an_order(order_no).holding(Stock, "1001", 2).holding(Stock, "1002", 1).holding(Coupon, "1", 1);
    order.holding(Funds, "7", 300).holding(Quota, "A-1", 1).holding(Slot, "12", 1)
}

on_every_engine!(
    e2_the_tables_of_the_seeds_lock_and_release_unchanged,
    e2_paying_settles_the_shops_rows,
    e2_a_late_payment_takes_the_shops_rows_back,
    e2_what_the_shop_lacks_is_said_and_nothing_is_locked
);

async fn e2_the_tables_of_the_seeds_lock_and_release_unchanged(db: TestDb) {
    let shop = mapped_shop(&db).await;
    shop.placed(a_full_order("o1")).await;
    assert_eq!((inventory(&db, 1001).await, inventory(&db, 1002).await), ((8, 2), (4, 1)));
    assert_eq!(text(&db, "status", "user_coupon WHERE id = 1").await, "LOCKED");
    assert_eq!(text(&db, "order_no", "user_coupon WHERE id = 1").await, "o1");
    assert_eq!(text(&db, "order_no", "seat").await, "o1");
    assert_eq!(shop.close("o1", "buyer").await, Closed::Closed);
    assert_eq!(shop.work().await.failed, 0);
    assert_eq!((inventory(&db, 1001).await, inventory(&db, 1002).await), ((10, 0), (5, 0)));
    assert_eq!(text(&db, "status", "user_coupon WHERE id = 1").await, "UNUSED");
    assert_eq!(text(&db, "order_no", "user_coupon WHERE id = 1").await, "none");
    assert_eq!(text(&db, "order_no", "seat").await, "none");
    let one_row = "SELECT COUNT(*) FROM account WHERE available = 500 AND frozen = 0";
    assert_eq!(db.count(one_row).await, 1);
    assert_eq!(
        db.count("SELECT COUNT(*) FROM sku_stock WHERE available = 10 AND occupied = 0 AND version = 5").await,
        1
    );
    // Flow rows name no ledger of ours, and have the figures after where the table keeps them.
    let flows = shop.flows("o1").await;
    assert_eq!((flows.len(), flows.iter().all(|flow| flow.ledger_id.is_none())), (12, true));
    let back = flows.iter().find(|f| f.action == Action::Release && f.key == "1001").unwrap();
    assert_eq!((back.available_after, back.locked_after, back.sold_after), (Some(10), Some(0), None));
    assert_eq!(shop.close("o1", "buyer").await, Closed::AlreadyClosed);
    assert_eq!(shop.work().await.claimed, 0);
    shop.rules_hold().await;
}

async fn e2_paying_settles_the_shops_rows(db: TestDb) {
    let shop = mapped_shop(&db).await;
    shop.placed(a_full_order("o1")).await;
    assert_eq!(shop.pay("o1").await, Paid::Paid);
    assert_eq!(shop.work().await.failed, 0);
    assert_eq!(inventory(&db, 1001).await, (8, 0));
    assert_eq!(text(&db, "status", "user_coupon WHERE id = 1").await, "USED");
    assert_eq!(text(&db, "order_no", "user_coupon WHERE id = 1").await, "o1");
    assert_eq!(db.count("SELECT COUNT(*) FROM account WHERE available = 200 AND frozen = 0").await, 1);
    assert_eq!(db.count("SELECT COUNT(*) FROM seat WHERE state = 2").await, 1);
    shop.rules_hold().await;
}

async fn e2_a_late_payment_takes_the_shops_rows_back(db: TestDb) {
    let shop = mapped_shop(&db).await;
    shop.placed(a_full_order("o1")).await;
    shop.placed(an_order("o2").holding(Stock, "1002", 1)).await;
    for no in ["o1", "o2"] {
        assert_eq!(shop.close(no, "buyer").await, Closed::Closed);
    }
    shop.work().await;
    assert_eq!(shop.pay("o1").await, Paid::Restored);
    assert_eq!(shop.work().await.failed, 0);
    assert_eq!((inventory(&db, 1001).await, inventory(&db, 1002).await), ((8, 0), (4, 0)));
    assert_eq!(text(&db, "status", "user_coupon WHERE id = 1").await, "USED");
    // The other finds nothing left to take back: all or nothing.
    db.execute("UPDATE inventory SET available = 0 WHERE sku_id = 1002").await.unwrap();
    assert_eq!(shop.pay("o2").await, Paid::RefundDue);
    assert_eq!(shop.status("o2").await, OrderStatus::RefundDue);
    assert_eq!(inventory(&db, 1002).await, (0, 0));
    shop.rules_hold().await;
}

async fn e2_what_the_shop_lacks_is_said_and_nothing_is_locked(db: TestDb) {
    let shop = mapped_shop(&db).await;
    let order = a_full_order("o1").holding(Stock, "1002", 5).holding(Stock, "9", 1);
    let lacking = |key: &str, qty, available| Lacking { resource: Stock, key: key.into(), qty, available };
    assert_eq!(shop.place(order).await, Placed::Lacking(vec![lacking("1002", 6, 5), lacking("9", 1, 0)]));
    assert_eq!((inventory(&db, 1001).await, inventory(&db, 1002).await), ((10, 0), (5, 0)));
    // Coupon 2 ran out at 10:10 UTC, which the shop wrote as 18:10.
    shop.later(std::time::Duration::from_secs(601));
    let late = shop.place(an_order("o2").holding(Coupon, "2", 1)).await;
    assert!(matches!(late, Placed::Lacking(_)), "{late:?}");
}

on_every_engine!(
    r16_a_shops_coupon_that_ran_out_while_locked_is_expired,
    r16_a_coupon_another_order_holds_stays_where_it_is,
    r17_a_numeric_key_must_print_back_the_same,
    r17_a_key_is_exact_whatever_the_collation_thinks,
    r14_a_row_the_shop_changed_fails_alone
);

async fn r16_a_shops_coupon_that_ran_out_while_locked_is_expired(db: TestDb) {
    let shop = mapped_shop(&db).await;
    shop.placed(an_order("o1").holding(Coupon, "2", 1)).await;
    shop.later(std::time::Duration::from_secs(901));
    shop.sweep().await;
    shop.work().await;
    assert_eq!(text(&db, "status", "user_coupon WHERE id = 2").await, "EXPIRED");
    assert_eq!(shop.flows("o1").await.last().unwrap().note.as_deref(), Some("expired"));
    // Its own order may have it back when it is paid after all.
    assert_eq!(shop.pay("o1").await, Paid::Restored);
    shop.work().await;
    assert_eq!(text(&db, "status", "user_coupon WHERE id = 2").await, "USED");
    shop.rules_hold().await;
}

async fn r16_a_coupon_another_order_holds_stays_where_it_is(db: TestDb) {
    let shop = mapped_shop(&db).await;
    shop.placed(an_order("o1").holding(Coupon, "1", 1)).await;
    assert_eq!(shop.close("o1", "buyer").await, Closed::Closed);
    db.execute("UPDATE user_coupon SET order_no = 'x9' WHERE id = 1").await.unwrap();
    shop.work().await;
    let task = shop.task("o1").await;
    assert_eq!((task.status, task.kind), (TaskStatus::Manual, Some(FailureKind::StateMismatch)));
    assert_eq!(text(&db, "order_no", "user_coupon WHERE id = 1").await, "x9");
}

on_every_engine!(r21_what_a_person_saw_to_in_the_shop_is_done_outside);

async fn r21_what_a_person_saw_to_in_the_shop_is_done_outside(db: TestDb) {
    let shop = mapped_shop(&db).await;
    shop.placed(an_order("o1").holding(Stock, "1001", 2)).await;
    assert_eq!(shop.close("o1", "buyer").await, Closed::Closed);
    db.execute("UPDATE inventory SET available = 10, locked = 0 WHERE sku_id = 1001").await.unwrap();
    shop.work().await;
    let task = shop.task("o1").await;
    assert_eq!(task.kind, Some(FailureKind::LockedInsufficient));
    let act = ForceClose {
        task_id: task.id,
        reason: "given back by hand".into(),
        expected_version: task.version,
        resolution: Resolution::DoneOutside,
    };
    let closed = force_close(&shop.core, &operator("ann"), act).await.unwrap();
    assert!(matches!(&closed, ForceClosed::ForceClosed(task) if !task.is_owed), "{closed:?}");
    assert_eq!(inventory(&db, 1001).await, (10, 0), "nothing moved");
    let named = shop.flows("o1").await.pop().unwrap();
    assert_eq!((named.qty, named.task_id, named.reason.as_deref()), (0, Some(task.id), Some("given back by hand")));
    shop.rules_hold().await;
}

/// A row as a shop writes it, for an order Handback knows nothing of.
async fn outbox(db: &TestDb, order_no: &str, resource: ResourceType, key: &str, qty: i64) {
    let sql = format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at, created_at) \
         VALUES ('{order_no}', {}, '{key}', {qty}, {START_MS}, {START_MS})",
        resource.code()
    );
    db.execute(&sql).await.unwrap();
}

async fn the_only_task(shop: &Shop, order_no: &str) -> task::Task {
    shop.work().await;
    shop.task(order_no).await
}

async fn r17_a_numeric_key_must_print_back_the_same(db: TestDb) {
    let shop = mapped_shop(&db).await;
    db.execute("UPDATE inventory SET locked = 5").await.unwrap();
    for (n, key) in ["1001abc", "01001", "1001.0", " 1001", "9007199254740993000000"].iter().enumerate() {
        let no = format!("x{n}");
        outbox(&db, &no, Stock, key, 1).await;
        let task = the_only_task(&shop, &no).await;
        assert_eq!((task.status, task.kind), (TaskStatus::Manual, Some(FailureKind::ResourceMissing)), "{key}");
    }
    assert_eq!(inventory(&db, 1001).await, (10, 5));
    outbox(&db, "x", Stock, "1001", 1).await;
    assert_eq!(the_only_task(&shop, "x").await.status, TaskStatus::Succeeded);
    assert_eq!(inventory(&db, 1001).await, (11, 4));
    shop.rules_hold().await;
}

async fn r17_a_key_is_exact_whatever_the_collation_thinks(db: TestDb) {
    let shop = mapped_shop(&db).await;
    db.execute("UPDATE sku_stock SET occupied = 5").await.unwrap();
    for (n, key) in ["a-1", "A-1 ", "Á-1"].iter().enumerate() {
        let no = format!("x{n}");
        outbox(&db, &no, Quota, key, 1).await;
        assert_eq!(the_only_task(&shop, &no).await.kind, Some(FailureKind::ResourceMissing), "{key:?}");
    }
    outbox(&db, "x", Quota, "A-1", 1).await;
    assert_eq!(the_only_task(&shop, "x").await.status, TaskStatus::Succeeded);
}

async fn r14_a_row_the_shop_changed_fails_alone(db: TestDb) {
    let shop = mapped_shop(&db).await;
    for no in ["o1", "o2", "o3"] {
        shop.placed(an_order(no).holding(Stock, "1001", 2).holding(Funds, "7", 10)).await;
        assert_eq!(shop.close(no, "buyer").await, Closed::Closed);
    }
    // The shop gave four of the six back by itself.
    db.execute("UPDATE inventory SET available = available + 4, locked = locked - 4 WHERE sku_id = 1001")
        .await
        .unwrap();
    shop.work().await;
    let tasks = db.count("SELECT COUNT(*) FROM order_release_task WHERE status = 3 AND kind = 4 AND resource_type = 1");
    assert_eq!(tasks.await, 2);
    assert_eq!(inventory(&db, 1001).await, (10, 0));
    assert_eq!(db.count("SELECT COUNT(*) FROM account WHERE available = 500 AND frozen = 0").await, 1);
    shop.rules_hold().await;
}

on_every_engine!(
    e2_the_outbox_row_lives_and_dies_with_the_shops_transaction,
    e2_a_duplicate_row_is_the_shops_to_ignore,
    e2_a_time_that_is_none_fails_in_the_shops_transaction
);

const INSERT: &str =
    "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty) VALUES ('s1', 1, '1001', 2)";

async fn e2_the_outbox_row_lives_and_dies_with_the_shops_transaction(db: TestDb) {
    use sqlx::{Connection, Executor};
    let shop = mapped_shop(&db).await;
    db.execute("UPDATE inventory SET locked = 2, available = 8 WHERE sku_id = 1001").await.unwrap();
    db.execute("INSERT INTO shop_orders VALUES (1, 'PENDING')").await.unwrap();
    for ends_well in [false, true] {
        let mut theirs = db.connect().await.unwrap();
        let mut transaction = theirs.begin().await.unwrap();
        transaction
            .execute("UPDATE shop_orders SET status = 'CLOSED' WHERE id = 1 AND status = 'PENDING'")
            .await
            .unwrap();
        transaction.execute(INSERT).await.unwrap();
        if ends_well {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await.unwrap();
            assert_eq!(db.count("SELECT COUNT(*) FROM order_release_task").await, 0);
            shop.work().await;
            assert_eq!(inventory(&db, 1001).await, (8, 2));
        }
    }
    // Its defaults are the server's time; the test's clock goes there.
    shop.clock.set(shop.core.db.now_ms().await.unwrap());
    let done = the_only_task(&shop, "s1").await;
    assert_eq!((done.status, done.qty, done.source.as_str()), (TaskStatus::Succeeded, 2, "close"));
    assert_eq!(inventory(&db, 1001).await, (10, 0));
    shop.rules_hold().await;
}

async fn e2_a_duplicate_row_is_the_shops_to_ignore(db: TestDb) {
    let shop = mapped_shop(&db).await;
    shop.placed(an_order("s1").holding(Stock, "1001", 2)).await;
    assert_eq!(shop.close("s1", "buyer").await, Closed::Closed);
    // Handback closed it first; the shop's row says nothing new.
    db.execute(INSERT).await.unwrap_err();
    let ignoring = match db.engine {
        Engine::Mariadb => format!("{INSERT} ON DUPLICATE KEY UPDATE id = id"),
        _ => format!("{INSERT} ON CONFLICT DO NOTHING"),
    };
    db.execute(&ignoring).await.unwrap();
    assert_eq!(the_only_task(&shop, "s1").await.status, TaskStatus::Succeeded);
    db.execute(&ignoring).await.unwrap();
    assert_eq!(shop.work().await.claimed, 0);
    assert_eq!(inventory(&db, 1001).await, (10, 0));
    shop.rules_hold().await;
}

async fn e2_a_time_that_is_none_fails_in_the_shops_transaction(db: TestDb) {
    let _ = mapped_shop(&db).await;
    for wrong in ["20261130163000", "1796032800"] {
        let sql = format!(
            "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at) VALUES ('s1', 1, '1001', 2, {wrong})"
        );
        db.execute(&sql).await.unwrap_err();
    }
    assert_eq!(db.count("SELECT COUNT(*) FROM order_release_task").await, 0);
}

on_every_engine!(r22_the_shops_rows_are_compared_with_its_orders_ours_and_tasks);

async fn r22_the_shops_rows_are_compared_with_its_orders_ours_and_tasks(db: TestDb) {
    let shop = mapped_shop(&db).await;
    // Open in the shop: 3 of 1001. Open here: 2 of 1001. Closed here and not yet released: 1 of 1002.
    for sql in [
        "INSERT INTO shop_orders VALUES (1, 'PENDING'), (2, 'CLOSED')",
        "INSERT INTO order_item VALUES (1, 1, 1001, 3), (2, 2, 1001, 9)",
        "UPDATE inventory SET available = available - 3, locked = 3 WHERE sku_id = 1001",
    ] {
        db.execute(sql).await.unwrap();
    }
    shop.placed(an_order("o1").holding(Stock, "1001", 2).holding(Coupon, "1", 1)).await;
    shop.placed(an_order("o2").holding(Stock, "1002", 1)).await;
    assert_eq!(shop.close("o2", "buyer").await, Closed::Closed);
    let compare = async || reconcile::run_now(&shop.core, &worker("r"), None).await.unwrap().1;
    assert_eq!(compare().await, []);
    // The shop loses two of what it locked; somebody locks an account without an order.
    db.execute("UPDATE inventory SET locked = locked - 2 WHERE sku_id = 1001").await.unwrap();
    db.execute("UPDATE account SET available = 400, frozen = 100").await.unwrap();
    let found = compare().await;
    let found: Vec<_> =
        found.into_iter().map(|d| (d.key, d.in_ledger, d.expected, d.explained, d.unexplained)).collect();
    assert_eq!(found, [("1001".to_owned(), 3, 5, 0, -2), ("7".to_owned(), 100, 0, 0, 100)]);
    // An order of the shop that is placed here as well counts once.
    shop.placed(an_order("1").holding(Stock, "1001", 1)).await;
    let found = compare().await.into_iter().find(|d| d.key == "1001").unwrap();
    assert_eq!((found.in_ledger, found.expected), (4, 3));
}

on_every_engine!(
    c2_a_return_in_the_shops_tables_is_restocked_once_whatever_its_age,
    c2_more_than_a_page_of_returns_is_read_to_its_end,
    e2_the_shops_orders_are_read_for_others,
    e2_what_is_wrong_with_the_tables_is_said_at_once
);

async fn c2_a_return_in_the_shops_tables_is_restocked_once_whatever_its_age(db: TestDb) {
    let shop = mapped_shop(&db).await;
    for sql in [
        "INSERT INTO return_orders VALUES (5, 'PENDING'), (7, 'COMPLETED'), (9, 'COMPLETED')",
        "INSERT INTO return_order_items VALUES (1, 7, 1001, 2), (2, 7, 1001, 1), (3, 7, 1002, 1), (4, 5, 1002, 4)",
    ] {
        db.execute(sql).await.unwrap();
    }
    let look = async || detect(&shop.core).await.unwrap();
    assert_eq!(look().await.written, 1, "9 has no lines yet");
    assert_eq!(look().await, Detected::default());
    shop.work().await;
    assert_eq!((inventory(&db, 1001).await, inventory(&db, 1002).await), ((13, 0), (6, 0)));
    // An older one is completed long after the newer was read; the lines of 9 come.
    db.execute("UPDATE return_orders SET status = 'COMPLETED' WHERE id = 5").await.unwrap();
    db.execute("INSERT INTO return_order_items VALUES (5, 9, 1001, 1)").await.unwrap();
    assert_eq!(look().await.written, 2);
    assert_eq!(look().await, Detected::default());
    shop.work().await;
    assert_eq!((inventory(&db, 1001).await, inventory(&db, 1002).await), ((14, 0), (10, 0)));
    shop.rules_hold().await;
}

async fn c2_more_than_a_page_of_returns_is_read_to_its_end(db: TestDb) {
    const RETURNS: i64 = 1_203;
    let shop = mapped_shop(&db).await;
    let ids: Vec<String> = (1..=RETURNS).map(|id| format!("({id}, 'COMPLETED')")).collect();
    db.execute(&format!("INSERT INTO return_orders VALUES {}", ids.join(", "))).await.unwrap();
    let items: Vec<String> = (1..=RETURNS).map(|id| format!("({id}, {id}, 1001, 1)")).collect();
    db.execute(&format!("INSERT INTO return_order_items VALUES {}", items.join(", "))).await.unwrap();
    let mut written = 0;
    for _ in 0..6 {
        written += detect(&shop.core).await.unwrap().written as i64;
    }
    assert_eq!(written, RETURNS);
    shop.work().await;
    assert_eq!(inventory(&db, 1001).await, (10 + RETURNS, 0));
    shop.rules_hold().await;
}

async fn e2_the_shops_orders_are_read_for_others(db: TestDb) {
    let shop = mapped_shop(&db).await;
    for sql in [
        "INSERT INTO shop_orders VALUES (1, 'PENDING'), (2, 'CLOSED'), (3, 'PENDING')",
        "INSERT INTO order_item VALUES (1, 1, 1001, 2), (2, 1, 1002, 1), (3, 2, 1001, 9), (4, 3, 1001, 1)",
    ] {
        db.execute(sql).await.unwrap();
    }
    let tables = shop.core.db.mapped.clone();
    let orders = tables.orders.as_ref().unwrap();
    let mut conn = shop.core.db.read().await.unwrap();
    let lines = documents::lines(&mut conn, orders).await.unwrap();
    let mut lines: Vec<_> = lines.into_iter().map(|line| (line.no, line.key, line.qty)).collect();
    lines.sort();
    let line = |no: &str, key: &str, qty| (no.to_owned(), key.to_owned(), qty);
    assert_eq!(lines, [line("1", "1001", 2), line("1", "1002", 1), line("3", "1001", 1)]);
    let one = documents::find(&mut conn, orders, "1").await.unwrap().unwrap();
    assert_eq!((one.counts, one.status.as_str(), one.items.len()), (true, "PENDING", 2));
    assert_eq!(documents::find(&mut conn, orders, "01").await.unwrap(), None);
    let table = tables.of(Stock).unwrap();
    let first = mapped::figures(&mut conn, &table, None, 1).await.unwrap();
    assert_eq!((first[0].ledger.key.as_str(), first[0].ledger.available), ("1001", 10));
    let second = mapped::figures(&mut conn, &table, Some("1001"), 5).await.unwrap();
    assert_eq!(second.iter().map(|row| row.ledger.key.as_str()).collect::<Vec<_>>(), ["1002"]);
}

async fn e2_what_is_wrong_with_the_tables_is_said_at_once(db: TestDb) {
    seed_tables(&db).await;
    db.execute("CREATE TABLE loose (sku_id BIGINT, available VARCHAR(9), locked INT)").await.unwrap();
    let mut wrong = spec();
    wrong.ledgers[0] = counted(Stock, "loose", "sku_id", "available", "lockd");
    wrong.ledgers[2] = counted(Funds, "nowhere", "uid", "available", "frozen");
    wrong.ledgers[4].values[0].1 = "FREE".into();
    wrong.returns =
        Some(documents_spec("return_orders", "COMPLETED", ["return_order_items", "return_id", "sku_id", "qty"]));
    let mut store = Db::open(&db.url, true, 2).await.unwrap();
    let problems = store.map(&wrong).await.unwrap().unwrap_err();
    let told = |start: &str, says: &str| problems.iter().any(|p| p.starts_with(start) && p.contains(says));
    assert!(told("mapped.stock.key_column:", "unique key"), "{problems:#?}");
    assert!(told("mapped.stock.available_column:", "whole numbers"), "{problems:#?}");
    assert!(told("mapped.stock.locked_column:", "no column lockd; it has available, locked, sku_id"), "{problems:#?}");
    assert!(told("mapped.funds:", "no table nowhere"), "{problems:#?}");
    assert!(told("mapped.slot.values.free:", "\"FREE\""), "{problems:#?}");
    assert!(told("mapped.returns.items_qty_column:", "no column qty"), "{problems:#?}");
    assert_eq!(problems.len(), 6, "{problems:#?}");
    assert!(store.mapped.types().is_empty(), "nothing is worked on before all is right");
}
