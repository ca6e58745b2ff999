//! What is checked of a server before it is trusted: durable settings (with a warning people see when
//! they are weak) and the oldest version that has what the statements need.

use handback::store::Db;
use handback::store::dialect::{Dialect, Engine as StoreEngine};

use crate::support::database::{Engine, TestDb, on_every_engine};

on_every_engine!(durable_settings_are_on_and_read_back);

async fn durable_settings_are_on_and_read_back(db: TestDb) {
    let opened = Db::open(&db.url, true, 2).await.unwrap();
    let facts = opened.facts.clone();
    opened.close().await;
    assert!(facts.warnings.is_empty(), "{:?}", facts.warnings);
    let names: Vec<&str> = facts.durability.iter().map(|(name, _)| name.as_str()).collect();
    let expected: &[&str] = match db.engine {
        Engine::Sqlite => &["journal_mode", "synchronous"],
        Engine::Postgres => &["fsync", "synchronous_commit", "full_page_writes"],
        Engine::Mariadb => &["innodb_flush_log_at_trx_commit", "innodb_doublewrite"],
    };
    assert_eq!(names, expected);
}

on_every_engine!(weak_durability_is_a_warning_that_names_the_setting);

async fn weak_durability_is_a_warning_that_names_the_setting(db: TestDb) {
    // What a client can weaken for a database: the warning must come from the server's answer.
    match db.engine {
        Engine::Postgres => {
            let name = db.url.rsplit('/').next().unwrap();
            db.execute(&format!("ALTER DATABASE {name} SET synchronous_commit = off")).await.unwrap();
            let opened = Db::open(&db.url, true, 2).await.unwrap();
            let warnings = opened.facts.warnings.clone();
            opened.close().await;
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].starts_with("synchronous_commit is off"), "{warnings:?}");
        }
        Engine::Mariadb => {
            // A global of the server, so a server of our own.
            let server = crate::support::servers::Server::start(Engine::Mariadb).unwrap();
            let own = TestDb::at(db.engine, server.url("mysql"));
            own.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 2").await.unwrap();
            own.execute("CREATE DATABASE weak").await.unwrap();
            let opened = Db::open(&server.url("weak"), true, 2).await.unwrap();
            let warnings = opened.facts.warnings.clone();
            opened.close().await;
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].starts_with("innodb_flush_log_at_trx_commit is 2"), "{warnings:?}");
        }
        // Handback sets both of SQLite's itself, on each connection: what the file says doesn't count.
        Engine::Sqlite => {
            db.execute("PRAGMA journal_mode = DELETE").await.unwrap();
            let opened = Db::open(&db.url, true, 2).await.unwrap();
            assert!(opened.facts.warnings.is_empty());
            assert_eq!(opened.facts.durability[0].1, "wal");
            opened.close().await;
        }
    }
}

#[test]
fn each_engine_has_a_minimum_version() {
    let least = |engine, version| Dialect::new(engine, version).minimum_version();
    assert_eq!(least(StoreEngine::Mysql, "10.11.6-MariaDB"), (10, 6, 0));
    assert_eq!(least(StoreEngine::Mysql, "8.0.36"), (8, 0, 16));
    assert_eq!(least(StoreEngine::Postgres, "15.3"), (13, 0, 0));
}

#[tokio::test]
async fn a_database_that_is_not_there_is_away_and_its_password_is_not_told() {
    let port = crate::support::servers::free_port();
    for scheme in ["postgres", "mysql"] {
        let url = format!("{scheme}://someone:s3cret-word@127.0.0.1:{port}/shop");
        let Err(error) = Db::open(&url, true, 2).await else { panic!("nothing listens there") };
        assert!(error.is(handback::store::Class::Away), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("s3cret-word"), "R24: {error:?}");
    }
}
