//! Claims of tasks that a service works off: a lease in `next_at`, a fence, and a try that is written before
//! anything is sent (R10, R11, R12). A lease that ran out is simply due again; no reaper is needed.

use serde::Serialize;

use super::attempt::LOST;
use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::dialect::{Cell, Cells};
use super::error::Error;
use super::ledger::json;
use super::task::{COLUMNS, Failed, NEVER, Task, WAITS, read};
use crate::core::words::{AttemptOutcome, FailureKind};

#[derive(Serialize)]
struct Id {
    i: i64,
}
const ID: Cells = &[("i", Cell::Int)];

fn list(ids: &[i64]) -> Result<String> {
    json(&ids.iter().map(|i| Id { i: *i }).collect::<Vec<_>>())
}

/// Locks due tasks of one lane, those with a lease that ran out among them, skipping what somebody else has.
pub async fn due(conn: &mut Conn, lane: i64, now: i64, limit: i64) -> Result<Vec<Task>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM order_release_task t WHERE t.open_lane = $1 AND t.next_at <= $2 ORDER BY t.next_at LIMIT $3{}",
        conn.dialect.for_update_skip()
    );
    conn.built(sql).bind(lane).bind(now).bind(limit).rows().await?.iter().map(read).collect()
}

/// Claims these locked tasks until `until`: the next fence, one try more, in doubt from now on. A try that an
/// earlier claim left open is closed as lost.
pub async fn take(conn: &mut Conn, ids: &[i64], until: i64, now: i64, actor: &str) -> Result<()> {
    close_lost(conn, ids, now).await?;
    let d = conn.dialect;
    let sql = format!(
        "INSERT INTO task_attempt (task_id, n, fence, started_at, actor) SELECT t.id, t.retry + 1, t.fence + 1, $2, $3 FROM {}",
        d.rows_join(1, ID, "order_release_task", "t.id = v.i")
    );
    conn.built(sql).bind(list(ids)?).bind(now).bind(actor).run().await?;
    let sql = d.update_from(
        "order_release_task",
        &[
            ("next_at", "$2"),
            ("fence", "t.fence + 1"),
            ("retry", "t.retry + 1"),
            ("claimed_by", "$3"),
            ("doubt", "1"),
            ("sent_at", "COALESCE(t.sent_at, $4)"),
        ],
        1,
        ID,
        "t.id = v.i AND t.status IN (0, 2, 3)",
    );
    let hit = conn.built(sql).bind(list(ids)?).bind(until).bind(actor).bind(now).run().await?;
    if hit != ids.len() as u64 {
        return Err(Error::broken(format!("{hit} of {} tasks could be claimed", ids.len())));
    }
    Ok(())
}

/// Tries that nobody recorded an outcome of, of tasks that are claimed again.
async fn close_lost(conn: &mut Conn, ids: &[i64], now: i64) -> Result<()> {
    let sql = format!(
        "UPDATE task_attempt SET ended_at = $1, outcome = {}, kind = {}, error = $2 WHERE ended_at IS NULL AND task_id {}",
        AttemptOutcome::Failed.code(),
        FailureKind::RemoteTimeout.code(),
        conn.dialect.in_ids(3),
    );
    conn.built(sql).bind(now).bind(LOST).bind(json(ids)?).run().await?;
    Ok(())
}

/// Leaves tasks whose claim ran out to a person: those a person's own try had, and those whose tries are used up.
pub async fn leave_to_a_person(conn: &mut Conn, ids: &[i64], now: i64) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    close_lost(conn, ids, now).await?;
    let never = NEVER.to_string();
    let kind = FailureKind::RemoteTimeout.code().to_string();
    let sql = conn.dialect.update_from(
        "order_release_task",
        &[
            ("status", "3"),
            ("next_at", &never),
            ("claimed_by", "NULL"),
            ("kind", &kind),
            ("error", "$2"),
            ("first_failed_at", "COALESCE(t.first_failed_at, $3)"),
            ("fence", "t.fence + 1"),
            ("version", "t.version + 1"),
        ],
        1,
        ID,
        "t.id = v.i AND t.status IN (0, 2, 3)",
    );
    conn.built(sql).bind(list(ids)?).bind(LOST).bind(now).run().await?;
    Ok(())
}

/// Gives up the claim after a failed try, which was counted at the claim already.
pub async fn fail(conn: &mut Conn, failed: &Failed, is_in_doubt: bool, now: i64) -> Result<()> {
    let hit = conn
        .stmt(
            "UPDATE order_release_task SET status = $2, next_at = $3, kind = $4, error = $5, doubt = $6, claimed_by = NULL, \
             first_failed_at = COALESCE(first_failed_at, $7), fence = fence + 1, version = version + 1 \
             WHERE id = $1 AND status IN (0, 2, 3)",
        )
        .bind(failed.task_id)
        .bind(failed.status)
        .bind(failed.next_at)
        .bind(failed.kind)
        .bind(&failed.error)
        .bind(i64::from(is_in_doubt))
        .bind(now)
        .run()
        .await?;
    one(hit, failed.task_id)
}

/// Gives up a claim under which nothing was sent: the task stands as it did before, until `next_at`.
pub async fn hand_back(conn: &mut Conn, before: &Task, next_at: i64, error: &str) -> Result<()> {
    let hit = conn
        .stmt(
            "UPDATE order_release_task SET retry = retry - 1, doubt = $2, sent_at = $3, next_at = $4, error = $5, claimed_by = NULL, \
             fence = fence + 1, version = version + 1 WHERE id = $1 AND status IN (0, 2, 3)",
        )
        .bind(before.id)
        .bind(i64::from(before.is_in_doubt))
        .bind(before.sent_at)
        .bind(next_at)
        .bind(error)
        .run()
        .await?;
    one(hit, before.id)
}

/// The try that succeeds is none of the failed ones it was counted among.
pub async fn uncount(conn: &mut Conn, id: i64) -> Result<()> {
    let hit = conn.stmt("UPDATE order_release_task SET retry = retry - 1 WHERE id = $1").bind(id).run().await?;
    one(hit, id)
}

/// The service says that the effect doesn't exist: no doubt any more, and for this moment nobody's.
pub async fn settle_doubt(conn: &mut Conn, id: i64) -> Result<()> {
    let hit = conn
        .stmt("UPDATE order_release_task SET doubt = 0, claimed_by = NULL WHERE id = $1 AND status IN (0, 2, 3)")
        .bind(id)
        .run()
        .await?;
    one(hit, id)
}

/// Goes on with the same claim: it is sent now, and the service's memory of its key begins anew.
pub async fn go_on(conn: &mut Conn, id: i64, until: i64, now: i64, actor: &str) -> Result<()> {
    let hit = conn
        .stmt("UPDATE order_release_task SET doubt = 1, claimed_by = $3, next_at = $2, sent_at = $4 WHERE id = $1 AND status IN (0, 2, 3)")
        .bind(id)
        .bind(until)
        .bind(actor)
        .bind(now)
        .run()
        .await?;
    one(hit, id)
}

/// A row that a shop wrote for an order nobody knows, about a type that a service keeps, is worked off there.
pub async fn into_lane(conn: &mut Conn, id: i64, lane: i64) -> Result<u64> {
    conn.stmt(
        "UPDATE order_release_task SET lane = $2, adopted = 1, fence = fence + 1, version = version + 1 \
         WHERE id = $1 AND adopted = 0 AND lane = 0 AND status IN (0, 2, 3)",
    )
    .bind(id)
    .bind(lane)
    .run()
    .await
}

/// Tasks in doubt that nobody is trying now are looked into at once: an order waits for the answer. One that
/// had been left to a person is asked after once more.
pub async fn hasten(conn: &mut Conn, order_no: &str, now: i64) -> Result<u64> {
    conn.stmt(
        "UPDATE order_release_task SET next_at = $2, status = CASE status WHEN 3 THEN 2 ELSE status END \
         WHERE ref_no = $1 AND lane <> 0 AND action = 1 AND doubt = 1 AND claimed_by IS NULL AND status IN (0, 2, 3)",
    )
    .bind(order_no)
    .bind(now)
    .run()
    .await
}

/// How many unfinished tasks wait in each lane that a service works off.
pub async fn waiting_by_lane(conn: &mut Conn) -> Result<Vec<(i64, i64)>> {
    let rows = conn
        .stmt(
            "SELECT open_lane, COUNT(*) FROM order_release_task WHERE open_lane IN (1, 2, 3, 4, 5, 6) AND next_at IS NOT NULL \
             AND status IN (0, 2) GROUP BY open_lane ORDER BY open_lane",
        )
        .rows()
        .await?;
    rows.iter().map(|row| Ok((row.int(0)?, row.int(1)?))).collect()
}

/// When the next task of a lane is due, for a worker that wants to sleep.
pub async fn next_due(conn: &mut Conn, lane: i64) -> Result<Option<i64>> {
    let sql = "SELECT MIN(next_at) FROM order_release_task WHERE open_lane = $1 AND next_at IS NOT NULL";
    let row = conn.stmt(sql).bind(lane).row().await?;
    Ok(row.map(|row| row.opt_int(0)).transpose()?.flatten().filter(|at| *at < WAITS))
}

fn one(hit: u64, id: i64) -> Result<()> {
    if hit == 1 { Ok(()) } else { Err(Error::broken(format!("task {id} moved under its lock"))) }
}
