//! Figures over everything: what waits, how old it is, what was counted in the last hour and day,
//! and whether anything is left to do at all. Read-only, each over a small index or the counters.

use std::collections::BTreeMap;

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::error::Error;
use super::task::OPEN;
use crate::core::clock::LATEST_MS;
use crate::core::words::{ResourceType, TaskStatus};

/// Deltas that a duty has not folded yet are added up on the fly; more than this many are left out.
const UNFOLDED_LIMIT: i64 = 20_000;
const HOUR_MS: i64 = 3_600_000;

/// Unfinished tasks of one status and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub status: TaskStatus,
    pub resource: ResourceType,
    pub count: i64,
}

/// Tasks that are waiting, retrying or manual.
pub async fn backlog(conn: &mut Conn) -> Result<Vec<Waiting>> {
    let rows = conn
        .built(format!(
            "SELECT t.status, t.resource_type, COUNT(*) FROM order_release_task t \
             WHERE {OPEN} AND t.status IN (0, 2, 3) GROUP BY t.status, t.resource_type ORDER BY t.status, t.resource_type"
        ))
        .rows()
        .await?;
    let unknown = || Error::broken("a task row has an unknown status or type");
    rows.iter()
        .map(|row| {
            Ok(Waiting {
                status: TaskStatus::from_code(row.int(0)?).ok_or_else(unknown)?,
                resource: ResourceType::from_code(row.int(1)?).ok_or_else(unknown)?,
                count: row.int(2)?,
            })
        })
        .collect()
}

/// When the oldest task was written that the worker still moves, and the oldest that waits for a person.
pub async fn oldest(conn: &mut Conn) -> Result<(Option<i64>, Option<i64>)> {
    let row = conn
        .built(format!(
            "SELECT MIN(CASE WHEN t.status IN (0, 2) THEN t.created_at END), MIN(CASE WHEN t.status = 3 THEN t.created_at END) \
             FROM order_release_task t WHERE {OPEN}"
        ))
        .row()
        .await?;
    let row = row.ok_or_else(|| Error::broken("a sum over tasks gave no row"))?;
    Ok((row.opt_int(0)?, row.opt_int(1)?))
}

/// One counter and how it moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub hour: i64,
    pub day: i64,
    /// Since the beginning.
    pub total: i64,
}

/// Counters by (name, label).
#[derive(Clone, Debug, Default)]
pub struct Counters(BTreeMap<(String, String), Counted>);

impl Counters {
    /// The labels of one counter with their figures.
    pub fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a Counted)> {
        let named = self.0.range((name.to_owned(), String::new())..);
        named.take_while(move |((known, _), _)| known == name).map(|((_, label), counted)| (label.as_str(), counted))
    }

    /// One counter over all its labels.
    pub fn sum(&self, name: &str) -> Counted {
        self.of(name).fold(Counted::default(), |sum, (_, counted)| Counted {
            hour: sum.hour + counted.hour,
            day: sum.day + counted.day,
            total: sum.total + counted.total,
        })
    }
}

/// Everything counted in the hour and the day before `now`, and since the beginning; call it on a
/// snapshot, so that a delta being folded is seen once.
pub async fn counters(conn: &mut Conn, now: i64) -> Result<Counters> {
    let (hour, day) = (now - HOUR_MS, now - 24 * HOUR_MS);
    let d = conn.dialect;
    let sql = format!(
        "SELECT name, label, {}, {}, {} FROM counter WHERE minute = 0 OR minute >= $2 GROUP BY name, label",
        d.sum("CASE WHEN minute >= $1 THEN n ELSE 0 END"),
        d.sum("CASE WHEN minute > 0 THEN n ELSE 0 END"),
        d.sum("CASE WHEN minute = 0 THEN n ELSE 0 END"),
    );
    let mut counters = Counters::default();
    for row in conn.built(sql).bind(hour / 60_000).bind(day / 60_000).rows().await? {
        let counted = Counted { hour: row.int(2)?, day: row.int(3)?, total: row.int(4)? };
        counters.0.insert((row.text(0)?, row.text(1)?), counted);
    }
    let rows = conn.stmt("SELECT at, body FROM counter_delta ORDER BY id LIMIT $1").bind(UNFOLDED_LIMIT).rows().await?;
    for row in &rows {
        let at = row.int(0)?;
        let entries: Vec<(String, String, i64)> = serde_json::from_str(&row.text(1)?).unwrap_or_default();
        for (name, label, n) in entries {
            let counted = counters.0.entry((name, label)).or_default();
            counted.total += n;
            counted.day += if at >= day { n } else { 0 };
            counted.hour += if at >= hour { n } else { 0 };
        }
    }
    Ok(counters)
}

/// Payments that belong to no order Handback knows.
pub async fn unmatched_payments(conn: &mut Conn) -> Result<i64> {
    conn.stmt("SELECT COUNT(*) FROM payment WHERE status = 6").int().await
}

/// What of orders and payments waits for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cases {
    /// Open orders whose channel was asked too often without an answer.
    pub orders: i64,
    /// Payments without an order, of a wrong amount for an open one, or told twice with different content.
    pub payments: i64,
}

pub async fn cases(conn: &mut Conn) -> Result<Cases> {
    let asked_too_often = "SELECT COUNT(*) FROM orders WHERE due_at = $1";
    let orders = conn.stmt(asked_too_often).bind(LATEST_MS).int().await?;
    let wrong = "SELECT COUNT(*) FROM payment p JOIN orders o ON o.order_no = p.order_no \
         WHERE p.status = 2 AND o.status = 0 AND (p.amount <> o.amount OR p.currency <> o.currency)";
    let wrong = conn.stmt(wrong).int().await?;
    let conflicts = conn.stmt("SELECT COUNT(*) FROM payment_conflict WHERE settled_at IS NULL").int().await?;
    Ok(Cases { orders, payments: unmatched_payments(conn).await? + wrong + conflicts })
}

/// What is left to do at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// Tasks whose time has come.
    pub due: i64,
    /// Tasks that a service is being told, or asked about.
    pub running: i64,
    /// Open orders past their deadline, or past the time they were postponed to.
    pub overdue_orders: i64,
    pub retrying: i64,
    pub manual: i64,
}

impl Remaining {
    /// Nothing is due or running. What waits for a later try or for a person doesn't count.
    pub fn is_idle(&self) -> bool {
        self.due == 0 && self.running == 0 && self.overdue_orders == 0
    }
}

/// A row that a shop writes is due at the server's now, which may be a little ahead of ours: one that was never
/// tried counts as due within this time, so that nobody is told "idle" just before it runs.
const SKEW_MS: i64 = 2_000;

pub async fn remaining(conn: &mut Conn, now: i64) -> Result<Remaining> {
    let sql = format!(
        "SELECT {}, {}, {}, {} FROM order_release_task t WHERE {OPEN}",
        conn.dialect.sum(
            "CASE WHEN (t.status = 2 AND t.next_at <= $1) OR (t.status = 0 AND t.next_at <= $2) THEN 1 ELSE 0 END"
        ),
        conn.dialect.sum("CASE WHEN t.status = 2 THEN 1 ELSE 0 END"),
        conn.dialect.sum("CASE WHEN t.status = 3 THEN 1 ELSE 0 END"),
        conn.dialect.sum("CASE WHEN t.status IN (0, 2, 3) AND t.claimed_by IS NOT NULL THEN 1 ELSE 0 END"),
    );
    let tasks = conn.built(sql).bind(now).bind(now + SKEW_MS).row().await?;
    let tasks = tasks.ok_or_else(|| Error::broken("a sum over tasks gave no row"))?;
    let (due, retrying, manual, running) = (tasks.int(0)?, tasks.int(1)?, tasks.int(2)?, tasks.int(3)?);
    // One whose channel hasn't answered even once is overdue all the while it is being asked.
    let overdue = "SELECT (SELECT COUNT(*) FROM orders WHERE due_at <= $1) \
         + (SELECT COUNT(*) FROM orders WHERE ask_at > $1 AND asked = 0)";
    let overdue_orders = conn.stmt(overdue).bind(now).int().await?;
    Ok(Remaining { due, running, overdue_orders, retrying, manual })
}
