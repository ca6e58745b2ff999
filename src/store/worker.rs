//! Which workers are alive, and whether one ended uncleanly.

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::error::Class;

/// Says that a worker is there. The first call makes its row.
pub async fn beat(conn: &mut Conn, name: &str, now: i64) -> Result<()> {
    let hit = conn.stmt("UPDATE worker SET seen_at = $2 WHERE name = $1").bind(name).bind(now).run().await?;
    if hit == 0 {
        let sql =
            format!("INSERT INTO worker (name, started_at, seen_at) VALUES ($1, $2, $2){}", conn.dialect.or_nothing());
        match conn.built(sql).bind(name).bind(now).run().await {
            Err(error) if error.is(Class::Unique) => {}
            other => {
                other?;
            }
        }
    }
    Ok(())
}

/// A clean end.
pub async fn leave(conn: &mut Conn, name: &str) -> Result<()> {
    conn.stmt("DELETE FROM worker WHERE name = $1").bind(name).run().await?;
    Ok(())
}

/// Takes note of workers that went silent without a word, and forgets them; how many there were (R11).
pub async fn bury_silent(conn: &mut Conn, before: i64) -> Result<u64> {
    conn.stmt("DELETE FROM worker WHERE seen_at < $1").bind(before).run().await
}

/// (name, last seen), by name.
pub async fn alive(conn: &mut Conn) -> Result<Vec<(String, i64)>> {
    let rows = conn.stmt("SELECT name, seen_at FROM worker ORDER BY name").rows().await?;
    rows.iter().map(|row| Ok((row.text(0)?, row.int(1)?))).collect()
}
