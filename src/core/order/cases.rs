//! What a lead decides about money that fits nothing (R9): take a payment as it is, give it back, or say that a
//! transaction told twice was looked into. Each is done once, with its reason in the audit log.

use std::sync::Arc;

use crate::core::order::{pay, refund};
use crate::core::text;
use crate::core::words::{Actor, OrderStatus, PaymentStatus};
use crate::core::{Core, Error, Result};
use crate::store::counter::Counts;
use crate::store::payment::Payment;
use crate::store::{self, Conn, Decision, audit, counter, order, payment, payment_case};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    Accepted,
    /// The order isn't open any more.
    NotPending,
    /// The payment isn't one that waits for a decision.
    NotRecorded,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenBack {
    /// Its refund task is written.
    RefundDue,
    /// The payment isn't one that waits for a decision: it is used, or goes back already.
    NotWaiting,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    Settled,
    AlreadySettled,
    Unknown,
}

/// Who decides, and why.
struct By {
    core: Core,
    actor: String,
    reason: String,
    now: i64,
}

impl By {
    fn new(core: &Core, actor: &Actor, reason: &str) -> Result<Self> {
        text::check_text(reason, text::REASON_MAX).map_err(|m| Error::invalid("reason", m))?;
        Ok(Self { core: core.clone(), actor: actor.to_string(), reason: reason.to_owned(), now: core.now() })
    }

    /// The line of the audit log, in the transaction of the act.
    async fn note(&self, conn: &mut Conn, action: &str, target: &str, detail: serde_json::Value) -> store::Result<()> {
        let reason = Some(self.reason.as_str());
        audit::insert(conn, &audit::Entry { at: self.now, actor: &self.actor, action, target, reason, detail }).await
    }
}

/// A lead takes a payment of the wrong amount or currency for an open order: it is PAID with it.
///
/// # Errors
/// `Invalid` for a reason that can't be taken.
pub async fn accept_payment(core: &Core, actor: &Actor, payment_id: i64, reason: &str) -> Result<Accepted> {
    let by = By::new(core, actor, reason)?;
    let Some(seen) = payment::find(&mut core.db.read().await?, payment_id).await? else {
        return Ok(Accepted::Unknown);
    };
    let work = Arc::new((by, seen));
    let done = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { accept(conn, &work.0, &work.1).await })
    });
    let done = done.await?;
    core.ring();
    Ok(done)
}

async fn accept(conn: &mut Conn, by: &By, seen: &Payment) -> store::Result<Decision<Accepted>> {
    let Some(order) = order::lock(conn, &seen.order_no).await? else {
        return Ok(Decision::Rollback(Accepted::Unknown));
    };
    let payments = payment::lock_of_order(conn, &order.order_no).await?;
    let own = payments.iter().find(|p| p.id == seen.id && p.status == PaymentStatus::Recorded);
    let Some(own) = own else { return Ok(Decision::Rollback(Accepted::NotRecorded)) };
    if order.status != OrderStatus::Pending {
        return Ok(Decision::Rollback(Accepted::NotPending));
    }
    let mut counts = Counts::default();
    pay::make_paid(conn, &order, Some(own), &payments, by.now, &mut counts, &by.core).await?;
    counter::append(conn, &counts, by.now).await?;
    let detail = serde_json::json!({
        "order_no": order.order_no, "asked": {"amount": order.amount, "currency": order.currency},
        "accepted": {"amount": own.amount, "currency": own.currency},
    });
    by.note(conn, "payment.accept", &format!("payment:{}", own.id), detail).await?;
    Ok(Decision::Commit(Accepted::Accepted))
}

/// A lead gives back a payment that no order can use: one of an order nobody knows, or of the wrong amount for an
/// order that is still open, which stays open. Done again it changes nothing.
///
/// # Errors
/// `Invalid` for a reason that can't be taken.
pub async fn give_back(core: &Core, actor: &Actor, payment_id: i64, reason: &str) -> Result<GivenBack> {
    let by = By::new(core, actor, reason)?;
    let Some(seen) = payment::find(&mut core.db.read().await?, payment_id).await? else {
        return Ok(GivenBack::Unknown);
    };
    let work = Arc::new((by, seen));
    let done = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { return_money(conn, &work.0, &work.1).await })
    });
    let done = done.await?;
    core.ring();
    Ok(done)
}

async fn return_money(conn: &mut Conn, by: &By, seen: &Payment) -> store::Result<Decision<GivenBack>> {
    let order = order::lock(conn, &seen.order_no).await?;
    let payments = payment::lock_of_order(conn, &seen.order_no).await?;
    let own = payments.iter().find(|p| p.id == seen.id);
    let Some(own) = own else { return Ok(Decision::Rollback(GivenBack::Unknown)) };
    let waits = match (own.status, &order) {
        (PaymentStatus::Unmatched, None) => true,
        // One that fits is about to pay the order; money of an order that is over is due for refund by itself.
        (PaymentStatus::Recorded, Some(order)) => order.status == OrderStatus::Pending && !pay::fits(order, own),
        _ => false,
    };
    if !waits {
        return Ok(Decision::Rollback(GivenBack::NotWaiting));
    }
    refund::make_due(conn, own, by.now, &by.core).await?;
    let detail = serde_json::json!({"order_no": own.order_no, "amount": own.amount, "currency": own.currency});
    by.note(conn, "payment.give_back", &format!("payment:{}", own.id), detail).await?;
    Ok(Decision::Commit(GivenBack::RefundDue))
}

/// A lead has looked into a transaction that was told twice with different content: the case is closed. Nothing
/// else changes; the payment stays as it was first told.
///
/// # Errors
/// `Invalid` for a reason that can't be taken.
pub async fn settle_conflict(core: &Core, actor: &Actor, id: i64, reason: &str) -> Result<Settled> {
    let work = Arc::new(By::new(core, actor, reason)?);
    let done = core.db.write(move |conn| {
        let by = work.clone();
        Box::pin(async move { settle(conn, &by, id).await })
    });
    Ok(done.await?)
}

async fn settle(conn: &mut Conn, by: &By, id: i64) -> store::Result<Decision<Settled>> {
    let Some(conflict) = payment_case::find_conflict(conn, id).await? else {
        return Ok(Decision::Rollback(Settled::Unknown));
    };
    if payment_case::settle_conflict(conn, id, &by.actor, by.now).await? == 0 {
        return Ok(Decision::Rollback(Settled::AlreadySettled));
    }
    let detail = serde_json::json!({
        "told_again": {"order_no": conflict.order_no, "amount": conflict.amount, "currency": conflict.currency},
    });
    by.note(conn, "payment.settle_conflict", &format!("payment:{}", conflict.payment_id), detail).await?;
    Ok(Decision::Commit(Settled::Settled))
}
