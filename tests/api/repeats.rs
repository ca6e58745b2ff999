//! `Idempotency-Key`: the same call again is answered as the first was, and done once.

use axum::body::Body;
use axum::http::Request;
use handback::store::idempotency::KEPT_MS;
use handback::store::token::Scope;
use serde_json::json;

use super::door::{Answer, Door, START_MS};
use crate::support::database::{TestDb, on_every_engine};

impl Door {
    async fn with_key(&self, scope: Scope, path: &str, key: &str, body: &serde_json::Value) -> Answer {
        let request = Request::post(format!("/api/v1{path}"))
            .header("authorization", format!("Bearer {}", self.token(scope)))
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .body(Body::from(body.to_string()))
            .unwrap();
        self.send(request).await
    }
}

async fn a_waiting_task(db: &TestDb, door: &Door) -> String {
    door.stock("s1", 1).await;
    let insert = format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at, created_at) \
         VALUES ('x1', 1, 's1', 5, {START_MS}, {START_MS})"
    );
    db.execute(&insert).await.unwrap();
    let found = door.get("/tasks?order_no=x1").await.expect(200);
    format!("/tasks/{}", found["items"][0]["id"])
}

on_every_engine!(
    the_same_key_gets_the_same_answer,
    a_key_is_for_one_call_of_one_token,
    a_key_whose_process_died_is_taken_over,
    twins_at_the_same_moment_act_once
);

async fn the_same_key_gets_the_same_answer(db: TestDb) {
    let door = Door::open(&db).await;
    let task = a_waiting_task(&db, &door).await;
    let (path, body) = (format!("{task}/retry"), json!({"reason": "x"}));
    let first = door.with_key(Scope::Operate, &path, "k1", &body).await.expect(200);
    assert_eq!(first["result"], "failed");
    let second = door.with_key(Scope::Operate, &path, "k1", &body).await;
    assert_eq!(second.headers["content-type"], "application/json");
    assert_eq!(second.expect(200), first);
    assert_eq!(door.get(&task).await.expect(200)["retry"], 1, "it ran once");
    door.clock.set(START_MS + KEPT_MS + 1);
    let later = door.with_key(Scope::Operate, &path, "k1", &body).await.expect(200);
    assert_eq!(later["task"]["retry"], 2, "the key ran out after 24 hours");

    // A refusal is an answer too.
    let close = json!({"reason": "x", "expected_version": 0});
    let refuse = async || door.with_key(Scope::Operate, &format!("{task}/force-close"), "k2", &close).await;
    let refused = refuse().await.problem(409, "stale");
    assert_eq!(refuse().await.problem(409, "stale"), refused);
}

async fn a_key_is_for_one_call_of_one_token(db: TestDb) {
    let door = Door::open(&db).await;
    let task = a_waiting_task(&db, &door).await;
    let path = format!("{task}/retry");
    door.with_key(Scope::Operate, &path, "k1", &json!({"reason": "x"})).await.expect(200);
    let other_body = door.with_key(Scope::Operate, &path, "k1", &json!({"reason": "y"})).await;
    other_body.problem(409, "idempotency_key_reused");
    let release = json!({"type": "stock", "reason": "x"});
    let other_path = door.with_key(Scope::Operate, "/orders/x1/release", "k1", &release).await;
    other_path.problem(409, "idempotency_key_reused");
    let other_token = door.with_key(Scope::Admin, &path, "k1", &json!({"reason": "y"})).await;
    assert_eq!(other_token.expect(200)["task"]["retry"], 2);
    // Keys differ byte by byte too, and a body that can't be read takes none.
    door.with_key(Scope::Operate, &path, "K1", &json!({"reason": "y"})).await.expect(200);
    assert_eq!(door.with_key(Scope::Operate, &path, "k3", &json!({})).await.fields(422), ["reason"]);
    door.with_key(Scope::Operate, &path, "k3", &json!({"reason": "z"})).await.expect(200);
    for wrong in ["", &"k".repeat(256)] {
        let refused = door.with_key(Scope::Operate, &path, wrong, &json!({"reason": "x"})).await;
        assert_eq!(refused.fields(422), ["Idempotency-Key"]);
    }
}

async fn a_key_whose_process_died_is_taken_over(db: TestDb) {
    let door = Door::open(&db).await;
    let task = a_waiting_task(&db, &door).await;
    let (path, body) = (format!("{task}/retry"), json!({"reason": "x"}));
    door.with_key(Scope::Operate, &path, "k1", &body).await.expect(200);
    db.execute("UPDATE idempotency SET status = NULL, body = NULL").await.unwrap();
    door.clock.set(START_MS + 31_000);
    let again = door.with_key(Scope::Operate, &path, "k1", &body).await.expect(200);
    assert_eq!(again["task"]["retry"], 2);
}

async fn twins_at_the_same_moment_act_once(db: TestDb) {
    let door = Door::open(&db).await;
    let task = a_waiting_task(&db, &door).await;
    let (path, body) = (format!("{task}/retry"), json!({"reason": "x"}));
    let twin = || door.with_key(Scope::Operate, &path, "k1", &body);
    let (a, b, c) = tokio::join!(twin(), twin(), twin());
    let (a, b, c) = (a.expect(200), b.expect(200), c.expect(200));
    assert!(a == b && b == c, "{a:#}\n{b:#}\n{c:#}");
    assert_eq!(door.get(&task).await.expect(200)["retry"], 1);
}
