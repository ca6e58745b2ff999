//! `task_attempt`: every try at a task. A local try is written with its outcome; a try at a remote service is
//! written when it is claimed, so that a crash leaves its trace and counts (R11).

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::task::Task;
use crate::core::words::{AttemptOutcome, FailureKind, TaskStatus};

/// One recorded try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub n: i64,
    pub fence: i64,
    pub started_at: i64,
    pub ended_at: Option<i64>,
    pub outcome: Option<AttemptOutcome>,
    pub kind: Option<FailureKind>,
    pub error: Option<String>,
    pub actor: String,
}

/// Every try at a task, oldest first; a successful local one is read off the task's own row.
pub async fn attempts(conn: &mut Conn, task: &Task) -> Result<Vec<Attempt>> {
    let rows = conn
        .stmt("SELECT n, fence, started_at, ended_at, outcome, kind, error, actor FROM task_attempt WHERE task_id = $1 ORDER BY n")
        .bind(task.id)
        .rows()
        .await?;
    let mut attempts = Vec::with_capacity(rows.len() + 1);
    for row in &rows {
        attempts.push(Attempt {
            n: row.int(0)?,
            fence: row.int(1)?,
            started_at: row.int(2)?,
            ended_at: row.opt_int(3)?,
            outcome: row.opt_int(4)?.and_then(AttemptOutcome::from_code),
            kind: row.opt_int(5)?.and_then(FailureKind::from_code),
            error: row.opt_text(6)?,
            actor: row.text(7)?,
        });
    }
    let is_written = attempts.iter().any(|a| a.outcome.is_some_and(|outcome| outcome != AttemptOutcome::Failed));
    if let (TaskStatus::Succeeded, Some(at), false) = (task.status, task.finished_at, is_written) {
        attempts.push(Attempt {
            n: task.retry + 1,
            fence: task.fence,
            started_at: at,
            ended_at: Some(at),
            outcome: task.outcome.or(Some(AttemptOutcome::Succeeded)),
            kind: None,
            error: None,
            actor: task.ended_by.clone().unwrap_or_default(),
        });
    }
    Ok(attempts)
}

/// What stands on a try whose process ended before it could record anything.
pub const LOST: &str = "no outcome was recorded: the process ended, or took longer than its lease";

/// How a try at a remote service ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    pub at: i64,
    pub outcome: AttemptOutcome,
    pub kind: Option<FailureKind>,
    pub error: Option<&'a str>,
}

/// Records how the try under this fence ended. Zero rows: it is recorded already (a COMMIT whose answer was lost).
pub async fn end(conn: &mut Conn, task_id: i64, fence: i64, ended: Ended<'_>) -> Result<u64> {
    conn.stmt(
        "UPDATE task_attempt SET ended_at = $3, outcome = $4, kind = $5, error = $6 \
         WHERE task_id = $1 AND fence = $2 AND (ended_at IS NULL OR error = $7)",
    )
    .bind(task_id)
    .bind(fence)
    .bind(ended.at)
    .bind(ended.outcome.code())
    .bind(ended.kind.map(FailureKind::code))
    .bind(ended.error)
    .bind(LOST)
    .run()
    .await
}

/// A try that was never sent is no try.
pub async fn forget(conn: &mut Conn, task_id: i64, fence: i64) -> Result<u64> {
    conn.stmt("DELETE FROM task_attempt WHERE task_id = $1 AND fence = $2").bind(task_id).bind(fence).run().await
}
