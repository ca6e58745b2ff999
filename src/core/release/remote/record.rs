//! Records what a service answered: one transaction that locks the order, its payments and the task, in this
//! order (R19), and changes the task only under the claim's own fence (R10). Whatever changes a task of a
//! RESTORING order goes on with that order in the same transaction.

use std::sync::Arc;

use crate::core::order::{late, refund};
use crate::core::task::answer::Verdict;
use crate::core::words::{Action, Actor, AttemptOutcome, FailureKind, OrderStatus, TaskStatus};
use crate::core::{Core, Result, counters, task as core_task};
use crate::store::attempt::{self, Ended};
use crate::store::counter::Counts;
use crate::store::order::Order;
use crate::store::task::{Due, Failed, NEVER, Task};
use crate::store::{self, Conn, Decision, claim as claims, counter, flow, order as order_rows, payment, task};

use super::{By, Claimed};
use crate::core::release::{act, succeed};

/// What became of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    Succeeded,
    Failed,
    /// Nothing was sent; the task stands as before.
    HandedBack,
    /// The effect doesn't exist and isn't wanted any more.
    Superseded,
    /// The effect doesn't exist: it is sent now.
    GoesOn,
    /// Somebody else had the task meanwhile; only the try's outcome was noted (R10).
    Lost,
}

/// Locks what a change of this task may change besides it: its order, and the order's payments and tasks where
/// they come into it. Every act on such a task begins with this (R19).
pub(in crate::core::release) async fn lock_around(conn: &mut Conn, about: &Task) -> store::Result<Option<Order>> {
    let order = if about.order_no.is_empty() { None } else { order_rows::lock(conn, &about.order_no).await? };
    let is_restoring = order.as_ref().is_some_and(|order| order.status == OrderStatus::Restoring);
    if is_restoring || about.action == Action::Refund {
        payment::lock_of_order(conn, &about.order_no).await?;
    }
    if is_restoring {
        task::lock_of_ref(conn, &about.order_no).await?;
    }
    Ok(order)
}

/// Goes on with a RESTORING order after one of its tasks changed.
pub(in crate::core::release) async fn go_on_with(
    conn: &mut Conn,
    order: Option<&Order>,
    now: i64,
    counts: &mut Counts,
    core: &Core,
) -> store::Result<()> {
    if let Some(order) = order {
        late::advance(conn, order, now, counts, core).await?;
    }
    Ok(())
}

/// Records the verdict on a try. A COMMIT whose answer is lost is run again and finds its own record (R13).
pub(super) async fn record(core: &Core, actor: &Actor, claimed: Claimed, verdict: Verdict) -> Result<Recorded> {
    let now = core.now();
    let work = Arc::new((core.clone(), actor.to_string(), claimed, verdict));
    let recorded = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { record_one(conn, &work.0, &work.1, &work.2, &work.3, now).await })
    });
    let recorded = recorded.await?;
    core.ring();
    Ok(recorded)
}

async fn record_one(
    conn: &mut Conn,
    core: &Core,
    actor: &str,
    claimed: &Claimed,
    verdict: &Verdict,
    now: i64,
) -> store::Result<Decision<Recorded>> {
    let order = lock_around(conn, &claimed.before).await?;
    let Some(current) = lock_claimed(conn, claimed).await? else {
        return note_only(conn, actor, claimed, verdict, now).await;
    };
    let mut counts = Counts::default();
    let recorded = match verdict {
        Verdict::Succeed(how) => {
            let how = succeed_one(conn, order.as_ref(), &current, *how, now, actor, &mut counts).await?;
            attempt::end(conn, current.id, claimed.fence, ended(verdict, Some(how), now)).await?;
            Recorded::Succeeded
        }
        Verdict::Fail { kind, is_in_doubt, .. } => {
            let failed = failed_of(claimed, verdict, now, core);
            counts.add(counters::FAILED, format!("{}/{kind}", current.resource), 1);
            attempt::end(conn, current.id, claimed.fence, ended(verdict, None, now)).await?;
            claims::fail(conn, &failed, *is_in_doubt, now).await?;
            Recorded::Failed
        }
        Verdict::HandBack { after_ms, error } => {
            let is_a_persons = claimed.before.next_at.is_none();
            let next_at = if is_a_persons { NEVER } else { now + after_ms };
            claims::hand_back(conn, &claimed.before, next_at, error).await?;
            attempt::forget(conn, current.id, claimed.fence).await?;
            Recorded::HandedBack
        }
    };
    go_on_with(conn, order.as_ref(), now, &mut counts, core).await?;
    audit(conn, actor, claimed, now).await?;
    counter::append(conn, &counts, now).await?;
    Ok(Decision::Commit(recorded))
}

async fn lock_claimed(conn: &mut Conn, claimed: &Claimed) -> store::Result<Option<Task>> {
    let current = task::lock(conn, claimed.before.id).await?;
    Ok(current.filter(|task| task.fence == claimed.fence && task.status.is_unfinished()))
}

/// The claim is somebody else's by now, or the task is finished: the outcome is noted on the try, nothing else.
async fn note_only(
    conn: &mut Conn,
    actor: &str,
    claimed: &Claimed,
    verdict: &Verdict,
    now: i64,
) -> store::Result<Decision<Recorded>> {
    let id = claimed.before.id;
    let noted = match verdict {
        Verdict::HandBack { .. } => attempt::forget(conn, id, claimed.fence).await?,
        _ => attempt::end(conn, id, claimed.fence, ended(verdict, None, now)).await?,
    };
    if noted > 0 {
        audit(conn, actor, claimed, now).await?;
    }
    Ok(Decision::Commit(Recorded::Lost))
}

/// The effect exists: its flow row and the task in one transaction. One whose flow row is there already
/// succeeds as a duplicate (R5).
async fn succeed_one(
    conn: &mut Conn,
    order: Option<&Order>,
    current: &Task,
    how: AttemptOutcome,
    now: i64,
    actor: &str,
    counts: &mut Counts,
) -> store::Result<AttemptOutcome> {
    claims::uncount(conn, current.id).await?;
    let counted = Task { retry: current.retry - 1, ..current.clone() };
    if current.action == Action::Refund {
        if how == AttemptOutcome::Duplicate {
            counts.add(counters::DUPLICATE, current.resource.word(), 1);
        }
        refund::finish(conn, order, &counted, how, now, actor).await?;
        return Ok(how);
    }
    let is_new = flow::of_task(conn, current, current.qty, None, now, actor).await?;
    let how = if is_new { how } else { AttemptOutcome::Duplicate };
    succeed(conn, &[Due::of(&counted)], how, now, actor, counts).await?;
    Ok(how)
}

/// The row's next state. The failure was counted at the claim, so it isn't counted again.
fn failed_of(claimed: &Claimed, verdict: &Verdict, now: i64, core: &Core) -> Failed {
    let (kind, error, not_before_ms, is_for_a_person) = match verdict {
        Verdict::Fail { kind, error, not_before_ms, is_for_a_person, .. } => {
            (*kind, error.clone(), *not_before_ms, *is_for_a_person)
        }
        _ => (FailureKind::RemoteError, String::new(), 0, false),
    };
    let mut failed = core_task::failed(&Due::of(&claimed.before), kind, error, now, &core.policy);
    if is_for_a_person {
        failed.status = TaskStatus::Manual.code();
        failed.next_at = NEVER;
    } else if failed.status == TaskStatus::Retrying.code() {
        failed.next_at = failed.next_at.max(now + not_before_ms);
    }
    failed
}

fn ended(verdict: &Verdict, how: Option<AttemptOutcome>, at: i64) -> Ended<'_> {
    match verdict {
        Verdict::Succeed(outcome) => Ended { at, outcome: how.unwrap_or(*outcome), kind: None, error: None },
        Verdict::Fail { kind, error, .. } => {
            Ended { at, outcome: AttemptOutcome::Failed, kind: Some(*kind), error: Some(error) }
        }
        Verdict::HandBack { error, .. } => {
            Ended { at, outcome: AttemptOutcome::Failed, kind: Some(FailureKind::RemoteBusy), error: Some(error) }
        }
    }
}

/// The audit row of a person's try, in the transaction that records it.
async fn audit(conn: &mut Conn, actor: &str, claimed: &Claimed, now: i64) -> store::Result<()> {
    let By::Person(reason) = &claimed.by else { return Ok(()) };
    let after = act::reread(conn, claimed.before.id).await?;
    act::audit_task(conn, "task.retry", actor, reason, &claimed.before, &after, now).await
}

/// The service says that the effect doesn't exist: no doubt any more. A RESTORING order may not want it any
/// longer; otherwise it goes on under the same claim, with a new lease.
pub(super) async fn not_done(core: &Core, actor: &Actor, claimed: Claimed, until: i64) -> Result<Recorded> {
    let now = core.now();
    let work = Arc::new((core.clone(), actor.to_string(), claimed));
    let recorded = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { not_done_one(conn, &work.0, &work.1, &work.2, until, now).await })
    });
    let recorded = recorded.await?;
    core.ring();
    Ok(recorded)
}

async fn not_done_one(
    conn: &mut Conn,
    core: &Core,
    actor: &str,
    claimed: &Claimed,
    until: i64,
    now: i64,
) -> store::Result<Decision<Recorded>> {
    let order = lock_around(conn, &claimed.before).await?;
    let id = claimed.before.id;
    let text = "the service was asked and says that it was not done";
    let asked =
        Ended { at: now, outcome: AttemptOutcome::Failed, kind: Some(FailureKind::RemoteError), error: Some(text) };
    let Some(current) = lock_claimed(conn, claimed).await? else {
        attempt::end(conn, id, claimed.fence, asked).await?;
        return Ok(Decision::Commit(Recorded::Lost));
    };
    let mut counts = Counts::default();
    claims::settle_doubt(conn, id).await?;
    go_on_with(conn, order.as_ref(), now, &mut counts, core).await?;
    counter::append(conn, &counts, now).await?;
    let after = act::reread(conn, id).await?;
    if after.status.is_unfinished() {
        claims::go_on(conn, id, until, now, actor).await?;
        return Ok(Decision::Commit(Recorded::GoesOn));
    }
    // What it was tried for isn't wanted any more; the question was no failed try of it.
    claims::uncount(conn, current.id).await?;
    attempt::end(conn, id, claimed.fence, asked).await?;
    audit(conn, actor, claimed, now).await?;
    Ok(Decision::Commit(Recorded::Superseded))
}
