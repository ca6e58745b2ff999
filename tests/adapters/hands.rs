//! What people do to tasks that services work off (R10, R20, R21).

use std::sync::Arc;

use handback::core::release::act::{
    ForceClose, ForceClosed, ReleasedType, Resolution, Retried, force_close, release_type,
};
use handback::core::words::{OrderStatus, PaymentStatus, ResourceType, TaskStatus};
use handback::store::payment;
use tokio::sync::Notify;

use super::Town;
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering, an_order, operator};
use crate::support::standin::Does;

use ResourceType::{Coupon, Stock};

async fn closes(town: &Town, id: i64, version: i64, resolution: Resolution) -> ForceClosed {
    let act = ForceClose { task_id: id, reason: "seen in their console".into(), expected_version: version, resolution };
    force_close(&town.shop.core, &operator("li"), act).await.unwrap()
}

on_every_engine!(r20_two_people_retrying_at_once_send_it_once_and_the_second_hears_the_outcome);

async fn r20_two_people_retrying_at_once_send_it_once_and_the_second_hears_the_outcome(db: TestDb) {
    let town = Town::open(&db).await;
    for (round, refused) in [false, true].into_iter().enumerate() {
        let no = format!("o{round}");
        let id = town.closed(&no).await.id;
        town.coupons.next("/release", if refused { Does::refuse(409, "state_mismatch") } else { Does::Apply });
        let (arrived, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (here, wait) = (arrived.clone(), go.clone());
        town.coupons.during_calls(move |_| {
            let (here, wait) = (here.clone(), wait.clone());
            Box::pin(async move {
                here.notify_one();
                wait.notified().await;
            })
        });
        let before = town.coupons.seen("/release").len();
        let first = tokio::spawn({
            let shop = town.shop.clone();
            async move { shop.retry("zhang", id).await }
        });
        arrived.notified().await;
        let second = tokio::spawn({
            let shop = town.shop.clone();
            async move { shop.retry("li", id).await }
        });
        tokio::task::yield_now().await;
        go.notify_one();
        let (first, second) = (first.await.unwrap(), second.await.unwrap());
        assert_eq!(town.coupons.seen("/release").len() - before, 1, "{first:?}, {second:?}");
        if refused {
            assert!(matches!((&first, &second), (Retried::Failed(_), Retried::Failed(_))), "{first:?}, {second:?}");
        } else {
            assert!(matches!((&first, &second), (Retried::Succeeded(_), Retried::AlreadyDone(_))), "{second:?}");
        }
        let audited = format!("SELECT COUNT(*) FROM audit_log WHERE action = 'task.retry' AND target = 'task:{id}'");
        assert_eq!(db.count(&audited).await, 1);
    }
    town.all_is_well().await;
}

on_every_engine!(r21_done_outside_leaves_a_flow_row_of_nothing_that_names_the_task);

async fn r21_done_outside_leaves_a_flow_row_of_nothing_that_names_the_task(db: TestDb) {
    let town = Town::open(&db).await;
    town.coupons.always("/release", Does::refuse(409, "state_mismatch"));
    town.closed("o").await;
    town.work().await;
    let task = town.shop.task("o").await;
    let closed = closes(&town, task.id, task.version, Resolution::DoneOutside).await;
    let ForceClosed::ForceClosed(after) = closed else { panic!("{closed:?}") };
    assert!(!after.is_owed);
    let flows = town.shop.flows("o").await;
    assert_eq!(flows.len(), 1);
    assert_eq!((flows[0].qty, flows[0].task_id), (0, Some(task.id)));
    assert_eq!(flows[0].reason.as_deref(), Some("seen in their console"));
    assert!(matches!(
        closes(&town, task.id, after.version, Resolution::DoneOutside).await,
        ForceClosed::AlreadyForceClosed(_)
    ));

    town.closed("owed").await;
    town.work().await;
    let owed = town.shop.task("owed").await;
    let closed = closes(&town, owed.id, owed.version, Resolution::LeaveOwed).await;
    assert!(matches!(closed, ForceClosed::ForceClosed(task) if task.is_owed));
    assert!(town.shop.flows("owed").await.is_empty());
    town.all_is_well().await;
}

on_every_engine!(r21_a_running_try_of_a_force_closed_task_is_recorded_and_changes_nothing_else);

async fn r21_a_running_try_of_a_force_closed_task_is_recorded_and_changes_nothing_else(db: TestDb) {
    let town = Town::open(&db).await;
    let seen = town.closed("o").await;
    let (arrived, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (here, wait) = (arrived.clone(), go.clone());
    town.coupons.during_calls(move |_| {
        let (here, wait) = (here.clone(), wait.clone());
        Box::pin(async move {
            here.notify_one();
            wait.notified().await;
        })
    });
    let core = town.shop.core.clone();
    let working = tokio::spawn(async move {
        handback::core::release::remote::run_due(&core, &crate::support::shop::worker("w"), Coupon.code(), 1).await
    });
    arrived.notified().await;
    let closed = closes(&town, seen.id, seen.version, Resolution::LeaveOwed).await;
    assert!(matches!(closed, ForceClosed::ForceClosed(_)), "a person wins against a running try: {closed:?}");
    let after = town.shop.task("o").await;
    go.notify_one();
    working.await.unwrap().unwrap();
    assert_eq!(town.shop.task("o").await, after);
    let ended = db.count("SELECT COUNT(*) FROM task_attempt WHERE outcome = 1 AND ended_at IS NOT NULL").await;
    assert_eq!(ended, 1, "the outcome stands on the try");
    assert!(town.shop.flows("o").await.is_empty());
    town.all_is_well().await;
}

on_every_engine!(a11_one_remote_type_of_an_order_is_run_again);

async fn a11_one_remote_type_of_an_order_is_run_again(db: TestDb) {
    let town = Town::open(&db).await;
    town.shop.stock("s", 5).await;
    town.shop.placed(an_order("o").holding(Coupon, "a", 1).holding(Coupon, "b", 1).holding(Stock, "s", 1)).await;
    town.shop.close("o", "buyer").await;
    town.coupons.next("/release", Does::refuse(409, "state_mismatch"));
    town.coupons.next("/release", Does::Apply);
    town.work().await;
    let ran = release_type(&town.shop.core, &operator("li"), "o", Coupon, "they mended it").await.unwrap();
    let ReleasedType::Ran(ran) = ran else { panic!("{ran:?}") };
    assert_eq!(ran.len(), 1, "only what wasn't done: {ran:?}");
    assert!(ran[0].is_done);
    let again = release_type(&town.shop.core, &operator("li"), "o", Coupon, "again").await.unwrap();
    assert_eq!(again, ReleasedType::Ran(Vec::new()));
    assert_eq!(town.coupons.seen("/release").len(), 3);
    town.all_is_well().await;
}

on_every_engine!(r21_a_refund_done_outside_ends_the_payment_and_the_order);

async fn r21_a_refund_done_outside_ends_the_payment_and_the_order(db: TestDb) {
    let town = Town::open(&db).await;
    town.bank.always("/refund", Does::refuse(422, "account closed"));
    town.shop.stock("s", 1).await;
    town.shop.placed(an_order("o").holding(Stock, "s", 1)).await;
    town.shop.close("o", "buyer").await;
    town.work().await;
    town.shop.placed(an_order("other").holding(Stock, "s", 1)).await;
    town.shop.pay("o").await;
    town.work().await;
    assert_eq!(town.shop.status("o").await, OrderStatus::RefundDue);
    let tasks = town.shop.tasks("o").await;
    let refund = tasks.iter().find(|task| task.resource == ResourceType::Payment).unwrap();
    assert_eq!(refund.status, TaskStatus::Manual);
    let closed = closes(&town, refund.id, refund.version, Resolution::DoneOutside).await;
    assert!(matches!(closed, ForceClosed::ForceClosed(_)), "{closed:?}");
    assert_eq!(town.shop.status("o").await, OrderStatus::Refunded);
    let payments = payment::of_order(&mut town.shop.core.db.read().await.unwrap(), "o").await.unwrap();
    assert_eq!(payments[0].status, PaymentStatus::Refunded);
    town.all_is_well().await;
}
