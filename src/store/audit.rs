//! `audit_log`: what a person or a token did, inserted in the action's own transaction (R20).

use super::conn::{Conn, RowExt as _};
use super::db::Result;

pub struct Entry<'a> {
    pub at: i64,
    pub actor: &'a str,
    /// `task.retry`, `task.force_close`, `ledger.adjust`, …
    pub action: &'a str,
    /// What it was done to: `task:17`, `order:A1`, `ledger:stock/sku`.
    pub target: &'a str,
    pub reason: Option<&'a str>,
    /// Before and after, as JSON.
    pub detail: serde_json::Value,
}

pub async fn insert(conn: &mut Conn, entry: &Entry<'_>) -> Result<()> {
    conn.stmt("INSERT INTO audit_log (at, actor, action, target, reason, detail) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(entry.at)
        .bind(entry.actor)
        .bind(entry.action)
        .bind(entry.target)
        .bind(entry.reason)
        .bind(entry.detail.to_string())
        .run()
        .await?;
    Ok(())
}

/// What was done to something, by action, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub at: i64,
    pub actor: String,
    pub reason: String,
}

pub async fn notes(conn: &mut Conn, target: &str, action: &str) -> Result<Vec<Note>> {
    let rows = conn
        .stmt("SELECT at, actor, reason FROM audit_log WHERE target = $1 AND action = $2 ORDER BY id LIMIT 100")
        .bind(target)
        .bind(action)
        .rows()
        .await?;
    rows.iter()
        .map(|row| Ok(Note { at: row.int(0)?, actor: row.text(1)?, reason: row.opt_text(2)?.unwrap_or_default() }))
        .collect()
}
