//! R1, R2: what may change a ledger, and that the flow alone tells where each piece went.

use handback::core::ledger::{Adjusted, Adjustment};
use handback::core::order::close::Closed;
use handback::core::order::pay::Paid;
use handback::core::order::place::{Lacking, Placed};
use handback::core::words::{Action, FailureKind, ResourceType, TaskStatus};

use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering, START_MS, Shop, an_order};

use ResourceType::{Coupon, Funds, Quota, Slot, Stock};

on_every_engine!(r1_placing_paying_and_closing_keep_every_sum);

async fn r1_placing_paying_and_closing_keep_every_sum(db: TestDb) {
    let shop = Shop::open(&db).await;
    one_of_each(&shop).await;
    shop.placed(all_five("paid")).await;
    shop.placed(an_order("closed").holding(Stock, "s", 3).holding(Funds, "f", 30).holding(Quota, "q", 1)).await;
    assert_eq!(shop.stock_figures("s").await, (5, 5, 0));
    assert_eq!(shop.figures(Coupon, "c").await, (0, 1, 0));

    assert_eq!(shop.pay("paid").await, Paid::Paid);
    assert_eq!(shop.close("closed", "buyer").await, Closed::Closed);
    assert_eq!(shop.stock_figures("s").await, (5, 5, 0), "paying and closing only write tasks");
    shop.work().await;

    assert_eq!(shop.stock_figures("s").await, (8, 0, 2));
    assert_eq!(shop.figures(Funds, "f").await, (80, 0, 20));
    assert_eq!(shop.figures(Quota, "q").await, (9, 0, 1));
    assert_eq!(shop.figures(Coupon, "c").await, (0, 0, 1));
    assert_eq!(shop.figures(Slot, "row 7, seat 3").await, (0, 0, 1));
    shop.rules_hold().await;
}

async fn one_of_each(shop: &Shop) {
    shop.stock("s", 10).await;
    shop.balance("f", 100).await;
    shop.quota("q", 10).await;
    shop.good_coupon("c").await;
    shop.slot("row 7, seat 3").await;
}

fn all_five(order_no: &str) -> handback::core::order::place::NewOrder {
    an_order(order_no)
        .holding(Stock, "s", 2)
        .holding(Funds, "f", 20)
        .holding(Quota, "q", 1)
        .holding(Coupon, "c", 1)
        .holding(Slot, "row 7, seat 3", 1)
}

on_every_engine!(r1_placing_is_all_or_nothing_and_names_what_lacks);

async fn r1_placing_is_all_or_nothing_and_names_what_lacks(db: TestDb) {
    let shop = Shop::open(&db).await;
    one_of_each(&shop).await;
    shop.coupon("ended", START_MS).await;
    let order = all_five("o").holding(Stock, "s", 9).holding(Coupon, "ended", 1).holding(Quota, "nowhere", 1);
    let lacking = |resource, key: &str, qty, available| Lacking { resource, key: key.into(), qty, available };
    assert_eq!(
        shop.place(order).await,
        Placed::Lacking(vec![
            lacking(Stock, "s", 11, 10),
            lacking(Coupon, "ended", 1, 0),
            lacking(Quota, "nowhere", 1, 0),
        ])
    );
    assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    assert_eq!(shop.figures(Coupon, "c").await, (1, 0, 0));
    assert_eq!(db.count("SELECT COUNT(*) FROM orders").await, 0);
    assert_eq!(db.count("SELECT COUNT(*) FROM hold").await, 0);
    shop.rules_hold().await;
}

on_every_engine!(r1_a_release_of_more_than_is_locked_goes_to_a_person_and_clamps_nothing);

async fn r1_a_release_of_more_than_is_locked_goes_to_a_person_and_clamps_nothing(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 5).await;
    shop.placed(an_order("o").holding(Stock, "s", 2)).await;
    db.execute("INSERT INTO order_release_task (order_no, resource_type, biz_key, qty) VALUES ('theirs', 1, 's', 3)")
        .await
        .unwrap();
    shop.later(std::time::Duration::from_secs(3600 * 24 * 365));
    assert_eq!(shop.work().await.failed, 1);
    let task = shop.task("theirs").await;
    assert_eq!((task.status, task.kind), (TaskStatus::Manual, Some(FailureKind::LockedInsufficient)));
    assert_eq!(task.next_at, None, "data that is already wrong is not tried again by itself");
    assert_eq!(shop.stock_figures("s").await, (3, 2, 0));
    shop.rules_hold().await;
}

on_every_engine!(r2_each_change_has_one_flow_row_with_the_figures_after_it);

async fn r2_each_change_has_one_flow_row_with_the_figures_after_it(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("a").holding(Stock, "s", 2)).await;
    shop.placed(an_order("b").holding(Stock, "s", 3)).await;
    shop.pay("a").await;
    shop.close("b", "buyer").await;
    shop.work().await;
    for (order, expected) in [
        ("a", [(Action::Lock, 2, (8, 2, 0)), (Action::Settle, 2, (5, 3, 2))]),
        ("b", [(Action::Lock, 3, (5, 5, 0)), (Action::Release, 3, (8, 0, 2))]),
    ] {
        let seen: Vec<_> = shop
            .flows(order)
            .await
            .iter()
            .map(|f| {
                let after = (f.available_after.unwrap(), f.locked_after.unwrap(), f.sold_after.unwrap());
                (f.action, f.qty, after)
            })
            .collect();
        assert_eq!(seen, expected, "{order}");
    }
    shop.rules_hold().await;
    db.execute("UPDATE ledger SET available = available + 1").await.unwrap();
    shop.rule_is_broken("R2").await;
}

on_every_engine!(r2_an_adjustment_counts_once_per_ref_and_stays_above_zero);

async fn r2_an_adjustment_counts_once_per_ref_and_stays_above_zero(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 5).await;
    let by = |available, locked, reference: &str| Adjustment {
        available,
        locked,
        reference: reference.into(),
        reason: "stocktaking".into(),
        task: None,
    };
    assert!(matches!(shop.adjust("s", by(Some(4), Some(2), "r1")).await, Adjusted::Adjusted(_)));
    assert!(matches!(shop.adjust("s", by(Some(4), Some(2), "r1")).await, Adjusted::Same(_)));
    assert!(matches!(shop.adjust("s", by(Some(-10), None, "r2")).await, Adjusted::Insufficient(_)));
    assert!(matches!(shop.adjust("s", by(None, Some(-3), "r3")).await, Adjusted::Insufficient(_)));
    assert_eq!(shop.adjust("gone", by(Some(1), None, "r4")).await, Adjusted::Unknown);
    assert_eq!(shop.stock_figures("s").await, (9, 2, 0));
    assert_eq!(shop.moves("r1").await.len(), 2, "a call with both figures writes two rows");
    assert_eq!(db.count("SELECT COUNT(*) FROM audit_log").await, 1);
    shop.rules_hold().await;
}
