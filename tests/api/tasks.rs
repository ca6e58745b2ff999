//! Listing, showing, retrying and force-closing tasks.

use serde_json::{Value, json};

use super::door::{Door, START_MS};
use crate::support::database::{TestDb, on_every_engine};

/// A shop's own row for more than is locked: its first try ends `locked_insufficient`, manual.
async fn a_manual_task(db: &TestDb, door: &Door, order_no: &str, key: &str) -> i64 {
    let insert = format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at, created_at) \
         VALUES ('{order_no}', 1, '{key}', 5, {START_MS}, {START_MS})"
    );
    db.execute(&insert).await.unwrap();
    door.work().await;
    let found = door.get(&format!("/tasks?order_no={order_no}")).await.expect(200);
    assert_eq!(found["items"][0]["status"], "manual", "{found:#}");
    found["items"][0]["id"].as_i64().unwrap()
}

on_every_engine!(a_task_tells_its_whole_story, a_retry_runs_it_now, a_force_close_moves_nothing);

async fn a_task_tells_its_whole_story(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 1).await;
    let id = a_manual_task(&db, &door, "x1", "s1").await;
    let task = door.get(&format!("/tasks/{id}")).await.expect(200);
    let expected = json!({"id": id, "order_no": "x1", "ref_no": "x1", "round": 1, "source": "close", "action": "release",
        "type": "stock", "key": "s1", "qty": 5, "status": "manual", "kind": "locked_insufficient", "error": task["error"],
        "retry": 1, "max_failures": 8, "next_at": null, "created_at": "2026-11-30T10:00:00.000Z", "finished_at": null,
        "ended_by": null, "version": task["version"], "attempts": task["attempts"], "flow": []});
    assert_eq!(task, expected);
    assert!(task["error"].as_str().is_some_and(|error| !error.is_empty()));
    let attempt = json!({"n": 1, "started_at": "2026-11-30T10:00:00.000Z", "ended_at": "2026-11-30T10:00:00.000Z",
        "outcome": "failed", "kind": "locked_insufficient", "error": task["error"], "actor": "worker:w1"});
    assert_eq!(task["attempts"], json!([attempt]));
    for unknown in ["/tasks/999999", "/tasks/none", "/tasks/-1", "/tasks/99999999999999999999"] {
        door.get(unknown).await.problem(404, "not_found");
    }
}

async fn a_retry_runs_it_now(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 1).await;
    let id = a_manual_task(&db, &door, "x1", "s1").await;
    let retry = async || door.post(&format!("/tasks/{id}/retry"), json!({"reason": "counted again"})).await.expect(200);
    let failed = retry().await;
    assert_eq!((failed["result"].as_str(), failed["kind"].as_str()), (Some("failed"), Some("locked_insufficient")));
    assert_eq!(failed["task"]["retry"], 2);
    let lock = json!({"adjust_locked": 5, "ref": "r1", "reason": "was missing"});
    door.put("/ledger/stock/s1", lock).await.expect(200);
    let done = retry().await;
    assert_eq!((done["result"].as_str(), &done["kind"]), (Some("succeeded"), &Value::Null));
    assert_eq!(done["task"]["ended_by"], "token:admin");
    assert_eq!(retry().await["result"], "already_done");
    assert_eq!(door.figures("stock/s1").await, [6, 0, 0]);
    let task = door.get(&format!("/tasks/{id}")).await.expect(200);
    assert_eq!(task["attempts"].as_array().unwrap().len(), 3);
    assert_eq!(task["flow"][0]["task_id"], id);
    let stale = json!({"reason": "x", "expected_version": 0});
    door.post(&format!("/tasks/{id}/force-close"), stale).await.problem(409, "not_closable");
    door.post("/tasks/999999/retry", json!({"reason": "x"})).await.problem(404, "not_found");
}

async fn a_force_close_moves_nothing(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 1).await;
    let id = a_manual_task(&db, &door, "x1", "s1").await;
    let path = format!("/tasks/{id}/force-close");
    let version = door.get(&format!("/tasks/{id}")).await.expect(200)["version"].as_i64().unwrap();
    let close =
        |version: i64| json!({"reason": "written off", "expected_version": version, "resolution": "leave_owed"});
    door.post(&path, close(version - 1)).await.problem(409, "stale");
    let outside = json!({"reason": "x", "expected_version": version, "resolution": "done_outside"});
    assert_eq!(door.post(&path, outside).await.fields(422), ["resolution"]);
    assert_eq!(door.post(&path, json!({"reason": "x"})).await.fields(422), ["expected_version"]);
    let closed = door.post(&path, close(version)).await.expect(200);
    assert_eq!(
        (closed["result"].as_str(), closed["task"]["status"].as_str()),
        (Some("force_closed"), Some("force_closed"))
    );
    let again = json!({"reason": "x", "expected_version": version});
    assert_eq!(door.post(&path, again).await.expect(200)["result"], "already_force_closed");
    door.post(&format!("/tasks/{id}/retry"), json!({"reason": "x"})).await.problem(409, "not_retryable");
    assert_eq!(door.figures("stock/s1").await, [1, 0, 0]);
    // The debt is settled by an adjustment that names the task; it stays force-closed.
    let settle = json!({"adjust": 5, "ref": "r1", "reason": "found them", "task": id});
    door.put("/ledger/stock/s1", settle).await.expect(200);
    assert_eq!(door.get(&format!("/tasks/{id}")).await.expect(200)["status"], "force_closed");
}

on_every_engine!(a_list_is_read_page_by_page_under_a_filter);

async fn a_list_is_read_page_by_page_under_a_filter(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 100).await;
    door.put("/ledger/quota/q1", json!({"available": 100})).await.expect(200);
    for n in 0..7 {
        let order = json!({"order_no": format!("o{n}"), "buyer": "u", "amount": 1, "currency": "CNY",
            "holds": [{"type": "stock", "key": "s1", "qty": 1}, {"type": "quota", "key": "q1", "qty": 1}]});
        door.post("/orders", order).await.expect(201);
        door.post(&format!("/orders/o{n}/close"), json!({"reason": "buyer"})).await.expect(200);
        if n == 3 {
            door.work().await;
            door.clock.set(START_MS + 60_000);
        }
    }
    let manual = a_manual_task(&db, &door, "x1", "s2").await;
    let read = async |query: &str| {
        let (mut ids, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = door.get(&format!("/tasks?limit=3&{query}{cursor}")).await.expect(200);
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= 3 && items[0].get("attempts").is_none());
            ids.extend(items.iter().map(|task| task["id"].as_i64().unwrap()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return ids,
            }
        }
    };
    let all = read("").await;
    assert_eq!(all.len(), 15);
    assert!(all.is_sorted());
    assert_eq!(read("type=stock,quota").await, all);
    assert_eq!(read("type=quota").await.len(), 7);
    assert_eq!(read("status=manual").await, [manual]);
    assert_eq!(read("kind=resource_missing,locked_insufficient").await, [manual]);
    assert_eq!(read("order_no=o5").await.len(), 2);
    assert_eq!(read("status=succeeded&older_than_s=60").await.len(), 8);
    let none = door.get("/tasks?status=retrying").await.expect(200);
    assert_eq!(none, json!({"items": [], "next_cursor": null}));
    assert_eq!(door.get("/tasks").await.expect(200)["items"].as_array().unwrap().len(), 15);
}
