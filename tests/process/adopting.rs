//! `docs/adopting.md`, walked through as it stands: its own blocks, on an empty server, with the built binary.

use std::time::Duration;

use handback::store::token::Scope;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor};

use super::examples;
use crate::support::database::{Engine, TestDb, on_every_engine, run_on};
use crate::support::process::{Api, Handback};
use crate::support::servers::Server;

const GUIDE: &str = include_str!("../../docs/adopting.md");

/// The block of the guide with exactly this line over it.
pub(super) fn block(fence: &str) -> &'static str {
    let start = format!("```{fence}\n");
    let (_, rest) = GUIDE.split_once(&start).unwrap_or_else(|| panic!("the guide has no {fence}"));
    rest.split_once("\n```").unwrap_or_else(|| panic!("{fence} has no end")).0
}

pub(super) async fn run(url: &str, sql: &str) {
    sqlx::any::install_default_drivers();
    let mut connection = sqlx::AnyConnection::connect(url).await.unwrap_or_else(|e| panic!("{url}: {e}"));
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    connection.close().await.unwrap();
}

#[test]
fn the_guide_works_as_written_on_mariadb() {
    run_on(Engine::Mariadb, async |_: TestDb| {
        let server = Server::shared(Engine::Mariadb);
        run(&server.admin_url(), "CREATE DATABASE shop").await;
        walk("mariadb", server.port, &server.url("shop"), &server.url("handback")).await;
        run(&server.admin_url(), "DROP DATABASE shop; DROP DATABASE handback").await;
    });
}

#[test]
fn the_guide_works_as_written_on_postgres() {
    run_on(Engine::Postgres, async |_: TestDb| {
        let server = Server::shared(Engine::Postgres);
        run(&server.admin_url(), "CREATE DATABASE shop").await;
        let url = server.url("shop");
        // The user of these tests is called like the schema, which PostgreSQL would then look into first.
        walk(
            "postgres",
            server.port,
            &format!("{url}?options=-c%20search_path%3Dpublic"),
            &format!("{url}?options=-c%20search_path%3Dhandback"),
        )
        .await;
        run(&server.admin_url(), "DROP DATABASE shop WITH (FORCE)").await;
    });
}

async fn walk(engine: &str, port: u16, shop: &str, handback: &str) {
    let sql = |name: &str| block(&format!("sql {engine} {name}"));
    run(shop, sql("shop")).await;
    run(shop, sql("place")).await;
    let toml = block(&format!("toml {engine}"));
    let command = |args: [&str; 2]| Handback::new(args).database(handback).file("handback.toml", toml);
    Handback::new(["migrate"]).database(handback).file("handback.toml", toml).run().ok();
    command(["config", "check"]).run().ok();
    run(shop, sql("view")).await;
    run(shop, sql("history")).await;

    let serve = Handback::new(["serve", "--listen", "127.0.0.1:0"]).database(handback).file("handback.toml", toml);
    let (process, url) = serve.serve();
    let api = Api::with_new_token(&url, handback, Scope::Admin.word());
    run(shop, sql("close")).await;
    // Again, as a shop that wasn't sure would.
    run(shop, sql("close")).await;
    idle(&api).await;
    let figures = async |path: &str| api.get(&format!("/ledger/{path}")).await.body;
    let expect = json!({"available": 10, "locked": 0, "sold": null});
    assert_eq!(figures("stock/1001").await, expect, "the old return was not restocked again");
    assert_eq!(numbers(shop, block("sql look")).await, (10, 0));
    let flow = figures("stock/1001/flow").await;
    assert_eq!(flow.as_array().map(Vec::len), Some(1), "{flow:#}");
    assert_eq!((&flow[0]["ref_no"], &flow[0]["action"], &flow[0]["qty"]), (&json!("A1"), &json!("release"), &json!(2)));
    assert_eq!(figures("coupon/31").await["status"], "unused");
    assert_eq!(figures("funds/7").await["available"], 500);
    assert_eq!(figures("stock/1002").await["locked"], 1, "A2 is open");

    examples::close_orders(engine, port, shop, &api).await;

    run(shop, block("sql wrong")).await;
    idle(&api).await;
    let manual = api.get("/tasks?status=manual").await.body;
    let task = &manual["items"][0];
    assert_eq!((&task["order_no"], &task["kind"]), (&json!("A2"), &json!("locked_insufficient")), "{manual:#}");
    let close =
        json!({"reason": "counted in the shop", "expected_version": task["version"], "resolution": "leave_owed"});
    let closed = api.post(&format!("/tasks/{}/force-close", task["id"]), close).await;
    assert_eq!(closed.body["result"], "force_closed", "{:#}", closed.body);
    assert_eq!(figures("funds/8").await["locked"], 10, "force-closing moves nothing");

    run(shop, "UPDATE return_orders SET status = 'COMPLETED' WHERE id = 91").await;
    let restocked = async || figures("stock/1002").await["available"] == 5;
    eventually(restocked).await;
    // The shop's figures agree with its orders; what A2's account lacks is found.
    let found = Handback::new(["reconcile", "--json"]).database(handback).file("handback.toml", toml).run();
    let found: Value = serde_json::from_str(&found.stdout).unwrap_or_else(|e| panic!("{e}: {found:?}"));
    let keys: Vec<&str> = found["diffs"].as_array().unwrap().iter().filter_map(|d| d["key"].as_str()).collect();
    assert_eq!(keys, ["8"], "{found:#}");
    process.stop().ok();
    Handback::new(["check"]).database(handback).file("handback.toml", toml).run().ok();
}

pub(super) async fn numbers(url: &str, sql: &str) -> (i64, i64) {
    use sqlx::Row;
    let mut connection = sqlx::AnyConnection::connect(url).await.unwrap();
    let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(&mut connection).await.unwrap();
    (row.get::<i32, _>(0).into(), row.get::<i32, _>(1).into())
}

pub(super) async fn idle(api: &Api) {
    let idle = api.get("/idle?wait_s=20").await.body;
    assert_eq!(idle["idle"], true, "{idle:#}");
}

async fn eventually(mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..400 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it never happened");
}

on_every_engine!(e2_a_row_written_by_plain_sql_is_noticed_within_a_second);

async fn e2_a_row_written_by_plain_sql_is_noticed_within_a_second(db: TestDb) {
    let (process, url) = Handback::new(["serve", "--listen", "127.0.0.1:0"]).database(&db.url).serve();
    let api = Api::with_new_token(&url, &db.url, Scope::Admin.word());
    api.put("/ledger/stock/s", json!({"available": 10})).await;
    api.put("/ledger/stock/s", json!({"adjust": -5, "adjust_locked": 5, "ref": "r", "reason": "as the shop has it"}))
        .await;
    let mut waits = Vec::new();
    for n in 0..5 {
        let row = format!(
            "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty) VALUES ('x{n}', 1, 's', 1)"
        );
        db.execute(&row).await.unwrap();
        idle(&api).await;
        let ended =
            format!("SELECT finished_at - created_at FROM order_release_task WHERE order_no = 'x{n}' AND status = 1");
        waits.push(db.count(&ended).await);
    }
    waits.sort_unstable();
    // The machine may be busy with other tests: what is usual counts.
    assert!(waits[2] <= 1_000, "{waits:?} ms");
    let figures: Value = api.get("/ledger/stock/s").await.body;
    assert_eq!((&figures["available"], &figures["locked"]), (&json!(10), &json!(0)));
    process.stop().ok();
}

#[test]
fn what_is_wrong_with_mapped_tables_ends_every_command_before_it_works() {
    run_on(Engine::Sqlite, async |db: TestDb| {
        Handback::new(["migrate"]).database(&db.url).run().ok();
        let toml = "[mapped.stock]\ntable = \"inventory\"\nkey_column = \"sku_id\"\navailable_column = \"available\"\n";
        db.execute("CREATE TABLE inventory (sku_id INTEGER, available TEXT)").await.unwrap();
        for args in [["config", "check"], ["serve", "--listen=127.0.0.1:0"], ["worker", "--log-format=text"]] {
            let ended = Handback::new(args).database(&db.url).file("handback.toml", toml).run();
            assert_eq!(ended.code(), Some(2), "{args:?}\n{}", ended.stderr);
            assert!(ended.stderr.contains("mapped.stock.key_column"), "{}", ended.stderr);
            assert!(ended.stderr.contains("mapped.stock.available_column"), "{}", ended.stderr);
        }
    });
}
