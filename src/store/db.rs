//! Pools and transactions. A transaction runs in a task of its own that nobody cancels: a browser that
//! goes away drops the handler's future, and a `BEGIN` cancelled in flight would leave an open
//! transaction on a pooled connection. Deadlock, busy and serialization errors run the whole body again
//! (R19); so does a lost COMMIT (R13), since every body is conditional on what it changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use sqlx::AnyPool;
use sqlx::any::AnyPoolOptions;
use sqlx::{Connection as _, Executor as _, Row as _};

use super::conn::Conn;
use super::dialect::{Dialect, Engine};
use super::error::{Class, Error};
use super::mapped::{self, Spec, Tables};

pub type Result<T> = std::result::Result<T, Error>;

/// How often a transaction is run again on deadlock, busy or a lost connection before it is an error.
const TRIES: u32 = 10;
/// How long the first connection waits for others that set up the same new file.
const SET_UP_PATIENCE: Duration = Duration::from_secs(10);

/// The database: one writer connection on SQLite, a pool elsewhere; readers apart.
#[derive(Clone)]
pub struct Db {
    writer: AnyPool,
    reader: AnyPool,
    pub dialect: Dialect,
    pub facts: Arc<Facts>,
    /// The shop's own tables that take the place of owned ledgers.
    pub mapped: Arc<Tables>,
    /// A notification is on its way: further ones until then would say the same.
    pub(super) is_ringing: Arc<std::sync::atomic::AtomicBool>,
}

/// What was found at connect: shown on the page and in the log.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub engine: String,
    pub version: String,
    /// Durability settings as read back from the server.
    pub durability: Vec<(String, String)>,
    /// What is weak, in words.
    pub warnings: Vec<String>,
}

/// What a transaction's body wants done with what it did.
pub enum Decision<T> {
    Commit(T),
    Rollback(T),
}

impl Db {
    /// Connects, checks the version, reads durability settings back. Migrates first when asked to.
    ///
    /// # Errors
    /// `Away` when the database can't be reached, `Broken` when its version is too old or a migration failed.
    pub async fn open(url: &str, migrate: bool, connections: u32) -> Result<Self> {
        sqlx::any::install_default_drivers();
        let engine = Engine::of_url(url)
            .ok_or_else(|| Error::broken("database.url must begin with sqlite:, postgres: or mysql:"))?;
        let url = engine.connect_url(url);
        let mut conn = sqlx::AnyConnection::connect(&url).await?;
        let version = one_text(&mut conn, Dialect::new(engine, "").version()).await?;
        let dialect = Dialect::new(engine, &version);
        require_version(dialect, &version)?;
        set_up(&mut conn, dialect).await?;
        if migrate {
            super::migrate::run(&mut conn, dialect).await?;
        }
        let facts = read_facts(&mut conn, dialect, version).await?;
        let _ = conn.close().await;
        let writers = if dialect.has_one_writer() { 1 } else { connections };
        Ok(Self {
            writer: pool(&url, dialect, writers, false)?,
            reader: pool(&url, dialect, connections.min(4), true)?,
            dialect,
            facts: Arc::new(facts),
            mapped: Arc::default(),
            is_ringing: Arc::default(),
        })
    }

    /// Ties the shop's own tables to this database, or answers all that is wrong with them.
    pub async fn map(&mut self, spec: &Spec) -> Result<std::result::Result<(), Vec<String>>> {
        let checked = mapped::check(&mut self.read().await?, spec).await?;
        Ok(checked.map(|tables| self.mapped = Arc::new(tables)))
    }

    /// A connection for reading outside a transaction.
    pub async fn read(&self) -> Result<Conn> {
        Ok(Conn {
            inner: self.reader.acquire().await?,
            dialect: self.dialect,
            mapped: self.mapped.clone(),
            open: false,
        })
    }

    /// A connection of the writing pool outside a transaction, for upkeep.
    pub(super) async fn writer_conn(&self) -> Result<Conn> {
        Ok(Conn {
            inner: self.writer.acquire().await?,
            dialect: self.dialect,
            mapped: self.mapped.clone(),
            open: false,
        })
    }

    /// A connection on which several reads see one snapshot.
    pub async fn snapshot(&self) -> Result<Conn> {
        let mut conn = self.read().await?;
        conn.open = true;
        conn.raw(self.dialect.begin_snapshot()).await?;
        Ok(conn)
    }

    /// Runs `body` in one transaction, in a task that is never cancelled.
    ///
    /// The body may run several times; only one run is committed. It must take everything it decides
    /// from what it reads, not from an earlier run.
    pub async fn write<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut Conn) -> BoxFuture<'c, Result<Decision<T>>> + Send + Sync + 'static,
    {
        let db = self.clone();
        match tokio::spawn(async move { db.write_here(body).await }).await {
            Ok(result) => result,
            Err(join) => Err(Error::new(Class::Panic, format!("a transaction ended without an answer: {join}"))),
        }
    }

    async fn write_here<T, F>(&self, body: F) -> Result<T>
    where
        F: for<'c> Fn(&'c mut Conn) -> BoxFuture<'c, Result<Decision<T>>> + Send + Sync,
    {
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.try_once(&body).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let again = match error.class {
                Class::Transient => tries < TRIES,
                Class::Away => tries < 3,
                _ => false,
            };
            if !again {
                return Err(error);
            }
            tracing::debug!(db.try = tries, error = %error, "transaction is run again");
            tokio::time::sleep(pause(tries)).await;
        }
    }

    /// A connection with a transaction open on it. Connections that a restarted server left behind fail at their
    /// first statement and are thrown away, as many as there are.
    async fn begin(&self) -> Result<Conn> {
        let mut stale = 0;
        loop {
            let mut conn = Conn {
                inner: self.writer.acquire().await?,
                dialect: self.dialect,
                mapped: self.mapped.clone(),
                open: true,
            };
            match conn.raw(self.dialect.begin()).await {
                Err(error) if error.is(Class::Away) && stale < self.writer.options().get_max_connections() => {
                    stale += 1
                }
                Err(error) => return Err(error),
                Ok(()) => return Ok(conn),
            }
        }
    }

    async fn try_once<T, F>(&self, body: &F) -> Result<T>
    where
        F: for<'c> Fn(&'c mut Conn) -> BoxFuture<'c, Result<Decision<T>>> + Send + Sync,
    {
        let mut conn = self.begin().await?;
        let result = match std::panic::AssertUnwindSafe(body(&mut conn)).catch_unwind().await {
            Ok(result) => result,
            Err(panic) => Err(Error::new(Class::Panic, panic_text(panic.as_ref()))),
        };
        match result {
            Ok(Decision::Commit(value)) => {
                conn.finish("COMMIT").await?;
                Ok(value)
            }
            Ok(Decision::Rollback(value)) => {
                conn.finish("ROLLBACK").await?;
                Ok(value)
            }
            Err(error) => {
                // A lock wait on MariaDB undoes the statement only: always roll back in so many words.
                let _ = conn.finish("ROLLBACK").await;
                Err(error)
            }
        }
    }

    /// Tells other processes that there is work, where the engine can. A hint: losing it costs lateness only.
    pub fn ring(&self) {
        if self.dialect.can_notify() {
            super::wake::notify(self.clone());
        }
    }

    /// Whether the schema is the one this binary knows.
    pub async fn is_current(&self) -> Result<bool> {
        let mut conn = self.read().await?;
        super::migrate::is_current(&mut conn.inner, self.dialect).await
    }

    /// The database's time in milliseconds.
    pub async fn now_ms(&self) -> Result<i64> {
        self.read().await?.stmt(self.dialect.now_ms()).int().await
    }

    /// Whether the database answers at all.
    pub async fn ping(&self) -> Result<()> {
        self.read().await?.stmt("SELECT 1").int().await.map(|_| ())
    }

    pub async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }
}

/// Several processes that open a new SQLite file at once all turn it to WAL: the losers are told "locked" at once,
/// whatever the time limit for locks is, and try again.
async fn set_up(conn: &mut sqlx::AnyConnection, dialect: Dialect) -> Result<()> {
    let since = Instant::now();
    for setting in dialect.on_connect() {
        while let Err(error) = conn.execute(*setting).await.map_err(Error::from) {
            if !error.is(Class::Transient) || since.elapsed() > SET_UP_PATIENCE {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    Ok(())
}

async fn one_text(conn: &mut sqlx::AnyConnection, sql: &'static str) -> Result<String> {
    Ok(sqlx::query(sql).fetch_one(conn).await?.try_get(0)?)
}

async fn read_facts(conn: &mut sqlx::AnyConnection, dialect: Dialect, version: String) -> Result<Facts> {
    let mut facts = Facts { engine: dialect.name().into(), version, ..Facts::default() };
    for (name, sql, safe) in dialect.durability() {
        let value = one_text(conn, sql).await?;
        if !safe.contains(&value.as_str()) {
            facts.warnings.push(format!(
                "{name} is {value}: an acknowledged close could be lost in a power cut (safe: {})",
                safe.join(", ")
            ));
        }
        facts.durability.push(((*name).to_owned(), value));
    }
    Ok(facts)
}

fn require_version(dialect: Dialect, version: &str) -> Result<()> {
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).filter_map(|p| p.parse::<u32>().ok());
    let mut part = || parts.next().unwrap_or(0);
    let found = (part(), part(), part());
    let least = dialect.minimum_version();
    if found < least {
        return Err(Error::broken(format!(
            "{} {version} is too old: at least {}.{}.{} is needed",
            dialect.name(),
            least.0,
            least.1,
            least.2
        )));
    }
    Ok(())
}

fn pool(url: &str, dialect: Dialect, connections: u32, tests_before_use: bool) -> Result<AnyPool> {
    let options = AnyPoolOptions::new()
        .max_connections(connections)
        .min_connections(0)
        .acquire_timeout(Duration::from_secs(if dialect.has_one_writer() { 30 } else { 5 }))
        .idle_timeout(Duration::from_secs(300))
        .test_before_acquire(tests_before_use)
        .after_connect(move |conn, _| {
            Box::pin(async move {
                for setting in dialect.on_connect() {
                    conn.execute(*setting).await?;
                }
                Ok(())
            })
        });
    Ok(options.connect_lazy(url)?)
}

fn pause(tries: u32) -> Duration {
    let ceiling = 4u64 << tries.min(6);
    Duration::from_millis(rand::random_range(1..=ceiling))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".into())
}
