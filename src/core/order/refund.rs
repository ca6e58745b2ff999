//! Money that goes back: one refund task per payment that is `refund_due`, worked off by the payment channel
//! or, where there is none, by a person who reports it. A REFUND_DUE order is REFUNDED once none of its
//! payments is left.

use std::sync::Arc;

use crate::core::policy::CHANNEL;
use crate::core::text;
use crate::core::words::{Action, Actor, AttemptOutcome, OrderStatus, PaymentStatus, ResourceType, TaskStatus, source};
use crate::core::{Core, Error, Result, counters};
use crate::store::counter::Counts;
use crate::store::order::Order;
use crate::store::payment::Payment;
use crate::store::task::{NewTask, Task};
use crate::store::{self, Conn, Decision, counter, flow, order, payment, task};

/// What a person reads on a refund task when there is no channel to tell.
pub const NO_CHANNEL: &str =
    "no payment channel is configured: give the money back in the channel's own console, then report it as refunded";

/// Makes a payment due for refund, with its task. Doing it again changes nothing.
pub(super) async fn make_due(conn: &mut Conn, payment: &Payment, now: i64, core: &Core) -> store::Result<()> {
    let mut moved = 0;
    for status in [PaymentStatus::Recorded, PaymentStatus::Unmatched] {
        moved += payment::move_on(conn, payment.id, status, PaymentStatus::RefundDue, now).await?;
    }
    if moved == 0 {
        return Ok(());
    }
    if payment.amount == 0 {
        // Nothing to give back, so nothing to do.
        payment::move_on(conn, payment.id, PaymentStatus::RefundDue, PaymentStatus::Refunded, now).await?;
        return Ok(());
    }
    let new = NewTask {
        order_no: payment.order_no.clone(),
        source: source::refund(payment.id),
        round: 1,
        action: Action::Refund.code(),
        resource: ResourceType::Payment.code(),
        key: payment.id.to_string(),
        qty: payment.amount,
        ledger_id: None,
        lane: CHANNEL,
        return_no: String::new(),
    };
    if core.policy.homes.has_channel {
        task::insert(conn, &[new], now).await
    } else {
        task::insert_for_a_person(conn, &[new], NO_CHANNEL, now).await
    }
}

/// A refund is done: flow row, task, payment, and the order when nothing is left. The caller has locked order,
/// payment and task, in this order; `done` says whether a channel did it (the whole amount) or a person outside (0).
pub async fn finish(
    conn: &mut Conn,
    order: Option<&Order>,
    refund: &Task,
    how: AttemptOutcome,
    now: i64,
    actor: &str,
) -> store::Result<()> {
    if refund.status.is_unfinished() {
        flow::of_task(conn, refund, refund.qty, None, now, actor).await?;
        task::succeed(conn, &[refund.id], how, now, actor).await?;
        let mut counts = Counts::default();
        counts.add(counters::SUCCEEDED, ResourceType::Payment.word(), 1);
        counter::append(conn, &counts, now).await?;
    }
    money_is_back(conn, order, refund, now).await
}

/// The payment behind a refund task is refunded, and the order too when it was the last one.
pub async fn money_is_back(conn: &mut Conn, order: Option<&Order>, refund: &Task, now: i64) -> store::Result<()> {
    let id = refund.key.parse::<i64>();
    let id = id.map_err(|_| store::Error::broken(format!("refund task {} names no payment", refund.id)))?;
    payment::move_on(conn, id, PaymentStatus::RefundDue, PaymentStatus::Refunded, now).await?;
    let Some(order) = order.filter(|order| order.status == OrderStatus::RefundDue) else { return Ok(()) };
    let left = payment::lock_of_order(conn, &order.order_no).await?;
    if left.iter().all(|payment| payment.status != PaymentStatus::RefundDue) {
        order::move_on(conn, order.id, OrderStatus::RefundDue, OrderStatus::Refunded).await?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refunded {
    Refunded,
    AlreadyRefunded,
    /// Its money isn't to be given back.
    NotRefundDue,
    /// There is no such order and no such payment.
    Unknown,
}

/// The shop, or a person, says that the money of this channel transaction went back.
///
/// # Errors
/// `Invalid` for a transaction that can't be one.
pub async fn report_refunded(core: &Core, actor: &Actor, order_no: &str, channel_txn: &str) -> Result<Refunded> {
    text::check_text(channel_txn, text::NUMBER_MAX).map_err(|m| Error::invalid("channel_txn", m))?;
    let now = core.now();
    let work = Arc::new((order_no.to_owned(), channel_txn.to_owned(), actor.to_string()));
    let done = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { report(conn, &work.0, &work.1, &work.2, now).await })
    });
    Ok(done.await?)
}

async fn report(
    conn: &mut Conn,
    order_no: &str,
    channel_txn: &str,
    actor: &str,
    now: i64,
) -> store::Result<Decision<Refunded>> {
    let order = order::lock(conn, order_no).await?;
    let payments = payment::lock_of_order(conn, order_no).await?;
    let named: Vec<&Payment> = payments.iter().filter(|p| p.channel_txn == channel_txn).collect();
    let Some(due) = named.iter().find(|p| p.status == PaymentStatus::RefundDue) else {
        let is_done = named.iter().any(|p| p.status == PaymentStatus::Refunded);
        return Ok(Decision::Rollback(match (is_done, order.is_some() || !payments.is_empty()) {
            (true, _) => Refunded::AlreadyRefunded,
            (false, true) => Refunded::NotRefundDue,
            (false, false) => Refunded::Unknown,
        }));
    };
    let tasks = task::lock_of_ref(conn, order_no).await?;
    let cause = source::refund(due.id);
    let refund = tasks.iter().find(|t| t.source == cause && t.action == Action::Refund);
    let refund = refund.ok_or_else(|| store::Error::broken(format!("payment {} has no refund task", due.id)))?;
    if refund.status == TaskStatus::ForceClosed && refund.is_owed {
        // It was given up and still owed; now a flow row names it.
        flow::of_task(conn, refund, refund.qty, Some("reported as refunded"), now, actor).await?;
        task::settle_debt(conn, refund.id).await?;
    }
    finish(conn, order.as_ref(), refund, AttemptOutcome::Succeeded, now, actor).await?;
    Ok(Decision::Commit(Refunded::Refunded))
}
