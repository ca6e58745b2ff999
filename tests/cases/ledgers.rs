//! Ledgers that say something else than the orders.

use handback::core::reconcile;
use handback::core::words::{DiffClass, ResourceType};

use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering as _, Shop, an_order, operator};

on_every_engine!(case_18_a_lost_lock_of_two_lines_of_one_key_is_missing_once);

/// A configurable product is two lines of one key; what is missing is what the order holds, not each line.
async fn case_18_a_lost_lock_of_two_lines_of_one_key_is_missing_once(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("S", 5).await;
    let lines = r#"[{"name": "parent", "qty": 1}, {"name": "child", "qty": 1}]"#;
    let mut order = an_order("O1").holding(ResourceType::Stock, "S", 1);
    order.lines = Some(lines.into());
    shop.placed(order).await;
    db.execute("UPDATE ledger SET locked = 0, available = 5").await.unwrap();
    let (_, diffs) = reconcile::run_now(&shop.core, &operator("otto"), None).await.unwrap();
    let found: Vec<_> = diffs.iter().map(|d| (d.class, d.unexplained, d.orders.clone())).collect();
    assert_eq!(found, [(DiffClass::MissingLock, -1, vec!["O1".to_owned()])]);
}
