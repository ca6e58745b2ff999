//! Opening, adjusting and retiring keys.

use handback::store::token::Scope;
use serde_json::{Value, json};

use super::door::{Door, START_MS};
use crate::support::database::{TestDb, on_every_engine};
use crate::support::mapped::{mapped_store, outbox};

on_every_engine!(
    a_key_is_opened_once_and_adjusted_once_per_ref,
    figures_never_fall_below_zero,
    the_history_of_a_shops_key_is_whole
);

/// Rows of the shop's tables name no ledger of ours: their key finds them, page after page.
async fn the_history_of_a_shops_key_is_whole(db: TestDb) {
    let door = Door::over(mapped_store(&db).await, "").await;
    assert_eq!(door.get("/ledger/stock/1001/flow").await.expect(200), json!([]));
    outbox(&db, "A-1", "1001", 3).await;
    outbox(&db, "A-2", "1001", 2).await;
    outbox(&db, "A-2", "1002", 1).await;
    door.work().await;
    let flow = door.get("/ledger/stock/1001/flow").await.expect(200);
    let rows: Vec<(&str, i64, &str, i64)> = flow.as_array().unwrap().iter().map(shown).collect();
    assert_eq!(rows, [("release", 3, "close", 3), ("release", 2, "close", 5)], "{flow:#}");
    assert_eq!((&flow[0]["ref_no"], &flow[1]["ref_no"]), (&json!("A-1"), &json!("A-2")));
    // 1002 had nothing locked: nothing changed it.
    assert_eq!(door.get("/ledger/stock/1002/flow").await.expect(200), json!([]));
    // The same key of another type is another thing.
    let other = format!(
        "INSERT INTO resource_flow (resource_type, biz_key, action, qty, ref_no, source, round, at) \
         VALUES (4, '1001', 1, 9, 'x', 'close', 1, {START_MS})"
    );
    db.execute(&other).await.unwrap();
    for n in 0..600 {
        let row = format!(
            "INSERT INTO resource_flow (resource_type, biz_key, action, qty, ref_no, source, round, at) \
             VALUES (1, '1001', 1, 1, 'x{n}', 'close', 1, {START_MS})"
        );
        db.execute(&row).await.unwrap();
    }
    let flow = door.get("/ledger/stock/1001/flow").await.expect(200);
    assert_eq!(flow.as_array().map(Vec::len), Some(602));
    assert_eq!((&flow[2]["ref_no"], &flow[601]["ref_no"]), (&json!("x0"), &json!("x599")));
    door.get("/ledger/stock/9/flow").await.problem(404, "not_found");
}

async fn a_key_is_opened_once_and_adjusted_once_per_ref(db: TestDb) {
    let door = Door::open(&db).await;
    for kind in ["stock", "quota"] {
        let path = format!("/ledger/{kind}/k1");
        let opened = door.put(&path, json!({"available": 100})).await.expect(200);
        assert_eq!(opened, json!({"available": 100, "locked": 0, "sold": 0}));
        assert_eq!(door.put(&path, json!({"available": 100})).await.expect(200), opened);
        door.put(&path, json!({"available": 99})).await.problem(409, "ledger_exists");
        let adjust = json!({"adjust": 5, "ref": "count-1", "reason": "stocktaking"});
        for _ in 0..2 {
            assert_eq!(door.put(&path, adjust.clone()).await.expect(200)["available"], 105);
        }
        assert_eq!(door.get(&path).await.expect(200)["available"], 105);
        let flow = door.get(&format!("{path}/flow")).await.expect(200);
        let rows: Vec<(&str, i64, &str, i64)> = flow.as_array().unwrap().iter().map(shown).collect();
        assert_eq!(rows, [("adjust", 100, "open", 100), ("adjust", 5, "adjust", 105)]);
        assert_eq!(flow[1]["ref_no"], "count-1");
        assert_eq!(flow[1]["at"], "2026-11-30T10:00:00.000Z");
    }
    door.put("/ledger/stock/unknown", json!({"adjust": 1, "ref": "r", "reason": "x"})).await.problem(404, "not_found");
    door.get("/ledger/stock/unknown").await.problem(404, "not_found");
    door.get("/ledger/stock/unknown/flow").await.problem(404, "not_found");
    door.get("/ledger/gold/k1").await.problem(404, "not_found");
    door.get("/ledger/payment/k1").await.problem(404, "not_found");
}

fn shown(row: &Value) -> (&str, i64, &str, i64) {
    let text = |name: &str| row[name].as_str().unwrap();
    let figure = |name: &str| row[name].as_i64().unwrap();
    (text("action"), figure("qty"), text("source"), figure("available_after"))
}

async fn figures_never_fall_below_zero(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 3).await;
    let adjust = |name: &str, by: i64, reference: &str| json!({name: by, "ref": reference, "reason": "x"});
    door.put("/ledger/stock/s1", adjust("adjust", -4, "a")).await.problem(409, "insufficient");
    door.put("/ledger/stock/s1", adjust("adjust_locked", -1, "b")).await.problem(409, "insufficient");
    let both = json!({"adjust": -1, "adjust_locked": 1, "ref": "c", "reason": "x"});
    let refused = door.call("PUT", "/ledger/stock/s1", Scope::Shop, Some(both.clone())).await;
    refused.problem(403, "forbidden");
    assert_eq!(door.figures("stock/s1").await, [3, 0, 0]);
    door.put("/ledger/stock/s1", both).await.expect(200);
    assert_eq!(door.figures("stock/s1").await, [2, 1, 0]);
    let unknown = json!({"adjust": 1, "ref": "d", "reason": "x", "task": 999});
    assert_eq!(door.put("/ledger/stock/s1", unknown).await.fields(422), ["task"]);
}

on_every_engine!(a_retired_key_takes_no_new_order_and_old_ones_return_to_it, single_pieces_show_their_state);

async fn a_retired_key_takes_no_new_order_and_old_ones_return_to_it(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 3).await;
    let order = |no: &str| {
        json!({"order_no": no, "buyer": "u", "amount": 1, "currency": "CNY",
            "holds": [{"type": "stock", "key": "s1", "qty": 1}]})
    };
    door.post("/orders", order("o1")).await.expect(201);
    for result in ["retired", "already_retired"] {
        assert_eq!(door.delete("/ledger/stock/s1").await.expect(200)["result"], result);
    }
    assert_eq!(door.get("/ledger/stock/s1").await.expect(200)["retired"], true);
    let lacking = door.post("/orders", order("o2")).await.problem(409, "insufficient");
    assert_eq!(lacking["lacking"][0]["available"], 0);
    door.post("/orders/o1/close", json!({"reason": "buyer"})).await.expect(200);
    door.work().await;
    assert_eq!(door.figures("stock/s1").await, [3, 0, 0]);
    door.stock("s1", 8).await;
    let shown = door.get("/ledger/stock/s1").await.expect(200);
    assert_eq!((shown["available"].as_i64(), shown.get("retired")), (Some(8), None));
    door.delete("/ledger/stock/never").await.problem(404, "not_found");
}

async fn single_pieces_show_their_state(db: TestDb) {
    let door = Door::open(&db).await;
    let coupon = json!({"owner": "u1", "issuer": "merchant:M1", "expires_at": "2026-11-30T10:10:00Z"});
    let opened = door.put("/ledger/coupon/c1", coupon).await.expect(200);
    let expected = json!({"status": "unused", "order_no": null, "expires_at": "2026-11-30T10:10:00.000Z",
        "original_expires_at": "2026-11-30T10:10:00.000Z", "issuer": "merchant:M1"});
    assert_eq!(opened, expected);
    assert_eq!(door.put("/ledger/slot/seat-1", json!({})).await.expect(200)["status"], "free");
    let order = json!({"order_no": "o1", "buyer": "u1", "amount": 1, "currency": "CNY",
        "holds": [{"type": "coupon", "key": "c1", "qty": 1}, {"type": "slot", "key": "seat-1", "qty": 1}]});
    let mut others = order.clone();
    others["buyer"] = json!("u2");
    others["order_no"] = json!("o2");
    assert_eq!(door.post("/orders", others).await.problem(409, "insufficient")["lacking"][0]["key"], "c1");
    door.post("/orders", order).await.expect(201);
    let held = door.get("/ledger/coupon/c1").await.expect(200);
    assert_eq!((held["status"].as_str(), held["order_no"].as_str()), (Some("locked"), Some("o1")));
    assert_eq!(door.get("/ledger/slot/seat-1").await.expect(200)["status"], "held");
    door.clock.set(START_MS + 900_000);
    door.work().await;
    let back = door.get("/ledger/coupon/c1").await.expect(200);
    assert_eq!((back["status"].as_str(), &back["order_no"]), (Some("expired"), &Value::Null));
    assert_eq!(door.get("/ledger/slot/seat-1").await.expect(200)["status"], "free");
    let flow = door.get("/ledger/coupon/c1/flow").await.expect(200);
    assert!(flow.as_array().unwrap().iter().all(|row| row["bearer"] == "merchant:M1"), "{flow:#}");
}

on_every_engine!(a_long_history_is_told_whole);

async fn a_long_history_is_told_whole(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 0).await;
    // More than one page of it, and one row on the page's edge.
    for n in 1..=1000 {
        let adjust = json!({"adjust": 1, "ref": format!("r{n}"), "reason": "x"});
        door.put("/ledger/stock/s1", adjust).await.expect(200);
    }
    let flow = door.get("/ledger/stock/s1/flow").await.expect(200);
    let after: Vec<i64> = flow.as_array().unwrap().iter().map(|row| row["available_after"].as_i64().unwrap()).collect();
    assert_eq!(after, (0..=1000).collect::<Vec<_>>());
}
