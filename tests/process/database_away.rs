//! The database goes away in the middle and comes back: clear answers meanwhile, nothing lost, recovery by
//! itself. And it isn't there at start.

use serde_json::json;

use super::{plain_status, rules_hold, until_idle, until_ready};
use crate::support::database::{TestDb, on_every_server};
use crate::support::process::{Api, Handback};
use crate::support::proxy::Proxy;
use crate::support::servers::{Server, free_port};

on_every_server!(a_database_that_goes_away_and_comes_back_loses_nothing);

async fn a_database_that_goes_away_and_comes_back_loses_nothing(db: TestDb) {
    let server = Server::shared(db.engine).port;
    let proxy = Proxy::in_front_of(server).await;
    let through = db.url.replace(&format!(":{server}/"), &format!(":{}/", proxy.port));
    let (serve, url) = Handback::new(["serve", "--listen", "127.0.0.1:0"]).database(&through).serve();
    let api = Api::with_new_token(&url, &db.url, "shop");
    assert_eq!(api.put("/ledger/stock/s", json!({"available": 10})).await.status, 200);
    let order = |no: &str| {
        json!({"order_no": no, "buyer": "b", "amount": 100, "currency": "CNY",
               "holds": [{"type": "stock", "key": "s", "qty": 1}]})
    };
    assert_eq!(api.post("/orders", order("before")).await.status, 201);

    proxy.go_away();
    let refused = api.post("/orders", order("meanwhile")).await;
    assert_eq!((refused.status, &refused.body["code"]), (503, &json!("database_away")), "{refused:?}");
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    assert_eq!(plain_status(&format!("{url}/readyz")).await, 503);
    assert_eq!(plain_status(&format!("{url}/healthz")).await, 200, "the process itself is up");
    assert_eq!(api.post("/orders/before/close", json!({"reason": "buyer"})).await.status, 503);

    proxy.come_back();
    until_ready(&url, &serve).await;
    assert_eq!(api.post("/orders/before/close", json!({"reason": "buyer"})).await.body["result"], "closed");
    assert_eq!(api.post("/orders", order("meanwhile")).await.status, 201);
    until_idle(&api).await;
    let stock = api.get("/ledger/stock/s").await.body;
    assert_eq!((&stock["available"], &stock["locked"]), (&json!(9), &json!(1)), "{stock}");
    serve.stop().ok();
    rules_hold(&db);
}

on_every_server!(a_database_that_comes_after_serve_is_waited_for);

async fn a_database_that_comes_after_serve_is_waited_for(db: TestDb) {
    let server = Server::shared(db.engine).port;
    let proxy = Proxy::in_front_of(server).await;
    proxy.go_away();
    let through = db.url.replace(&format!(":{server}/"), &format!(":{}/", proxy.port));
    let (serve, url) = Handback::new(["serve", "--listen", "127.0.0.1:0"]).database(&through).serve();
    assert_eq!(plain_status(&format!("{url}/readyz")).await, 503);
    assert_eq!(plain_status(&format!("{url}/healthz")).await, 200);
    proxy.come_back();
    until_ready(&url, &serve).await;
    let api = Api::with_new_token(&url, &db.url, "read");
    assert_eq!(api.get("/idle").await.body["idle"], true);
    serve.stop().ok();
}

#[test]
fn a_command_without_its_database_says_so_without_the_password() {
    for scheme in ["postgres", "mysql"] {
        let url = format!("{scheme}://someone:s3cret-word@127.0.0.1:{}/shop", free_port());
        for command in ["check", "migrate"] {
            let ended = Handback::new([command]).database(&url).run();
            assert_eq!(ended.code(), Some(3), "{command}: {ended:?}");
            assert!(!ended.stderr.is_empty(), "{command} says why");
            let said = ended.stdout + &ended.stderr;
            assert!(!said.contains("s3cret-word"), "R24, {command}: {said}");
        }
    }
}
