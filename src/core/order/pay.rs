//! Payments: recorded before anything is decided (R9), then the order's lock decides between pay and close (R7).
//! Paying wins the status and writes settle tasks in that transaction; the ledger moves when the tasks run.

use std::sync::Arc;

use crate::core::order::late::{self, Late};
use crate::core::order::{close, holds_left, refund};
use crate::core::text::{self, FieldError};
use crate::core::words::{Action, OrderStatus, PaymentStatus, source};
use crate::core::{Core, Error, Result, counters};
use crate::store::counter::Counts;
use crate::store::order::Order;
use crate::store::payment::Payment;
use crate::store::task::NewTask;
use crate::store::{self, Conn, Decision, counter, order, payment, payment_case, task};

/// What a channel says of one of its transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Started,
    Failed,
    Succeeded,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPayment {
    pub order_no: String,
    pub said: Said,
    pub channel: String,
    pub channel_txn: String,
    /// Minor units.
    pub amount: i64,
    pub currency: String,
    /// When the channel says it happened, in milliseconds.
    pub occurred_at: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paid {
    Recorded,
    Paid,
    AlreadyPaid,
    /// It came after the close: everything is back and the order PAID.
    Restored,
    /// It came after the close: services are being told or asked.
    Restoring,
    RefundDue,
    AmountMismatch,
    UnknownOrder,
    /// The same channel transaction was told of another order, amount or currency: nothing changed.
    TxnConflict,
}

/// Records a payment and decides what it does.
///
/// A repeat of the same (channel, channel_txn) answers how things stand and changes nothing; `started` may
/// become `failed` or `succeeded`, `failed` may become `succeeded`, never back.
///
/// # Errors
/// `Invalid` names every field that can't be taken.
pub async fn record_payment(core: &Core, new: NewPayment) -> Result<Paid> {
    check(&new).map_err(Error::Invalid)?;
    let now = core.now();
    let work = Arc::new((new, core.clone()));
    let paid = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { record(conn, &work.0, now, &work.1).await })
    });
    let paid = paid.await?;
    core.ring();
    Ok(paid)
}

async fn record(conn: &mut Conn, new: &NewPayment, now: i64, core: &Core) -> store::Result<Decision<Paid>> {
    let order = order::lock(conn, &new.order_no).await?;
    let known = payment::lock(conn, &new.channel, &new.channel_txn).await?;
    if let Some(known) = &known {
        let is_other = known.order_no != new.order_no || known.amount != new.amount || known.currency != new.currency;
        if is_other {
            payment_case::insert_conflict(conn, known.id, &new.order_no, new.amount, &new.currency, now).await?;
            return Ok(Decision::Commit(Paid::TxnConflict));
        }
        let moves = matches!(
            (known.status, new.said),
            (PaymentStatus::Started, Said::Failed | Said::Succeeded) | (PaymentStatus::Failed, Said::Succeeded)
        );
        if !moves {
            return Ok(Decision::Rollback(standing(known, order.as_ref())));
        }
    }
    let status = first_status(new.said, order.as_ref());
    let id = write_payment(conn, new, known.as_ref(), status, now).await?;
    let mut counts = Counts::default();
    let answer = match (&order, new.said) {
        (None, _) => Paid::UnknownOrder,
        (Some(order), Said::Succeeded) => decide(conn, order, id, now, &mut counts, core).await?,
        (Some(_), Said::Started | Said::Failed) => Paid::Recorded,
    };
    counter::append(conn, &counts, now).await?;
    Ok(Decision::Commit(answer))
}

/// Recorded before anything is decided (R9).
fn first_status(said: Said, order: Option<&Order>) -> PaymentStatus {
    match (said, order) {
        (Said::Started, _) => PaymentStatus::Started,
        (Said::Failed, _) => PaymentStatus::Failed,
        (Said::Succeeded, None) => PaymentStatus::Unmatched,
        (Said::Succeeded, Some(_)) => PaymentStatus::Recorded,
    }
}

/// What a successful payment does to its order. Both are locked.
async fn decide(
    conn: &mut Conn,
    order: &Order,
    id: i64,
    now: i64,
    counts: &mut Counts,
    core: &Core,
) -> store::Result<Paid> {
    let payments = payment::lock_of_order(conn, &order.order_no).await?;
    let own = payments.iter().find(|p| p.id == id);
    let own = own.ok_or_else(|| store::Error::broken(format!("payment {id} is not there under its lock")))?;
    match order.status {
        OrderStatus::Pending if fits(order, own) => {
            make_paid(conn, order, Some(own), &payments, now, counts, core).await?;
            Ok(Paid::Paid)
        }
        OrderStatus::Pending => Ok(Paid::AmountMismatch),
        OrderStatus::Closed if !order.is_tombstone() && fits(order, own) => {
            Ok(match late::decide(conn, order, own, now, counts, core).await? {
                Late::Restored => Paid::Restored,
                Late::Restoring => Paid::Restoring,
                Late::RefundDue => Paid::RefundDue,
            })
        }
        _ => {
            refund::make_due(conn, own, now, core).await?;
            Ok(Paid::RefundDue)
        }
    }
}

/// The amount and currency that the order asks for.
pub(super) fn fits(order: &Order, payment: &Payment) -> bool {
    payment.amount == order.amount && payment.currency == order.currency
}

/// How things stand with a payment that is told again.
fn standing(known: &Payment, order: Option<&Order>) -> Paid {
    let is_restoring = |order: &Order| order.status == OrderStatus::Restoring && order.late_payment == Some(known.id);
    match known.status {
        PaymentStatus::Recorded if order.is_some_and(is_restoring) => Paid::Restoring,
        PaymentStatus::Applied => Paid::AlreadyPaid,
        PaymentStatus::RefundDue | PaymentStatus::Refunded => Paid::RefundDue,
        PaymentStatus::Unmatched => Paid::UnknownOrder,
        PaymentStatus::Recorded => Paid::AmountMismatch,
        PaymentStatus::Started | PaymentStatus::Failed if order.is_none() => Paid::UnknownOrder,
        PaymentStatus::Started | PaymentStatus::Failed => Paid::Recorded,
    }
}

async fn write_payment(
    conn: &mut Conn,
    new: &NewPayment,
    known: Option<&Payment>,
    status: PaymentStatus,
    now: i64,
) -> store::Result<i64> {
    if let Some(known) = known {
        if payment::move_on(conn, known.id, known.status, status, now).await? != 1 {
            return Err(store::Error::broken(format!("payment {} moved under its lock", known.id)));
        }
        return Ok(known.id);
    }
    let row = Payment {
        id: 0,
        channel: new.channel.clone(),
        channel_txn: new.channel_txn.clone(),
        order_no: new.order_no.clone(),
        status,
        amount: new.amount,
        currency: new.currency.clone(),
        occurred_at: new.occurred_at,
        recorded_at: now,
        lacking: None,
    };
    let taken = || store::Error::new(store::Class::Transient, "the same payment is being recorded at this moment");
    if !payment::insert(conn, &row).await? {
        return Err(taken());
    }
    Ok(payment::lock(conn, &new.channel, &new.channel_txn).await?.ok_or_else(taken)?.id)
}

/// The recorded payment that an order can be paid with, also one that came by other hands.
pub(super) fn matching<'p>(order: &Order, payments: &'p [Payment]) -> Option<&'p Payment> {
    payments.iter().find(|payment| {
        matches!(payment.status, PaymentStatus::Recorded | PaymentStatus::Unmatched | PaymentStatus::Applied)
            && fits(order, payment)
    })
}

/// PENDING → PAID under the order's lock: applies the payment, writes settle tasks for what the holds have
/// left, and makes every other successful payment of the order due for refund.
pub(super) async fn make_paid(
    conn: &mut Conn,
    order: &Order,
    paying: Option<&Payment>,
    payments: &[Payment],
    now: i64,
    counts: &mut Counts,
    core: &Core,
) -> store::Result<()> {
    if order::mark_paid(conn, order.id, now).await? != 1 {
        return Err(store::Error::broken(format!("order {} left PENDING under its lock", order.order_no)));
    }
    if let Some(paying) = paying {
        for status in [PaymentStatus::Recorded, PaymentStatus::Unmatched] {
            payment::move_on(conn, paying.id, status, PaymentStatus::Applied, now).await?;
        }
    }
    let others = payments.iter().filter(|p| Some(p.id) != paying.map(|p| p.id));
    refund_recorded(conn, others, now, core).await?;
    let holds = order::holds(conn, &order.order_no).await?;
    let tasks = task::lock_of_ref(conn, &order.order_no).await?;
    let settle: Vec<NewTask> = holds_left(&holds, &tasks, order.round)
        .into_iter()
        .filter(|left| left.left > 0)
        .map(|left| close::task_for(&left, Action::Settle, source::PAY, &core.policy.homes))
        .collect();
    task::insert(conn, &settle, now).await?;
    close::refuse_unadopted(conn, &tasks, &order.order_no, now, counts, core).await?;
    counts.add(counters::PAID, "", 1);
    Ok(())
}

/// Successful payments that no longer can be applied are money to give back, each with its refund task.
pub(super) async fn refund_recorded(
    conn: &mut Conn,
    payments: impl Iterator<Item = &Payment>,
    now: i64,
    core: &Core,
) -> store::Result<()> {
    for other in payments.filter(|p| matches!(p.status, PaymentStatus::Recorded | PaymentStatus::Unmatched)) {
        refund::make_due(conn, other, now, core).await?;
    }
    Ok(())
}

/// The same for all payments of an order but the one it is paid with.
pub(super) async fn refund_others(
    conn: &mut Conn,
    order: &Order,
    applied: i64,
    now: i64,
    core: &Core,
) -> store::Result<()> {
    let payments = payment::lock_of_order(conn, &order.order_no).await?;
    refund_recorded(conn, payments.iter().filter(|p| p.id != applied), now, core).await
}

/// Matches a payment that came before its order, or an order found paid by other hands: under the order's
/// lock, a PENDING order with a matching payment is taken to PAID. Harmless when there is nothing to do.
pub async fn match_payments(core: &Core, order_no: &str) -> Result<bool> {
    let now = core.now();
    let work = Arc::new((order_no.to_owned(), core.clone()));
    let done = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { match_one(conn, &work.0, now, &work.1).await })
    });
    let done = done.await?;
    core.ring();
    Ok(done)
}

async fn match_one(conn: &mut Conn, order_no: &str, now: i64, core: &Core) -> store::Result<Decision<bool>> {
    let Some(order) = order::lock(conn, order_no).await? else { return Ok(Decision::Rollback(false)) };
    let payments = payment::lock_of_order(conn, order_no).await?;
    let mut counts = Counts::default();
    for early in payments.iter().filter(|p| p.status == PaymentStatus::Unmatched) {
        payment::move_on(conn, early.id, PaymentStatus::Unmatched, PaymentStatus::Recorded, now).await?;
    }
    if let (OrderStatus::Pending, Some(paying)) = (order.status, matching(&order, &payments)) {
        make_paid(conn, &order, Some(paying), &payments, now, &mut counts, core).await?;
    } else if order.status != OrderStatus::Pending {
        // Each as if it came now; the order may move on with the first.
        for early in payments.iter().filter(|p| p.status == PaymentStatus::Unmatched) {
            let Some(order) = order::lock(conn, order_no).await? else { break };
            decide(conn, &order, early.id, now, &mut counts, core).await?;
        }
    }
    counter::append(conn, &counts, now).await?;
    Ok(Decision::Commit(true))
}

fn check(new: &NewPayment) -> std::result::Result<(), Vec<FieldError>> {
    let checks = [
        ("order_no", text::check_text(&new.order_no, text::NUMBER_MAX)),
        ("channel", text::check_text(&new.channel, text::NUMBER_MAX)),
        ("channel_txn", text::check_text(&new.channel_txn, text::NUMBER_MAX)),
        ("amount", text::check_range(new.amount, 0, text::AMOUNT_MAX)),
        ("currency", text::check_currency(&new.currency)),
    ];
    let errors: Vec<FieldError> =
        checks.into_iter().filter_map(|(field, result)| result.err().map(|m| FieldError::new(field, m))).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
