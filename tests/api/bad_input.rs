//! Every field out of range, of the wrong type, too long, negative, huge, missing or unknown: the
//! answer names it, and nothing was changed.

use serde_json::{Value, json};

use super::door::Door;
use crate::support::database::{Engine, TestDb, run_on};

/// A valid body of one call, to be spoilt one field at a time.
struct Call {
    method: &'static str,
    path: &'static str,
    body: Value,
}

fn calls() -> Vec<Call> {
    let call = |method, path, body| Call { method, path, body };
    vec![
        call("PUT", "/ledger/stock/k", json!({"available": 1})),
        call("PUT", "/ledger/quota/k", json!({"available": 1})),
        call("PUT", "/ledger/funds/k", json!({"available": 1, "kind": "points", "expires_at": "2027-01-01T00:00:00Z"})),
        call(
            "PUT",
            "/ledger/coupon/k",
            json!({"owner": "u", "issuer": "platform", "expires_at": "2027-01-01T00:00:00Z"}),
        ),
        call("PUT", "/ledger/stock/k", json!({"adjust": 1, "adjust_locked": 1, "ref": "r", "reason": "x", "task": 1})),
        call(
            "POST",
            "/orders",
            json!({"order_no": "o1", "buyer": "u", "amount": 1, "currency": "CNY", "pay_within_s": 60,
                "holds": [{"type": "stock", "key": "k", "qty": 1}], "lines": [{"name": "Tea", "qty": 1, "price": 1}]}),
        ),
        call(
            "POST",
            "/orders/o1/payments",
            json!({"status": "succeeded", "channel": "wx", "channel_txn": "t", "amount": 1, "currency": "CNY",
                "occurred_at": "2026-11-30T10:00:00Z"}),
        ),
        call("POST", "/orders/o1/close", json!({"reason": "buyer"})),
        call(
            "POST",
            "/returns",
            json!({"return_no": "r1", "order_no": "o1", "items": [{"key": "k", "qty": 1, "restock": true}]}),
        ),
        call(
            "POST",
            "/orders/o1/reduce",
            json!({"ref": "r", "amount": 1, "holds": [{"type": "stock", "key": "k", "qty": 1}]}),
        ),
        call("POST", "/orders/o1/refunded", json!({"channel_txn": "t"})),
        call("POST", "/reconcile", json!({"type": "stock"})),
        call("POST", "/orders/o1/release", json!({"type": "stock", "reason": "x"})),
        call("POST", "/tasks/1/retry", json!({"reason": "x"})),
        call("POST", "/tasks/1/force-close", json!({"reason": "x", "expected_version": 1, "resolution": "leave_owed"})),
    ]
}

/// Values that no field of this shape takes.
fn wrong_values(field: &str, right: &Value) -> Vec<Value> {
    let mut wrong = vec![json!([]), json!({}), json!(true)];
    match right {
        Value::Number(_) => {
            wrong.extend([json!("1"), json!(1.5), json!(1e30), json!(1_000_000_000_000_001_i64), json!(i64::MIN)]);
            if field == "expected_version" || field == "task" {
                wrong.retain(|value| *value != json!(1_000_000_000_000_001_i64));
            }
            if !field.starts_with("adjust") {
                wrong.push(json!(-1));
            }
        }
        Value::String(_) => {
            wrong.extend([json!(7), json!(""), json!("x".repeat(501)), json!("a\nb"), json!("a\u{0}b"), json!("..")]);
            if field == "currency" {
                wrong.extend([json!("cny"), json!("CN"), json!("CNYY"), json!("ＣＮＹ")]);
            }
        }
        _ => wrong = vec![json!({}), json!("x"), json!(7), json!(vec![json!({}); 201])],
    }
    wrong
}

#[test]
fn every_field_that_is_wrong_is_named() {
    run_on(Engine::Sqlite, async |db: TestDb| {
        let door = Door::open(&db).await;
        for Call { method, path, body } in calls() {
            let send =
                async |body: Value| door.call(method, path, handback::store::token::Scope::Admin, Some(body)).await;
            for (field, right) in body.as_object().unwrap() {
                for wrong in wrong_values(field, right) {
                    let mut spoilt = body.clone();
                    spoilt[field] = wrong.clone();
                    let named = send(spoilt).await.fields(422);
                    assert!(named.iter().all(|name| name.starts_with(field)), "{path} {field} = {wrong}: {named:?}");
                }
            }
            let mut unknown = body.clone();
            unknown["surprise"] = json!(1);
            assert_eq!(send(unknown).await.fields(422), ["surprise"], "{path}");
        }
        nothing_was_written(&db).await;
    });
}

async fn nothing_was_written(db: &TestDb) {
    for table in
        ["orders", "ledger", "hold", "resource_flow", "order_release_task", "payment", "audit_log", "return_order"]
    {
        assert_eq!(db.count(&format!("SELECT COUNT(*) FROM {table}")).await, 0, "{table}");
    }
}

#[test]
fn required_fields_are_asked_for_and_all_complaints_come_together() {
    run_on(Engine::Sqlite, async |db: TestDb| {
        let door = Door::open(&db).await;
        let order = door
            .post(
                "/orders",
                json!({"amount": -1, "holds": [{"key": "", "qty": 2.5}, 3, {"type": "coupon",
            "key": "c", "qty": 2}], "x": null}),
            )
            .await;
        let expected = [
            "order_no",
            "buyer",
            "amount",
            "currency",
            "holds[0].type",
            "holds[0].key",
            "holds[0].qty",
            "holds[1]",
            "holds[2].qty",
            "x",
        ];
        assert_eq!(order.fields(422), expected);
        let payment = ["status", "channel", "channel_txn", "amount", "currency", "occurred_at"];
        assert_eq!(door.post("/orders/o1/payments", json!({})).await.fields(422), payment);
        let items =
            json!([{"qty": -1, "restock": 1}, {"key": "k", "qty": 1_000_000_000_000_i64}, {"key": "k", "qty": 1}]);
        let named = ["return_no", "items[0].key", "items[0].qty", "items[0].restock"];
        assert_eq!(door.post("/returns", json!({"items": items})).await.fields(422), named);
        assert_eq!(door.post("/returns", json!({"return_no": "r", "items": []})).await.fields(422), ["items"]);
        let sum = json!({"return_no": "r", "items": items.as_array().unwrap()[1..]});
        assert_eq!(door.post("/returns", sum).await.fields(422), ["items[1].qty"]);
        assert_eq!(door.post("/orders/o1/close", json!({"reason": null})).await.fields(422), ["reason"]);
        assert_eq!(door.put("/ledger/funds/k", json!({"available": 1})).await.fields(422), ["kind"]);
        assert_eq!(door.put("/ledger/coupon/k", json!({})).await.fields(422), ["issuer", "expires_at"]);
        assert_eq!(door.put("/ledger/stock/k", json!({})).await.fields(422), ["available"]);
        assert_eq!(door.put("/ledger/slot/k", json!({"available": 1})).await.fields(422), ["available"]);
        let adjust = door.put("/ledger/stock/k", json!({"adjust": 1})).await;
        assert_eq!(adjust.fields(422), ["ref", "reason"]);
        let both = json!({"available": 1, "adjust": 1, "ref": "r", "reason": "x"});
        assert_eq!(door.put("/ledger/stock/k", both).await.fields(422), ["adjust"]);
        let nothing = json!({"ref": "r", "reason": "x"});
        assert_eq!(door.put("/ledger/stock/k", nothing).await.fields(422), ["adjust"]);
        nothing_was_written(&db).await;
    });
}

#[test]
fn limits_are_where_they_are_said_to_be() {
    run_on(Engine::Sqlite, async |db: TestDb| {
        let door = Door::open(&db).await;
        let order = |no: String, holds: Value| {
            json!({"order_no": no, "buyer": "u".repeat(128), "amount": 1_000_000_000_000_000_i64, "currency": "CNY",
                "pay_within_s": 2_592_000, "holds": holds})
        };
        // Characters are counted, not bytes.
        let longest = "券".repeat(64);
        door.post("/orders", order(longest.clone(), json!([]))).await.expect(201);
        assert_eq!(door.post("/orders", order("券".repeat(65), json!([]))).await.fields(422), ["order_no"]);
        let path = format!("/orders/{}", "a".repeat(65));
        assert_eq!(door.get(&path).await.fields(422), ["order_no"]);
        let path = format!("/ledger/stock/{}", "a".repeat(129));
        assert_eq!(door.put(&path, json!({"available": 1})).await.fields(422), ["key"]);
        for bad in ["%00", "a%0Ab", "%2E%2E", "%7F"] {
            assert_eq!(door.get(&format!("/orders/{bad}")).await.fields(422), ["order_no"], "{bad}");
        }
        assert_eq!(door.get("/orders/%FF").await.fields(422), ["path"]);

        let holds = |n: usize| -> Value {
            (0..n).map(|n| json!({"type": "stock", "key": format!("k{n}"), "qty": 0})).collect()
        };
        door.post("/orders", order("h200".into(), holds(200))).await.expect(201);
        assert_eq!(door.post("/orders", order("h201".into(), holds(201))).await.fields(422), ["holds"]);
        let huge = json!([{"type": "stock", "key": "k", "qty": 1_000_000_000_001_i64}]);
        assert_eq!(door.post("/orders", order("h1".into(), huge)).await.fields(422), ["holds[0].qty"]);
        let sum = json!([{"type": "stock", "key": "k", "qty": 1_000_000_000_000_i64}, {"type": "stock", "key": "k", "qty": 1}]);
        assert_eq!(door.post("/orders", order("h2".into(), sum)).await.fields(422), ["holds[1].qty"]);
        let twice = json!([{"type": "coupon", "key": "c", "qty": 1}, {"type": "coupon", "key": "c", "qty": 1}]);
        assert_eq!(door.post("/orders", order("h3".into(), twice)).await.fields(422), ["holds[1].key"]);
        let twin = r#"{"reason": "a", "reason": "b"}"#;
        let request = axum::http::Request::post("/api/v1/orders/o/close")
            .header("authorization", format!("Bearer {}", door.token(handback::store::token::Scope::Shop)))
            .header("content-type", "application/json");
        assert_eq!(door.send(request.body(twin.into()).unwrap()).await.fields(422), ["reason"]);
    });
}
