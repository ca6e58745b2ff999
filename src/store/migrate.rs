//! Brings the schema up to date, from files inside the binary: one list per engine, run before any pool opens.

use std::borrow::Cow;

use sqlx::migrate::{Migrate as _, Migration, MigrationType, Migrator};
use sqlx::{AnyConnection, AssertSqlSafe, Executor as _, SqlSafeStr as _};

use super::db::Result;
use super::dialect::Dialect;
use super::error::Error;

fn migrator(dialect: Dialect) -> Migrator {
    let guarded = dialect.migration_guard().in_one_transaction;
    let migrations = dialect.migration().iter().map(|(version, name, sql)| {
        let sql = sql.replace("{{bin}}", dialect.collation());
        let sql = AssertSqlSafe(sql).into_sql_str();
        Migration::new(*version, Cow::Borrowed(*name), MigrationType::Simple, sql, guarded)
    });
    let mut migrator = Migrator::with_migrations(migrations.collect());
    // The library's own lock does nothing on SQLite and doesn't wait on MariaDB.
    migrator.set_locking(false);
    migrator
}

/// Runs what is missing. Running it again changes nothing; two processes at once wait for each other.
pub(super) async fn run(conn: &mut AnyConnection, dialect: Dialect) -> Result<()> {
    let guard = dialect.migration_guard();
    conn.execute(sqlx::raw_sql(guard.begin)).await?;
    // `run_direct`, because a future that holds `run` can't be spawned (its lifetimes are too general).
    let done = migrator(dialect).run_direct(None, &mut *conn, false).await;
    done.map_err(|error| Error::broken(format!("migration failed: {error}")))?;
    conn.execute(sqlx::raw_sql(guard.end)).await?;
    Ok(())
}

/// Whether every migration this binary knows has been run.
pub(super) async fn is_current(conn: &mut AnyConnection, dialect: Dialect) -> Result<bool> {
    let known = migrator(dialect);
    let applied = conn
        .list_applied_migrations(&known.table_name)
        .await
        .map_err(|error| Error::broken(format!("migrations can't be read: {error}")))?;
    Ok(known.iter().all(|m| applied.iter().any(|a| a.version == m.version)))
}
