//! Figures, idling, metrics, and the description.

use axum::body::Body;
use axum::http::Request;
use handback::store::token::Scope;
use handback::worker::duties;
use serde_json::{Value, json};

use super::door::{Door, START_MS};
use crate::support::database::{Engine, TestDb, on_every_engine, run_on};

on_every_engine!(figures_are_unknown_until_something_happened, figures_follow_what_happened);

async fn figures_are_unknown_until_something_happened(db: TestDb) {
    let door = Door::open(&db).await;
    let stats = door.get("/stats").await.expect(200);
    let expected = json!({"backlog": [], "oldest_age_s": null, "oldest_manual_age_s": null, "failures": [],
        "success_rate": {"hour": null, "day": null}, "duplicates": {"hour": 0, "day": 0, "total": 0},
        "reconcile": {"run": null, "finished_at": null, "unexplained": null},
        "closing": {"p50_ms": null, "p99_ms": null, "max_ms": null, "by_trigger": []},
        "compensation": {"delay_p50_ms": null, "delay_p99_ms": null, "retries": [], "by_hand_share": null},
        "needs_person": {"tasks": 0, "orders": 0, "payments": 0, "findings": null}, "workers": []});
    assert_eq!(stats, expected);
}

async fn figures_follow_what_happened(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 10).await;
    for n in 0..3 {
        let order = json!({"order_no": format!("o{n}"), "buyer": "u", "amount": 1, "currency": "CNY",
            "holds": [{"type": "stock", "key": "s1", "qty": 1}]});
        door.post("/orders", order).await.expect(201);
    }
    door.clock.set(START_MS + 905_000);
    door.work().await;
    door.post("/orders/o1/close", json!({"reason": "buyer"})).await.expect(200);
    let insert = format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at, created_at) \
         VALUES ('x1', 1, 's1', 5, {START_MS}, {START_MS})"
    );
    db.execute(&insert).await.unwrap();
    door.work().await;
    duties::beat_once(&door.core, "w1").await.unwrap();
    door.clock.set(START_MS + 965_000);
    // Folded or not yet, the figures are the same.
    let before = door.get("/stats").await.expect(200);
    duties::fold_once(&door.core).await.unwrap();
    let stats = door.get("/stats").await.expect(200);
    assert_eq!(stats, before);
    assert_eq!(stats["backlog"], json!([{"status": "manual", "type": "stock", "count": 1}]));
    assert_eq!((&stats["oldest_age_s"], &stats["oldest_manual_age_s"]), (&Value::Null, &json!(965.0)));
    assert_eq!(stats["failures"], json!([{"type": "stock", "kind": "locked_insufficient", "hour": 1, "day": 1}]));
    assert_eq!(stats["success_rate"], json!({"hour": 0.75, "day": 0.75}));
    assert_eq!(stats["duplicates"], json!({"hour": 1, "day": 1, "total": 1}));
    assert_eq!(stats["closing"]["by_trigger"][0]["trigger"], "scan");
    assert_eq!(stats["closing"]["by_trigger"][0]["count"], 3);
    let p99 = stats["closing"]["p99_ms"].as_i64().unwrap();
    assert!((5000..=5500).contains(&p99), "closed 5 s after the deadline, to 10 %: {p99}");
    assert_eq!(stats["compensation"]["retries"], json!([{"retry": 0, "count": 3}]));
    assert_eq!(stats["needs_person"]["tasks"], 1);
    assert_eq!(stats["workers"][0]["name"], "w1");

    let metrics = door.send(Request::get("/metrics").body(Body::empty()).unwrap()).await;
    let Value::String(text) = metrics.body else { panic!("{metrics:?}") };
    for line in [
        "handback_database_up 1",
        "handback_tasks{status=\"manual\",type=\"stock\"} 1",
        "handback_oldest_manual_task_age_seconds 965",
        "handback_orders_placed_total 3",
        "handback_orders_closed_total{trigger=\"scan\"} 3",
        "handback_task_failures_total{type=\"stock\",kind=\"locked_insufficient\"} 1",
        "handback_close_lateness_seconds_bucket{trigger=\"scan\",le=\"10\"} 3",
        "handback_close_lateness_seconds_count{trigger=\"scan\"} 3",
        "handback_workers 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is missing in\n{text}");
    }
    let has_age = text.lines().any(|line| line.starts_with("handback_oldest_task_age_seconds"));
    assert!(!has_age, "no task, no age:\n{text}");
}

on_every_engine!(idle_is_when_nothing_is_due);

async fn idle_is_when_nothing_is_due(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 10).await;
    let idle = json!({"idle": true, "due": 0, "running": 0, "overdue_orders": 0, "retrying": 0, "manual": 0});
    assert_eq!(door.get("/idle").await.expect(200), idle);
    let order = json!({"order_no": "o1", "buyer": "u", "amount": 1, "currency": "CNY",
        "holds": [{"type": "stock", "key": "s1", "qty": 1}]});
    door.post("/orders", order).await.expect(201);
    assert_eq!(door.get("/idle?wait_s=30").await.expect(200), idle, "an open order within its time is nothing to do");
    door.clock.set(START_MS + 900_000);
    let busy = door.get("/idle?wait_s=0").await.expect(200);
    assert_eq!((&busy["idle"], &busy["overdue_orders"]), (&json!(false), &json!(1)));
    door.post("/orders/o1/close", json!({"reason": "timeout"})).await.expect(200);
    let busy = door.get("/idle").await.expect(200);
    assert_eq!((&busy["idle"], &busy["due"], &busy["overdue_orders"]), (&json!(false), &json!(1), &json!(0)));
    // Whoever waits is answered when the work is done.
    let (waited, ()) = tokio::join!(door.get("/idle?wait_s=30"), door.work());
    assert_eq!(waited.expect(200), idle);
    // A shop's row is due at the server's now, which may be ahead of ours by a little.
    let ahead = door.core.now() + 1_500;
    db.execute(&format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at, created_at) \
         VALUES ('ahead', 1, 's1', 1, {ahead}, {ahead})"
    ))
    .await
    .unwrap();
    assert_eq!(door.get("/idle").await.expect(200)["due"], 1);
}

#[test]
fn metrics_can_ask_for_a_token() {
    run_on(Engine::Sqlite, async |db: TestDb| {
        let door = Door::with(&db, "metrics.require_token = true\n").await;
        let ask = async |token: Option<&str>| {
            let mut request = Request::get("/metrics");
            if let Some(token) = token {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            door.send(request.body(Body::empty()).unwrap()).await.status
        };
        assert_eq!(ask(None).await, 401);
        assert_eq!(ask(Some(door.token(Scope::Shop))).await, 403);
        assert_eq!(ask(Some(door.token(Scope::Metrics))).await, 200);
        assert_eq!(ask(Some(door.token(Scope::Admin))).await, 200);
    });
}

#[test]
fn the_description_is_served_and_says_what_bodies_hold() {
    run_on(Engine::Sqlite, async |db: TestDb| {
        let door = Door::open(&db).await;
        let request = Request::get("/api/v1/openapi.json").body(Body::empty()).unwrap();
        let described = door.send(request).await.expect(200);
        assert!(described["openapi"].as_str().unwrap().starts_with("3."));
        let place = &described["components"]["schemas"]["PlaceOrder"];
        assert!(place["required"].as_array().unwrap().contains(&json!("order_no")), "{place:#}");
        assert_eq!(place["properties"]["order_no"]["maxLength"], 64);
        assert_eq!(described["servers"][0]["url"], "/api/v1");
        for probe in ["/healthz", "/readyz", "/metrics"] {
            assert_eq!(door.send(Request::get(probe).body(Body::empty()).unwrap()).await.status, 200, "{probe}");
        }
    });
}
