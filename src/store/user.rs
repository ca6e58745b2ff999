//! `app_user`: who may sign in. Names are compared byte by byte, like every key (R17).

use sqlx::any::AnyRow;

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::error::{Class, Error};
use crate::core::words::Role;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: i64,
    pub name: String,
    /// A PHC string; never leaves the server.
    pub password_hash: String,
    pub role: Role,
    pub is_enabled: bool,
    /// `None`: as the browser asks, as configured, as the system asks.
    pub language: Option<String>,
    pub zone: Option<String>,
    pub theme: Option<String>,
    pub created_at: i64,
}

pub(super) const COLUMNS: &str =
    "u.id, u.name, u.password_hash, u.role, u.enabled, u.language, u.zone, u.theme, u.created_at";

pub(super) fn read(row: &AnyRow) -> Result<User> {
    Ok(User {
        id: row.int(0)?,
        name: row.text(1)?,
        password_hash: row.text(2)?,
        role: Role::from_word(&row.text(3)?).ok_or_else(|| Error::broken("a user has an unknown role"))?,
        is_enabled: row.int(4)? != 0,
        language: row.opt_text(5)?,
        zone: row.opt_text(6)?,
        theme: row.opt_text(7)?,
        created_at: row.int(8)?,
    })
}

pub async fn find(conn: &mut Conn, name: &str) -> Result<Option<User>> {
    let sql = format!("SELECT {COLUMNS} FROM app_user u WHERE u.name = $1");
    conn.built(sql).bind(name).row().await?.as_ref().map(read).transpose()
}

/// Everyone, by name.
pub async fn all(conn: &mut Conn) -> Result<Vec<User>> {
    let sql = format!("SELECT {COLUMNS} FROM app_user u ORDER BY u.name");
    conn.built(sql).rows().await?.iter().map(read).collect()
}

/// Whether anybody has an account; until then the console offers to be set up.
pub async fn is_anyone(conn: &mut Conn) -> Result<bool> {
    Ok(conn.stmt("SELECT 1 FROM app_user LIMIT 1").row().await?.is_some())
}

/// Adds a user; `false` when the name is taken.
pub async fn insert(conn: &mut Conn, name: &str, password_hash: &str, role: Role, now: i64) -> Result<bool> {
    let sql = format!(
        "INSERT INTO app_user (name, password_hash, role, enabled, created_at) VALUES ($1, $2, $3, 1, $4){}",
        conn.dialect.or_nothing()
    );
    match conn.built(sql).bind(name).bind(password_hash).bind(role.word()).bind(now).run().await {
        Ok(count) => Ok(count == 1),
        Err(error) if error.is(Class::Unique) => Ok(false),
        Err(error) => Err(error),
    }
}

pub async fn set_password(conn: &mut Conn, id: i64, password_hash: &str) -> Result<u64> {
    conn.stmt("UPDATE app_user SET password_hash = $2 WHERE id = $1").bind(id).bind(password_hash).run().await
}

pub async fn set_enabled(conn: &mut Conn, id: i64, is_enabled: bool) -> Result<u64> {
    conn.stmt("UPDATE app_user SET enabled = $2 WHERE id = $1").bind(id).bind(i64::from(is_enabled)).run().await
}

/// What the user chose for themselves.
pub async fn set_choices(
    conn: &mut Conn,
    id: i64,
    language: Option<&str>,
    zone: Option<&str>,
    theme: Option<&str>,
) -> Result<u64> {
    let stmt = conn.stmt("UPDATE app_user SET language = $2, zone = $3, theme = $4 WHERE id = $1").bind(id);
    stmt.bind(language).bind(zone).bind(theme).run().await
}

pub async fn set_language(conn: &mut Conn, id: i64, language: &str) -> Result<u64> {
    conn.stmt("UPDATE app_user SET language = $2 WHERE id = $1").bind(id).bind(language).run().await
}
