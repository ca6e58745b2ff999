//! R24: no token, password or database address reaches the log, however much it is told to say.

use serde_json::json;

use super::until_ready;
use crate::support::database::{Engine, TestDb, on_every_engine};
use crate::support::process::{Api, Handback};

const DATABASE_PASSWORD: &str = "database-s3cret";
const PERSON_PASSWORD: &str = "persons own s3cret";

on_every_engine!(r24_a_talkative_log_tells_no_secret);

async fn r24_a_talkative_log_tells_no_secret(db: TestDb) {
    let url = with_a_password(&db).await;
    let add = ["user", "add", "wang", "--role", "operator", "--password-stdin"];
    Handback::new(add).database(&url).input(PERSON_PASSWORD).run().ok();
    let made = Handback::new(["token", "create", "shop", "--scope", "shop"]).database(&url).run().ok();
    let token = made.stdout.trim().to_owned();

    let serve = Handback::new(["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    let (serve, address) = serve.database(&url).env("RUST_LOG", "debug,sqlx=debug").serve();
    until_ready(&address, &serve).await;
    let api = Api::new(&address, &token);
    assert_eq!(api.put("/ledger/stock/s", json!({"available": 3})).await.status, 200);
    assert_eq!(Api::new(&address, "hb_wrong-s3cret").get("/idle").await.status, 401);
    for password in [PERSON_PASSWORD, "a wrong s3cret"] {
        sign_in(&address, password).await;
    }
    // An error of the database with everything there: a table that is gone.
    db.execute("DROP TABLE hold").await.unwrap();
    let order = json!({"order_no": "o", "buyer": "b", "amount": 1, "currency": "CNY",
                       "holds": [{"type": "stock", "key": "s", "qty": 1}]});
    assert_eq!(api.post("/orders", order).await.status, 500);
    let ended = serve.stop();

    assert!(ended.stderr.lines().count() > 10, "the log said next to nothing, that tests nothing");
    for secret in [token.as_str(), "s3cret"] {
        let told: Vec<&str> = ended.stderr.lines().filter(|line| line.contains(secret)).collect();
        assert!(told.is_empty(), "{secret:?} was told:\n{}", told.join("\n"));
    }
}

/// The same database by an address that holds a password.
async fn with_a_password(db: &TestDb) -> String {
    match db.engine {
        Engine::Sqlite => db.url.clone(),
        // The server trusts everybody on the loopback and never asks.
        Engine::Postgres => db.url.replace("handback@", &format!("handback:{DATABASE_PASSWORD}@")),
        Engine::Mariadb => {
            let name = db.url.rsplit('/').next().unwrap();
            let user = format!("{name}_user");
            db.execute(&format!("CREATE USER '{user}'@'127.0.0.1' IDENTIFIED BY '{DATABASE_PASSWORD}'")).await.unwrap();
            db.execute(&format!("GRANT ALL ON {name}.* TO '{user}'@'127.0.0.1'")).await.unwrap();
            db.url.replace("root@", &format!("{user}:{DATABASE_PASSWORD}@"))
        }
    }
}

async fn sign_in(address: &str, password: &str) {
    let http = crate::support::http::client().build().unwrap();
    let form = format!("username=wang&password={}", password.replace(' ', "+"));
    let answer = http
        .post(format!("{address}/login"))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("origin", address)
        .body(form)
        .send()
        .await
        .unwrap();
    assert!(answer.status().as_u16() < 500, "{answer:?}");
}
