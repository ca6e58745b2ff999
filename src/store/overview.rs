//! The figures behind the overview: one read per tick, shared by everyone who looks.

use std::collections::BTreeMap;

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::reconcile_run::{self, Run};
use super::task::{NEVER, OPEN};
use super::{counter, worker};
use crate::core::words::{FailureKind, FundsKind, ResourceType, TaskStatus, Trigger};

/// Everything the overview shows, as of one instant. What is not known is `None`, never 0.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub at: i64,
    pub backlog: Vec<Backlog>,
    /// When the oldest task that is still waiting or retrying was written, and which it is.
    pub oldest: Option<Oldest>,
    /// When the oldest manual task was written.
    pub oldest_manual: Option<i64>,
    pub failures: Vec<Failures>,
    /// Tries of the last hour and day, by how they ended; none tried = `None`.
    pub tries_hour: Option<Tries>,
    pub tries_day: Option<Tries>,
    /// Orders that wait for an unfinished task.
    pub orders_affected: i64,
    pub recent_closes: Vec<Closed>,
    pub workers: Vec<Worker>,
    /// The reconciliations that say how things stand.
    pub reconciled: Vec<Run>,
    /// How late orders were closed in the last day: (trigger/bucket, orders).
    pub late: Vec<(String, i64)>,
}

#[derive(Clone, Debug)]
pub struct Backlog {
    pub status: TaskStatus,
    pub resource: ResourceType,
    /// Of funds: money or points, and of which currency.
    pub funds: Option<FundsKind>,
    pub currency: Option<String>,
    pub tasks: i64,
    pub qty: i64,
}

#[derive(Clone, Debug)]
pub struct Oldest {
    pub task: i64,
    pub resource: ResourceType,
    pub created_at: i64,
}

#[derive(Clone, Debug)]
pub struct Failures {
    pub resource: ResourceType,
    pub kind: FailureKind,
    pub hour: i64,
    pub day: i64,
}

#[derive(Clone, Copy, Debug)]
pub struct Tries {
    pub succeeded: i64,
    pub all: i64,
}

#[derive(Clone, Debug)]
pub struct Closed {
    pub order_no: String,
    pub at: i64,
    pub reason: String,
    pub trigger: Option<Trigger>,
}

#[derive(Clone, Debug)]
pub struct Worker {
    pub name: String,
    pub seen_at: i64,
}

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const RECENT: i64 = 8;
/// Affected orders are counted up to here, so that a large backlog costs no more than a small one.
pub const ORDERS_LIMIT: i64 = 10_000;

impl Snapshot {
    /// Reads everything on one connection; call it on a snapshot, so that the figures fit together.
    pub async fn read(conn: &mut Conn, failed: &str, succeeded: &str, late: &str, now: i64) -> Result<Snapshot> {
        let mut backlog = tasks_by_type(conn).await?;
        backlog.extend(funds(conn).await?);
        let failures = failures(conn, failed, now).await?;
        Ok(Snapshot {
            at: now,
            backlog,
            oldest: oldest(conn).await?,
            oldest_manual: oldest_manual(conn).await?,
            tries_hour: tries(conn, failed, succeeded, now - HOUR_MS).await?,
            tries_day: tries(conn, failed, succeeded, now - DAY_MS).await?,
            failures,
            orders_affected: orders_affected(conn).await?,
            recent_closes: recent_closes(conn).await?,
            workers: workers(conn).await?,
            reconciled: reconcile_run::latest_done(conn).await?,
            late: counter::sums(conn, late, now - DAY_MS).await?,
        })
    }
}

/// Every type but funds: their pieces add up whatever the key.
async fn tasks_by_type(conn: &mut Conn) -> Result<Vec<Backlog>> {
    let sql = format!(
        "SELECT t.status, t.resource_type, COUNT(*), {} FROM order_release_task t \
         WHERE {OPEN} AND t.resource_type <> 3 GROUP BY t.status, t.resource_type",
        conn.dialect.sum("qty")
    );
    let rows = conn.built(sql).rows().await?;
    let mut backlog = Vec::with_capacity(rows.len());
    for row in &rows {
        if let (Some(status), Some(resource)) =
            (TaskStatus::from_code(row.int(0)?), ResourceType::from_code(row.int(1)?))
        {
            let (tasks, qty) = (row.int(2)?, row.int(3)?);
            backlog.push(Backlog { status, resource, funds: None, currency: None, tasks, qty });
        }
    }
    Ok(backlog)
}

/// Money only adds up within one currency, points not with money.
async fn funds(conn: &mut Conn) -> Result<Vec<Backlog>> {
    let sql = format!(
        "SELECT t.status, l.kind, o.currency, COUNT(*), {} FROM order_release_task t \
         LEFT JOIN ledger l ON l.id = t.ledger_id LEFT JOIN orders o ON o.order_no = t.order_no \
         WHERE {OPEN} AND t.resource_type = 3 GROUP BY t.status, l.kind, o.currency",
        conn.dialect.sum("t.qty")
    );
    let rows = conn.built(sql).rows().await?;
    let mut backlog = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some(status) = TaskStatus::from_code(row.int(0)?) {
            backlog.push(Backlog {
                status,
                resource: ResourceType::Funds,
                funds: row.opt_int(1)?.and_then(FundsKind::from_code),
                currency: row.opt_text(2)?,
                tasks: row.int(3)?,
                qty: row.int(4)?,
            });
        }
    }
    Ok(backlog)
}

/// The oldest that the worker still moves.
async fn oldest(conn: &mut Conn) -> Result<Option<Oldest>> {
    let row = conn
        .built(format!(
            "SELECT t.id, t.resource_type, t.created_at FROM order_release_task t \
             WHERE {OPEN} AND t.status IN (0, 2) ORDER BY t.created_at, t.id LIMIT 1"
        ))
        .row()
        .await?;
    let Some(row) = row else { return Ok(None) };
    let resource = ResourceType::from_code(row.int(1)?);
    Ok(resource
        .map(|resource| (row.int(0), resource, row.int(2)))
        .and_then(|(task, resource, at)| Some(Oldest { task: task.ok()?, resource, created_at: at.ok()? })))
}

async fn oldest_manual(conn: &mut Conn) -> Result<Option<i64>> {
    let stmt = conn
        .built(format!(
            "SELECT MIN(t.created_at) FROM order_release_task t WHERE {OPEN} AND t.next_at = $1 AND t.status = 3"
        ))
        .bind(NEVER);
    stmt.row().await?.map(|row| row.opt_int(0)).transpose().map(Option::flatten)
}

async fn failures(conn: &mut Conn, name: &str, now: i64) -> Result<Vec<Failures>> {
    let mut sums: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for (label, n) in counter::sums(conn, name, now - DAY_MS).await? {
        sums.entry(label).or_default().1 += n;
    }
    for (label, n) in counter::sums(conn, name, now - HOUR_MS).await? {
        sums.entry(label).or_default().0 += n;
    }
    let mut failures: Vec<Failures> = sums
        .into_iter()
        .filter_map(|(label, (hour, day))| {
            let (resource, kind) = label.split_once('/')?;
            let (resource, kind) = (ResourceType::from_word(resource)?, FailureKind::from_word(kind)?);
            Some(Failures { resource, kind, hour, day })
        })
        .collect();
    failures.sort_by_key(|f| std::cmp::Reverse((f.hour, f.day)));
    Ok(failures)
}

async fn tries(conn: &mut Conn, failed: &str, succeeded: &str, since: i64) -> Result<Option<Tries>> {
    let failed: i64 = counter::sums(conn, failed, since).await?.iter().map(|(_, n)| n).sum();
    let succeeded: i64 = counter::sums(conn, succeeded, since).await?.iter().map(|(_, n)| n).sum();
    let all = failed + succeeded;
    Ok((all > 0).then_some(Tries { succeeded, all }))
}

async fn orders_affected(conn: &mut Conn) -> Result<i64> {
    conn.built(format!(
        "SELECT COUNT(DISTINCT order_no) FROM (SELECT t.order_no FROM order_release_task t \
         WHERE {OPEN} AND t.status IN (0, 2, 3) LIMIT $1) open_tasks"
    ))
    .bind(ORDERS_LIMIT)
    .int()
    .await
}

/// The orders whose tasks were written last, by way of the tasks: there is no index over closed orders,
/// and there needs to be none.
async fn recent_closes(conn: &mut Conn) -> Result<Vec<Closed>> {
    let rows = conn
        .stmt(
            "SELECT o.order_no, o.closed_at, o.close_reason, o.close_trigger FROM \
             (SELECT DISTINCT order_no FROM (SELECT order_no, source FROM order_release_task ORDER BY id DESC LIMIT 1000) newest \
             WHERE source = 'close') t \
             JOIN orders o ON o.order_no = t.order_no WHERE o.closed_at IS NOT NULL ORDER BY o.closed_at DESC, o.id DESC LIMIT $1",
        )
        .bind(RECENT)
        .rows()
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Closed {
                order_no: row.text(0)?,
                at: row.int(1)?,
                reason: row.opt_text(2)?.unwrap_or_default(),
                trigger: row.opt_int(3)?.and_then(Trigger::from_code),
            })
        })
        .collect()
}

async fn workers(conn: &mut Conn) -> Result<Vec<Worker>> {
    let known = worker::alive(conn).await?;
    Ok(known.into_iter().map(|(name, seen_at)| Worker { name, seen_at }).collect())
}
