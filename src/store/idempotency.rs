//! Answers kept for callers who ask again with the same `Idempotency-Key`: 24 hours, per token.
//!
//! The row is there before the act begins, so that a twin knows to wait; the answer is added when
//! the act has ended. What makes an act happen once is the core, not this table: a row whose
//! process died before it had an answer is simply taken over.

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::error::Class;

/// How long an answer is kept, in milliseconds.
pub const KEPT_MS: i64 = 24 * 3_600_000;

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// A digest of what was asked.
    pub fingerprint: String,
    /// Status and body, once the act has ended.
    pub answer: Option<(i64, String)>,
    pub created_at: i64,
}

pub async fn find(conn: &mut Conn, token_id: i64, key: &str) -> Result<Option<Known>> {
    let row = conn
        .stmt("SELECT fingerprint, status, body, created_at FROM idempotency WHERE token_id = $1 AND idem_key = $2")
        .bind(token_id)
        .bind(key)
        .row()
        .await?;
    let Some(row) = row else { return Ok(None) };
    let answer = row.opt_int(1)?.zip(row.opt_text(2)?);
    Ok(Some(Known { fingerprint: row.text(0)?, answer, created_at: row.int(3)? }))
}

/// Takes a key; `false` when somebody has it.
pub async fn begin(conn: &mut Conn, token_id: i64, key: &str, fingerprint: &str, now: i64) -> Result<bool> {
    let sql = format!(
        "INSERT INTO idempotency (token_id, idem_key, fingerprint, created_at) VALUES ($1, $2, $3, $4){}",
        conn.dialect.or_nothing()
    );
    let inserted = conn.built(sql).bind(token_id).bind(key).bind(fingerprint).bind(now).run().await;
    match inserted {
        Ok(count) => Ok(count == 1),
        Err(error) if error.is(Class::Unique) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Keeps the answer. The first one stays: zero rows when there is one already.
pub async fn keep(conn: &mut Conn, token_id: i64, key: &str, status: i64, body: &str) -> Result<u64> {
    conn.stmt("UPDATE idempotency SET status = $3, body = $4 WHERE token_id = $1 AND idem_key = $2 AND status IS NULL")
        .bind(token_id)
        .bind(key)
        .bind(status)
        .bind(body)
        .run()
        .await
}

/// Lets go of a key whose act came to nothing, or of one that ran out (made before `before`).
pub async fn forget(conn: &mut Conn, token_id: i64, key: &str, before: i64) -> Result<u64> {
    conn.stmt("DELETE FROM idempotency WHERE token_id = $1 AND idem_key = $2 AND (status IS NULL OR created_at < $3)")
        .bind(token_id)
        .bind(key)
        .bind(before)
        .run()
        .await
}

/// Removes what ran out.
pub async fn purge(conn: &mut Conn, now: i64) -> Result<u64> {
    conn.stmt("DELETE FROM idempotency WHERE created_at < $1").bind(now - KEPT_MS).run().await
}
