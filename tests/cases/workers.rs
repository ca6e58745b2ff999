//! Cases 13, 14: one bad order among good ones; carts with the same keys in another order.

use handback::core::words::{FailureKind, OrderStatus, ResourceType, TaskStatus};
use tokio::sync::mpsc;

use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{MINUTE, Ordering, Shop, an_order};

use ResourceType::{Quota, Stock};

on_every_engine!(case_13_one_order_with_a_failing_resource_stops_no_other);

async fn case_13_one_order_with_a_failing_resource_stops_no_other(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("S", 5).await;
    shop.quota("Q", 5).await;
    for n in 1..=5 {
        let order = an_order(&format!("O{n}")).holding(Stock, "S", 1);
        shop.placed(if n == 2 { order.holding(Quota, "Q", 1) } else { order }).await;
    }
    // O2's other resource fails always: somebody emptied its lock.
    db.execute("UPDATE ledger SET locked = 0 WHERE biz_key = 'Q'").await.unwrap();
    shop.later(16 * MINUTE);
    assert_eq!(shop.sweep().await.closed, 5);
    let first = shop.work().await;
    assert_eq!((first.succeeded, first.failed), (5, 1));
    assert_eq!(shop.stock_figures("S").await, (5, 0, 0));
    for _ in 2..=3 {
        assert_eq!(shop.sweep().await.found, 0);
        assert_eq!(shop.work().await.claimed, 0, "the others' work isn't repeated");
    }
    for n in 1..=5 {
        assert_eq!(shop.status(&format!("O{n}")).await, OrderStatus::Closed);
    }
    let failed = shop.tasks("O2").await.into_iter().find(|t| t.resource == Quota).unwrap();
    assert_eq!((failed.status, failed.kind), (TaskStatus::Manual, Some(FailureKind::LockedInsufficient)));
}

on_every_engine!(case_14_carts_with_the_same_keys_in_another_order_lose_nothing);

/// Fifty who place orders of all five keys, each in its own order of lines, while fifty close earlier ones.
async fn case_14_carts_with_the_same_keys_in_another_order_lose_nothing(db: TestDb) {
    const ORDERS: usize = 2_000;
    let shop = Shop::with_connections(&db, 25).await;
    for key in 1..=5 {
        shop.stock(&format!("S{key}"), ORDERS as i64).await;
    }
    let (placed, to_close) = mpsc::unbounded_channel::<String>();
    let placing = (0..50).map(|part| {
        let (shop, placed) = (shop.clone(), placed.clone());
        tokio::spawn(async move {
            for n in (part..ORDERS).step_by(50) {
                let order_no = format!("O{n}");
                let lines = (0..5).map(|k| 1 + (n / 50 * 2 + part + k * (1 + n % 4)) % 5);
                let order = lines.fold(an_order(&order_no), |order, key| order.holding(Stock, &format!("S{key}"), 1));
                shop.placed(order).await;
                placed.send(order_no).unwrap();
            }
        })
    });
    let placing: Vec<_> = placing.collect();
    drop(placed);
    let to_close = std::sync::Arc::new(tokio::sync::Mutex::new(to_close));
    let closing: Vec<_> = (0..50)
        .map(|_| {
            let (shop, to_close) = (shop.clone(), to_close.clone());
            tokio::spawn(async move {
                let mut closed = 0;
                while let Some(order_no) = { to_close.lock().await.recv().await } {
                    shop.close(&order_no, "buyer").await;
                    closed += 1;
                    if closed % 10 == 0 {
                        shop.run_once("w", 100).await;
                    }
                }
            })
        })
        .collect();
    for task in placing.into_iter().chain(closing) {
        task.await.unwrap();
    }
    shop.work().await;
    assert_eq!(db.count("SELECT COUNT(*) FROM orders WHERE status = 3").await, ORDERS as i64);
    for key in 1..=5 {
        assert_eq!(shop.stock_figures(&format!("S{key}")).await, (ORDERS as i64, 0, 0), "S{key}");
    }
    assert_eq!(db.count("SELECT COUNT(*) FROM task_attempt").await, 0, "no dead-lock became a failure");
    shop.rules_hold().await;
}
