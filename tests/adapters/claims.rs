//! R10 to R13 and R19 for tasks that services work off: fences, crashes, no open transaction, lost commits.

use std::sync::Arc;
use std::time::Duration;

use handback::core::release::remote::{self, Recorded};
use handback::core::words::{FailureKind, ResourceType, TaskStatus};
use handback::store::attempt::LOST;
use handback::store::task;
use tokio::sync::Notify;

use super::Town;
use crate::support::database::{Engine, TestDb, on_every_engine, on_every_server};
use crate::support::proxy::{Cut, Proxy};
use crate::support::servers::Server;
use crate::support::shop::{operator, worker};
use crate::support::standin::Does;

use ResourceType::Coupon;

/// Longer than any lease of these tests.
const LEASE: Duration = Duration::from_secs(120);

on_every_engine!(r10_a_worker_that_comes_back_from_the_dead_changes_nothing);

async fn r10_a_worker_that_comes_back_from_the_dead_changes_nothing(db: TestDb) {
    let town = Town::open(&db).await;
    town.closed("o").await;
    let core = &town.shop.core;
    let dead = remote::claim(core, &worker("dead"), Coupon.code(), 10).await.unwrap();
    assert_eq!(dead.tasks.len(), 1);
    assert_eq!(town.coupon_lane().await.claimed, 0, "it is under a lease");
    town.shop.later(LEASE);
    // The other worker is refused; the dead one would have been heard.
    town.coupons.next("/release", Does::refuse(409, "state_mismatch"));
    town.coupon_lane().await;
    let before = town.shop.task("o").await;
    assert_eq!((before.status, before.retry), (TaskStatus::Manual, 2), "the lost try counts (R11)");
    let late = remote::run(core, &worker("dead"), dead.tasks[0].clone()).await.unwrap();
    assert_eq!(late, Recorded::Lost);
    assert_eq!(town.coupons.seen("/release").len(), 1, "its lease was over: it sends nothing");
    assert_eq!(town.shop.task("o").await, before, "the task is as the living one left it");
    assert_eq!(db.count("SELECT COUNT(*) FROM resource_flow WHERE action = 1").await, 0);
    let tries = task::attempts(&mut core.db.read().await.unwrap(), &before).await.unwrap();
    assert_eq!(tries.len(), 2, "{tries:#?}");
    assert_eq!(tries[0].actor, "worker:dead");
    let said = tries[0].error.as_deref().unwrap_or_default();
    assert!(said.starts_with("no outcome was recorded"), "{tries:#?}");
    assert_eq!(tries[1].kind, Some(FailureKind::StateMismatch));
    // A person tries again, and the service does it.
    town.shop.retry("li", before.id).await;
    town.is_succeeded("o").await;
    town.all_is_well().await;
}

on_every_engine!(r11_a_try_whose_process_ended_counts_and_the_last_one_is_left_to_a_person);

async fn r11_a_try_whose_process_ended_counts_and_the_last_one_is_left_to_a_person(db: TestDb) {
    let town = Town::open(&db).await;
    town.closed("o").await;
    for n in 1..=8 {
        let claims = remote::claim(&town.shop.core, &worker("w"), Coupon.code(), 10).await.unwrap();
        assert_eq!(claims.tasks.len(), 1);
        let task = town.shop.task("o").await;
        assert_eq!((task.retry, task.is_in_doubt), (n, true), "counted at the claim");
        town.shop.later(LEASE);
    }
    assert_eq!(town.coupon_lane().await.claimed, 1, "it is seen, and not sent");
    let task = town.shop.task("o").await;
    assert_eq!((task.status, task.is_in_doubt, task.retry), (TaskStatus::Manual, true, 8));
    let tries = task::attempts(&mut town.shop.core.db.read().await.unwrap(), &task).await.unwrap();
    assert_eq!(tries.len(), 8);
    assert!(tries.iter().all(|a| a.error.as_deref() == Some(LOST) && a.ended_at.is_some()), "{tries:#?}");
    assert!(town.coupons.seen("/release").is_empty());
    town.all_is_well().await;
}

on_every_engine!(r12_no_transaction_is_open_while_a_service_is_called);

async fn r12_no_transaction_is_open_while_a_service_is_called(db: TestDb) {
    let town = Town::open(&db).await;
    for no in ["a", "b"] {
        town.closed(no).await;
    }
    let (other, locked) = (db.clone(), Arc::new(std::sync::atomic::AtomicUsize::new(0)));
    let count = locked.clone();
    town.coupons.during_calls(move |seen| {
        let (db, count) = (other.clone(), count.clone());
        Box::pin(async move {
            let no = seen.body["order_no"].as_str().unwrap_or_default().to_owned();
            // Another connection changes the order and the task: it would wait for a lock, and fail on SQLite.
            let touch = async {
                db.execute(&format!("UPDATE orders SET version = version + 1 WHERE order_no = '{no}'")).await.unwrap();
                // By the column that leads an index: a scan would lock the other order's task as well, on MariaDB.
                db.execute(&format!("UPDATE order_release_task SET error = 'x' WHERE ref_no = '{no}'")).await.unwrap();
            };
            tokio::time::timeout(Duration::from_secs(10), touch).await.expect("nobody holds a lock");
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        })
    });
    town.work().await;
    assert_eq!(locked.load(std::sync::atomic::Ordering::SeqCst), 2);
    town.is_succeeded("a").await;
    town.is_succeeded("b").await;
    town.all_is_well().await;
}

on_every_server!(r13_a_lost_commit_of_a_claim_or_a_record_costs_time_and_no_effect);

async fn r13_a_lost_commit_of_a_claim_or_a_record_costs_time_and_no_effect(db: TestDb) {
    let server = Server::shared(db.engine).port;
    let proxy = Proxy::in_front_of(server).await;
    let through = TestDb::at(db.engine, db.url.replace(&format!(":{server}/"), &format!(":{}/", proxy.port)));
    let town = Town::open(&through).await;
    for (n, how) in [Cut::BeforeCommit, Cut::AfterCommit].into_iter().enumerate() {
        let claim = format!("claim{n}");
        town.closed(&claim).await;
        proxy.lose_the_next_commit(how);
        town.coupon_lane().await;
        town.shop.later(LEASE);
        town.coupon_lane().await;
        town.is_succeeded(&claim).await;

        let record = format!("record{n}");
        town.closed(&record).await;
        let claims = remote::claim(&town.shop.core, &worker("w"), Coupon.code(), 10).await.unwrap();
        let lost = proxy.lost();
        proxy.lose_the_next_commit(how);
        let recorded = remote::run(&town.shop.core, &worker("w"), claims.tasks[0].clone()).await.unwrap();
        assert_eq!(proxy.lost() - lost, 1);
        let expected = if how == Cut::AfterCommit { Recorded::Lost } else { Recorded::Succeeded };
        assert_eq!(recorded, expected, "run again, it finds its own record");
        town.is_succeeded(&record).await;
        let task = town.shop.task(&record).await;
        let tries = task::attempts(&mut town.shop.core.db.read().await.unwrap(), &task).await.unwrap();
        assert_eq!((tries.len(), task.retry), (1, 0), "{tries:#?}");
    }
    assert_eq!(town.coupons.effect_count(), 4);
    town.all_is_well().await;
}

on_every_engine!(r10_a_persons_retry_takes_the_task_from_a_running_worker);

async fn r10_a_persons_retry_takes_the_task_from_a_running_worker(db: TestDb) {
    let town = Town::open(&db).await;
    let id = town.closed("o").await.id;
    let (arrived, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (here, wait) = (arrived.clone(), go.clone());
    town.coupons.during_calls(move |seen| {
        let (here, wait) = (here.clone(), wait.clone());
        Box::pin(async move {
            if seen.path == "/release" && seen.body["attempt"] == 1 {
                here.notify_one();
                wait.notified().await;
            }
        })
    });
    let core = town.shop.core.clone();
    let working = tokio::spawn(async move { remote::run_due(&core, &worker("w"), Coupon.code(), 1).await });
    arrived.notified().await;
    // In doubt, so the service is asked first; it says the truth: not done yet.
    let retried = town.shop.retry("li", id).await;
    assert!(matches!(retried, handback::core::release::act::Retried::Succeeded(_)), "{retried:?}");
    let after = town.shop.task("o").await;
    go.notify_one();
    working.await.unwrap().unwrap();
    assert_eq!(town.shop.task("o").await, after, "the worker's outcome changed nothing");
    assert_eq!(after.ended_by.as_deref(), Some(operator("li").to_string().as_str()));
    assert_eq!(db.count("SELECT COUNT(*) FROM audit_log WHERE action = 'task.retry'").await, 1);
    assert_eq!(town.coupons.seen("/status").len(), 1);
    town.all_is_well().await;
}

on_every_engine!(r19_services_payments_and_people_at_once_end_without_a_deadlock);

async fn r19_services_payments_and_people_at_once_end_without_a_deadlock(db: TestDb) {
    let town = Town::open(&db).await;
    let orders: i64 = if db.engine == Engine::Sqlite { 12 } else { 24 };
    for n in 0..orders {
        town.closed(&format!("o{n}")).await;
    }
    let mut acts = tokio::task::JoinSet::new();
    for n in 0..orders {
        let (shop, no) = (town.shop.clone(), format!("o{n}"));
        let id = town.shop.task(&no).await.id;
        acts.spawn({
            let (shop, no) = (shop.clone(), no.clone());
            async move {
                shop.pay(&no).await;
            }
        });
        acts.spawn(async move { drop(shop.retry("li", id).await) });
        let core = town.shop.core.clone();
        acts.spawn(async move {
            remote::run_due(&core, &worker("w"), Coupon.code(), 3).await.unwrap();
        });
    }
    while let Some(done) = acts.join_next().await {
        done.unwrap();
    }
    town.work_to_the_end().await;
    let restored = db.count("SELECT COUNT(*) FROM orders WHERE status = 1").await;
    assert_eq!(restored, orders, "every order is PAID");
    assert_eq!(db.count("SELECT COUNT(*) FROM order_release_task WHERE status IN (0, 2, 3)").await, 0);
    town.all_is_well().await;
}
