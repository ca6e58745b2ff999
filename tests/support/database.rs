//! One database per test, and one test body on every engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, Connection, Executor, Row};
use tempfile::TempDir;

pub use super::servers::Engine;
use super::servers::Server;

/// A database that no other test sees. Empty when made: no tables yet.
#[derive(Clone)]
pub struct TestDb {
    pub engine: Engine,
    pub url: String,
    name: String,
    /// SQLite's folder; goes with the last of these.
    folder: Option<Arc<TempDir>>,
}

/// Makes an empty database on the run's shared server (SQLite: a file in a folder of its own).
pub async fn fresh_database(engine: Engine) -> TestDb {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    if engine == Engine::Sqlite {
        let folder = tempfile::Builder::new().prefix("handback-test-").tempdir().expect("a temporary folder");
        let url = format!("sqlite://{}/handback.db", folder.path().display());
        return TestDb { engine, url, name, folder: Some(Arc::new(folder)) };
    }
    let server = Server::shared(engine);
    administer(server, &format!("CREATE DATABASE {name}")).await;
    TestDb { engine, url: server.url(&name), name, folder: None }
}

impl TestDb {
    /// A database that somebody else made, like one on a server of the test's own.
    pub fn at(engine: Engine, url: String) -> Self {
        Self { engine, url, name: String::new(), folder: None }
    }

    /// Drops the database, so that a long run needs little room. A failed test's stays until the
    /// server goes.
    async fn discard(self) {
        match self.engine {
            Engine::Sqlite => drop(self.folder),
            Engine::Postgres => {
                let drop_it = format!("DROP DATABASE {} WITH (FORCE)", self.name);
                administer(Server::shared(self.engine), &drop_it).await;
            }
            Engine::Mariadb => {
                let drop_it = format!("DROP DATABASE {}", self.name);
                administer(Server::shared(self.engine), &drop_it).await;
            }
        }
    }

    /// Runs one statement on a connection of its own, as a program beside Handback would.
    pub async fn execute(&self, sql: &str) -> Result<u64, sqlx::Error> {
        let mut connection = self.connect().await?;
        let done = connection.execute(AssertSqlSafe(sql)).await?;
        connection.close().await?;
        Ok(done.rows_affected())
    }

    /// The number a query answers.
    pub async fn count(&self, sql: &str) -> i64 {
        let mut connection = self.connect().await.unwrap_or_else(|e| panic!("{}: {e}", self.url));
        let count = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut connection).await;
        let _ = connection.close().await;
        count.unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    /// The first column of what a query answers, all texts.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let mut connection = self.connect().await.unwrap_or_else(|e| panic!("{}: {e}", self.url));
        let texts = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut connection).await;
        texts.unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    /// How SQLite would go about a query.
    pub async fn plan_of_sqlite(&self, sql: &str) -> String {
        let mut connection = self.connect().await.unwrap_or_else(|e| panic!("{}: {e}", self.url));
        let steps = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"))).fetch_all(&mut connection).await;
        let steps = steps.unwrap_or_else(|e| panic!("{sql}: {e}"));
        steps.iter().map(|step| step.get::<String, _>("detail")).collect::<Vec<_>>().join("\n")
    }

    pub async fn connect(&self) -> Result<sqlx::AnyConnection, sqlx::Error> {
        sqlx::any::install_default_drivers();
        let create = if self.engine == Engine::Sqlite { "?mode=rwc" } else { "" };
        sqlx::AnyConnection::connect(&format!("{}{create}", self.url)).await
    }
}

async fn administer(server: &Server, sql: &str) {
    sqlx::any::install_default_drivers();
    let mut connection = sqlx::AnyConnection::connect(&server.admin_url())
        .await
        .unwrap_or_else(|e| panic!("connecting to {}: {e}", server.admin_url()));
    connection.execute(AssertSqlSafe(sql)).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let _ = connection.close().await;
}

/// Runs `body` to its end on a runtime of its own, with a database of its own; what
/// [`on_every_engine!`] calls. Several worker threads, so that races are races.
pub fn run_on<F: Future<Output = ()>>(engine: Engine, body: impl FnOnce(TestDb) -> F) {
    if !engine.is_chosen() {
        return;
    }
    tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("a runtime").block_on(
        async {
            let database = fresh_database(engine).await;
            body(database.clone()).await;
            database.discard().await;
        },
    );
}

/// `on_every_engine!(rule)` makes three tests, `rule::sqlite`, `rule::postgres`, `rule::mariadb`,
/// that each run `async fn rule(db: TestDb)`.
macro_rules! on_every_engine {
    ($($body:ident),+ $(,)?) => {$(
        mod $body {
            use $crate::support::database::{Engine, run_on};

            #[test]
            fn sqlite() {
                run_on(Engine::Sqlite, super::$body);
            }

            #[test]
            fn postgres() {
                run_on(Engine::Postgres, super::$body);
            }

            #[test]
            fn mariadb() {
                run_on(Engine::Mariadb, super::$body);
            }
        }
    )+};
}
pub(crate) use on_every_engine;

/// [`on_every_engine!`] without SQLite, for what only a server between processes can do.
macro_rules! on_every_server {
    ($($body:ident),+ $(,)?) => {$(
        mod $body {
            use $crate::support::database::{Engine, run_on};

            #[test]
            fn postgres() {
                run_on(Engine::Postgres, super::$body);
            }

            #[test]
            fn mariadb() {
                run_on(Engine::Mariadb, super::$body);
            }
        }
    )+};
}
pub(crate) use on_every_server;
