//! Refusals that have nothing to do with what a body says: who calls, how, and with what around it.

use axum::body::Body;
use axum::http::Request;
use handback::store::token::Scope;
use serde_json::{Value, json};

use super::door::Door;
use crate::support::database::{Engine, TestDb, on_every_engine, run_on};

/// Every route with the scope it needs.
const ROUTES: &[(&str, &str, Scope)] = &[
    ("PUT", "/ledger/stock/k", Scope::Shop),
    ("GET", "/ledger/stock/k", Scope::Read),
    ("DELETE", "/ledger/stock/k", Scope::Shop),
    ("GET", "/ledger/stock/k/flow", Scope::Read),
    ("POST", "/orders", Scope::Shop),
    ("GET", "/orders/o", Scope::Read),
    ("POST", "/orders/o/payments", Scope::Shop),
    ("POST", "/orders/o/close", Scope::Shop),
    ("POST", "/orders/o/complete", Scope::Shop),
    ("POST", "/orders/o/release", Scope::Operate),
    ("GET", "/tasks", Scope::Read),
    ("GET", "/tasks/1", Scope::Read),
    ("POST", "/tasks/1/retry", Scope::Operate),
    ("POST", "/tasks/1/force-close", Scope::Operate),
    ("GET", "/stats", Scope::Read),
    ("GET", "/idle", Scope::Read),
];

#[test]
fn every_route_asks_for_a_token_of_its_scope() {
    run_on(Engine::Sqlite, async |db: TestDb| {
        let door = Door::open(&db).await;
        for (method, path, needed) in ROUTES {
            for wrong in [None, Some("Bearer hb_unknown"), Some("Basic aGI6eA=="), Some("Bearer")] {
                let mut request = Request::builder().method(*method).uri(format!("/api/v1{path}"));
                if let Some(wrong) = wrong {
                    request = request.header("authorization", wrong);
                }
                let refused = door.send(request.body(Body::empty()).unwrap()).await;
                assert_eq!(refused.headers["www-authenticate"], "Bearer", "{method} {path}");
                refused.problem(401, "unauthenticated");
            }
            for (_, scope) in Scope::ALL {
                let answer = door.call(method, path, *scope, Some(json!({}))).await;
                if scope.covers(*needed) {
                    assert!(![401, 403].contains(&answer.status), "{method} {path} as {scope:?}: {answer:?}");
                } else {
                    answer.problem(403, "forbidden");
                }
            }
        }
    });
}

on_every_engine!(a_revoked_token_is_no_token);

async fn a_revoked_token_is_no_token(db: TestDb) {
    let door = Door::open(&db).await;
    door.call("GET", "/stats", Scope::Read, None).await.expect(200);
    assert_eq!(db.execute("UPDATE api_token SET revoked_at = 1 WHERE name = 'read'").await.unwrap(), 1);
    door.call("GET", "/stats", Scope::Read, None).await.problem(401, "unauthenticated");
}

#[test]
fn what_is_not_there_and_what_is_not_done_there() {
    run_on(Engine::Sqlite, async |db: TestDb| {
        let door = Door::open(&db).await;
        for nowhere in ["/", "/nothing", "/orders/o/nothing", "/orders/", "/ledger/stock", "/tasks/1/retry/"] {
            door.get(nowhere).await.problem(404, "not_found");
        }
        for nowhere in ["/api/v2/orders", "/api/", "/api/v1/"] {
            door.send(Request::get(nowhere).body(Body::empty()).unwrap()).await.problem(404, "not_found");
        }
        for (method, path, allowed) in [
            ("POST", "/tasks", "GET"),
            ("GET", "/orders", "POST"),
            ("PATCH", "/ledger/stock/k", "PUT"),
            ("PUT", "/idle", "GET"),
        ] {
            let refused = door.call(method, path, Scope::Admin, None).await;
            let allow = refused.headers["allow"].to_str().unwrap().to_owned();
            assert!(allow.contains(allowed), "{method} {path}: {allow}");
            refused.problem(405, "method_not_allowed");
        }
    });
}

#[test]
fn a_body_is_json_of_a_bearable_size() {
    run_on(Engine::Sqlite, async |db: TestDb| {
        let door = Door::open(&db).await;
        let send = async |kind: Option<&str>, body: Vec<u8>| {
            let mut request = Request::post("/api/v1/orders/o/close")
                .header("authorization", format!("Bearer {}", door.token(Scope::Shop)));
            if let Some(kind) = kind {
                request = request.header("content-type", kind);
            }
            door.send(request.body(Body::from(body)).unwrap()).await
        };
        let json = Some("application/json");
        for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/jsonx")] {
            send(kind, b"{\"reason\": \"buyer\"}".to_vec()).await.problem(415, "unsupported_media_type");
        }
        for broken in
            ["{", "", " ", "[]", "\"reason\"", "7", "null", "{\"reason\": 'buyer'}", "{} {}", "{\"reason\":\"\u{1}\"}"]
        {
            let answer = send(json, broken.as_bytes().to_vec()).await;
            if broken.is_empty() {
                assert_eq!(answer.fields(422), ["reason"]);
            } else {
                answer.problem(400, "bad_json");
            }
        }
        send(json, b"{\"reason\": \"\xff\"}".to_vec()).await.problem(400, "bad_json");
        send(json, [b"[".repeat(50_000), b"]".repeat(50_000)].concat()).await.problem(400, "bad_json");
        let large = format!("{{\"reason\": \"{}\"}}", "x".repeat(1024 * 1024));
        send(json, large.into_bytes()).await.problem(413, "too_large");
        send(Some("Application/JSON; charset=utf-8"), b"{\"reason\": \"buyer\"}".to_vec()).await.expect(200);
    });
}

#[test]
fn a_query_name_nobody_knows_is_refused() {
    run_on(Engine::Sqlite, async |db: TestDb| {
        let door = Door::open(&db).await;
        for path in ["/orders/o?verbose=1", "/ledger/stock/k?x", "/stats?hour=1", "/tasks/1?full=true"] {
            door.get(path).await.problem(400, "bad_query");
        }
        assert_eq!(door.post("/orders?dry_run=1", json!({})).await.fields(400), ["dry_run"]);
        for (query, field) in [
            ("wait=1", "wait"),
            ("wait_s=31", "wait_s"),
            ("wait_s=-1", "wait_s"),
            ("wait_s=1.5", "wait_s"),
            ("wait_s=soon", "wait_s"),
            ("wait_s=0&wait_s=1", "wait_s"),
            ("wait_s=%FF", "query"),
        ] {
            assert_eq!(door.get(&format!("/idle?{query}")).await.fields(400), [field], "{query}");
        }
        for (query, fields) in [
            ("status=open&limit=0&colour=red", vec!["status", "limit", "colour"]),
            ("limit=201", vec!["limit"]),
            ("type=gold,stock", vec!["type"]),
            ("kind=broken", vec!["kind"]),
            ("cursor=abc", vec!["cursor"]),
            ("older_than_s=-5", vec!["older_than_s"]),
            ("order_no=a%00b", vec!["order_no"]),
        ] {
            assert_eq!(door.get(&format!("/tasks?{query}")).await.fields(400), fields, "{query}");
        }
    });
}

on_every_engine!(a_database_that_is_away_says_when_to_ask_again);

async fn a_database_that_is_away_says_when_to_ask_again(db: TestDb) {
    let door = Door::open(&db).await;
    door.core.db.close().await;
    for (method, path, body) in [
        ("GET", "/stats", None),
        ("GET", "/orders/o", None),
        ("POST", "/orders/o/close", Some(json!({"reason": "buyer"}))),
    ] {
        let away = door.call(method, path, Scope::Admin, body).await;
        assert!(away.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap() > 0);
        away.problem(503, "database_away");
    }
    let ready = door.send(Request::get("/readyz").body(Body::empty()).unwrap()).await;
    assert_eq!(ready.status, 503);
    let alive = door.send(Request::get("/healthz").body(Body::empty()).unwrap()).await;
    assert_eq!(alive.status, 200);
    let metrics = door.send(Request::get("/metrics").body(Body::empty()).unwrap()).await;
    assert!(matches!(&metrics.body, Value::String(text) if text.contains("handback_database_up 0\n")), "{metrics:?}");
}
