//! The Java and PHP examples of `docs/adopting.md`, run as the guide says against a shop's tables: each closes an
//! order of its own once, and Handback gives the stock back. Called by the walk through the guide.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::adopting::{block, idle, numbers, run};
use super::{serving, until_idle};
use crate::support::database::{Engine, TestDb, run_on};
use crate::support::process::Api;
use crate::support::servers::{find_program, say_aloud};

/// Closes one order by each language. What is missing on this machine is said, not held against the product.
pub(super) async fn close_orders(engine: &str, port: u16, shop: &str, api: &Api) {
    let folder = tempfile::tempdir().unwrap();
    for (id, name, command) in
        [(13, "Java", java(engine, port, folder.path())), (14, "PHP", php(engine, port, folder.path()))]
    {
        match command {
            Ok(command) => closes_once(id, name, command, shop, api).await,
            Err(missing) => say_aloud(&format!("the {name} example was not run on {engine}: {missing}\n")),
        }
    }
}

/// A program and its arguments; the order's number comes last.
struct Example {
    program: PathBuf,
    before: Vec<String>,
}

fn java(engine: &str, port: u16, folder: &Path) -> Result<Example, String> {
    find_program("javac", &[]).ok_or("there is no javac (Debian: default-jdk-headless)")?;
    let program = find_program("java", &[]).ok_or("there is no java (Debian: default-jdk-headless)")?;
    let (jar, package, url) = match engine {
        "mariadb" => {
            ("mariadb-java-client", "libmariadb-java", format!("jdbc:mariadb://127.0.0.1:{port}/shop?user=root"))
        }
        _ => (
            "postgresql",
            "libpostgresql-jdbc-java",
            format!("jdbc:postgresql://127.0.0.1:{port}/shop?user=handback&currentSchema=public"),
        ),
    };
    let driver = format!("/usr/share/java/{jar}.jar");
    if !Path::new(&driver).exists() {
        return Err(format!("there is no {driver} (Debian: {package})"));
    }
    let source = written(folder, "CloseOrder.java", block("java"));
    Ok(Example { program, before: vec!["-cp".into(), driver, source, url] })
}

fn php(engine: &str, port: u16, folder: &Path) -> Result<Example, String> {
    let program = find_program("php", &[]).ok_or("there is no php (Debian: php-cli)")?;
    let (module, package, user, dsn) = match engine {
        "mariadb" => ("pdo_mysql", "php-mysql", "root", format!("mysql:host=127.0.0.1;port={port};dbname=shop")),
        _ => (
            "pdo_pgsql",
            "php-pgsql",
            "handback",
            format!("pgsql:host=127.0.0.1;port={port};dbname=shop;options='-c search_path=public'"),
        ),
    };
    let modules = Command::new(&program).arg("-m").output().map_err(|e| format!("php: {e}"))?;
    if !String::from_utf8_lossy(&modules.stdout).lines().any(|line| line == module) {
        return Err(format!("php has no {module} (Debian: {package})"));
    }
    let source = written(folder, "close_order.php", block("php"));
    Ok(Example { program, before: vec![source, dsn, user.into(), String::new()] })
}

fn written(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

impl Example {
    fn says(&self, order_no: &str) -> String {
        let done = Command::new(&self.program).args(&self.before).arg(order_no).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }
}

/// Two lines of one article and one of another: two rows, and every piece back.
async fn closes_once(id: i64, name: &str, example: Example, shop: &str, api: &Api) {
    let order_no = format!("{name}-1");
    run(
        shop,
        &format!(
            "UPDATE inventory SET available = available - 2, locked = locked + 2 WHERE sku_id = 1001;
             UPDATE inventory SET available = available - 1, locked = locked + 1 WHERE sku_id = 1002;
             INSERT INTO orders VALUES ({id}, '{order_no}', 'PENDING');
             INSERT INTO order_item VALUES ({id}1, {id}, 1001, 1), ({id}2, {id}, 1002, 1), ({id}3, {id}, 1001, 1)"
        ),
    )
    .await;
    let figures = async |sku: i64| api.get(&format!("/ledger/stock/{sku}")).await.body;
    assert_eq!(figures(1001).await["locked"], 2);
    let rows = format!(
        "SELECT COUNT(*), COUNT(CASE WHEN resource_type = 1 AND (biz_key = '1001' AND qty = 2 OR biz_key = '1002' AND \
         qty = 1) THEN 1 END) FROM order_release_task WHERE order_no = '{order_no}'"
    );
    assert_eq!(numbers(shop, &rows).await, (0, 0));

    assert_eq!(example.says(&order_no), "closed", "{name}");
    let closed = format!("SELECT COUNT(*), 0 FROM orders WHERE order_no = '{order_no}' AND status = 'CLOSED'");
    assert_eq!(numbers(shop, &closed).await, (1, 0), "{name} closed its order");
    assert_eq!(numbers(shop, &rows).await, (2, 2), "{name}: one row per article, of all its pieces");
    idle(api).await;
    assert_eq!(figures(1001).await, json!({"available": 10, "locked": 0, "sold": null}), "{name}");
    assert_eq!((&figures(1002).await["available"], &figures(1002).await["locked"]), (&json!(4), &json!(1)), "{name}");

    assert_eq!(example.says(&order_no), "not open", "{name} is run again");
    assert_eq!(numbers(shop, &rows).await, (2, 2), "{name} wrote nothing");
    idle(api).await;
    assert_eq!(figures(1001).await["available"], 10, "{name}");
}

#[test]
fn the_java_example_has_at_most_fifty_lines() {
    let lines = block("java").lines().count();
    assert!(lines <= 50, "{lines} lines");
}

/// A shop on SQLite writes its row with whatever SQLite it has, which may be years older than ours.
#[test]
fn a_row_written_by_the_systems_own_sqlite_is_released() {
    run_on(Engine::Sqlite, async |db: TestDb| {
        let Some(sqlite3) = find_program("sqlite3", &[]) else {
            say_aloud("a row of another SQLite was not written: sqlite3 is missing\n");
            return;
        };
        let (running, api, _) = serving(&db, &[]).await;
        api.put("/ledger/stock/s", json!({"available": 5})).await;
        db.execute("UPDATE ledger SET available = 3, locked = 2 WHERE biz_key = 's'").await.unwrap();
        let insert = "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty) VALUES ('old', 1, 's', 2)";
        let file = db.url.trim_start_matches("sqlite://");
        let said = Command::new(sqlite3).arg("-cmd").arg(".timeout 20000").arg(file).arg(insert).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        until_idle(&api).await;
        assert_eq!(api.get("/ledger/stock/s").await.body, json!({"available": 5, "locked": 0, "sold": 0}));
        running.stop().ok();
    });
}
