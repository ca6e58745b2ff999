//! Runs of the reconciliation and what they found. `running` is unique: one runs at a time. A run gives a
//! sign of life while it works; whoever starts the next takes the place of one that fell silent.

use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::error::{Class, Error};
use super::ledger::json;
use crate::core::words::{DiffClass, ResourceType, RunStatus};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub id: i64,
    /// The only type it looked at; `None` = all.
    pub resource: Option<ResourceType>,
    pub status: RunStatus,
    pub started_by: String,
    pub started_at: i64,
    pub seen_at: i64,
    pub snapshot_at: Option<i64>,
    pub finished_at: Option<i64>,
    /// How many keys were compared.
    pub checked: i64,
    pub totals: Vec<Total>,
    pub error: Option<String>,
}

/// One type's sums of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// The type's number.
    pub resource: i64,
    pub keys: i64,
    pub in_ledger: i64,
    pub expected: i64,
    pub explained: i64,
    /// Keys with a finding.
    pub findings: i64,
    /// What is locked too much, and what too little.
    pub over: i64,
    pub under: i64,
}

/// One key that is not explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    pub id: i64,
    pub run_id: i64,
    pub resource: ResourceType,
    pub key: String,
    pub class: DiffClass,
    pub in_ledger: i64,
    pub expected: i64,
    pub explained: i64,
    pub unexplained: i64,
    pub orders: Vec<String>,
    pub tasks: Vec<i64>,
    /// The snapshot of the first of the runs without a gap that saw it.
    pub first_seen: i64,
}

const COLUMNS: &str =
    "id, resource_type, status, started_by, started_at, seen_at, snapshot_at, finished_at, checked, totals, error";

fn read(row: &AnyRow) -> Result<Run> {
    let unknown = || Error::broken("a reconciliation run has an unknown status");
    let totals = row.opt_text(9)?;
    Ok(Run {
        id: row.int(0)?,
        resource: row.opt_int(1)?.and_then(ResourceType::from_code),
        status: RunStatus::from_code(row.int(2)?).ok_or_else(unknown)?,
        started_by: row.text(3)?,
        started_at: row.int(4)?,
        seen_at: row.int(5)?,
        snapshot_at: row.opt_int(6)?,
        finished_at: row.opt_int(7)?,
        checked: row.int(8)?,
        totals: totals.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        error: row.opt_text(10)?,
    })
}

/// The run that is going on, if there is one.
pub async fn running(conn: &mut Conn) -> Result<Option<Run>> {
    let sql = format!("SELECT {COLUMNS} FROM reconcile_run WHERE running = 1");
    conn.built(sql).row().await?.as_ref().map(read).transpose()
}

pub async fn find(conn: &mut Conn, id: i64) -> Result<Option<Run>> {
    let sql = format!("SELECT {COLUMNS} FROM reconcile_run WHERE id = $1");
    conn.built(sql).bind(id).row().await?.as_ref().map(read).transpose()
}

/// The newest runs.
pub async fn newest(conn: &mut Conn, limit: i64) -> Result<Vec<Run>> {
    let sql = format!("SELECT {COLUMNS} FROM reconcile_run ORDER BY id DESC LIMIT $1");
    conn.built(sql).bind(limit).rows().await?.iter().map(read).collect()
}

/// The last run over everything that was done, and those of single types after it, oldest first.
pub async fn latest_done(conn: &mut Conn) -> Result<Vec<Run>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM reconcile_run WHERE status = 1 AND id >= \
         (SELECT COALESCE(MAX(id), 0) FROM reconcile_run WHERE status = 1 AND resource_type IS NULL) ORDER BY id DESC LIMIT 200"
    );
    let mut runs: Vec<Run> = conn.built(sql).rows().await?.iter().map(read).collect::<Result<_>>()?;
    runs.reverse();
    Ok(runs)
}

/// Begins a run; `None` while another is going on.
pub async fn begin(conn: &mut Conn, resource: Option<ResourceType>, by: &str, now: i64) -> Result<Option<i64>> {
    let sql = format!(
        "INSERT INTO reconcile_run (resource_type, status, running, started_by, started_at, seen_at) VALUES ($1, 0, 1, $2, $3, $3){}",
        conn.dialect.or_nothing()
    );
    let inserted = conn.built(sql).bind(resource.map(ResourceType::code)).bind(by).bind(now).run().await;
    match inserted {
        Ok(1) => Ok(running(conn).await?.map(|run| run.id)),
        Ok(_) => Ok(None),
        Err(error) if error.is(Class::Unique) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A sign of life. Zero rows: it was given up for dead.
pub async fn beat(conn: &mut Conn, id: i64, now: i64) -> Result<u64> {
    conn.stmt("UPDATE reconcile_run SET seen_at = $2 WHERE id = $1 AND running = 1").bind(id).bind(now).run().await
}

/// Gives up the run that has been silent since before `before`.
pub async fn give_up_silent(conn: &mut Conn, before: i64, now: i64) -> Result<u64> {
    conn.stmt(
        "UPDATE reconcile_run SET status = 2, running = NULL, finished_at = $2, error = 'its process ended before it did' \
         WHERE running = 1 AND seen_at < $1",
    )
    .bind(before)
    .bind(now)
    .run()
    .await
}

/// It is done. Zero rows: it was given up for dead meanwhile.
pub async fn finish(conn: &mut Conn, id: i64, snapshot_at: i64, totals: &[Total], now: i64) -> Result<u64> {
    conn.stmt(
        "UPDATE reconcile_run SET status = 1, running = NULL, finished_at = $2, snapshot_at = $3, checked = $4, totals = $5 \
         WHERE id = $1 AND running = 1",
    )
    .bind(id)
    .bind(now)
    .bind(snapshot_at)
    .bind(totals.iter().map(|total| total.keys).sum::<i64>())
    .bind(json(totals)?)
    .run()
    .await
}

pub async fn fail(conn: &mut Conn, id: i64, error: &str, now: i64) -> Result<u64> {
    conn.stmt("UPDATE reconcile_run SET status = 2, running = NULL, finished_at = $2, error = $3 WHERE id = $1 AND running = 1")
        .bind(id)
        .bind(now)
        .bind(error)
        .run()
        .await
}

/// Writes findings.
pub async fn insert_diffs(conn: &mut Conn, run: i64, diffs: &[Diff]) -> Result<()> {
    for diff in diffs {
        let sql = "INSERT INTO reconcile_diff (run_id, resource_type, biz_key, class, in_ledger, expected, explained, unexplained, \
             orders, tasks, first_seen) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let stmt = conn.stmt(sql).bind(run).bind(diff.resource.code()).bind(&diff.key).bind(diff.class.word());
        let stmt = stmt.bind(diff.in_ledger).bind(diff.expected).bind(diff.explained).bind(diff.unexplained);
        stmt.bind(json(&diff.orders)?).bind(json(&diff.tasks)?).bind(diff.first_seen).run().await?;
    }
    Ok(())
}

const DIFF: &str =
    "id, run_id, resource_type, biz_key, class, in_ledger, expected, explained, unexplained, orders, tasks, first_seen";

fn read_diff(row: &AnyRow) -> Result<Diff> {
    let unknown = || Error::broken("a finding has an unknown type or class");
    let class = row.text(4)?;
    let listed = |text: String| Error::broken(format!("a finding's list can't be read: {text}"));
    let (orders, tasks) = (row.text(9)?, row.text(10)?);
    Ok(Diff {
        id: row.int(0)?,
        run_id: row.int(1)?,
        resource: ResourceType::from_code(row.int(2)?).ok_or_else(unknown)?,
        key: row.text(3)?,
        class: DiffClass::from_word(&class).ok_or_else(unknown)?,
        in_ledger: row.int(5)?,
        expected: row.int(6)?,
        explained: row.int(7)?,
        unexplained: row.int(8)?,
        orders: serde_json::from_str(&orders).map_err(|_| listed(orders))?,
        tasks: serde_json::from_str(&tasks).map_err(|_| listed(tasks))?,
        first_seen: row.int(11)?,
    })
}

/// What a run found, of one type by its number or of all, by type and key; `limit` rows at most.
pub async fn diffs_of(conn: &mut Conn, run: i64, resource: Option<i64>, limit: i64) -> Result<Vec<Diff>> {
    let (low, high) = resource.map_or((0, i64::from(i16::MAX)), |only| (only, only));
    let sql = format!(
        "SELECT {DIFF} FROM reconcile_diff WHERE run_id = $1 AND resource_type BETWEEN $2 AND $3 \
         ORDER BY resource_type, biz_key LIMIT $4"
    );
    conn.built(sql).bind(run).bind(low).bind(high).bind(limit).rows().await?.iter().map(read_diff).collect()
}

/// The last done run before this one that looked at this type.
pub async fn before(conn: &mut Conn, run: i64, resource: ResourceType) -> Result<Option<i64>> {
    let row = conn
        .stmt(
            "SELECT id FROM reconcile_run WHERE id < $1 AND status = 1 AND (resource_type IS NULL OR resource_type = $2) \
             ORDER BY id DESC LIMIT 1",
        )
        .bind(run)
        .bind(resource.code())
        .row()
        .await?;
    row.map(|row| row.int(0)).transpose()
}

/// Since when a run had seen this key, if it had.
pub async fn seen_since(conn: &mut Conn, run: i64, resource: ResourceType, key: &str) -> Result<Option<i64>> {
    let sql = "SELECT first_seen FROM reconcile_diff WHERE run_id = $1 AND resource_type = $2 AND biz_key = $3";
    let row = conn.stmt(sql).bind(run).bind(resource.code()).bind(key).row().await?;
    row.map(|row| row.int(0)).transpose()
}
