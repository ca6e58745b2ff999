//! Closing wins the status and writes one release task per hold that has something left, in one transaction
//! (A1). Nothing is released in it. A close of an order nobody knows leaves a tombstone (R15).

use std::sync::Arc;

use crate::core::order::{Left, holds_left, is_shops, is_unadopted, pay};
use crate::core::policy::Homes;
use crate::core::text;
use crate::core::words::{Action, Actor, AttemptOutcome, FailureKind, OrderStatus, PaymentStatus, Trigger, source};
use crate::core::{Core, Error, Result, counters, task as core_task};
use crate::store::counter::Counts;
use crate::store::order::{Closing, DueOrder, Order};
use crate::store::task::{Due, NewTask, Task};
use crate::store::{self, Conn, Decision, asking, audit, counter, order, payment, task};

/// The reason a timeout gives; it closes nothing before the deadline.
pub const TIMEOUT: &str = "timeout";
/// The reason of a close that a shop's own task row stands for.
pub const SHOP: &str = "shop";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseOrder {
    pub order_no: String,
    /// `timeout`, `buyer`, `operator`, `channel`, `shop` or any other text.
    pub reason: String,
    pub trigger: Trigger,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    Closed,
    AlreadyClosed,
    /// Paid or completed, or found paid just now.
    NotPending,
    /// A timeout before the deadline.
    NotDue,
    /// A payment has started: the channel is asked first.
    Postponed,
    /// The order wasn't known: it is closed before it comes.
    Tombstoned,
}

/// Closes one order. The second time says so and changes nothing but a counter.
///
/// # Errors
/// `Invalid` for a number or reason that can't be taken.
pub async fn close_order(core: &Core, actor: &Actor, close: CloseOrder) -> Result<Closed> {
    close_with(core, actor, close, false).await
}

/// The same after the channel has been asked.
pub(super) async fn close_asked(core: &Core, actor: &Actor, close: CloseOrder) -> Result<Closed> {
    close_with(core, actor, close, true).await
}

async fn close_with(core: &Core, actor: &Actor, close: CloseOrder, was_asked: bool) -> Result<Closed> {
    text::check_text(&close.order_no, text::NUMBER_MAX).map_err(|m| Error::invalid("order_no", m))?;
    text::check_text(&close.reason, text::REASON_MAX).map_err(|m| Error::invalid("reason", m))?;
    let now = core.now();
    let work = Arc::new((close, actor.to_string(), core.clone()));
    let closed = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let closing = Closing { reason: &work.0.reason, by: &work.1, trigger: work.0.trigger, now, was_asked };
            close_one(conn, &work.0.order_no, &closing, &work.2).await
        })
    });
    let closed = closed.await?;
    core.ring();
    Ok(closed)
}

async fn close_one(
    conn: &mut Conn,
    order_no: &str,
    closing: &Closing<'_>,
    core: &Core,
) -> store::Result<Decision<Closed>> {
    let mut counts = Counts::default();
    let Some(order) = order::lock(conn, order_no).await? else {
        return leave_tombstone(conn, order_no, closing, core).await;
    };
    let outcome = match order.status {
        OrderStatus::Pending => close_pending(conn, &order, closing, &mut counts, core).await?,
        OrderStatus::Paid | OrderStatus::Completed => Closed::NotPending,
        OrderStatus::Closed | OrderStatus::Restoring | OrderStatus::RefundDue | OrderStatus::Refunded => {
            counts.add(counters::CLOSE_REPEATED, closing.trigger.word(), 1);
            Closed::AlreadyClosed
        }
    };
    counter::append(conn, &counts, closing.now).await?;
    Ok(Decision::Commit(outcome))
}

async fn close_pending(
    conn: &mut Conn,
    order: &Order,
    closing: &Closing<'_>,
    counts: &mut Counts,
    core: &Core,
) -> store::Result<Closed> {
    // While its channel is asked, `due_at` says when it is asked next.
    let due_at = if order.asking { order.pay_deadline } else { order.due_at.unwrap_or(order.pay_deadline) };
    if closing.reason == TIMEOUT && closing.now < due_at {
        return Ok(Closed::NotDue);
    }
    let payments = payment::lock_of_order(conn, &order.order_no).await?;
    if let Some(paying) = pay::matching(order, &payments) {
        // Found paid: a payment is on record although the order's own row doesn't say so (R7).
        pay::make_paid(conn, order, Some(paying), &payments, closing.now, counts, core).await?;
        return Ok(Closed::NotPending);
    }
    let has_started = payments.iter().any(|p| p.status == PaymentStatus::Started);
    if closing.reason == TIMEOUT && has_started && core.policy.homes.has_channel && !closing.was_asked {
        if !order.asking {
            asking::begin(conn, order.id, closing.now).await?;
        }
        return Ok(Closed::Postponed);
    }
    if order::mark_closed(conn, &[order.id], closing).await? != 1 {
        return Err(store::Error::broken(format!("order {} left PENDING under its lock", order.order_no)));
    }
    pay::refund_recorded(conn, payments.iter().filter(|p| p.status.is_money()), closing.now, core).await?;
    write_releases(conn, order, closing, counts, core).await?;
    count_closed(counts, order.pay_deadline, closing);
    Ok(Closed::Closed)
}

/// One release task per hold that has something left. A row that the shop wrote under the same key is taken
/// over with the hold's quantity (one that was force-closed stays so, and owes it); one for a key of which
/// nothing is left succeeds as "nothing locked".
async fn write_releases(
    conn: &mut Conn,
    order: &Order,
    closing: &Closing<'_>,
    counts: &mut Counts,
    core: &Core,
) -> store::Result<()> {
    let holds = order::holds(conn, &order.order_no).await?;
    let tasks = task::lock_of_ref(conn, &order.order_no).await?;
    let mut new = Vec::new();
    let mut adopted = Vec::new();
    for left in holds_left(&holds, &tasks, order.round).into_iter().filter(|left| left.left > 0) {
        let own = tasks.iter().find(|task| {
            is_shops(task)
                && task.action == Action::Release
                && task.round == order.round
                && task.resource == left.hold.resource
                && task.key == left.hold.key
        });
        match own {
            Some(own) => {
                let as_new = task_for(&left, Action::Release, source::CLOSE, &core.policy.homes);
                task::take_over(conn, own.id, &as_new, closing.now).await?;
                adopted.push(own.id);
            }
            None => new.push(task_for(&left, Action::Release, source::CLOSE, &core.policy.homes)),
        }
    }
    task::insert(conn, &new, closing.now).await?;
    let nothing: Vec<&Task> = tasks.iter().filter(|t| is_unadopted(t) && !adopted.contains(&t.id)).collect();
    finish_nothing_locked(conn, &nothing, closing.now, closing.by, counts).await
}

async fn finish_nothing_locked(
    conn: &mut Conn,
    tasks: &[&Task],
    now: i64,
    actor: &str,
    counts: &mut Counts,
) -> store::Result<()> {
    let ids: Vec<i64> = tasks.iter().map(|task| task.id).collect();
    task::succeed(conn, &ids, AttemptOutcome::NothingLocked, now, actor).await?;
    for task in tasks {
        counts.add(counters::SUCCEEDED, task.resource.word(), 1);
    }
    Ok(())
}

/// Rows that a shop wrote for an order that turned out paid are its close arriving too late: a person looks.
pub(super) async fn refuse_unadopted(
    conn: &mut Conn,
    tasks: &[Task],
    order_no: &str,
    now: i64,
    counts: &mut Counts,
    core: &Core,
) -> store::Result<()> {
    let failures: Vec<_> = tasks
        .iter()
        .filter(|task| is_unadopted(task))
        .map(|task| {
            let error = format!("order {order_no} is paid; the shop asked to release {} {}", task.resource, task.key);
            let kind = FailureKind::StateMismatch;
            counts.add(counters::FAILED, format!("{}/{kind}", task.resource), 1);
            core_task::failed(&Due::of(task), kind, error, now, &core.policy)
        })
        .collect();
    task::fail(conn, &failures, now, &format!("trigger:{}", Trigger::Outbox)).await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifted {
    Lifted,
    /// The order came, the tombstone ran out, or somebody lifted it before.
    NoTombstone,
}

/// A lead lifts a tombstone: the order of that number may be placed again (R15).
///
/// # Errors
/// `Invalid` for a reason that can't be taken.
pub async fn lift_tombstone(core: &Core, actor: &Actor, order_no: &str, reason: &str) -> Result<Lifted> {
    text::check_text(reason, text::REASON_MAX).map_err(|m| Error::invalid("reason", m))?;
    let now = core.now();
    let work = Arc::new((order_no.to_owned(), actor.to_string(), reason.to_owned()));
    let lifted = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let (order_no, actor, reason) = &*work;
            let Some(order) = order::lock(conn, order_no).await?.filter(Order::is_tombstone) else {
                return Ok(Decision::Rollback(Lifted::NoTombstone));
            };
            if order::lift_tombstone(conn, order.id).await? != 1 {
                return Err(store::Error::broken(format!("the tombstone of {order_no} went under its lock")));
            }
            let entry = audit::Entry {
                at: now,
                actor,
                action: "order.lift_tombstone",
                target: &format!("order:{order_no}"),
                reason: Some(reason),
                detail: serde_json::json!({"closed_at": order.closed_at, "closed_by": order.closed_by}),
            };
            audit::insert(conn, &entry).await?;
            Ok(Decision::Commit(Lifted::Lifted))
        })
    });
    Ok(lifted.await?)
}

/// The task that gives back, or settles, what a hold has left.
pub(super) fn task_for(left: &Left, action: Action, source: &str, homes: &Homes) -> NewTask {
    NewTask {
        order_no: left.hold.order_no.clone(),
        source: source.into(),
        round: left.hold.round,
        action: action.code(),
        resource: left.hold.resource.code(),
        key: left.hold.key.clone(),
        qty: left.left,
        ledger_id: left.hold.ledger_id,
        lane: homes.lane(left.hold.resource),
        return_no: String::new(),
    }
}

async fn leave_tombstone(
    conn: &mut Conn,
    order_no: &str,
    closing: &Closing<'_>,
    core: &Core,
) -> store::Result<Decision<Closed>> {
    let tombstone = Order {
        id: 0,
        order_no: order_no.to_owned(),
        buyer: String::new(),
        amount: 0,
        currency: String::new(),
        status: OrderStatus::Closed,
        round: 1,
        content: String::new(),
        pay_within_s: 0,
        placed_at: closing.now,
        pay_deadline: closing.now,
        due_at: None,
        paid_at: None,
        closed_at: Some(closing.now),
        close_reason: Some(closing.reason.to_owned()),
        closed_by: Some(closing.by.to_owned()),
        close_trigger: Some(closing.trigger),
        payment_seen: false,
        tombstone_until: Some(closing.now + core.policy.tombstone_ms),
        lines: None,
        asking: false,
        asked: 0,
        late_payment: None,
        version: 0,
    };
    if !order::insert(conn, &tombstone).await? {
        return Err(store::Error::new(store::Class::Transient, "the order appeared at this moment"));
    }
    let payments = payment::lock_of_order(conn, order_no).await?;
    let unmatched = payments.iter().filter(|p| p.status == PaymentStatus::Unmatched);
    pay::refund_recorded(conn, unmatched, closing.now, core).await?;
    Ok(Decision::Commit(Closed::Tombstoned))
}

fn count_closed(counts: &mut Counts, pay_deadline: i64, closing: &Closing<'_>) {
    counts.add(counters::CLOSED, closing.trigger.word(), 1);
    if closing.reason == TIMEOUT {
        let late = counters::bucket(closing.now - pay_deadline);
        counts.add(counters::LATE, format!("{}/{late}", closing.trigger), 1);
    }
}

/// What one look for due orders did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Orders that were due and free.
    pub found: usize,
    pub closed: usize,
    /// Orders that could not be closed and were postponed.
    pub postponed: usize,
}

/// Closes up to `limit` due orders: all plain ones in one transaction; those with a payment or a task of their
/// own, and all of a batch that failed, one by one, so that one bad order never holds up the others (R14).
pub async fn close_due(core: &Core, trigger: Trigger, limit: i64) -> Result<Swept> {
    let now = core.now();
    let actor = Actor::Trigger(trigger).to_string();
    let core_in = core.clone();
    let batch = core.db.write(move |conn| {
        let (actor, core) = (actor.clone(), core_in.clone());
        Box::pin(async move {
            let due = order::claim_due(conn, now, limit).await?;
            if due.is_empty() {
                return Ok(Decision::Rollback((0, Vec::new())));
            }
            let closing = Closing { reason: TIMEOUT, by: &actor, trigger, now, was_asked: false };
            let singly = close_plain(conn, &due, &closing, &core).await?;
            Ok(Decision::Commit((due.len(), singly)))
        })
    });
    let (found, singly) = match batch.await {
        Ok(done) => done,
        Err(error) if error.is(store::Class::Away) => return Err(error.into()),
        Err(error) => {
            tracing::warn!(error = %error, "a batch of due orders could not be closed together; closing them one by one");
            let mut conn = core.db.read().await?;
            let due = order::find_due(&mut conn, now, limit).await?;
            (due.len(), due.into_iter().map(|d| d.order_no).collect())
        }
    };
    let mut swept = Swept { found, closed: found - singly.len(), postponed: 0 };
    for order_no in singly {
        match close_singly(core, trigger, &order_no).await? {
            true => swept.closed += 1,
            false => swept.postponed += 1,
        }
    }
    if swept.closed > 0 {
        core.ring();
    }
    Ok(swept)
}

/// Closes those of the claimed orders that have no history; answers the numbers of the others.
async fn close_plain(
    conn: &mut Conn,
    due: &[DueOrder],
    closing: &Closing<'_>,
    core: &Core,
) -> store::Result<Vec<String>> {
    let numbers: Vec<String> = due.iter().map(|d| d.order_no.clone()).collect();
    let singly = order::with_history(conn, &numbers).await?;
    let plain: Vec<&DueOrder> = due.iter().filter(|d| !singly.contains(&d.order_no)).collect();
    if plain.is_empty() {
        return Ok(singly);
    }
    let ids: Vec<i64> = plain.iter().map(|d| d.id).collect();
    let hit = order::mark_closed(conn, &ids, closing).await?;
    if hit != ids.len() as u64 {
        return Err(store::Error::broken(format!("{hit} of {} due orders could be closed", ids.len())));
    }
    let plain_numbers: Vec<&str> = plain.iter().map(|d| d.order_no.as_str()).collect();
    order::write_release_tasks(conn, &plain_numbers, &core.policy.homes.remote, closing.now).await?;
    let mut counts = Counts::default();
    for order in &plain {
        count_closed(&mut counts, order.pay_deadline, closing);
    }
    counter::append(conn, &counts, core.now()).await?;
    Ok(singly)
}

/// Closes one due order by itself; one that can't be closed is postponed and said so. `true` when it is out of the way.
async fn close_singly(core: &Core, trigger: Trigger, order_no: &str) -> Result<bool> {
    let close = CloseOrder { order_no: order_no.to_owned(), reason: TIMEOUT.into(), trigger };
    let error = match close_order(core, &Actor::Trigger(trigger), close).await {
        Ok(Closed::Postponed) => return Ok(false),
        Ok(_) => return Ok(true),
        Err(error) if error.is_away() => return Err(error),
        Err(error) => error,
    };
    tracing::error!(error = %error, order.no = order_no, "a due order could not be closed; it is tried again in a minute");
    let until = core.now() + 60_000;
    let order_no = order_no.to_owned();
    let postponed = core.db.write(move |conn| {
        let order_no = order_no.clone();
        Box::pin(async move {
            if let Some(order) = order::lock(conn, &order_no).await? {
                order::postpone(conn, order.id, until).await?;
            }
            Ok(Decision::Commit(()))
        })
    });
    postponed.await?;
    Ok(false)
}
