//! The process ends between a remote call and its record, by a failpoint there and by `kill -9` at any moment:
//! after the restart each effect exists once at the service, and each task is finished (R11, R12).

use std::sync::atomic::{AtomicUsize, Ordering as Atomic};
use std::time::Duration;

use handback::core::words::ResourceType;

use super::Town;
use crate::support::database::{TestDb, on_every_engine};
use crate::support::process::{Handback, Running};
use crate::support::shop::{Ordering, an_order};
use crate::support::standin::Standin;

use ResourceType::{Coupon, Quota};

/// How often the failpoint ends a process, on each engine.
const FAILPOINTS: usize = 20;
/// How often a process is killed at random, on each engine: a hundred in all.
const KILLS: usize = 34;
const ORDERS: usize = 60;
const ROWS: usize = 3_000;

fn worker(db: &TestDb, coupons: &str, quota: &str) -> Handback {
    // A short limit makes short leases: what a killed process had claimed is due again soon.
    let service = |kind: &str, url: &str| {
        format!(
            "[remote.{kind}]\nbase_url = \"{url}\"\ntimeout_ms = 1000\nmax_concurrency = 4\nsupports = [\"settle\", \"release\", \"take_back\", \"status\"]\n"
        )
    };
    let file = format!(
        "[retry]\ndelays_ms = [100, 200]\nmax_failures = 1000\n{}{}",
        service("coupon", coupons),
        service("quota", quota)
    );
    Handback::new(["worker"]).database(&db.url).file("handback.toml", &file)
}

/// Runs a worker that nobody kills until no task is left.
async fn finish(db: &TestDb, worker: Running) {
    let open = "SELECT COUNT(*) FROM order_release_task WHERE status NOT IN (1, 5)";
    let wait = async {
        while db.count(open).await > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(120), wait).await;
    assert!(done.is_ok(), "{} tasks are left:\n{}", db.count(open).await, worker.stderr());
    worker.stop().ok();
}

on_every_engine!(r12_a_process_that_ends_between_call_and_record_costs_no_effect_and_makes_none_twice);

async fn r12_a_process_that_ends_between_call_and_record_costs_no_effect_and_makes_none_twice(db: TestDb) {
    let town = Town::open(&db).await;
    town.shop.clock.set(town.shop.core.db.now_ms().await.unwrap());
    for n in 0..ORDERS {
        let no = format!("o{n}");
        town.shop.placed(an_order(&no).holding(Coupon, &format!("c{n}"), 1).holding(Quota, "q", 1)).await;
        if n % 3 == 0 {
            town.shop.pay(&no).await;
        } else {
            town.shop.close(&no, "buyer").await;
        }
    }
    let (mut hits, mut last) = (0, 0);
    for round in 0..FAILPOINTS {
        let calls = (round % 3 + 1).to_string();
        let dying = worker(&db, &town.coupons.url, &town.quota.url).env("FAILPOINT_DIES_AFTER_CALL", &calls).start();
        let ended = tokio::task::spawn_blocking(move || dying.wait()).await.unwrap();
        assert_eq!(ended.code(), None, "it aborts:\n{}", ended.stderr);
        let effects = town.coupons.effect_count() + town.quota.effect_count();
        let recorded = db.count("SELECT COUNT(*) FROM order_release_task WHERE status = 1").await as usize;
        // Effects that exist and that nobody has on record.
        hits += usize::from(effects > recorded);
        last = effects - recorded;
    }
    eprintln!("{}: {hits} of {FAILPOINTS} ends left effects without a record, {last} of them now", db.engine.name());
    assert_eq!(hits, FAILPOINTS, "each hit");
    finish(&db, worker(&db, &town.coupons.url, &town.quota.url).start()).await;
    assert_eq!((town.coupons.effect_count(), town.quota.effect_count()), (ORDERS, ORDERS));
    assert_eq!(db.count("SELECT COUNT(*) FROM resource_flow WHERE action IN (1, 2)").await as usize, 2 * ORDERS);
    let calls = town.coupons.seen("/release").len() + town.coupons.seen("/settle").len();
    assert!(calls > ORDERS, "some were sent again");
    town.all_is_well().await;
}

on_every_engine!(r11_processes_killed_at_any_moment_leave_each_effect_once_and_each_task_finished);

async fn r11_processes_killed_at_any_moment_leave_each_effect_once_and_each_task_finished(db: TestDb) {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    let town = Town::open(&db).await;
    // Rows of a shop for orders that nobody knows: the worker hands them to their service.
    let rows: Vec<String> = (0..ROWS).map(|n| format!("('shop-{n}', 2, 'c{n}', 1)")).collect();
    for some in rows.chunks(1_000) {
        let insert = "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty) VALUES";
        db.execute(&format!("{insert} {}", some.join(", "))).await.unwrap();
    }
    // The service takes its time, so that something is always on its way.
    town.coupons.during_calls(|_| Box::pin(tokio::time::sleep(Duration::from_millis(10))));
    let mut hits = 0;
    for _ in 0..KILLS {
        let before = town.coupons.calls("/release");
        let running = worker(&db, &town.coupons.url, &town.quota.url).start();
        until_called(&town.coupons, before, &running).await;
        tokio::time::sleep(Duration::from_millis(rand::random_range(0..150))).await;
        running.signal("KILL");
        tokio::task::spawn_blocking(move || running.wait()).await.unwrap();
        let claimed = db.count("SELECT COUNT(*) FROM order_release_task WHERE claimed_by IS NOT NULL").await;
        hits += usize::from(claimed > 0);
    }
    let all = HITS.fetch_add(hits, Atomic::SeqCst) + hits;
    let done = db.count("SELECT COUNT(*) FROM order_release_task WHERE status = 1").await;
    eprintln!(
        "{}: {hits} of {KILLS} kills hit a task under way, {done} of {ROWS} were done by then ({all} hits so far in all)",
        db.engine.name()
    );
    assert!(hits * 2 > KILLS, "most kills hit");
    town.coupons.during_calls(|_| Box::pin(std::future::ready(())));
    finish(&db, worker(&db, &town.coupons.url, &town.quota.url).start()).await;
    assert_eq!(town.coupons.effect_count(), ROWS);
    assert_eq!(db.count("SELECT COUNT(*) FROM resource_flow WHERE action = 1").await as usize, ROWS);
    assert_eq!(db.count("SELECT COUNT(*) FROM order_release_task WHERE status = 1").await as usize, ROWS);
    town.all_is_well().await;
}

async fn until_called(standin: &Standin, before: usize, running: &Running) {
    let wait = async {
        while standin.calls("/release") == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let called = tokio::time::timeout(Duration::from_secs(60), wait).await;
    assert!(called.is_ok(), "nothing was sent:\n{}", running.stderr());
}
