//! A browser or a shop that goes away drops the request in the middle of its transaction. Whatever was
//! decided must be whole, and no connection may be left with an open transaction on it.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::{rules_hold, serving, until_idle};
use crate::support::database::{Engine, TestDb, on_every_engine};

const REQUESTS: usize = 1_000;

on_every_engine!(a_thousand_dropped_requests_leave_no_transaction_open);

async fn a_thousand_dropped_requests_leave_no_transaction_open(db: TestDb) {
    let (serve, api, _) = serving(&db, &[]).await;
    let opened = api.put("/ledger/stock/s", json!({"available": 1_000_000})).await;
    assert_eq!(opened.status, 200, "{opened:?}\n{}", serve.stderr());

    // Twenty at a time, each given up after another moment: before it is sent, in mid-transaction,
    // or just when the answer comes.
    let mut given_up = 0;
    for batch in 0..REQUESTS / 20 {
        let requests = (0..20).map(|n| {
            let (api, number) = (api.clone(), batch * 20 + n);
            async move {
                let patience = Duration::from_micros(200 * (number as u64 * 7 % 61));
                let order = json!({
                    "order_no": format!("o{number}"), "buyer": "b", "amount": 100, "currency": "CNY",
                    "holds": [{"type": "stock", "key": "s", "qty": 1}],
                });
                tokio::time::timeout(patience, api.post("/orders", order)).await.is_err()
            }
        });
        given_up += join_all(requests).await.into_iter().filter(|dropped| *dropped).count();
    }
    assert!(given_up > REQUESTS / 10, "only {given_up} requests were dropped, that tests nothing");

    no_transaction_stays_open(&db).await;
    // What was decided is whole: as much is locked as orders exist.
    // Read in one statement, since orders that wait for a connection may still come.
    let difference = "SELECT (SELECT COUNT(*) FROM orders) - (SELECT locked FROM ledger WHERE biz_key = 's')";
    assert_eq!(db.count(difference).await, 0);
    assert!(db.count("SELECT COUNT(*) FROM orders").await > 0, "every request was dropped before it was read");
    until_idle(&api).await;
    rules_hold(&db);
    let ended = serve.stop();
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
}

/// Transactions that still run may end; then none is left. SQLite: somebody else can write at once.
async fn no_transaction_stays_open(db: &TestDb) {
    let open = match db.engine {
        Engine::Sqlite => {
            db.execute("PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE; ROLLBACK").await.unwrap();
            return;
        }
        Engine::Postgres => {
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL \
             AND pid <> pg_backend_pid()"
        }
        Engine::Mariadb => {
            "SELECT COUNT(*) FROM information_schema.innodb_trx t \
             JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE p.db = DATABASE()"
        }
    };
    // The worker has short transactions of its own: one look without any is enough. MariaDB answers from
    // a copy that isn't renewed while it is asked more often than every 100 ms.
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        if db.count(open).await == 0 {
            return;
        }
    }
    panic!("{} transactions stayed open for ten seconds", db.count(open).await);
}
