//! Probe before retry: when the service is asked first, and what follows from done, not done and unknown.

use std::time::Duration;

use handback::adapters::RemoteSettings;
use handback::core::release::act::Retried;
use handback::core::words::{AttemptOutcome, TaskStatus};

use super::Town;
use crate::support::database::{TestDb, on_every_engine};
use crate::support::standin::Does;

const DAY: Duration = Duration::from_secs(86_400);

/// An order whose release was sent without a certain answer.
async fn doubtful(town: &Town, order_no: &str, does: Does) -> i64 {
    let id = town.closed(order_no).await.id;
    town.coupons.next("/release", does);
    town.coupon_lane().await;
    assert!(town.shop.task(order_no).await.is_in_doubt);
    id
}

fn applied() -> Does {
    Does::ApplyAndSay(500, "boom".into())
}

fn not_applied() -> Does {
    Does::say(500, "boom")
}

on_every_engine!(past_the_keys_lifetime_the_service_is_asked_first);

async fn past_the_keys_lifetime_the_service_is_asked_first(db: TestDb) {
    let town = Town::open(&db).await;
    doubtful(&town, "done", applied()).await;
    doubtful(&town, "not-done", not_applied()).await;
    doubtful(&town, "unknown", applied()).await;
    let key = town.coupons.seen("/release")[2].key.clone().unwrap();
    town.coupons.says_of(&key, "unknown");
    town.shop.later(DAY);
    town.work().await;

    let done = town.shop.task("done").await;
    assert_eq!((done.status, done.outcome), (TaskStatus::Succeeded, Some(AttemptOutcome::Duplicate)));
    town.is_succeeded("not-done").await;
    let unknown = town.shop.task("unknown").await;
    assert_eq!((unknown.status, unknown.is_in_doubt), (TaskStatus::Manual, true), "a person decides");
    let sent = |no: &str| town.coupons.seen("/release").iter().filter(|seen| seen.body["order_no"] == no).count();
    assert_eq!((sent("done"), sent("not-done"), sent("unknown")), (1, 2, 1));
    assert_eq!(town.coupons.seen("/status").len(), 3);
    town.all_is_well().await;
}

on_every_engine!(within_the_lifetime_a_worker_simply_sends_it_again);

async fn within_the_lifetime_a_worker_simply_sends_it_again(db: TestDb) {
    let town = Town::open(&db).await;
    doubtful(&town, "o", applied()).await;
    town.at_next_try("o").await;
    town.work().await;
    town.is_succeeded("o").await;
    assert!(town.coupons.seen("/status").is_empty());
    town.all_is_well().await;
}

on_every_engine!(a_person_who_retries_a_doubt_is_told_what_the_service_says);

async fn a_person_who_retries_a_doubt_is_told_what_the_service_says(db: TestDb) {
    let town = Town::open(&db).await;
    let done = doubtful(&town, "done", applied()).await;
    let not_done = doubtful(&town, "not-done", not_applied()).await;
    let unknown = doubtful(&town, "unknown", not_applied()).await;
    let key = town.coupons.seen("/release")[2].key.clone().unwrap();
    town.coupons.says_of(&key, "unknown");

    assert!(matches!(town.shop.retry("li", done).await, Retried::Succeeded(_)));
    assert!(matches!(town.shop.retry("li", not_done).await, Retried::Succeeded(_)));
    let retried = town.shop.retry("li", unknown).await;
    let Retried::Failed(task) = retried else { panic!("{retried:?}") };
    assert_eq!((task.status, task.is_in_doubt), (TaskStatus::Manual, true));
    let sent = |no: &str| town.coupons.seen("/release").iter().filter(|seen| seen.body["order_no"] == no).count();
    assert_eq!((sent("done"), sent("not-done"), sent("unknown")), (1, 2, 1));
    assert_eq!(db.count("SELECT COUNT(*) FROM audit_log WHERE action = 'task.retry'").await, 3);
    town.all_is_well().await;
}

on_every_engine!(where_nobody_can_be_asked_a_doubt_past_its_lifetime_is_a_persons);

async fn where_nobody_can_be_asked_a_doubt_past_its_lifetime_is_a_persons(db: TestDb) {
    let town = Town::with(&db, |settings| RemoteSettings { has_status: false, ..settings }).await;
    doubtful(&town, "worker", applied()).await;
    let by_hand = doubtful(&town, "by-hand", applied()).await;
    let retried = town.shop.retry("li", by_hand).await;
    assert!(matches!(&retried, Retried::Failed(task) if task.status == TaskStatus::Manual), "{retried:?}");
    town.shop.later(DAY);
    town.work().await;
    let task = town.shop.task("worker").await;
    assert_eq!((task.status, task.is_in_doubt), (TaskStatus::Manual, true));
    assert_eq!(town.coupons.seen("/release").len(), 2, "nothing was sent again");
    assert!(town.coupons.seen("/status").is_empty());
    town.all_is_well().await;
}

on_every_engine!(not_now_says_nothing_of_the_try_before_it);

async fn not_now_says_nothing_of_the_try_before_it(db: TestDb) {
    let town = Town::open(&db).await;
    town.closed("calm").await;
    town.coupons.next("/release", Does::busy(429, "1"));
    town.coupon_lane().await;
    assert!(!town.shop.task("calm").await.is_in_doubt, "refused for certain, and nothing before it");
    doubtful(&town, "doubt", applied()).await;
    town.at_next_try("doubt").await;
    town.coupons.always("/release", Does::busy(503, "1"));
    town.coupon_lane().await;
    assert!(town.shop.task("doubt").await.is_in_doubt);
    town.coupons.always("/release", Does::Apply);
    town.work_to_the_end().await;
    town.is_succeeded("calm").await;
    town.is_succeeded("doubt").await;
    town.all_is_well().await;
}
