//! The built binary from outside: what happens to data when requests, processes and databases go away.

mod adopting;
mod database_away;
mod dropped_requests;
mod examples;
mod killed;
mod secrets;
mod stopped_worker;

use std::time::{Duration, Instant};

use crate::support::database::TestDb;
use crate::support::process::{Api, Handback, Running};

/// `serve` on this database, and a token that may do everything.
async fn serving(db: &TestDb, more: &[&str]) -> (Running, Api, String) {
    let mut command = Handback::new(["serve", "--listen", "127.0.0.1:0"]).database(&db.url);
    for arg in more {
        command = command.arg(arg);
    }
    let (running, url) = command.serve();
    until_ready(&url, &running).await;
    let api = Api::with_new_token(&url, &db.url, "admin");
    (running, api, url)
}

/// Waits until the database is there: on a busy machine `serve` listens before its migrations are done.
async fn until_ready(url: &str, serve: &Running) {
    let since = Instant::now();
    while plain_status(&format!("{url}/readyz")).await != 200 {
        assert!(since.elapsed() < Duration::from_secs(60), "it never became ready:\n{}", serve.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn plain_status(url: &str) -> u16 {
    let http = crate::support::http::client().build().unwrap();
    http.get(url).send().await.unwrap().status().as_u16()
}

/// Waits until no task is claimed or due; fails when that doesn't come.
async fn until_idle(api: &Api) {
    for _ in 0..6 {
        let answer = api.get("/idle?wait_s=20").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        if answer.body["idle"] == true {
            return;
        }
    }
    panic!("still not idle: {:?}", api.get("/idle?wait_s=0").await);
}

/// `handback check`: every rule that a query can verify.
fn rules_hold(db: &TestDb) {
    Handback::new(["check"]).database(&db.url).run().ok();
}
