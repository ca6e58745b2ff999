//! A worker that falls asleep in the middle of a batch (a paused machine) and wakes up when others have
//! long done its work: it changes nothing (R10).

use std::time::{Duration, Instant};

use serde_json::json;

use super::{rules_hold, serving, until_idle};
use crate::support::database::{Engine, TestDb, on_every_server};
use crate::support::process::Handback;

const TASKS: i64 = 20_000;
const DONE: &str = "SELECT COUNT(*) FROM order_release_task WHERE status = 1";

on_every_server!(r10_a_worker_that_wakes_up_after_others_did_its_work_changes_nothing);

async fn r10_a_worker_that_wakes_up_after_others_did_its_work_changes_nothing(db: TestDb) {
    let (serve, api, _) = serving(&db, &["--no-worker"]).await;
    assert_eq!(api.put("/ledger/stock/s", json!({"available": 0})).await.status, 200);
    let locked = json!({"adjust_locked": TASKS, "ref": "moved in", "reason": "test"});
    assert_eq!(api.put("/ledger/stock/s", locked).await.status, 200);
    let rows: Vec<String> = (0..TASKS).map(|n| format!("('shop-{n}', 1, 's', 1)")).collect();
    for some in rows.chunks(1_000) {
        let columns = "order_no, resource_type, biz_key, qty";
        let insert = format!("INSERT INTO order_release_task ({columns}) VALUES {}", some.join(", "));
        db.execute(&insert).await.unwrap();
    }

    let sleeper = Handback::new(["worker"]).database(&db.url).start();
    let asleep = fall_asleep_holding_a_batch(&db, &sleeper).await;
    assert!(asleep > 0 && db.count(DONE).await < TASKS);
    // What a server does with a client that is gone; here the client comes back.
    end_sessions_that_hold_locks(&db).await;
    let other = Handback::new(["worker"]).database(&db.url).start();
    until_idle(&api).await;
    assert_eq!(db.count(DONE).await, TASKS);

    sleeper.signal("CONT");
    // It finds its sessions gone and goes on as a worker: what comes next may be run by it.
    let locked = json!({"adjust_locked": 1, "ref": "one more", "reason": "test"});
    assert_eq!(api.put("/ledger/stock/s", locked).await.status, 200);
    other.stop().ok();
    db.execute("INSERT INTO order_release_task (order_no, resource_type, biz_key, qty) VALUES ('last', 1, 's', 1)")
        .await
        .unwrap();
    until_idle(&api).await;
    assert_eq!(db.count(DONE).await, TASKS + 1);
    assert_eq!(db.count("SELECT COUNT(*) FROM task_attempt").await, 0, "no false failure was recorded");
    assert_eq!(db.count("SELECT COUNT(*) FROM resource_flow WHERE action = 1").await, TASKS + 1);
    let stock = api.get("/ledger/stock/s").await.body;
    assert_eq!((&stock["available"], &stock["locked"]), (&json!(TASKS + 1), &json!(0)), "{stock}");
    let ended = sleeper.stop();
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    serve.stop().ok();
    rules_hold(&db);
}

/// Stops the process at a moment when it has a transaction open; how many it has.
async fn fall_asleep_holding_a_batch(db: &TestDb, worker: &crate::support::process::Running) -> i64 {
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(60) {
        if db.count(DONE).await > 0 {
            worker.signal("STOP");
            tokio::time::sleep(Duration::from_millis(200)).await;
            let open = db.count(open_transactions(db)).await;
            if open > 0 {
                return open;
            }
            worker.signal("CONT");
        }
    }
    panic!("the worker was never caught in the middle of a batch:\n{}", worker.stderr());
}

fn open_transactions(db: &TestDb) -> &'static str {
    match db.engine {
        Engine::Postgres => {
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND state = 'idle in transaction'"
        }
        _ => {
            "SELECT COUNT(*) FROM information_schema.innodb_trx t \
             JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id \
             WHERE p.db = DATABASE() AND p.command = 'Sleep'"
        }
    }
}

/// Also a session that waits for a lock: it would get it, for a process that doesn't run.
async fn end_sessions_that_hold_locks(db: &TestDb) {
    if db.engine == Engine::Postgres {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
                   AND pid <> pg_backend_pid() AND state IN ('active', 'idle in transaction')";
        db.execute(end).await.unwrap();
        return;
    }
    for id in db
        .texts(
            "SELECT CAST(p.id AS CHAR) FROM information_schema.innodb_trx t \
         JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id \
         WHERE p.db = DATABASE()",
        )
        .await
    {
        db.execute(&format!("KILL {id}")).await.unwrap();
    }
}
