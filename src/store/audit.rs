//! `audit_log`: what a person or a token did, inserted in the action's own transaction (R20).

use super::conn::Conn;
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
