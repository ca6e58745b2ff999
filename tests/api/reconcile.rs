//! Reconciling over HTTP, to the letter: started once, shown with its findings, counted in the figures.

use axum::body::Body;
use axum::http::Request;
use handback::store::token::Scope;
use serde_json::{Value, json};

use super::door::Door;
use crate::support::database::{TestDb, on_every_engine};

on_every_engine!(a_run_is_started_shown_and_counted, reducing_and_refunding_answer_to_the_letter);

impl Door {
    async fn run_done(&self, run: &Value) -> Value {
        loop {
            let shown = self.get(&format!("/reconcile/{run}")).await.expect(200);
            if shown["status"] != "running" {
                return shown;
            }
            tokio::task::yield_now().await;
        }
    }
}

async fn a_run_is_started_shown_and_counted(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 10).await;
    let order = json!({"order_no": "o1", "buyer": "u", "amount": 1, "currency": "CNY",
        "holds": [{"type": "stock", "key": "s1", "qty": 3}]});
    door.post("/orders", order).await.expect(201);
    db.execute("UPDATE ledger SET locked = 2").await.unwrap();
    let refused = door.call("POST", "/reconcile", Scope::Shop, Some(json!({}))).await;
    refused.problem(403, "forbidden");
    let started = door.call("POST", "/reconcile", Scope::Operate, Some(json!({}))).await.expect(202);
    let run = &started["run"];
    assert_eq!(started, json!({"run": run}));
    let shown = door.run_done(run).await;
    let diff = &shown["diffs"][0];
    let expected = json!({"run": run, "status": "done", "snapshot_at": "2026-11-30T10:00:00.000Z", "checked": 1,
        "diffs": [{"id": diff["id"], "type": "stock", "key": "s1", "class": "double_release", "in_ledger": 2, "expected": 3,
            "explained": 0, "unexplained": -1, "orders": ["o1"], "tasks": [],
            "first_seen": "2026-11-30T10:00:00.000Z", "repair": null}]});
    assert_eq!(shown, expected);
    let stats = door.get("/stats").await.expect(200);
    let found = json!({"run": run, "finished_at": "2026-11-30T10:00:00.000Z",
        "unexplained": [{"type": "stock", "keys": 1, "amount": 1}]});
    assert_eq!((&stats["reconcile"], &stats["needs_person"]["findings"]), (&found, &json!(1)));
    let metrics = door.send(Request::get("/metrics").body(Body::empty()).unwrap()).await.body.to_string();
    assert!(metrics.contains("handback_unexplained_keys{type=\\\"stock\\\"} 1"), "{metrics}");

    // One is going on: its number is the answer.
    db.execute("UPDATE reconcile_run SET status = 0, running = 1").await.unwrap();
    assert_eq!(door.post("/reconcile", json!({"type": "coupon"})).await.expect(200), started);
    assert_eq!(door.get(&format!("/reconcile/{run}")).await.expect(200)["status"], "running");
    assert_eq!(door.post("/reconcile", json!({"type": "payment"})).await.fields(422), ["type"]);
    assert_eq!(door.post("/reconcile", json!({"kind": "stock"})).await.fields(422), ["kind"]);
    door.get("/reconcile/999").await.problem(404, "not_found");
    door.get("/reconcile/x").await.problem(404, "not_found");
}

async fn reducing_and_refunding_answer_to_the_letter(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 10).await;
    let order = json!({"order_no": "o1", "buyer": "u", "amount": 100, "currency": "CNY",
        "holds": [{"type": "stock", "key": "s1", "qty": 5}]});
    door.post("/orders", order).await.expect(201);
    let reduce = |name: &str, amount: i64, qty: i64| json!({"ref": name, "amount": amount, "holds": [{"type": "stock", "key": "s1", "qty": qty}]});
    let path = "/orders/o1/reduce";
    assert_eq!(door.post(path, reduce("r1", 60, 2)).await.expect(200), json!({"result": "reduced"}));
    assert_eq!(door.post(path, reduce("r1", 10, 1)).await.expect(200), json!({"result": "already_reduced"}));
    let over = door.post(path, reduce("r2", 50, 4)).await.problem(409, "over_reduce");
    assert_eq!(over["over"], json!([{"type": "stock", "key": "s1", "qty": 4, "left": 3}]));
    assert_eq!(door.post(path, reduce("r3", 61, 1)).await.fields(422), ["amount"]);
    door.post("/orders/nobody/reduce", reduce("r1", 1, 1)).await.problem(404, "not_found");
    door.call("POST", path, Scope::Read, Some(reduce("r4", 1, 1))).await.problem(403, "forbidden");
    door.work().await;
    assert_eq!(door.figures("stock/s1").await, [7, 3, 0]);

    let refunded = "/orders/o1/refunded";
    let txn = json!({"channel_txn": "t1"});
    assert_eq!(door.post(refunded, txn.clone()).await.expect(200), json!({"result": "not_refund_due"}));
    door.post("/orders/o1/close", json!({"reason": "buyer"})).await.expect(200);
    let paid = json!({"status": "succeeded", "channel": "wx", "channel_txn": "t1", "amount": 99, "currency": "CNY",
        "occurred_at": "2026-11-30T10:00:00Z"});
    assert_eq!(door.post("/orders/o1/payments", paid).await.expect(200), json!({"result": "refund_due"}));
    assert_eq!(door.post(refunded, txn.clone()).await.expect(200), json!({"result": "refunded"}));
    assert_eq!(door.post(refunded, txn.clone()).await.expect(200), json!({"result": "already_refunded"}));
    assert_eq!(door.post(path, reduce("r5", 1, 1)).await.expect(200), json!({"result": "not_pending"}));
    assert_eq!(door.post(path, reduce("r1", 1, 1)).await.expect(200), json!({"result": "already_reduced"}));
    door.post("/orders/nobody/refunded", txn).await.problem(404, "not_found");
    let shown = door.get("/orders/o1").await.expect(200);
    assert_eq!((&shown["status"], &shown["payments"][0]["status"]), (&json!("CLOSED"), &json!("refunded")));
}
