//! What a person or a token does to tasks: retry one, run one resource type of an order again, force-close.
//! Each is one transaction: state, change, audit row (R20). Pressing twice, or two people at once, runs it once
//! and tells the second what happened: an act carries the fence that was seen before it waited for the lock.

use std::sync::Arc;

use crate::core::order::refund;
use crate::core::policy::LOCAL;
use crate::core::text;
use crate::core::words::{Action, Actor, AttemptOutcome, FailureKind, OrderStatus, ResourceType, TaskStatus};
use crate::core::{Core, Error, Result};
use crate::store::counter::Counts;
use crate::store::task::{Due, Task};
use crate::store::{self, Conn, Decision, audit, counter, flow, order as order_rows, return_order, task};

use super::remote::record;
use super::{Care, by_hand, finish_unadopted, isolate, kind_of, run_batch};

/// How a retry ended, with the task as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retried {
    Succeeded(Task),
    /// It had succeeded before.
    AlreadyDone(Task),
    Failed(Task),
    /// Force-closed or superseded, or a `return_in` whose hold isn't settled yet.
    NotRetryable(Task),
    /// A shop's own row whose order isn't closed yet: the order's close comes first.
    OrderOpen(Task),
    Unknown,
}

/// Runs one task now, whatever its next try was planned for. A manual task is tried like any other.
///
/// # Errors
/// `Invalid` for a reason that can't be taken.
pub async fn retry(core: &Core, actor: &Actor, task_id: i64, reason: &str) -> Result<Retried> {
    text::check_text(reason, text::REASON_MAX).map_err(|m| Error::invalid("reason", m))?;
    let Some(seen) = task::find(&mut core.db.read().await?, task_id).await? else { return Ok(Retried::Unknown) };
    let is_unsettled = !return_order::unsettled(&mut core.db.read().await?, &[seen.id]).await?.is_empty();
    if is_unsettled && seen.status.is_unfinished() {
        // Goods can't come back before they were sold, wherever they are kept.
        return Ok(Retried::NotRetryable(seen));
    }
    if seen.lane != LOCAL {
        return by_hand::retry(core, actor, seen, reason).await;
    }
    if !seen.is_adopted && seen.status.is_unfinished() {
        // A shop's own row: the worker's way, which closes the order first, decides what it means.
        return retry_foreign(core, actor, seen, reason).await;
    }
    retry_here(core, actor, seen, reason).await
}

/// Runs it in one transaction; a task that breaks the transaction is recorded as failed, like in a worker's hands.
async fn retry_here(core: &Core, actor: &Actor, seen: Task, reason: &str) -> Result<Retried> {
    let (id, now) = (seen.id, core.now());
    let work = Arc::new((core.clone(), actor.to_string(), reason.to_owned(), seen));
    let retried = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { retry_one(conn, &work.0, &work.1, &work.2, &work.3, now).await })
    });
    match retried.await {
        Ok(retried) => Ok(retried),
        Err(error) if error.is(store::Class::Away) => Err(error.into()),
        Err(error) => {
            isolate(core, actor, id, kind_of(&error), error.to_string()).await?;
            let after = task::find(&mut core.db.read().await?, id).await?;
            Ok(after.map_or(Retried::Unknown, Retried::Failed))
        }
    }
}

async fn retry_one(
    conn: &mut Conn,
    core: &Core,
    actor: &str,
    reason: &str,
    seen: &Task,
    now: i64,
) -> store::Result<Decision<Retried>> {
    let Some(current) = task::lock(conn, seen.id).await? else { return Ok(Decision::Rollback(Retried::Unknown)) };
    match current.status {
        TaskStatus::Succeeded => return Ok(Decision::Rollback(Retried::AlreadyDone(current))),
        TaskStatus::ForceClosed | TaskStatus::Superseded => {
            return Ok(Decision::Rollback(Retried::NotRetryable(current)));
        }
        // Somebody's try ended while this one waited for the lock: its outcome is the answer (R10).
        _ if current.fence != seen.fence => return Ok(Decision::Rollback(Retried::Failed(current))),
        // It is tried as soon as its settle has ended, and not before, whoever asks.
        _ if !return_order::unsettled(conn, &[current.id]).await?.is_empty() => {
            return Ok(Decision::Rollback(Retried::NotRetryable(current)));
        }
        _ => {}
    }
    run_batch(conn, vec![Due::of(&current)], Care::ForFlows, now, actor, core).await?;
    let after = reread(conn, current.id).await?;
    audit_task(conn, "task.retry", actor, reason, &current, &after, now).await?;
    Ok(Decision::Commit(match after.status {
        TaskStatus::Succeeded => Retried::Succeeded(after),
        _ => Retried::Failed(after),
    }))
}

async fn retry_foreign(core: &Core, actor: &Actor, seen: Task, reason: &str) -> Result<Retried> {
    let order = order_rows::find(&mut core.db.read().await?, &seen.order_no).await?;
    match order {
        Some(order) if order.status == OrderStatus::Pending => Ok(Retried::OrderOpen(seen)),
        Some(order) if !order.is_tombstone() => finish_here(core, actor, seen, reason).await,
        None if core.policy.homes.is_remote(seen.resource) => by_hand::retry_foreign(core, actor, seen, reason).await,
        _ => retry_here(core, actor, seen, reason).await,
    }
}

/// Ends a shop's row that no close took over, at a person's word: one transaction with its audit row.
async fn finish_here(core: &Core, actor: &Actor, seen: Task, reason: &str) -> Result<Retried> {
    let now = core.now();
    let work = Arc::new((core.clone(), actor.to_string(), reason.to_owned(), seen));
    let retried = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let (core, actor, reason, seen) = &*work;
            let ran = finish_unadopted(conn, &seen.order_no, super::Unadopted::One(seen.id), now, actor, core).await?;
            let Some(after) = task::find(conn, seen.id).await? else {
                return Ok(Decision::Rollback(Retried::Unknown));
            };
            if ran == super::Ran::default() {
                // A close or another person was faster: nothing was done here.
                return Ok(Decision::Rollback(match after.status {
                    TaskStatus::Succeeded => Retried::AlreadyDone(after),
                    TaskStatus::ForceClosed | TaskStatus::Superseded => Retried::NotRetryable(after),
                    _ => Retried::Failed(after),
                }));
            }
            audit_task(conn, "task.retry", actor, reason, seen, &after, now).await?;
            Ok(Decision::Commit(match after.status {
                TaskStatus::Succeeded => Retried::Succeeded(after),
                _ => Retried::Failed(after),
            }))
        })
    });
    Ok(retried.await?)
}

/// One task of [`release_type`], and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    pub task: Task,
    pub is_done: bool,
    pub kind: Option<FailureKind>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleasedType {
    /// Every unfinished task of the type was run; empty when all were done.
    Ran(Vec<Released>),
    OrderOpen,
    UnknownOrder,
}

/// Runs every unfinished task of one resource type of one order (A11). Succeeded resources are not touched
/// and leave no trace in the flow.
pub async fn release_type(
    core: &Core,
    actor: &Actor,
    order_no: &str,
    resource: ResourceType,
    reason: &str,
) -> Result<ReleasedType> {
    text::check_text(reason, text::REASON_MAX).map_err(|m| Error::invalid("reason", m))?;
    let mut conn = core.db.read().await?;
    let order = order_rows::find(&mut conn, order_no).await?;
    let tasks = task::of_ref(&mut conn, order_no).await?;
    drop(conn);
    match &order {
        Some(order) if order.status == OrderStatus::Pending => return Ok(ReleasedType::OrderOpen),
        None if tasks.is_empty() => return Ok(ReleasedType::UnknownOrder),
        _ => {}
    }
    let mut released = Vec::new();
    for task in tasks.into_iter().filter(|t| t.resource == resource && t.status.is_unfinished()) {
        let (task, is_done) = match retry(core, actor, task.id, reason).await? {
            Retried::Succeeded(task) | Retried::AlreadyDone(task) => (task, true),
            Retried::Failed(task) | Retried::NotRetryable(task) | Retried::OrderOpen(task) => (task, false),
            Retried::Unknown => continue,
        };
        let kind = if is_done { None } else { task.kind };
        released.push(Released { task, is_done, kind });
    }
    Ok(ReleasedType::Ran(released))
}

/// What is true about the resource when its task is force-closed (R21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Nothing moves; the quantity stays owed and explained.
    LeaveOwed,
    /// A person saw to it elsewhere: for remote and mapped ledgers and refunds only.
    DoneOutside,
}

impl Resolution {
    pub const fn word(self) -> &'static str {
        match self {
            Self::LeaveOwed => "leave_owed",
            Self::DoneOutside => "done_outside",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForceClose {
    pub task_id: i64,
    pub reason: String,
    /// The version the person saw. Anything newer means that the row changed underneath.
    pub expected_version: i64,
    pub resolution: Resolution,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForceClosed {
    ForceClosed(Task),
    AlreadyForceClosed(Task),
    /// Succeeded or superseded: there is nothing to close.
    NotClosable(Task),
    /// The row changed since it was seen.
    Stale(Task),
    Unknown,
}

/// Ends the trying of one task. Moves no quantity; cannot be undone; goes on the audit log.
///
/// # Errors
/// `Invalid` for a reason that can't be taken, and for `done_outside` on a ledger that Handback keeps.
pub async fn force_close(core: &Core, actor: &Actor, act: ForceClose) -> Result<ForceClosed> {
    text::check_text(&act.reason, text::REASON_MAX).map_err(|m| Error::invalid("reason", m))?;
    let Some(seen) = task::find(&mut core.db.read().await?, act.task_id).await? else {
        return Ok(ForceClosed::Unknown);
    };
    let work = Arc::new((core.clone(), actor.to_string(), act, seen));
    let now = core.now();
    let closed = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { force_close_one(conn, &work.0, &work.1, &work.2, &work.3, now).await })
    });
    let closed = closed.await?;
    core.ring();
    closed.ok_or_else(|| {
        let message =
            "done_outside is not possible for a ledger that Handback keeps; leave it owed and adjust the ledger";
        Error::invalid("resolution", message)
    })
}

async fn force_close_one(
    conn: &mut Conn,
    core: &Core,
    actor: &str,
    act: &ForceClose,
    seen: &Task,
    now: i64,
) -> store::Result<Decision<Option<ForceClosed>>> {
    let order = record::lock_around(conn, seen).await?;
    let Some(current) = task::lock(conn, act.task_id).await? else {
        return Ok(Decision::Rollback(Some(ForceClosed::Unknown)));
    };
    let refused = match current.status {
        TaskStatus::ForceClosed => Some(ForceClosed::AlreadyForceClosed(current.clone())),
        TaskStatus::Succeeded | TaskStatus::Superseded => Some(ForceClosed::NotClosable(current.clone())),
        _ if current.version != act.expected_version => Some(ForceClosed::Stale(current.clone())),
        _ => None,
    };
    if let Some(refused) = refused {
        return Ok(Decision::Rollback(Some(refused)));
    }
    let is_outside = act.resolution == Resolution::DoneOutside;
    if is_outside && is_owned(core, &current) {
        return Ok(Decision::Rollback(None));
    }
    if task::force_close(conn, current.id, !is_outside, now, actor).await? != 1 {
        return Err(store::Error::broken(format!("task {} moved under its lock", current.id)));
    }
    if current.action == Action::Settle {
        return_order::wake(conn, now).await?;
    }
    if is_outside {
        flow::of_task(conn, &current, 0, Some(&act.reason), now, actor).await?;
        if current.action == Action::Refund {
            refund::money_is_back(conn, order.as_ref(), &current, now).await?;
        }
    }
    let mut counts = Counts::default();
    record::go_on_with(conn, order.as_ref(), now, &mut counts, core).await?;
    counter::append(conn, &counts, now).await?;
    let after = reread(conn, current.id).await?;
    audit_task(conn, "task.force_close", actor, &act.reason, &current, &after, now).await?;
    Ok(Decision::Commit(Some(ForceClosed::ForceClosed(after))))
}

/// Whether the effect of this task is on a ledger of ours: then only the ledger can say that it was done.
fn is_owned(core: &Core, task: &Task) -> bool {
    task.lane == LOCAL && (task.ledger_id.is_some() || core.policy.homes.is_owned(task.resource))
}

pub(super) async fn reread(conn: &mut Conn, id: i64) -> store::Result<Task> {
    task::find(conn, id).await?.ok_or_else(|| store::Error::broken(format!("task {id} went away")))
}

pub(super) async fn audit_task(
    conn: &mut Conn,
    action: &str,
    actor: &str,
    reason: &str,
    before: &Task,
    after: &Task,
    now: i64,
) -> store::Result<()> {
    let state = |task: &Task| {
        serde_json::json!({
            "status": task.status.word(), "retry": task.retry, "version": task.version,
            "kind": task.kind.map(FailureKind::word), "outcome": task.outcome.map(AttemptOutcome::word),
        })
    };
    let entry = audit::Entry {
        at: now,
        actor,
        action,
        target: &format!("task:{}", after.id),
        reason: Some(reason),
        detail: serde_json::json!({
            "order_no": after.order_no, "type": after.resource.word(), "key": after.key, "qty": after.qty,
            "before": state(before), "after": state(after),
        }),
    };
    audit::insert(conn, &entry).await
}

/// The flow rows a task wrote or found.
pub async fn flow_of(conn: &mut Conn, task: &Task) -> store::Result<Vec<flow::Flow>> {
    let own = flow::find(conn, &task.ref_no, &task.source, task.round, task.action, task.resource, &task.key).await?;
    Ok(own.into_iter().collect())
}
