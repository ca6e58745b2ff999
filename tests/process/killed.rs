//! `kill -9` in the middle of a batch, again and again: after the restart every effect exists exactly
//! once (R5, R6, R11), and no work is forgotten.

use serde_json::json;

use super::{rules_hold, serving, until_idle};
use crate::support::database::{TestDb, on_every_engine};
use crate::support::process::Handback;

/// Enough for several batches, on keys that several tasks of a batch share.
const TASKS: i64 = 30_000;
const KEYS: i64 = 50;

on_every_engine!(r11_after_kill_9_in_the_middle_of_a_batch_every_effect_exists_once);

async fn r11_after_kill_9_in_the_middle_of_a_batch_every_effect_exists_once(db: TestDb) {
    let (serve, api, _) = serving(&db, &["--no-worker"]).await;
    for key in 0..KEYS {
        let path = format!("/ledger/stock/s{key}");
        assert_eq!(api.put(&path, json!({"available": 5})).await.status, 200);
        let locked = json!({"adjust_locked": TASKS / KEYS, "ref": "moved in", "reason": "test"});
        assert_eq!(api.put(&path, locked).await.status, 200);
    }
    serve.stop().ok();
    a_shop_writes_its_outbox(&db).await;

    let done = "SELECT COUNT(*) FROM order_release_task WHERE status = 1";
    for round in 1..=3 {
        let (serve, _) = Handback::new(["serve", "--listen", "127.0.0.1:0"]).database(&db.url).serve();
        let goal = TASKS * round / 5;
        while db.count(done).await < goal {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        serve.signal("KILL");
        serve.wait();
    }
    let before = db.count(done).await;
    assert!(before < TASKS, "all was done before the last kill, that tests nothing");

    let (serve, api, _) = serving(&db, &[]).await;
    until_idle(&api).await;
    assert_eq!(db.count(done).await, TASKS);
    assert_eq!(db.count("SELECT COUNT(*) FROM resource_flow WHERE action = 1").await, TASKS);
    for key in 0..KEYS {
        let stock = api.get(&format!("/ledger/stock/s{key}")).await.body;
        assert_eq!(stock["available"], json!(5 + TASKS / KEYS), "s{key}: {stock}");
        assert_eq!(stock["locked"], json!(0), "s{key}: {stock}");
    }
    serve.stop().ok();
    rules_hold(&db);
}

/// Rows as a shop writes them itself, for orders Handback doesn't know.
async fn a_shop_writes_its_outbox(db: &TestDb) {
    let rows: Vec<String> = (0..TASKS).map(|n| format!("('shop-{n}', 1, 's{}', 1)", n % KEYS)).collect();
    for some in rows.chunks(1_000) {
        let insert = format!(
            "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty) VALUES {}",
            some.join(", ")
        );
        assert_eq!(db.execute(&insert).await.unwrap(), some.len() as u64);
    }
}
