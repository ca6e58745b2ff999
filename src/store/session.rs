//! `session`: who is signed in where. The row knows the hash of the cookie only, so that a copy of the
//! table signs nobody in.

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::user::{self, User};

/// Nothing done for this long ends a session; a stream that is merely open is nothing done.
pub const IDLE_MS: i64 = 8 * 3_600_000;
/// A session ends after this long, whatever is done in it.
pub const LONGEST_MS: i64 = 24 * 3_600_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub id_hash: String,
    pub user_id: i64,
    /// What a form of this session carries.
    pub csrf: String,
    pub created_at: i64,
    /// When the password was last given.
    pub signed_in_at: i64,
    pub seen_at: i64,
    pub address: Option<String>,
    pub agent: Option<String>,
}

const COLUMNS: &str = "s.id_hash, s.user_id, s.csrf, s.created_at, s.signed_in_at, s.seen_at, s.address, s.agent";
/// How many columns of a user stand before those of the session in [`find`].
const AFTER_USER: usize = 9;

fn read(row: &sqlx::any::AnyRow, at: usize) -> Result<Session> {
    Ok(Session {
        id_hash: row.text(at)?,
        user_id: row.int(at + 1)?,
        csrf: row.text(at + 2)?,
        created_at: row.int(at + 3)?,
        signed_in_at: row.int(at + 4)?,
        seen_at: row.int(at + 5)?,
        address: row.opt_text(at + 6)?,
        agent: row.opt_text(at + 7)?,
    })
}

/// The live session of this hash and its user: neither limit passed, the user still enabled.
pub async fn find(conn: &mut Conn, id_hash: &str, now: i64) -> Result<Option<(User, Session)>> {
    let sql = format!(
        "SELECT {}, {COLUMNS} FROM session s JOIN app_user u ON u.id = s.user_id \
         WHERE s.id_hash = $1 AND s.seen_at > $2 AND s.created_at > $3 AND u.enabled = 1",
        user::COLUMNS
    );
    let row = conn.built(sql).bind(id_hash).bind(now - IDLE_MS).bind(now - LONGEST_MS).row().await?;
    row.map(|row| Ok((user::read(&row)?, read(&row, AFTER_USER)?))).transpose()
}

pub async fn insert(conn: &mut Conn, session: &Session) -> Result<()> {
    conn.stmt(
        "INSERT INTO session (id_hash, user_id, csrf, created_at, signed_in_at, seen_at, address, agent) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(&session.id_hash)
    .bind(session.user_id)
    .bind(&session.csrf)
    .bind(session.created_at)
    .bind(session.signed_in_at)
    .bind(session.seen_at)
    .bind(session.address.clone())
    .bind(session.agent.clone())
    .run()
    .await?;
    Ok(())
}

/// Something was done in it.
pub async fn touch(conn: &mut Conn, id_hash: &str, now: i64) -> Result<u64> {
    conn.stmt("UPDATE session SET seen_at = $2 WHERE id_hash = $1 AND seen_at < $2").bind(id_hash).bind(now).run().await
}

/// The password was given again.
pub async fn confirm(conn: &mut Conn, id_hash: &str, now: i64) -> Result<u64> {
    conn.stmt("UPDATE session SET signed_in_at = $2 WHERE id_hash = $1").bind(id_hash).bind(now).run().await
}

pub async fn end(conn: &mut Conn, id_hash: &str) -> Result<u64> {
    conn.stmt("DELETE FROM session WHERE id_hash = $1").bind(id_hash).run().await
}

/// Ends one of this user's own sessions.
pub async fn end_of(conn: &mut Conn, user_id: i64, id_hash: &str) -> Result<u64> {
    conn.stmt("DELETE FROM session WHERE id_hash = $1 AND user_id = $2").bind(id_hash).bind(user_id).run().await
}

/// Ends all of a user's: the password changed, or the account was disabled.
pub async fn end_all_of(conn: &mut Conn, user_id: i64) -> Result<u64> {
    conn.stmt("DELETE FROM session WHERE user_id = $1").bind(user_id).run().await
}

/// The live sessions of a user, newest first.
pub async fn of_user(conn: &mut Conn, user_id: i64, now: i64) -> Result<Vec<Session>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM session s WHERE s.user_id = $1 AND s.seen_at > $2 AND s.created_at > $3 \
         ORDER BY s.signed_in_at DESC, s.id_hash"
    );
    let rows = conn.built(sql).bind(user_id).bind(now - IDLE_MS).bind(now - LONGEST_MS).rows().await?;
    rows.iter().map(|row| read(row, 0)).collect()
}

/// Removes those that a limit has ended.
pub async fn forget_ended(conn: &mut Conn, now: i64) -> Result<u64> {
    let stmt = conn.stmt("DELETE FROM session WHERE seen_at <= $1 OR created_at <= $2");
    stmt.bind(now - IDLE_MS).bind(now - LONGEST_MS).run().await
}
