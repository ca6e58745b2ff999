//! Screens on the wall: opened once by a code, then known by a cookie of their own. Only hashes are kept.

use sqlx::any::AnyRow;

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::error::{Class, Error};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    pub id: i64,
    pub name: String,
    /// Until when its code opens it; `None` once it was opened.
    pub code_expires_at: Option<i64>,
    pub is_open: bool,
    pub created_at: i64,
    pub created_by: String,
    pub seen_at: Option<i64>,
    pub revoked_at: Option<i64>,
}

const COLUMNS: &str = "id, name, code_expires_at, cookie_hash, created_at, created_by, seen_at, revoked_at";

fn read(row: &AnyRow) -> Result<Screen> {
    Ok(Screen {
        id: row.int(0)?,
        name: row.text(1)?,
        code_expires_at: row.opt_int(2)?,
        is_open: row.opt_text(3)?.is_some(),
        created_at: row.int(4)?,
        created_by: row.text(5)?,
        seen_at: row.opt_int(6)?,
        revoked_at: row.opt_int(7)?,
    })
}

/// A new screen with its code; `None` when the name is taken.
pub async fn insert(
    conn: &mut Conn,
    name: &str,
    code_hash: &str,
    expires_at: i64,
    by: &str,
    now: i64,
) -> Result<Option<i64>> {
    let sql = format!(
        "INSERT INTO screen (name, code_hash, code_expires_at, created_at, created_by) VALUES ($1, $2, $3, $4, $5){}",
        conn.dialect.or_nothing()
    );
    let inserted = conn.built(sql).bind(name).bind(code_hash).bind(expires_at).bind(now).bind(by).run().await;
    match inserted {
        Ok(1) => {}
        Ok(_) => return Ok(None),
        Err(error) if error.is(Class::Unique) => return Ok(None),
        Err(error) => return Err(error),
    }
    let row = conn.stmt("SELECT id FROM screen WHERE name = $1").bind(name).row().await?;
    let row = row.ok_or_else(|| Error::broken("a screen just written is not there"))?;
    Ok(Some(row.int(0)?))
}

/// Opens the screen of this code: the code is used up, the cookie takes its place.
pub async fn open(conn: &mut Conn, code_hash: &str, cookie_hash: &str, now: i64) -> Result<Option<Screen>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM screen WHERE code_hash = $1 AND code_expires_at > $2 AND revoked_at IS NULL{}",
        conn.dialect.for_update()
    );
    let found = conn.built(sql).bind(code_hash).bind(now).row().await?;
    let Some(screen) = found.as_ref().map(read).transpose()? else { return Ok(None) };
    conn.stmt(
        "UPDATE screen SET code_hash = NULL, code_expires_at = NULL, cookie_hash = $2, seen_at = $3 WHERE id = $1",
    )
    .bind(screen.id)
    .bind(cookie_hash)
    .bind(now)
    .run()
    .await?;
    Ok(Some(screen))
}

/// The screen that has this cookie and isn't revoked.
pub async fn find(conn: &mut Conn, cookie_hash: &str) -> Result<Option<Screen>> {
    let sql = format!("SELECT {COLUMNS} FROM screen WHERE cookie_hash = $1 AND revoked_at IS NULL");
    conn.built(sql).bind(cookie_hash).row().await?.as_ref().map(read).transpose()
}

pub async fn touch(conn: &mut Conn, id: i64, now: i64) -> Result<u64> {
    conn.stmt("UPDATE screen SET seen_at = $2 WHERE id = $1 AND revoked_at IS NULL").bind(id).bind(now).run().await
}

/// It shows nothing any more. Zero rows: it was revoked before, or there is none.
pub async fn revoke(conn: &mut Conn, id: i64, now: i64) -> Result<u64> {
    conn.stmt(
        "UPDATE screen SET revoked_at = $2, code_hash = NULL, cookie_hash = NULL WHERE id = $1 AND revoked_at IS NULL",
    )
    .bind(id)
    .bind(now)
    .run()
    .await
}

/// All, those in use first.
pub async fn all(conn: &mut Conn) -> Result<Vec<Screen>> {
    let sql =
        format!("SELECT {COLUMNS} FROM screen ORDER BY CASE WHEN revoked_at IS NULL THEN 0 ELSE 1 END, name LIMIT 500");
    conn.built(sql).rows().await?.iter().map(read).collect()
}
