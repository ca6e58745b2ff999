//! `setup_code`: the code of the first run. Hashed, used once, good for 30 minutes.

use super::conn::Conn;
use super::db::Result;

/// Makes this the only code.
pub async fn replace(conn: &mut Conn, code_hash: &str, now: i64, expires_at: i64) -> Result<()> {
    forget_all(conn).await?;
    let stmt = conn.stmt("INSERT INTO setup_code (code_hash, created_at, expires_at) VALUES ($1, $2, $3)");
    stmt.bind(code_hash).bind(now).bind(expires_at).run().await?;
    Ok(())
}

/// Uses a code up. Zero rows: wrong, used before, or too old; all the same to whoever asks.
pub async fn take(conn: &mut Conn, code_hash: &str, now: i64) -> Result<bool> {
    let stmt = conn.stmt("DELETE FROM setup_code WHERE code_hash = $1 AND expires_at > $2");
    Ok(stmt.bind(code_hash).bind(now).run().await? == 1)
}

/// Somebody has an account: no code is good any more.
pub async fn forget_all(conn: &mut Conn) -> Result<u64> {
    conn.stmt("DELETE FROM setup_code").run().await
}
