//! Returns over the API: every answer, who may call, and what an order's own answer says of them.

use handback::store::token::Scope;
use serde_json::{Value, json};

use super::door::Door;
use crate::support::database::{TestDb, on_every_engine};

async fn a_paid_order(door: &Door, order_no: &str, qty: i64) {
    let order = json!({"order_no": order_no, "buyer": "u", "amount": 0, "currency": "CNY",
        "holds": [{"type": "stock", "key": "s", "qty": qty}]});
    door.post("/orders", order).await.expect(201);
    door.work().await;
}

fn of_order(return_no: &str, order_no: &str, items: Value) -> Value {
    json!({"return_no": return_no, "order_no": order_no, "items": items})
}

on_every_engine!(
    a_return_is_accepted_received_and_completed,
    no_more_comes_back_than_was_paid_for,
    the_raw_request_is_kept_and_scopes_hold
);

async fn a_return_is_accepted_received_and_completed(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s", 10).await;
    a_paid_order(&door, "o1", 5).await;
    let body = of_order("r/1", "o1", json!([{"key": "s", "qty": 2}, {"key": "s", "qty": 1, "restock": false}]));
    let accepted = door.post("/returns", body.clone()).await.expect(201);
    assert_eq!((&accepted["status"], &accepted["tasks"]), (&json!("accepted"), &json!([])));
    assert_eq!(
        accepted["items"],
        json!([{"key": "s", "qty": 2, "restock": true}, {"key": "s", "qty": 1, "restock": false}])
    );
    assert_eq!(door.post("/returns", body.clone()).await.expect(200), accepted);
    let other = of_order("r/1", "o1", json!([{"key": "s", "qty": 3}]));
    door.post("/returns", other).await.problem(409, "return_exists");

    let receive = async || door.post("/returns/r%2F1/received", json!({})).await.expect(200)["result"].clone();
    assert_eq!(receive().await, "received");
    assert_eq!(receive().await, "already_received");
    let waiting = door.get("/returns/r%2F1").await.expect(200);
    assert_eq!((&waiting["status"], waiting["tasks"].as_array().map(Vec::len)), (&json!("received"), Some(1)));
    let task = &waiting["tasks"][0];
    assert_eq!(
        (&task["action"], &task["source"], &task["ref_no"]),
        (&json!("return_in"), &json!("return:1"), &json!("r/1"))
    );
    door.work().await;
    assert_eq!(door.get("/returns/r%2F1").await.expect(200)["status"], "completed");
    assert_eq!(door.figures("stock/s").await, [7, 0, 3]);
    let order = door.get("/orders/o1").await.expect(200);
    assert_eq!(order["returns"][0]["return_no"], "r/1");
    let events: Vec<&str> = order["timeline"].as_array().unwrap().iter().filter_map(|e| e["event"].as_str()).collect();
    assert!(events.ends_with(&["return_accepted", "return_received", "returned"]), "{events:?}");
}

async fn no_more_comes_back_than_was_paid_for(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s", 10).await;
    a_paid_order(&door, "o1", 5).await;
    let open = json!({"order_no": "o2", "buyer": "u", "amount": 7, "currency": "CNY",
        "holds": [{"type": "stock", "key": "s", "qty": 1}]});
    door.post("/orders", open).await.expect(201);
    let one = json!([{"key": "s", "qty": 1}]);
    door.post("/returns", of_order("r1", "o2", one.clone())).await.problem(409, "over_return");
    door.post("/returns", of_order("r1", "o9", one.clone())).await.problem(404, "not_found");
    let six = json!([{"key": "s", "qty": 3}, {"key": "s", "qty": 3, "restock": false}]);
    let over = door.post("/returns", of_order("r1", "o1", six)).await.problem(409, "over_return");
    assert_eq!(over["over"], json!([{"key": "s", "qty": 6, "left": 5}]));
    // Accepted counts, received or not, restocked or not.
    let four = json!([{"key": "s", "qty": 4, "restock": false}]);
    door.post("/returns", of_order("r1", "o1", four)).await.expect(201);
    let two = json!([{"key": "s", "qty": 2}]);
    let over = door.post("/returns", of_order("r2", "o1", two)).await.problem(409, "over_return");
    assert_eq!(over["over"], json!([{"key": "s", "qty": 2, "left": 1}]));
    door.post("/returns", of_order("r2", "o1", one)).await.expect(201);
    door.post("/orders/o1/complete", json!({})).await.expect(200);
    let elsewhere = json!({"return_no": "r3", "items": [{"key": "s", "qty": 100}]});
    door.post("/returns", elsewhere).await.expect(201);
    door.post("/returns/r3/received", json!({})).await.expect(200);
    door.post("/returns/r2/received", json!({})).await.expect(200);
    door.work().await;
    assert_eq!(door.figures("stock/s").await, [105, 1, 4], "goods sold elsewhere leave sold alone");
    door.post("/returns/r9/received", json!({})).await.problem(404, "not_found");
    door.get("/returns/r9").await.problem(404, "not_found");
}

async fn the_raw_request_is_kept_and_scopes_hold(db: TestDb) {
    let door = Door::open(&db).await;
    let body = json!({"return_no": "r1", "items": [{"key": "s", "qty": 1, "restock": false}]});
    door.call("POST", "/returns", Scope::Read, Some(body.clone())).await.problem(403, "forbidden");
    door.call("POST", "/returns", Scope::Shop, Some(body.clone())).await.expect(201);
    assert_eq!(db.texts("SELECT raw FROM return_order").await, [body.to_string()]);
    door.call("POST", "/returns/r1/received", Scope::Read, Some(json!({}))).await.problem(403, "forbidden");
    door.call("POST", "/returns/r1/received", Scope::Shop, Some(json!({}))).await.expect(200);
    let shown = door.call("GET", "/returns/r1", Scope::Read, None).await.expect(200);
    assert_eq!((&shown["status"], &shown["tasks"]), (&json!("completed"), &json!([])));
}
