//! `resource_flow`: why a ledger changed, once, for ever. The unique key (ref_no, source, round, action,
//! type, key) is what makes every effect happen at most once (R3).

use std::collections::HashMap;

use serde::Serialize;
use sqlx::any::AnyRow;

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::dialect::{Cell, Cells};
use super::error::{Class, Error};
use super::ledger::json;
use super::mapped::UNTOLD;
use super::task::Task;
use crate::core::words::{Action, ResourceType};

/// One row as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    pub id: i64,
    pub ledger_id: Option<i64>,
    pub resource: ResourceType,
    pub key: String,
    pub action: Action,
    /// Signed only for `adjust` and `adjust_locked`.
    pub qty: i64,
    pub ref_no: String,
    pub source: String,
    pub round: i64,
    pub task_id: Option<i64>,
    pub at: i64,
    pub bearer: Option<String>,
    pub available_after: Option<i64>,
    pub locked_after: Option<i64>,
    pub sold_after: Option<i64>,
    /// `expired` or `extended`, where a coupon or points account had run out.
    pub note: Option<String>,
    pub reason: Option<String>,
    pub actor: Option<String>,
}

const COLUMNS: &str = "id, ledger_id, resource_type, biz_key, action, qty, ref_no, source, round, task_id, at, bearer, \
     available_after, locked_after, sold_after, note, reason, actor";

fn read(row: &AnyRow) -> Result<Flow> {
    let unknown = || Error::broken("a flow row has an unknown type or action");
    Ok(Flow {
        id: row.int(0)?,
        ledger_id: row.opt_int(1)?,
        resource: ResourceType::from_code(row.int(2)?).ok_or_else(unknown)?,
        key: row.text(3)?,
        action: Action::from_code(row.int(4)?).ok_or_else(unknown)?,
        qty: row.int(5)?,
        ref_no: row.text(6)?,
        source: row.text(7)?,
        round: row.int(8)?,
        task_id: row.opt_int(9)?,
        at: row.int(10)?,
        bearer: row.opt_text(11)?,
        available_after: row.opt_int(12)?,
        locked_after: row.opt_int(13)?,
        sold_after: row.opt_int(14)?,
        note: row.opt_text(15)?,
        reason: row.opt_text(16)?,
        actor: row.opt_text(17)?,
    })
}

/// Whose history is read.
#[derive(Clone, Debug)]
pub enum Of {
    /// A ledger row of ours, live or retired.
    Ledger(i64),
    /// A key of a table of the shop: its rows name no ledger.
    Shops { resource: ResourceType, key: String },
}

/// The history of one key, oldest first, `limit` rows after the row `after` (0 = from the start).
pub async fn history(conn: &mut Conn, of: &Of, after: i64, limit: i64) -> Result<Vec<Flow>> {
    let page = "AND id > $2 ORDER BY id LIMIT $3";
    let stmt = match of {
        Of::Ledger(id) => {
            conn.built(format!("SELECT {COLUMNS} FROM resource_flow WHERE ledger_id = $1 {page}")).bind(*id)
        }
        Of::Shops { resource, key } => {
            let whose = format!("shops_key = $1 AND resource_type = {}", resource.code());
            conn.built(format!("SELECT {COLUMNS} FROM resource_flow WHERE {whose} {page}")).bind(key.as_str())
        }
    };
    stmt.bind(after).bind(limit).rows().await?.iter().map(read).collect()
}

/// Everything an order or return moved, oldest first.
pub async fn of_ref(conn: &mut Conn, ref_no: &str) -> Result<Vec<Flow>> {
    let sql = format!("SELECT {COLUMNS} FROM resource_flow WHERE ref_no = $1 ORDER BY id");
    conn.built(sql).bind(ref_no).rows().await?.iter().map(read).collect()
}

/// The row with exactly this cause, if the effect exists already.
pub async fn find(
    conn: &mut Conn,
    ref_no: &str,
    source: &str,
    round: i64,
    action: Action,
    resource: ResourceType,
    key: &str,
) -> Result<Option<Flow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM resource_flow WHERE ref_no = $1 AND source = $2 AND round = $3 AND action = $4 AND resource_type = $5 AND biz_key = $6"
    );
    let stmt = conn.built(sql).bind(ref_no).bind(source).bind(round).bind(action.code());
    stmt.bind(resource.code()).bind(key).row().await?.as_ref().map(read).transpose()
}

/// A row about to be written that no task stands behind (lock, open, adjust).
#[derive(Clone, Debug, Serialize)]
pub struct NewFlow {
    #[serde(rename = "g", serialize_with = "ours")]
    pub ledger_id: Option<i64>,
    #[serde(rename = "t")]
    pub resource: i64,
    #[serde(rename = "k")]
    pub key: String,
    #[serde(rename = "c")]
    pub action: i64,
    #[serde(rename = "q")]
    pub qty: i64,
    #[serde(rename = "f")]
    pub ref_no: String,
    #[serde(rename = "o")]
    pub source: String,
    #[serde(rename = "r")]
    pub round: i64,
    #[serde(rename = "i")]
    pub task_id: Option<i64>,
    #[serde(rename = "b")]
    pub bearer: Option<String>,
    #[serde(rename = "a", serialize_with = "told")]
    pub available_after: i64,
    #[serde(rename = "l", serialize_with = "told")]
    pub locked_after: i64,
    #[serde(rename = "s", serialize_with = "told")]
    pub sold_after: i64,
    #[serde(rename = "e")]
    pub reason: Option<String>,
}

const NEW: Cells = &[
    ("g", Cell::Int),
    ("t", Cell::Int),
    ("k", Cell::Text),
    ("c", Cell::Int),
    ("q", Cell::Int),
    ("f", Cell::Text),
    ("o", Cell::Text),
    ("r", Cell::Int),
    ("i", Cell::Int),
    ("b", Cell::Text),
    ("a", Cell::Int),
    ("l", Cell::Int),
    ("s", Cell::Int),
    ("e", Cell::Text),
];

/// A row of the shop has an id below zero while a plan runs, and none in the database.
pub(super) fn ours<S: serde::Serializer>(id: &Option<i64>, s: S) -> std::result::Result<S::Ok, S::Error> {
    id.filter(|id| *id > 0).serialize(s)
}

fn own<S: serde::Serializer>(id: &i64, s: S) -> std::result::Result<S::Ok, S::Error> {
    ours(&Some(*id), s)
}

/// A figure that a table of the shop doesn't keep isn't written down.
fn told<S: serde::Serializer>(figure: &i64, s: S) -> std::result::Result<S::Ok, S::Error> {
    Some(*figure).filter(|figure| *figure < UNTOLD / 2).serialize(s)
}

/// Writes rows in one statement; `false` when one of them exists already (then roll back: the effect is there).
pub async fn insert(conn: &mut Conn, flows: &[NewFlow], at: i64, actor: &str) -> Result<bool> {
    let d = conn.dialect;
    let sql = format!(
        "INSERT INTO resource_flow (ledger_id, resource_type, biz_key, action, qty, ref_no, source, round, task_id, at, bearer, \
         available_after, locked_after, sold_after, reason, actor) \
         SELECT v.g, v.t, v.k, v.c, v.q, v.f, v.o, v.r, v.i, $2, v.b, v.a, v.l, v.s, v.e, $3 FROM {} WHERE 1 = 1{}",
        d.rows(1, NEW),
        d.or_nothing()
    );
    let inserted = conn.built(sql).bind(json(flows)?).bind(at).bind(actor).run().await;
    all_of(inserted, flows.len())
}

/// What a task moved: the rest of the row is the task's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskFlow {
    #[serde(rename = "i")]
    pub task_id: i64,
    #[serde(rename = "g", serialize_with = "own")]
    pub ledger_id: i64,
    #[serde(rename = "b")]
    pub bearer: Option<String>,
    #[serde(rename = "a", serialize_with = "told")]
    pub available_after: i64,
    #[serde(rename = "l", serialize_with = "told")]
    pub locked_after: i64,
    #[serde(rename = "s", serialize_with = "told")]
    pub sold_after: i64,
    #[serde(rename = "n")]
    pub note: Option<String>,
}

const TASK: Cells = &[
    ("i", Cell::Int),
    ("g", Cell::Int),
    ("b", Cell::Text),
    ("a", Cell::Int),
    ("l", Cell::Int),
    ("s", Cell::Int),
    ("n", Cell::Text),
];

/// Writes the rows of a batch of tasks in one statement; `false` when one exists already.
pub async fn insert_of_tasks(conn: &mut Conn, flows: &[TaskFlow], at: i64, actor: &str) -> Result<bool> {
    let d = conn.dialect;
    let sql = format!(
        "INSERT INTO resource_flow (ledger_id, resource_type, biz_key, action, qty, ref_no, source, round, task_id, at, bearer, \
         available_after, locked_after, sold_after, note, actor) \
         SELECT v.g, t.resource_type, t.biz_key, t.action, t.qty, t.ref_no, t.source, t.round, t.id, $2, v.b, v.a, v.l, v.s, v.n, $3 \
         FROM {} WHERE 1 = 1{}",
        d.rows_join(1, TASK, "order_release_task", "t.id = v.i"),
        d.or_nothing()
    );
    let inserted = conn.built(sql).bind(json(flows)?).bind(at).bind(actor).run().await;
    all_of(inserted, flows.len())
}

/// Writes the row of a task whose ledger isn't ours: no figures after. `qty` is 0 where a person saw to it
/// elsewhere. `false` when it exists already.
pub async fn of_task(
    conn: &mut Conn,
    task: &Task,
    qty: i64,
    reason: Option<&str>,
    at: i64,
    actor: &str,
) -> Result<bool> {
    let sql = format!(
        "INSERT INTO resource_flow (resource_type, biz_key, action, qty, ref_no, source, round, task_id, at, reason, actor) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11){}",
        conn.dialect.or_nothing()
    );
    let stmt = conn.built(sql).bind(task.resource.code()).bind(&task.key).bind(task.action.code()).bind(qty);
    let stmt = stmt.bind(&task.ref_no).bind(&task.source).bind(task.round).bind(task.id).bind(at);
    let inserted = stmt.bind(reason).bind(actor).run().await;
    all_of(inserted, 1)
}

/// Which order locked each of these rows last.
pub async fn last_holders(conn: &mut Conn, ledger_ids: &[i64]) -> Result<HashMap<i64, String>> {
    if ledger_ids.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = format!(
        "SELECT f.ledger_id, f.ref_no FROM resource_flow f JOIN (SELECT ledger_id, MAX(id) AS id FROM resource_flow \
         WHERE ledger_id {} AND action IN (0, 3) GROUP BY ledger_id) newest ON newest.id = f.id",
        conn.dialect.in_ids(1)
    );
    let rows = conn.built(sql).bind(json(ledger_ids)?).rows().await?;
    rows.iter().map(|row| Ok((row.int(0)?, row.text(1)?))).collect()
}

/// Which of these tasks have their flow row already: they succeed as duplicates (R5).
pub async fn tasks_with_flow(conn: &mut Conn, task_ids: &[i64]) -> Result<Vec<i64>> {
    let sql = format!(
        "SELECT t.id FROM order_release_task t JOIN resource_flow f ON f.ref_no = t.ref_no AND f.source = t.source \
         AND f.round = t.round AND f.action = t.action AND f.resource_type = t.resource_type AND f.biz_key = t.biz_key \
         WHERE t.id {}",
        conn.dialect.in_ids(1)
    );
    conn.built(sql).bind(json(task_ids)?).rows().await?.iter().map(|row| row.int(0)).collect()
}

fn all_of(inserted: Result<u64>, wanted: usize) -> Result<bool> {
    match inserted {
        Ok(count) => Ok(count == wanted as u64),
        Err(error) if error.is(Class::Unique) => Ok(false),
        Err(error) => Err(error),
    }
}
