//! Counters: each transaction appends one delta row, a duty folds deltas into per-minute figures. They
//! decide nothing; a check compares them with the tables.

use std::collections::BTreeMap;

use serde::Serialize;

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::dialect::{Cell, Cells};
use super::ledger::json;

/// What one transaction counted: (name, label) → how many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<(String, String), i64>);

impl Counts {
    pub fn add(&mut self, name: &str, label: impl Into<String>, n: i64) {
        if n != 0 {
            *self.0.entry((name.to_owned(), label.into())).or_default() += n;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn body(&self) -> Result<String> {
        json(&self.0.iter().map(|((name, label), n)| (name, label, n)).collect::<Vec<_>>())
    }
}

/// Appends one row; touches nothing shared.
pub async fn append(conn: &mut Conn, counts: &Counts, at: i64) -> Result<()> {
    if counts.is_empty() {
        return Ok(());
    }
    conn.stmt("INSERT INTO counter_delta (at, body) VALUES ($1, $2)").bind(at).bind(counts.body()?).run().await?;
    Ok(())
}

#[derive(Serialize)]
struct Folded {
    m: i64,
    c: String,
    l: String,
    q: i64,
}
const FOLDED: Cells = &[("m", Cell::Int), ("c", Cell::Text), ("l", Cell::Text), ("q", Cell::Int)];

/// The minute under which a counter's sum since the beginning stands; minutes themselves may be forgotten.
pub const TOTAL: i64 = 0;

/// Whether there is something to fold.
pub async fn any_delta(conn: &mut Conn) -> Result<bool> {
    Ok(conn.stmt("SELECT id FROM counter_delta ORDER BY id LIMIT 1").row().await?.is_some())
}

/// Folds up to `limit` deltas into the minutes they belong to; how many there were.
pub async fn fold(conn: &mut Conn, limit: i64) -> Result<usize> {
    let sql = format!("SELECT id, at, body FROM counter_delta ORDER BY id LIMIT $1{}", conn.dialect.for_update_skip());
    let rows = conn.built(sql).bind(limit).rows().await?;
    let mut sums: BTreeMap<(i64, String, String), i64> = BTreeMap::new();
    let mut ids = Vec::with_capacity(rows.len());
    for row in &rows {
        ids.push(row.int(0)?);
        let minute = row.int(1)? / 60_000;
        let entries: Vec<(String, String, i64)> = serde_json::from_str(&row.text(2)?).unwrap_or_default();
        for (name, label, n) in entries {
            *sums.entry((TOTAL, name.clone(), label.clone())).or_default() += n;
            *sums.entry((minute, name, label)).or_default() += n;
        }
    }
    if ids.is_empty() {
        return Ok(0);
    }
    let folded: Vec<Folded> = sums.into_iter().map(|((m, c, l), q)| Folded { m, c, l, q }).collect();
    let d = conn.dialect;
    let sql = format!(
        "INSERT INTO counter (minute, name, label, n) SELECT v.m, v.c, v.l, v.q FROM {} WHERE 1 = 1{}",
        d.rows(1, FOLDED),
        d.or_add("minute, name, label", "counter", "n")
    );
    conn.built(sql).bind(json(&folded)?).run().await?;
    let sql = format!("DELETE FROM counter_delta WHERE id {}", d.in_ids(1));
    conn.built(sql).bind(json(&ids)?).run().await?;
    Ok(ids.len())
}

/// Forgets the figures of single minutes before `before_ms`; the sums since the beginning stay.
pub async fn forget(conn: &mut Conn, before_ms: i64) -> Result<u64> {
    conn.stmt("DELETE FROM counter WHERE minute > $1 AND minute < $2").bind(TOTAL).bind(before_ms / 60_000).run().await
}

/// Sums since `since_ms` (a whole minute), folded or not yet.
pub async fn sums(conn: &mut Conn, name: &str, since_ms: i64) -> Result<Vec<(String, i64)>> {
    let sql = format!(
        "SELECT label, {} FROM counter WHERE name = $1 AND minute >= $2 GROUP BY label ORDER BY label",
        conn.dialect.sum("n")
    );
    let rows = conn.built(sql).bind(name).bind(since_ms / 60_000).rows().await?;
    rows.iter().map(|row| Ok((row.text(0)?, row.int(1)?))).collect()
}
