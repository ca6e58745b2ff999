//! `order_release_task`: one effect still owed to one resource. `next_at` says who moves it next: an
//! instant while the worker does, [`NEVER`] while only a person does, NULL when nothing is owed.

use serde::Serialize;
use sqlx::any::AnyRow;

pub use super::attempt::{Attempt, attempts};
use super::conn::{Conn, RowExt};
use super::db::Result;
use super::dialect::{Cell, Cells};
use super::error::Error;
use super::ledger::json;
use crate::core::clock::LATEST_MS;
use crate::core::words::{Action, AttemptOutcome, FailureKind, ResourceType, TaskStatus};

/// `next_at` of a task that only a person moves: manual, or force-closed and still owed.
pub const NEVER: i64 = LATEST_MS;
/// `next_at` of a `return_in` whose settle isn't done: the settle's end wakes it.
pub const WAITS: i64 = NEVER - 1;

/// Unfinished tasks and force-closed ones that are still owed, of every lane: what the index of open tasks holds.
/// The lanes are named because MariaDB's index holds finished tasks as well.
pub(super) const OPEN: &str = "t.next_at IS NOT NULL AND t.open_lane IN (0, 1, 2, 3, 4, 5, 6)";

/// A whole row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub id: i64,
    pub order_no: String,
    pub ref_no: String,
    pub source: String,
    pub round: i64,
    pub action: Action,
    pub resource: ResourceType,
    pub key: String,
    pub qty: i64,
    pub status: TaskStatus,
    /// Failed tries so far.
    pub retry: i64,
    /// When it is tried next; `None` when no try is planned.
    pub next_at: Option<i64>,
    pub created_at: i64,
    /// The ledger row it moves; `None` for what isn't ours: remote, mapped, and rows that a shop wrote.
    pub ledger_id: Option<i64>,
    /// `false` for a row that a shop wrote and that nobody has taken over yet.
    pub is_adopted: bool,
    /// [`LOCAL`](crate::core::policy::LOCAL), or the service that is called.
    pub lane: i64,
    /// Who is running it at this moment, under a lease.
    pub claimed_by: Option<String>,
    /// Sent without a certain answer, or being sent now.
    pub is_in_doubt: bool,
    /// When it was first sent.
    pub sent_at: Option<i64>,
    pub return_no: String,
    pub fence: i64,
    pub version: i64,
    /// Of the last failure.
    pub kind: Option<FailureKind>,
    pub error: Option<String>,
    /// How it succeeded.
    pub outcome: Option<AttemptOutcome>,
    pub first_failed_at: Option<i64>,
    pub finished_at: Option<i64>,
    pub ended_by: Option<String>,
    /// Force-closed and no flow row names it: the quantity is owed and explained (R21).
    pub is_owed: bool,
}

pub(super) const COLUMNS: &str = "t.id, t.order_no, t.ref_no, t.source, t.round, t.action, t.resource_type, t.biz_key, t.qty, t.status, t.retry, \
     t.next_at, t.created_at, t.ledger_id, t.fence, t.version, t.kind, t.error, t.outcome, t.first_failed_at, t.finished_at, t.ended_by, t.adopted, t.lane, t.claimed_by, t.doubt, t.sent_at, t.return_no";

pub(super) fn read(row: &AnyRow) -> Result<Task> {
    let unknown = || Error::broken("a task row has an unknown type, action or status");
    let status = TaskStatus::from_code(row.int(9)?).ok_or_else(unknown)?;
    let next_at = row.opt_int(11)?;
    Ok(Task {
        id: row.int(0)?,
        order_no: row.text(1)?,
        ref_no: row.text(2)?,
        source: row.text(3)?,
        round: row.int(4)?,
        action: Action::from_code(row.int(5)?).ok_or_else(unknown)?,
        resource: ResourceType::from_code(row.int(6)?).ok_or_else(unknown)?,
        key: row.text(7)?,
        qty: row.int(8)?,
        status,
        retry: row.int(10)?,
        next_at: next_at.filter(|at| *at < WAITS),
        created_at: row.int(12)?,
        ledger_id: row.opt_int(13)?,
        fence: row.int(14)?,
        version: row.int(15)?,
        kind: row.opt_int(16)?.and_then(FailureKind::from_code),
        error: row.opt_text(17)?,
        outcome: row.opt_int(18)?.and_then(AttemptOutcome::from_code),
        first_failed_at: row.opt_int(19)?,
        finished_at: row.opt_int(20)?,
        ended_by: row.opt_text(21)?,
        is_adopted: row.int(22)? != 0,
        lane: row.int(23)?,
        claimed_by: row.opt_text(24)?,
        is_in_doubt: row.int(25)? != 0,
        sent_at: row.opt_int(26)?,
        return_no: row.text(27)?,
        is_owed: status == TaskStatus::ForceClosed && next_at.is_some(),
    })
}

pub async fn find(conn: &mut Conn, id: i64) -> Result<Option<Task>> {
    let sql = format!("SELECT {COLUMNS} FROM order_release_task t WHERE t.id = $1");
    conn.built(sql).bind(id).row().await?.as_ref().map(read).transpose()
}

pub async fn lock(conn: &mut Conn, id: i64) -> Result<Option<Task>> {
    let sql = format!("SELECT {COLUMNS} FROM order_release_task t WHERE t.id = $1{}", conn.dialect.for_update());
    conn.built(sql).bind(id).row().await?.as_ref().map(read).transpose()
}

/// All tasks of an order or return number, by id.
pub async fn of_ref(conn: &mut Conn, ref_no: &str) -> Result<Vec<Task>> {
    let sql = format!("SELECT {COLUMNS} FROM order_release_task t WHERE t.ref_no = $1 ORDER BY t.id");
    conn.built(sql).bind(ref_no).rows().await?.iter().map(read).collect()
}

/// The same, locked by id (R19). The caller holds the order's lock, so none can appear but a shop's own.
pub async fn lock_of_ref(conn: &mut Conn, ref_no: &str) -> Result<Vec<Task>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM order_release_task t WHERE t.ref_no = $1 ORDER BY t.id{}",
        conn.dialect.for_update()
    );
    conn.built(sql).bind(ref_no).rows().await?.iter().map(read).collect()
}

/// What a worker needs of a due task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub id: i64,
    pub order_no: String,
    pub round: i64,
    pub action: Action,
    pub resource: ResourceType,
    pub key: String,
    pub qty: i64,
    pub retry: i64,
    pub ledger_id: Option<i64>,
    pub first_failed_at: Option<i64>,
    pub is_adopted: bool,
    pub return_no: String,
}

impl Due {
    pub fn of(task: &Task) -> Self {
        Self {
            id: task.id,
            order_no: task.order_no.clone(),
            round: task.round,
            action: task.action,
            resource: task.resource,
            key: task.key.clone(),
            qty: task.qty,
            retry: task.retry,
            ledger_id: task.ledger_id,
            first_failed_at: task.first_failed_at,
            is_adopted: task.is_adopted,
            return_no: task.return_no.clone(),
        }
    }
}

const DUE: &str = "t.id, t.order_no, t.round, t.action, t.resource_type, t.biz_key, t.qty, t.retry, t.ledger_id, t.first_failed_at, \
     t.adopted, t.return_no";
const DUE_COLUMNS: usize = 12;

fn read_due(row: &dyn RowExt) -> Result<Due> {
    let unknown = || Error::broken("a task row has an unknown type or action");
    Ok(Due {
        id: row.int(0)?,
        order_no: row.text(1)?,
        round: row.int(2)?,
        action: Action::from_code(row.int(3)?).ok_or_else(unknown)?,
        resource: ResourceType::from_code(row.int(4)?).ok_or_else(unknown)?,
        key: row.text(5)?,
        qty: row.int(6)?,
        retry: row.int(7)?,
        ledger_id: row.opt_int(8)?,
        first_failed_at: row.opt_int(9)?,
        is_adopted: row.int(10)? != 0,
        return_no: row.text(11)?,
    })
}

/// The look for local tasks that are due at `$1`, `$2` of them. It must read no finished one.
pub fn due_look() -> String {
    format!(
        "SELECT {DUE} FROM order_release_task t WHERE t.open_lane = 0 AND t.next_at <= $1 ORDER BY t.next_at LIMIT $2"
    )
}

/// Claims due local tasks: row locks that skip locked rows, so any number of workers share a queue.
pub async fn claim(conn: &mut Conn, now: i64, limit: i64) -> Result<Vec<Due>> {
    let sql = due_look() + conn.dialect.for_update_skip();
    conn.built(sql).bind(now).bind(limit).many(DUE_COLUMNS).await?.read(read_due)
}

/// Claims these tasks, as far as they are still due and nobody else has them.
pub async fn claim_ids(conn: &mut Conn, ids: &[i64], now: i64) -> Result<Vec<Due>> {
    let sql = format!(
        "SELECT {DUE} FROM order_release_task t WHERE t.id {} AND t.lane = 0 AND t.next_at <= $2 ORDER BY t.id{}",
        conn.dialect.in_ids(1),
        conn.dialect.for_update_skip()
    );
    conn.built(sql).bind(json(ids)?).bind(now).many(DUE_COLUMNS).await?.read(read_due)
}

#[derive(Serialize)]
struct Id {
    i: i64,
}
const ID: Cells = &[("i", Cell::Int)];

/// Marks tasks succeeded. The fence moves, so a claim from before changes nothing any more (R10).
pub async fn succeed(conn: &mut Conn, ids: &[i64], how: AttemptOutcome, now: i64, actor: &str) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let list: Vec<Id> = ids.iter().map(|i| Id { i: *i }).collect();
    let sql = conn.dialect.update_from(
        "order_release_task",
        &[
            ("status", "1"),
            ("next_at", "NULL"),
            ("finished_at", "$2"),
            ("ended_by", "$3"),
            ("outcome", "$4"),
            ("doubt", "0"),
            ("claimed_by", "NULL"),
            ("fence", "t.fence + 1"),
            ("version", "t.version + 1"),
            ("kind", "NULL"),
            ("error", "NULL"),
        ],
        1,
        ID,
        "t.id = v.i AND t.status IN (0, 2, 3)",
    );
    let hit = conn.built(sql).bind(json(&list)?).bind(now).bind(actor).bind(how.code()).run().await?;
    if hit != ids.len() as u64 {
        return Err(Error::broken(format!("{hit} of {} tasks could be marked succeeded", ids.len())));
    }
    Ok(())
}

/// One failed try, with the verdict already made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    #[serde(rename = "i")]
    pub task_id: i64,
    /// Status after it: retrying or manual.
    #[serde(rename = "s")]
    pub status: i64,
    #[serde(rename = "n")]
    pub next_at: i64,
    #[serde(rename = "k")]
    pub kind: i64,
    #[serde(rename = "e")]
    pub error: String,
}

const FAILED: Cells = &[("i", Cell::Int), ("s", Cell::Int), ("n", Cell::Int), ("k", Cell::Int), ("e", Cell::Text)];

/// Records failed tries: an attempt row each, then the task's new state, in two statements.
pub async fn fail(conn: &mut Conn, failures: &[Failed], now: i64, actor: &str) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    let list = json(failures)?;
    let d = conn.dialect;
    let attempts = format!(
        "INSERT INTO task_attempt (task_id, n, fence, started_at, ended_at, outcome, kind, error, actor) \
         SELECT t.id, t.retry + 1, t.fence + 1, $2, $2, {}, v.k, v.e, $3 FROM {}",
        AttemptOutcome::Failed.code(),
        d.rows_join(1, FAILED, "order_release_task", "t.id = v.i")
    );
    conn.built(attempts).bind(list.clone()).bind(now).bind(actor).run().await?;
    let sql = d.update_from(
        "order_release_task",
        &[
            ("status", "v.s"),
            ("next_at", "v.n"),
            ("kind", "v.k"),
            ("error", "v.e"),
            ("retry", "t.retry + 1"),
            ("first_failed_at", "COALESCE(t.first_failed_at, $2)"),
            ("fence", "t.fence + 1"),
            ("version", "t.version + 1"),
        ],
        1,
        FAILED,
        "t.id = v.i AND t.status IN (0, 2, 3)",
    );
    let hit = conn.built(sql).bind(list).bind(now).run().await?;
    if hit != failures.len() as u64 {
        return Err(Error::broken(format!("{hit} of {} tasks could be marked failed", failures.len())));
    }
    Ok(())
}

/// A task about to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewTask {
    #[serde(rename = "o")]
    pub order_no: String,
    #[serde(rename = "f")]
    pub source: String,
    #[serde(rename = "r")]
    pub round: i64,
    #[serde(rename = "c")]
    pub action: i64,
    #[serde(rename = "t")]
    pub resource: i64,
    #[serde(rename = "k")]
    pub key: String,
    #[serde(rename = "q")]
    pub qty: i64,
    #[serde(rename = "g")]
    pub ledger_id: Option<i64>,
    #[serde(rename = "l")]
    pub lane: i64,
    /// Empty but for the tasks of a return.
    #[serde(rename = "n")]
    pub return_no: String,
}

const NEW: Cells = &[
    ("o", Cell::Text),
    ("f", Cell::Text),
    ("r", Cell::Int),
    ("c", Cell::Int),
    ("t", Cell::Int),
    ("k", Cell::Text),
    ("q", Cell::Int),
    ("g", Cell::Int),
    ("l", Cell::Int),
    ("n", Cell::Text),
];

/// Writes tasks, due at once. A key that exists already is an error of class `Unique`.
pub async fn insert(conn: &mut Conn, tasks: &[NewTask], now: i64) -> Result<()> {
    if tasks.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "INSERT INTO order_release_task (order_no, source, round, action, resource_type, biz_key, qty, ledger_id, lane, return_no, adopted, next_at, created_at) \
         SELECT v.o, v.f, v.r, v.c, v.t, v.k, v.q, v.g, v.l, v.n, 1, $2, $2 FROM {}",
        conn.dialect.rows(1, NEW)
    );
    conn.built(sql).bind(json(tasks)?).bind(now).run().await?;
    Ok(())
}

/// Writes tasks that only a person moves, with what they should know.
pub async fn insert_for_a_person(conn: &mut Conn, tasks: &[NewTask], error: &str, now: i64) -> Result<()> {
    let sql = format!(
        "INSERT INTO order_release_task (order_no, source, round, action, resource_type, biz_key, qty, ledger_id, lane, return_no, adopted, \
         status, error, next_at, created_at) \
         SELECT v.o, v.f, v.r, v.c, v.t, v.k, v.q, v.g, v.l, v.n, 1, 3, $3, {NEVER}, $2 FROM {} WHERE 1 = 1",
        conn.dialect.rows(1, NEW)
    );
    conn.built(sql).bind(json(tasks)?).bind(now).bind(error).run().await?;
    Ok(())
}

/// These tasks will never run: something else does what they were for. Force-closed ones owe nothing more.
pub async fn supersede(conn: &mut Conn, ids: &[i64], now: i64) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let list: Vec<Id> = ids.iter().map(|i| Id { i: *i }).collect();
    let sql = conn.dialect.update_from(
        "order_release_task",
        &[
            ("status", "5"),
            ("next_at", "NULL"),
            ("finished_at", "$2"),
            ("fence", "t.fence + 1"),
            ("version", "t.version + 1"),
            ("claimed_by", "NULL"),
        ],
        1,
        ID,
        "t.id = v.i AND t.status IN (0, 2, 3, 4)",
    );
    let hit = conn.built(sql).bind(json(&list)?).bind(now).run().await?;
    if hit != ids.len() as u64 {
        return Err(Error::broken(format!("{hit} of {} tasks could be superseded", ids.len())));
    }
    Ok(())
}

/// A row that a shop wrote becomes the close's own: quantity and ledger row come from the hold (R4). One that
/// was force-closed stays so.
pub async fn take_over(conn: &mut Conn, id: i64, as_new: &NewTask, now: i64) -> Result<()> {
    let hit = conn
        .stmt(
            "UPDATE order_release_task SET qty = $2, ledger_id = $3, lane = $5, adopted = 1, next_at = CASE status WHEN 4 THEN next_at ELSE $4 END, \
             status = CASE status WHEN 4 THEN 4 ELSE 0 END, kind = NULL, error = NULL, fence = fence + 1, version = version + 1 \
             WHERE id = $1 AND status IN (0, 2, 3, 4) AND adopted = 0",
        )
        .bind(id)
        .bind(as_new.qty)
        .bind(as_new.ledger_id)
        .bind(now)
        .bind(as_new.lane)
        .run()
        .await?;
    if hit == 1 { Ok(()) } else { Err(Error::broken(format!("task {id} could not be taken over"))) }
}

/// Ends the trying. `owed` keeps it among what is still explained (R21).
pub async fn force_close(conn: &mut Conn, id: i64, owed: bool, now: i64, actor: &str) -> Result<u64> {
    conn.stmt(
        "UPDATE order_release_task SET status = 4, next_at = $2, finished_at = $3, ended_by = $4, fence = fence + 1, \
         version = version + 1 WHERE id = $1 AND status IN (0, 2, 3)",
    )
    .bind(id)
    .bind(owed.then_some(NEVER))
    .bind(now)
    .bind(actor)
    .run()
    .await
}

/// A flow row names a force-closed task now: it is owed no more; it stays force-closed.
pub async fn settle_debt(conn: &mut Conn, id: i64) -> Result<u64> {
    conn.stmt("UPDATE order_release_task SET next_at = NULL, version = version + 1 WHERE id = $1 AND status = 4 AND next_at IS NOT NULL")
        .bind(id)
        .run()
        .await
}

/// A few unfinished tasks of one status, oldest first.
pub async fn some_of(conn: &mut Conn, status: TaskStatus, limit: i64) -> Result<Vec<Task>> {
    let sql =
        format!("SELECT {COLUMNS} FROM order_release_task t WHERE {OPEN} AND t.status = $1 ORDER BY t.id LIMIT $2");
    conn.built(sql).bind(status.code()).bind(limit).rows().await?.iter().map(read).collect()
}
