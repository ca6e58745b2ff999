//! Placing, paying, closing, completing, releasing.

use serde_json::{Value, json};

use super::door::{Door, START_MS};
use crate::support::database::{TestDb, on_every_engine};

fn an_order(order_no: &str, holds: Value) -> Value {
    json!({"order_no": order_no, "buyer": "u1", "amount": 5000, "currency": "CNY", "holds": holds})
}

fn a_payment(status: &str, txn: &str) -> Value {
    json!({"status": status, "channel": "wx", "channel_txn": txn, "amount": 5000, "currency": "CNY",
        "occurred_at": "2026-11-30T18:00:00+08:00"})
}

on_every_engine!(an_unpaid_order_gives_everything_back, a_paid_order_keeps_what_it_bought);

async fn an_unpaid_order_gives_everything_back(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 10).await;
    door.put("/ledger/funds/u1", json!({"available": 9000, "kind": "balance"})).await.expect(200);
    let coupon = json!({"issuer": "platform", "expires_at": "2027-01-01T00:00:00Z"});
    door.put("/ledger/coupon/c1", coupon).await.expect(200);
    let holds = json!([{"type": "stock", "key": "s1", "qty": 2}, {"type": "stock", "key": "s1", "qty": 1},
        {"type": "funds", "key": "u1", "qty": 4000}, {"type": "coupon", "key": "c1", "qty": 1}]);
    let mut order = an_order("o1", holds);
    order["lines"] = json!([{"name": "Tea", "qty": 3, "price": 100}]);

    let placed = door.post("/orders", order.clone()).await.expect(201);
    assert_eq!(placed["status"], "PENDING");
    assert_eq!(placed["pay_seconds_left"], 900);
    assert_eq!(placed["placed_at"], "2026-11-30T10:00:00.000Z");
    assert_eq!(placed["pay_deadline"], "2026-11-30T10:15:00.000Z");
    assert_eq!(placed["lines"][0]["name"], "Tea");
    assert_eq!(placed["holds"].as_array().unwrap().len(), 3, "two lines of one key are one hold");
    assert_eq!(door.figures("stock/s1").await, [7, 3, 0]);
    assert_eq!(door.post("/orders", order).await.expect(200)["order_no"], "o1");

    let early = door.post("/orders/o1/close", json!({"reason": "timeout"})).await.expect(200);
    assert_eq!(early["result"], "not_due");
    door.clock.set(START_MS + 900_000);
    door.work().await;
    let closed = door.get("/orders/o1").await.expect(200);
    assert_eq!((closed["status"].as_str(), closed["close_reason"].as_str()), (Some("CLOSED"), Some("timeout")));
    assert_eq!(closed["closed_by"], "trigger:scan");
    assert_eq!(closed["closed_at"], "2026-11-30T10:15:00.000Z");
    for hold in closed["holds"].as_array().unwrap() {
        assert_eq!((&hold["released"], &hold["due"], &hold["settled"]), (&hold["locked"], &json!(0), &json!(0)));
    }
    let statuses: Vec<&Value> = closed["tasks"].as_array().unwrap().iter().map(|task| &task["status"]).collect();
    assert_eq!(statuses, ["succeeded"; 3]);
    let events: Vec<&str> =
        closed["timeline"].as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(events.iter().filter(|event| **event == "released").count(), 3, "{events:?}");
    assert_eq!(events.first(), Some(&"placed"));
    assert_eq!(door.figures("stock/s1").await, [10, 0, 0]);
    assert_eq!(door.figures("funds/u1").await, [9000, 0, 0]);
    assert_eq!(door.get("/ledger/coupon/c1").await.expect(200)["status"], "unused");
    let again = door.post("/orders/o1/close", json!({"reason": "buyer"})).await.expect(200);
    assert_eq!(again["result"], "already_closed");
}

async fn a_paid_order_keeps_what_it_bought(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 5).await;
    door.post("/orders", an_order("o1", json!([{"type": "stock", "key": "s1", "qty": 2}]))).await.expect(201);
    let tell = async |status, txn| {
        door.post("/orders/o1/payments", a_payment(status, txn)).await.expect(200)["result"].clone()
    };
    assert_eq!(tell("started", "t1").await, "recorded");
    assert_eq!(tell("succeeded", "t1").await, "paid");
    assert_eq!(tell("succeeded", "t1").await, "already_paid");
    assert_eq!(tell("succeeded", "t2").await, "refund_due");
    let mut other = a_payment("succeeded", "t1");
    other["amount"] = json!(1);
    assert_eq!(door.post("/orders/o1/payments", other).await.expect(200)["result"], "txn_conflict");

    assert_eq!(door.post("/orders/o1/close", json!({"reason": "buyer"})).await.expect(200)["result"], "not_pending");
    let due = &door.get("/orders/o1").await.expect(200)["holds"][0];
    assert_eq!((&due["due"], &due["settled"]), (&json!(2), &json!(0)));
    door.work().await;
    let order = door.get("/orders/o1").await.expect(200);
    assert_eq!(order["holds"][0]["settled"], 2);
    assert_eq!(order["pay_seconds_left"], Value::Null);
    assert_eq!(order["payments"][0]["occurred_at"], "2026-11-30T10:00:00.000Z");
    assert_eq!(order["payments"][0]["status"], "applied");
    assert_eq!(door.figures("stock/s1").await, [3, 0, 2]);
    for result in ["completed", "already_completed"] {
        assert_eq!(door.post("/orders/o1/complete", json!({})).await.expect(200)["result"], result);
    }
}

on_every_engine!(
    an_order_that_lacks_something_locks_nothing,
    a_number_is_taken_once,
    a_close_before_its_order_leaves_a_tombstone,
    payments_that_fit_nothing_are_answered_all_the_same
);

async fn an_order_that_lacks_something_locks_nothing(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 5).await;
    door.stock("s2", 1).await;
    let holds = json!([{"type": "stock", "key": "s1", "qty": 2}, {"type": "stock", "key": "s2", "qty": 3},
        {"type": "slot", "key": "nowhere", "qty": 1}]);
    let lacking = door.post("/orders", an_order("o1", holds)).await.problem(409, "insufficient")["lacking"].clone();
    let expected = json!([{"type": "stock", "key": "s2", "qty": 3, "available": 1},
        {"type": "slot", "key": "nowhere", "qty": 1, "available": 0}]);
    assert_eq!(lacking, expected);
    door.get("/orders/o1").await.problem(404, "not_found");
    assert_eq!(door.figures("stock/s1").await, [5, 0, 0]);
}

async fn a_number_is_taken_once(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 5).await;
    let holds = json!([{"type": "stock", "key": "s1", "qty": 1}]);
    door.post("/orders", an_order("o1", holds.clone())).await.expect(201);
    for (field, value) in
        [("buyer", json!("u2")), ("amount", json!(1)), ("currency", json!("USD")), ("holds", json!([]))]
    {
        let mut other = an_order("o1", holds.clone());
        other[field] = value;
        door.post("/orders", other).await.problem(409, "order_exists");
    }
    let mut same =
        an_order("o1", json!([{"type": "stock", "key": "s1", "qty": 1}, {"type": "stock", "key": "x", "qty": 0}]));
    same["pay_within_s"] = json!(900);
    door.post("/orders", same.clone()).await.expect(200);
    same["pay_within_s"] = json!(60);
    door.post("/orders", same).await.problem(409, "order_exists");
    assert_eq!(door.figures("stock/s1").await, [4, 1, 0]);
}

async fn a_close_before_its_order_leaves_a_tombstone(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 5).await;
    let close = async || door.post("/orders/o1/close", json!({"reason": "buyer"})).await.expect(200)["result"].clone();
    assert_eq!(close().await, "tombstoned");
    assert_eq!(close().await, "already_closed");
    let shown = door.get("/orders/o1").await.expect(200);
    assert_eq!((shown["status"].as_str(), shown["tombstone"].as_bool()), (Some("CLOSED"), Some(true)));
    assert_eq!((&shown["holds"], &shown["buyer"], &shown["amount"]), (&json!([]), &Value::Null, &Value::Null));
    door.post("/orders", an_order("o1", json!([{"type": "stock", "key": "s1", "qty": 1}])))
        .await
        .problem(409, "order_closed");
    assert_eq!(door.figures("stock/s1").await, [5, 0, 0]);
    let paid = door.post("/orders/o1/payments", a_payment("succeeded", "t1")).await.expect(200);
    assert_eq!(paid["result"], "refund_due");
}

async fn payments_that_fit_nothing_are_answered_all_the_same(db: TestDb) {
    let door = Door::open(&db).await;
    for status in ["started", "failed", "succeeded"] {
        let told = door.post("/orders/nobody/payments", a_payment(status, "t1")).await.expect(200);
        assert_eq!(told["result"], "unknown_order");
    }
    door.post("/orders", an_order("o1", json!([]))).await.expect(201);
    let mut wrong = a_payment("succeeded", "t2");
    wrong["currency"] = json!("USD");
    assert_eq!(door.post("/orders/o1/payments", wrong).await.expect(200)["result"], "amount_mismatch");
    let mut free = an_order("o2", json!([]));
    free["amount"] = json!(0);
    assert_eq!(door.post("/orders", free).await.expect(201)["status"], "PAID");
}

on_every_engine!(order_numbers_keep_every_character);

/// R17, through the path: percent-encoded once, `/` included.
async fn order_numbers_keep_every_character(db: TestDb) {
    let door = Door::open(&db).await;
    for (number, encoded) in [
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        ("a b", "a%20b"),
        ("a+b", "a+b"),
        ("5ab4", "5ab4"),
        ("5AB4", "5AB4"),
        ("5ab4 ", "5ab4%20"),
        ("券🎟?#&=;", "%E5%88%B8%F0%9F%8E%9F%3F%23%26%3D%3B"),
        ("...", "..."),
        ("'\"\\`<b>", "%27%22%5C%60%3Cb%3E"),
    ] {
        let key = format!("/ledger/stock/{encoded}");
        door.put(&key, json!({"available": 3})).await.expect(200);
        let holds = json!([{"type": "stock", "key": number, "qty": 1}]);
        door.post("/orders", an_order(number, holds)).await.expect(201);
        let shown = door.get(&format!("/orders/{encoded}")).await.expect(200);
        assert_eq!((shown["order_no"].as_str(), shown["holds"][0]["key"].as_str()), (Some(number), Some(number)));
        let closed = door.post(&format!("/orders/{encoded}/close"), json!({"reason": "buyer"})).await.expect(200);
        assert_eq!(closed["result"], "closed");
        door.work().await;
        let flow = door.get(&format!("{key}/flow")).await.expect(200);
        let actions: Vec<&str> = flow.as_array().unwrap().iter().map(|row| row["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["adjust", "lock", "release"], "{number}");
    }
}

on_every_engine!(releasing_by_type_touches_nothing_else);

async fn releasing_by_type_touches_nothing_else(db: TestDb) {
    let door = Door::open(&db).await;
    door.stock("s1", 5).await;
    door.put("/ledger/quota/q1", json!({"available": 5})).await.expect(200);
    let holds = json!([{"type": "stock", "key": "s1", "qty": 2}, {"type": "quota", "key": "q1", "qty": 1}]);
    door.post("/orders", an_order("o1", holds)).await.expect(201);
    let release = async |kind| door.post("/orders/o1/release", json!({"type": kind, "reason": "caller waits"})).await;
    release("stock").await.problem(409, "order_open");
    door.post("/orders/o1/close", json!({"reason": "buyer"})).await.expect(200);
    let ran = release("stock").await.expect(200);
    assert_eq!(
        (ran["tasks"][0]["result"].as_str(), ran["tasks"][0]["action"].as_str()),
        (Some("succeeded"), Some("release"))
    );
    assert_eq!(ran["tasks"][0]["kind"], Value::Null);
    assert_eq!(release("stock").await.expect(200)["tasks"], json!([]));
    assert_eq!(door.figures("stock/s1").await, [5, 0, 0]);
    assert_eq!(door.figures("quota/q1").await, [4, 1, 0]);
    door.post("/orders/nobody/release", json!({"type": "stock", "reason": "x"})).await.problem(404, "not_found");
    door.post("/orders/nobody/complete", json!({})).await.problem(404, "not_found");
    assert_eq!(door.post("/orders/o1/complete", json!({})).await.expect(200)["result"], "not_paid");
}
