//! Circuit, rate, concurrency, Retry-After; and that a slow service holds up nobody else.

use std::sync::Arc;
use std::time::Duration;

use handback::adapters::RemoteSettings;
use handback::core::release::remote;
use handback::core::words::{ResourceType, TaskStatus};
use handback::worker::{Settings, Worker};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::Town;
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering, an_order};
use crate::support::standin::Does;

use ResourceType::{Coupon, Quota};

on_every_engine!(a_circuit_opens_and_one_probe_closes_it);

async fn a_circuit_opens_and_one_probe_closes_it(db: TestDb) {
    let town = Town::open(&db).await;
    town.coupons.always("/release", Does::say(500, "no"));
    for n in 0..5 {
        town.closed(&format!("o{n}")).await;
        town.coupon_lane().await;
    }
    assert_eq!(town.coupons.seen("/release").len(), 5);
    town.closed("waits").await;
    let room = remote::service_of(&town.shop.core, Coupon.code()).unwrap().room();
    assert_eq!((room.calls, room.wait_ms), (0, 1000), "nothing is claimed only to wait");
    // A claim that meets the open circuit all the same is as if it had never been.
    let before = town.shop.task("waits").await;
    town.coupon_lane().await;
    let held = town.shop.task("waits").await;
    assert_eq!(town.coupons.seen("/release").len(), 5, "nothing was sent");
    assert_eq!((held.status, held.retry, held.kind), (TaskStatus::Waiting, 0, None));
    assert_eq!((held.is_in_doubt, held.sent_at, held.next_at), (false, None, before.next_at.map(|at| at + 1000)));
    assert_eq!(db.count(&format!("SELECT COUNT(*) FROM task_attempt WHERE task_id = {}", held.id)).await, 0);

    // One probe at a time; it fails, and the circuit stays open twice as long.
    town.shop.later(Duration::from_millis(1000));
    assert_eq!(remote::service_of(&town.shop.core, Coupon.code()).unwrap().room().calls, 1);
    town.lane(Coupon.code()).await;
    assert_eq!(town.coupons.seen("/release").len(), 6, "of six due tasks one was sent");
    town.coupons.always("/release", Does::Apply);
    town.lane(Coupon.code()).await;
    assert_eq!(town.coupons.seen("/release").len(), 6);
    town.shop.later(Duration::from_millis(2000));
    town.work_to_the_end().await;
    for no in ["o0", "o1", "o2", "o3", "o4", "waits"] {
        town.is_succeeded(no).await;
    }
    town.all_is_well().await;
}

on_every_engine!(retry_after_is_waited_for_and_not_longer);

async fn retry_after_is_waited_for_and_not_longer(db: TestDb) {
    let town = Town::open(&db).await;
    town.closed("o").await;
    town.coupons.next("/release", Does::busy(429, "60"));
    town.work().await;
    town.shop.later(Duration::from_secs(59));
    town.work().await;
    assert_eq!(town.coupons.seen("/release").len(), 1, "not before Retry-After");
    town.shop.later(Duration::from_secs(1));
    town.work().await;
    town.is_succeeded("o").await;
    town.all_is_well().await;
}

on_every_engine!(no_more_calls_a_second_than_configured);

async fn no_more_calls_a_second_than_configured(db: TestDb) {
    let town = Town::with(&db, |settings| RemoteSettings { rate_per_s: Some(10), ..settings }).await;
    for n in 0..30 {
        town.closed(&format!("o{n}")).await;
    }
    for _ in 0..100 {
        town.lane(Coupon.code()).await;
        town.shop.later(Duration::from_millis(10));
    }
    let sent = town.coupons.seen("/release").len();
    assert!((9..=11).contains(&sent), "{sent} in one second");
    let untouched =
        db.count("SELECT COUNT(*) FROM order_release_task WHERE status = 0 AND retry = 0 AND doubt = 0").await;
    assert_eq!(untouched, 30 - sent as i64, "what had to wait used up no try");
    town.work_to_the_end().await;
    assert_eq!(town.coupons.effect_count(), 30);
    town.all_is_well().await;
}

/// A worker on the test's clock, until it is told to stop.
fn working(town: &Town, db: &TestDb) -> (CancellationToken, tokio::task::JoinHandle<()>) {
    let stop = CancellationToken::new();
    let settings = Settings { name: "w".into(), scan_interval: Duration::from_secs(1), database_url: db.url.clone() };
    (stop.clone(), tokio::spawn(Worker::new(town.shop.core.clone(), settings, stop).run()))
}

async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("it comes to that");
}

on_every_engine!(a_service_that_hangs_holds_up_neither_the_others_nor_more_calls_than_it_may_have);

async fn a_service_that_hangs_holds_up_neither_the_others_nor_more_calls_than_it_may_have(db: TestDb) {
    const ORDERS: usize = 40;
    let town = Town::with(&db, |settings| RemoteSettings { max_concurrency: 3, ..settings }).await;
    town.shop.stock("s", 100).await;
    for n in 0..ORDERS {
        let no = format!("o{n}");
        let order = an_order(&no).holding(Coupon, &format!("c{n}"), 1).holding(Quota, "q", 1);
        town.shop.placed(order.holding(ResourceType::Stock, "s", 1)).await;
        town.shop.close(&no, "buyer").await;
    }
    // Coupons answer only when the test says so: meanwhile they hang.
    let gate = Arc::new(Semaphore::new(0));
    let shut = gate.clone();
    town.coupons.during_calls(move |_| {
        let shut = shut.clone();
        Box::pin(async move { shut.acquire().await.unwrap().forget() })
    });
    let (stop, worker) = working(&town, &db);
    until(async || town.quota.effect_count() == ORDERS && town.shop.stock_figures("s").await == (100, 0, 0)).await;
    until(async || town.coupons.running() == 3).await;
    assert_eq!(town.coupons.effect_count(), 0, "all others are done before one coupon is");
    // No task is claimed only to wait.
    let claimed = "SELECT COUNT(*) FROM order_release_task WHERE claimed_by IS NOT NULL";
    until(async || db.count(claimed).await == 3).await;
    gate.add_permits(ORDERS);
    let open = "SELECT COUNT(*) FROM order_release_task WHERE status IN (0, 2, 3)";
    until(async || db.count(open).await == 0).await;
    stop.cancel();
    worker.await.unwrap();
    assert_eq!(town.coupons.effect_count(), ORDERS);
    assert_eq!(town.coupons.most_running(), 3);
    assert!(town.quota.most_running() <= 8);
    town.all_is_well().await;
}

on_every_engine!(a_worker_told_to_stop_records_what_it_has_sent);

async fn a_worker_told_to_stop_records_what_it_has_sent(db: TestDb) {
    let town = Town::open(&db).await;
    town.closed("o").await;
    let gate = Arc::new(Semaphore::new(0));
    let shut = gate.clone();
    town.coupons.during_calls(move |_| {
        let shut = shut.clone();
        Box::pin(async move { shut.acquire().await.unwrap().forget() })
    });
    let (stop, worker) = working(&town, &db);
    until(async || town.coupons.running() == 1).await;
    stop.cancel();
    gate.add_permits(1);
    worker.await.unwrap();
    town.is_succeeded("o").await;
    town.all_is_well().await;
}

on_every_engine!(tasks_of_a_service_that_is_not_configured_wait_and_nothing_spins);

async fn tasks_of_a_service_that_is_not_configured_wait_and_nothing_spins(db: TestDb) {
    let town = Town::open(&db).await;
    town.closed("o").await;
    let mut other = town.shop.another_process(&db).await;
    other.core = handback::core::Core::new(other.core.db.clone(), other.clock.clone(), super::policy());
    let before = other.task("o").await;
    let ran = remote::run_due(&other.core, &crate::support::shop::worker("w"), Coupon.code(), 10).await.unwrap();
    assert_eq!(ran.claimed, 0);
    assert_eq!(other.work().await.claimed, 0, "nor are they taken for local ones");
    assert!(matches!(other.retry("li", before.id).await, handback::core::release::act::Retried::NotRetryable(_)));
    assert_eq!(other.task("o").await, before);
    // The service is back in the configuration: they go on.
    town.work().await;
    town.is_succeeded("o").await;
    town.all_is_well().await;
}
