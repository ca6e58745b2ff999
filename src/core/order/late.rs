//! Payment after the close (A8): the channel's truth wins. Everything comes back, all or nothing, or the order
//! goes to the refund branch; never back to PENDING. The first look is one transaction under the order's lock;
//! what services have to be told or asked goes on while the order is RESTORING, and every transaction that
//! changes a task of such an order ends in [`advance`].

use std::collections::HashSet;

use crate::core::order::late_plan::{Came, Lacks, Verdict, came, is_closes_release, step};
use crate::core::order::{close, holds_left, pay, refund};
use crate::core::policy::{LOCAL, LatePayment};
use crate::core::words::{Action, OrderStatus, PaymentStatus, ResourceType, source};
use crate::core::{Core, counters, release};
use crate::store::counter::Counts;
use crate::store::order::{Hold, Order};
use crate::store::payment::Payment;
use crate::store::task::{Due, NewTask, Task};
use crate::store::{self, Conn, claim, flow, order, payment, task};

/// What became of a payment that matches a CLOSED order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Everything is back and the order PAID.
    Restored,
    /// Services have to be asked or told first.
    Restoring,
    RefundDue,
}

/// Decides about a recorded payment that matches this CLOSED order. The order and its payments are locked.
pub(super) async fn decide(
    conn: &mut Conn,
    order: &Order,
    paying: &Payment,
    now: i64,
    counts: &mut Counts,
    core: &Core,
) -> store::Result<Late> {
    if core.policy.late_payment == LatePayment::Refund {
        refund_branch(conn, order, paying, &[], now, core).await?;
        return Ok(Late::RefundDue);
    }
    let tasks = task::lock_of_ref(conn, &order.order_no).await?;
    let releases: Vec<&Task> = tasks.iter().filter(|t| is_closes_release(t, order.round)).collect();
    let done_here: Vec<&Task> = releases.iter().copied().filter(|t| t.lane == LOCAL && came(t) == Came::Done).collect();
    let backs: Vec<NewTask> = done_here.iter().map(|t| take_back_of(t, order, paying)).collect();
    let lacking = lacking_here(conn, &backs, now, core).await?;
    if !lacking.is_empty() {
        // Nothing is changed on the tasks: they run on.
        refund_branch(conn, order, paying, &lacking, now, core).await?;
        return Ok(Late::RefundDue);
    }
    let not_done: Vec<i64> = releases.iter().filter(|t| came(t) == Came::NotDone).map(|t| t.id).collect();
    task::supersede(conn, &not_done, now).await?;
    take_back_here(conn, order, &backs, now, core).await?;
    if order::mark_restoring(conn, order.id, paying.id).await? != 1 {
        return Err(store::Error::broken(format!("order {} left CLOSED under its lock", order.order_no)));
    }
    claim::hasten(conn, &order.order_no, now).await?;
    let restoring = Order { status: OrderStatus::Restoring, late_payment: Some(paying.id), ..order.clone() };
    Ok(match advance(conn, &restoring, now, counts, core).await? {
        OrderStatus::Paid => Late::Restored,
        OrderStatus::Restoring => Late::Restoring,
        _ => Late::RefundDue,
    })
}

/// Goes on with a RESTORING order after one of its tasks changed, and answers its status then. The caller has
/// locked the order, then its payments (R19). Calling it again changes nothing more; for an order that isn't
/// RESTORING it does nothing.
pub async fn advance(
    conn: &mut Conn,
    order: &Order,
    now: i64,
    counts: &mut Counts,
    core: &Core,
) -> store::Result<OrderStatus> {
    let (OrderStatus::Restoring, Some(payment_id)) = (order.status, order.late_payment) else {
        return Ok(order.status);
    };
    let tasks = task::lock_of_ref(conn, &order.order_no).await?;
    write_holds(conn, order, payment_id, &tasks).await?;
    let step = step(order.round, payment_id, &tasks);
    task::supersede(conn, &step.supersede, now).await?;
    let payments = payment::lock_of_order(conn, &order.order_no).await?;
    let paying = payments.iter().find(|p| p.id == payment_id);
    let paying = paying.ok_or_else(|| store::Error::broken(format!("payment {payment_id} went away")))?;
    let done = tasks.iter().filter(|t| step.take_back.contains(&t.id));
    let backs: Vec<NewTask> =
        done.map(|t| NewTask { lane: core.policy.homes.lane(t.resource), ..take_back_of(t, order, paying) }).collect();
    task::insert(conn, &backs, now).await?;
    match step.verdict {
        Verdict::Wait => Ok(OrderStatus::Restoring),
        Verdict::AllBack => {
            become_paid(conn, order, paying, now, counts, core).await?;
            Ok(OrderStatus::Paid)
        }
        Verdict::Lacking(lacking) => {
            undo(conn, order, paying, now, core).await?;
            refund_branch(conn, order, paying, &lacking, now, core).await?;
            Ok(OrderStatus::RefundDue)
        }
    }
}

/// The task that takes back what this release gave back, in the next round.
fn take_back_of(release: &Task, order: &Order, paying: &Payment) -> NewTask {
    NewTask {
        order_no: order.order_no.clone(),
        source: source::late(paying.id),
        round: order.round + 1,
        action: Action::TakeBack.code(),
        resource: release.resource.code(),
        key: release.key.clone(),
        qty: release.qty,
        ledger_id: release.ledger_id,
        lane: LOCAL,
        return_no: String::new(),
    }
}

/// What of these local take-backs can't be had, found under the ledger rows' locks.
async fn lacking_here(conn: &mut Conn, backs: &[NewTask], now: i64, core: &Core) -> store::Result<Vec<Lacks>> {
    let dues: Vec<Due> = backs.iter().enumerate().map(|(at, back)| due_of(back, at as i64 + 1)).collect();
    let (plan, rows) = release::plan_under_lock(conn, &dues, now, core).await?;
    let mut lacking: Vec<Lacks> =
        plan.failures.iter().map(|f| Lacks::of(f.task.resource, &f.task.key, f.task.qty)).collect();
    // A coupon past its end comes back only to the order that held it, and only if nobody held it since.
    let run_out: Vec<i64> = rows
        .rows
        .iter()
        .filter(|r| r.id > 0 && r.resource == ResourceType::Coupon && r.has_run_out(now))
        .map(|r| r.id)
        .collect();
    let last = flow::last_holders(conn, &run_out).await?;
    for due in &dues {
        let holder = due.ledger_id.and_then(|id| last.get(&id));
        let is_known = lacking.iter().any(|l| l.resource == due.resource.word() && l.key == due.key);
        if holder.is_some_and(|no| *no != due.order_no) && !is_known {
            lacking.push(Lacks::of(due.resource, &due.key, due.qty));
        }
    }
    Ok(lacking)
}

fn due_of(new: &NewTask, id: i64) -> Due {
    Due {
        id,
        order_no: new.order_no.clone(),
        round: new.round,
        action: Action::from_code(new.action).unwrap_or(Action::TakeBack),
        resource: ResourceType::from_code(new.resource).unwrap_or(ResourceType::Stock),
        key: new.key.clone(),
        qty: new.qty,
        retry: 0,
        ledger_id: new.ledger_id,
        first_failed_at: None,
        is_adopted: true,
        return_no: String::new(),
    }
}

/// Takes back what is ours, through the one core; the tasks are written as succeeded in the same transaction.
async fn take_back_here(conn: &mut Conn, order: &Order, backs: &[NewTask], now: i64, core: &Core) -> store::Result<()> {
    let Some(first) = backs.first() else { return Ok(()) };
    task::insert(conn, backs, now).await?;
    let cause = first.source.clone();
    let tasks = task::lock_of_ref(conn, &order.order_no).await?;
    let dues: Vec<Due> = tasks.iter().filter(|t| t.source == cause && t.lane == LOCAL).map(Due::of).collect();
    let wanted = dues.len();
    if release::run_here(conn, dues, now, "worker:late", core).await? != wanted {
        return Err(store::Error::broken("a take-back that was planned under lock failed"));
    }
    Ok(())
}

/// A take-back done makes the hold of the next round.
async fn write_holds(conn: &mut Conn, order: &Order, payment_id: i64, tasks: &[Task]) -> store::Result<()> {
    let known = order::holds(conn, &order.order_no).await?;
    let known: HashSet<(i64, ResourceType, &str)> =
        known.iter().map(|h| (h.round, h.resource, h.key.as_str())).collect();
    let cause = source::late(payment_id);
    let is_back = |task: &&Task| {
        task.action == Action::TakeBack
            && task.source == cause
            && came(task) == Came::Done
            && !known.contains(&(task.round, task.resource, task.key.as_str()))
    };
    let holds: Vec<Hold> = tasks
        .iter()
        .filter(is_back)
        .map(|task| Hold {
            order_no: order.order_no.clone(),
            round: task.round,
            resource: task.resource,
            key: task.key.clone(),
            ledger_id: task.ledger_id,
            locked: task.qty,
        })
        .collect();
    order::insert_holds(conn, &holds).await
}

/// Tasks of `action` for all that the holds of both rounds have left.
async fn for_what_is_left(
    conn: &mut Conn,
    order: &Order,
    action: Action,
    cause: &str,
    core: &Core,
) -> store::Result<Vec<NewTask>> {
    let holds = order::holds(conn, &order.order_no).await?;
    let tasks = task::lock_of_ref(conn, &order.order_no).await?;
    let left = [order.round, order.round + 1].into_iter().flat_map(|round| holds_left(&holds, &tasks, round));
    let left = left.filter(|left| left.left > 0);
    Ok(left.map(|left| close::task_for(&left, action, cause, &core.policy.homes)).collect())
}

async fn become_paid(
    conn: &mut Conn,
    order: &Order,
    paying: &Payment,
    now: i64,
    counts: &mut Counts,
    core: &Core,
) -> store::Result<()> {
    let settle = for_what_is_left(conn, order, Action::Settle, source::PAY, core).await?;
    let round = settle.iter().map(|t| t.round).max().unwrap_or(order.round);
    if order::mark_restored(conn, order.id, round, now).await? != 1 {
        return Err(store::Error::broken(format!("order {} left RESTORING under its lock", order.order_no)));
    }
    task::insert(conn, &settle, now).await?;
    payment::move_on(conn, paying.id, PaymentStatus::Recorded, PaymentStatus::Applied, now).await?;
    pay::refund_others(conn, order, paying.id, now, core).await?;
    counts.add(counters::PAID, "late", 1);
    Ok(())
}

/// Releases again what was taken back, and what had been superseded for it.
async fn undo(conn: &mut Conn, order: &Order, paying: &Payment, now: i64, core: &Core) -> store::Result<()> {
    let tasks = for_what_is_left(conn, order, Action::Release, &source::undo(paying.id), core).await?;
    task::insert(conn, &tasks, now).await
}

/// CLOSED or RESTORING → REFUND_DUE: the payment keeps the list of what lacked and gets its refund task.
async fn refund_branch(
    conn: &mut Conn,
    order: &Order,
    paying: &Payment,
    lacking: &[Lacks],
    now: i64,
    core: &Core,
) -> store::Result<()> {
    if order::move_on(conn, order.id, order.status, OrderStatus::RefundDue).await? != 1 {
        return Err(store::Error::broken(format!("order {} moved under its lock", order.order_no)));
    }
    if !lacking.is_empty() {
        let list = serde_json::to_string(lacking).unwrap_or_default();
        payment::set_lacking(conn, paying.id, &list).await?;
    }
    refund::make_due(conn, paying, now, core).await
}
