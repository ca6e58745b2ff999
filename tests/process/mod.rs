//! The built binary from outside: what happens to data when requests, processes and databases go away.

mod dropped_requests;
mod killed;

use crate::support::database::TestDb;
use crate::support::process::{Api, Handback, Running};

/// `serve` on this database, and a token that may do everything.
async fn serving(db: &TestDb, more: &[&str]) -> (Running, Api, String) {
    let mut command = Handback::new(["serve", "--listen", "127.0.0.1:0"]).database(&db.url);
    for arg in more {
        command = command.arg(arg);
    }
    let (running, url) = command.serve();
    let api = Api::with_new_token(&url, &db.url, "admin");
    (running, api, url)
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
