//! A payment after the close while services keep what was released: (a) not done, (b) done, (c) unknown;
//! RESTORING to PAID or to REFUND_DUE with its undo, each remote effect once.

use handback::adapters::RemoteSettings;
use handback::core::order::pay::Paid;
use handback::core::release::act::{ForceClose, Resolution, force_close};
use handback::core::words::{Action, OrderStatus, PaymentStatus, ResourceType, TaskStatus};
use handback::store::payment;

use super::Town;
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering, an_order, operator};
use crate::support::standin::Does;

use ResourceType::{Coupon, Quota, Stock};

/// Action and key of every remote effect.
fn effects(town: &Town) -> Vec<(String, String)> {
    let both = [town.coupons.effects(), town.quota.effects()].concat();
    both.into_iter().map(|(action, key, _)| (action, key)).collect()
}

fn effect(action: &str, key: &str) -> (String, String) {
    (action.to_owned(), key.to_owned())
}

async fn mixed(town: &Town) {
    town.shop.stock("s", 5).await;
    town.shop.placed(an_order("o").holding(Coupon, "c", 1).holding(Quota, "q", 2).holding(Stock, "s", 1)).await;
    town.shop.close("o", "buyer").await;
}

/// Holds of the order's present round and nothing of an older one are settled or to be settled.
async fn is_paid_whole(town: &Town) {
    assert_eq!(town.shop.status("o").await, OrderStatus::Paid);
    assert_eq!(town.shop.stock_figures("s").await, (4, 0, 1));
    let tasks = town.shop.tasks("o").await;
    let settled: Vec<_> = tasks.iter().filter(|t| t.action == Action::Settle).collect();
    assert_eq!(settled.len(), 3, "one for each thing");
    assert!(settled.iter().all(|t| t.status == TaskStatus::Succeeded), "{settled:#?}");
}

on_every_engine!(late_a_what_was_never_sent_is_superseded_and_nobody_is_told);

async fn late_a_what_was_never_sent_is_superseded_and_nobody_is_told(db: TestDb) {
    let town = Town::open(&db).await;
    mixed(&town).await;
    assert_eq!(town.shop.pay("o").await, Paid::Restored, "nothing had to be asked");
    town.work().await;
    is_paid_whole(&town).await;
    assert_eq!(effects(&town), [effect("settle", "c"), effect("settle", "q")]);
    town.all_is_well().await;
}

on_every_engine!(late_a_what_was_refused_or_turned_away_for_certain_counts_as_not_done);

async fn late_a_what_was_refused_or_turned_away_for_certain_counts_as_not_done(db: TestDb) {
    let town = Town::open(&db).await;
    mixed(&town).await;
    town.coupons.next("/release", Does::refuse(409, "state_mismatch"));
    town.quota.next("/release", Does::busy(503, "60"));
    town.work().await;
    assert_eq!(town.shop.pay("o").await, Paid::Restored);
    town.work().await;
    is_paid_whole(&town).await;
    assert_eq!(effects(&town), [effect("settle", "c"), effect("settle", "q")]);
    town.all_is_well().await;
}

on_every_engine!(late_b_what_was_released_is_taken_back_in_the_next_round);

async fn late_b_what_was_released_is_taken_back_in_the_next_round(db: TestDb) {
    let town = Town::open(&db).await;
    mixed(&town).await;
    town.work().await;
    assert_eq!(town.shop.pay("o").await, Paid::Restoring);
    assert_eq!(town.shop.status("o").await, OrderStatus::Restoring);
    let settles = |tasks: Vec<handback::store::task::Task>| tasks.iter().filter(|t| t.action == Action::Settle).count();
    assert_eq!(settles(town.shop.tasks("o").await), 0, "written only when it becomes PAID");
    town.work().await;
    is_paid_whole(&town).await;
    let back = town.coupons.seen("/take-back");
    assert_eq!((back.len(), &back[0].body["round"], &back[0].body["qty"]), (1, &2.into(), &1.into()));
    assert_eq!(
        effects(&town),
        [
            effect("release", "c"),
            effect("settle", "c"),
            effect("take_back", "c"),
            effect("release", "q"),
            effect("settle", "q"),
            effect("take_back", "q"),
        ]
    );
    assert_eq!(town.shop.pay("o").await, Paid::AlreadyPaid);
    town.all_is_well().await;
}

on_every_engine!(late_c_the_status_call_decides_what_was_unknown);

async fn late_c_the_status_call_decides_what_was_unknown(db: TestDb) {
    let town = Town::open(&db).await;
    mixed(&town).await;
    // The coupon's release exists, the quota's doesn't; neither was said.
    town.coupons.next("/release", Does::ApplyAndSay(500, "boom".into()));
    town.quota.next("/release", Does::say(500, "boom"));
    town.work().await;
    assert_eq!(town.shop.pay("o").await, Paid::Restoring);
    // They are asked at once, although their next try was planned for later.
    town.work().await;
    is_paid_whole(&town).await;
    assert_eq!((town.coupons.seen("/status").len(), town.quota.seen("/status").len()), (1, 1));
    assert_eq!(
        effects(&town),
        [effect("release", "c"), effect("settle", "c"), effect("take_back", "c"), effect("settle", "q")],
        "what was not done is superseded, not sent"
    );
    let quota = town.shop.tasks("o").await.into_iter().find(|t| t.resource == Quota && t.action == Action::Release);
    assert_eq!(quota.unwrap().status, TaskStatus::Superseded);
    town.all_is_well().await;
}

on_every_engine!(late_c_without_a_status_call_the_same_release_is_sent_until_it_is_answered);

async fn late_c_without_a_status_call_the_same_release_is_sent_until_it_is_answered(db: TestDb) {
    let town = Town::with(&db, |settings| RemoteSettings { has_status: false, ..settings }).await;
    mixed(&town).await;
    town.coupons.next("/release", Does::say(500, "boom"));
    town.coupons.next("/release", Does::say(500, "boom"));
    town.work().await;
    assert_eq!(town.shop.pay("o").await, Paid::Restoring);
    town.work_to_the_end().await;
    is_paid_whole(&town).await;
    assert_eq!(town.coupons.seen("/release").len(), 3);
    assert!(town.coupons.seen("/status").is_empty());
    let coupon: Vec<_> = town.coupons.effects();
    assert_eq!(coupon.iter().map(|e| e.0.as_str()).collect::<Vec<_>>(), ["release", "settle", "take_back"]);
    town.all_is_well().await;
}

on_every_engine!(late_c_one_that_is_being_sent_at_this_moment_is_unknown);

async fn late_c_one_that_is_being_sent_at_this_moment_is_unknown(db: TestDb) {
    let town = Town::open(&db).await;
    mixed(&town).await;
    let shop = town.shop.clone();
    let answer = std::sync::Arc::new(std::sync::Mutex::new(None));
    let kept = answer.clone();
    town.coupons.during_calls(move |seen| {
        let (shop, kept) = (shop.clone(), kept.clone());
        Box::pin(async move {
            if seen.path == "/release" {
                let paid = shop.pay("o").await;
                *kept.lock().unwrap() = Some(paid);
            }
        })
    });
    town.coupon_lane().await;
    assert_eq!(*answer.lock().unwrap(), Some(Paid::Restoring));
    town.work().await;
    is_paid_whole(&town).await;
    town.all_is_well().await;
}

on_every_engine!(late_a_refused_take_back_undoes_everything_and_refunds_once);

async fn late_a_refused_take_back_undoes_everything_and_refunds_once(db: TestDb) {
    let town = Town::open(&db).await;
    mixed(&town).await;
    // The coupon is released; the quota's release is refused for certain, so it is superseded.
    town.quota.next("/release", Does::refuse(409, "state_mismatch"));
    town.work().await;
    town.coupons.always("/take-back", Does::refuse(409, "locked_insufficient"));
    assert_eq!(town.shop.pay("o").await, Paid::Restoring);
    assert_eq!(town.shop.stock_figures("s").await, (4, 1, 0), "the local part is back");
    town.work().await;
    assert_eq!(town.shop.status("o").await, OrderStatus::Refunded);
    assert_eq!(town.shop.stock_figures("s").await, (5, 0, 0), "and given up again");
    let payments = payment::of_order(&mut town.shop.core.db.read().await.unwrap(), "o").await.unwrap();
    assert_eq!(payments[0].status, PaymentStatus::Refunded);
    assert_eq!(payments[0].lacking.as_deref(), Some(r#"[{"type":"coupon","key":"c","qty":1}]"#));
    let refunds = town.bank.seen("/refund");
    assert_eq!(refunds.len(), 1);
    assert_eq!(refunds[0].body["amount"], 10_000);
    assert_eq!(
        effects(&town),
        [effect("release", "c"), effect("release", "q")],
        "the undo releases what was superseded"
    );
    assert_eq!(town.shop.tasks("o").await.iter().filter(|t| t.action == Action::Settle).count(), 0);
    assert_eq!(town.shop.pay("o").await, Paid::RefundDue);
    town.all_is_well().await;
}

on_every_engine!(late_a_take_back_in_doubt_is_settled_before_the_order_gives_up);

async fn late_a_take_back_in_doubt_is_settled_before_the_order_gives_up(db: TestDb) {
    let town = Town::open(&db).await;
    mixed(&town).await;
    town.work().await;
    // The quota comes back without saying so; the coupon can't.
    town.quota.next("/take-back", Does::ApplyAndSay(500, "boom".into()));
    town.coupons.always("/take-back", Does::refuse(409, "state_mismatch"));
    assert_eq!(town.shop.pay("o").await, Paid::Restoring);
    town.lane(Quota.code()).await;
    town.work().await;
    assert_eq!(town.shop.status("o").await, OrderStatus::Restoring, "one is still in doubt");
    town.work_to_the_end().await;
    assert_eq!(town.shop.status("o").await, OrderStatus::Refunded);
    let quota: Vec<_> = town.quota.seen("/release").iter().map(|seen| seen.body["source"].clone()).collect();
    assert_eq!(quota.len(), 2, "what came back is released again: {quota:?}");
    assert_eq!(town.quota.effect_count(), 3);
    assert_eq!(town.shop.stock_figures("s").await, (5, 0, 0));
    town.all_is_well().await;
}

on_every_engine!(late_a_person_who_ends_a_take_back_decides_the_order);

async fn late_a_person_who_ends_a_take_back_decides_the_order(db: TestDb) {
    let town = Town::open(&db).await;
    mixed(&town).await;
    town.work().await;
    town.coupons.always("/take-back", Does::say(500, "boom"));
    assert_eq!(town.shop.pay("o").await, Paid::Restoring);
    town.work_to_the_end().await;
    assert_eq!(town.shop.status("o").await, OrderStatus::Restoring, "eight failures wait for a person");
    let back = town.shop.tasks("o").await.into_iter().find(|t| t.resource == Coupon && t.action == Action::TakeBack);
    let back = back.unwrap();
    assert_eq!((back.status, back.is_in_doubt), (TaskStatus::Manual, true));
    let act = ForceClose {
        task_id: back.id,
        reason: "they never had it".into(),
        expected_version: back.version,
        resolution: Resolution::LeaveOwed,
    };
    force_close(&town.shop.core, &operator("li"), act).await.unwrap();
    assert_eq!(town.shop.status("o").await, OrderStatus::RefundDue, "in the same transaction");
    town.work_to_the_end().await;
    assert_eq!(town.shop.status("o").await, OrderStatus::Refunded);
    town.all_is_well().await;
}
