//! Brings the schema up to date, from files inside the binary: one list per engine, run before any pool opens.

use std::borrow::Cow;

use sqlx::migrate::{Migrate as _, Migration, MigrationType, Migrator};
use sqlx::{AnyConnection, AssertSqlSafe, SqlSafeStr as _};

use super::db::Result;
use super::dialect::Dialect;
use super::error::Error;

fn migrator(dialect: Dialect) -> Migrator {
    let migrations = dialect.migration().iter().map(|(version, name, sql)| {
        let sql = sql.replace("{{bin}}", dialect.collation());
        Migration::new(*version, Cow::Borrowed(*name), MigrationType::Simple, AssertSqlSafe(sql).into_sql_str(), false)
    });
    Migrator::with_migrations(migrations.collect())
}

/// Runs what is missing. Running it again changes nothing; two processes at once wait for each other.
pub(super) async fn run(conn: &mut AnyConnection, dialect: Dialect) -> Result<()> {
    migrator(dialect).run(&mut *conn).await.map_err(|error| Error::broken(format!("migration failed: {error}")))
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
