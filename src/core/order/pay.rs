//! Payments: recorded before anything is decided (R9), then the order's lock decides between pay and close (R7).
//! Paying wins the status and writes settle tasks in that transaction; the ledger moves when the tasks run.

use std::sync::Arc;

use crate::core::order::{close, holds_left};
use crate::core::text::{self, FieldError};
use crate::core::words::{Action, OrderStatus, PaymentStatus, source};
use crate::core::{Core, Error, Result, counters};
use crate::store::counter::Counts;
use crate::store::order::Order;
use crate::store::payment::Payment;
use crate::store::task::NewTask;
use crate::store::{self, Conn, Decision, counter, order, payment, task};

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
    let new = Arc::new(new);
    let paid = core.db.write(move |conn| {
        let new = new.clone();
        Box::pin(async move { record(conn, &new, now).await })
    });
    let paid = paid.await?;
    core.ring();
    Ok(paid)
}

async fn record(conn: &mut Conn, new: &NewPayment, now: i64) -> store::Result<Decision<Paid>> {
    let order = order::lock(conn, &new.order_no).await?;
    let known = payment::lock(conn, &new.channel, &new.channel_txn).await?;
    if let Some(known) = &known {
        let is_other = known.order_no != new.order_no || known.amount != new.amount || known.currency != new.currency;
        if is_other {
            tracing::warn!(
                payment.id = known.id,
                "a channel transaction was told again with another order, amount or currency"
            );
            return Ok(Decision::Rollback(Paid::TxnConflict));
        }
        let moves = matches!(
            (known.status, new.said),
            (PaymentStatus::Started, Said::Failed | Said::Succeeded) | (PaymentStatus::Failed, Said::Succeeded)
        );
        if !moves {
            return Ok(Decision::Rollback(standing(known, order.as_ref())));
        }
    }
    let (status, answer) = decide(new, order.as_ref());
    let id = write_payment(conn, new, known.as_ref(), status, now).await?;
    let mut counts = Counts::default();
    if let (Paid::Paid, Some(order)) = (answer, &order) {
        let payments = payment::lock_of_order(conn, &order.order_no).await?;
        let paying = payments.iter().find(|p| p.id == id);
        make_paid(conn, order, paying, &payments, now, &mut counts).await?;
    }
    if let (PaymentStatus::RefundDue, Some(order)) = (status, &order) {
        let matches = order.amount == new.amount && order.currency == new.currency;
        if order.status == OrderStatus::Closed && !order.is_tombstone() && matches {
            order::move_on(conn, order.id, OrderStatus::Closed, OrderStatus::RefundDue).await?;
        }
    }
    counter::append(conn, &counts, now).await?;
    Ok(Decision::Commit(answer))
}

/// What a payment that is told for the first time, or has just moved on, becomes and is answered.
fn decide(new: &NewPayment, order: Option<&Order>) -> (PaymentStatus, Paid) {
    let Some(order) = order else {
        let status = match new.said {
            Said::Started => PaymentStatus::Started,
            Said::Failed => PaymentStatus::Failed,
            Said::Succeeded => PaymentStatus::Unmatched,
        };
        return (status, Paid::UnknownOrder);
    };
    match new.said {
        Said::Started => (PaymentStatus::Started, Paid::Recorded),
        Said::Failed => (PaymentStatus::Failed, Paid::Recorded),
        Said::Succeeded if order.status != OrderStatus::Pending => (PaymentStatus::RefundDue, Paid::RefundDue),
        Said::Succeeded if order.amount == new.amount && order.currency == new.currency => {
            (PaymentStatus::Recorded, Paid::Paid)
        }
        Said::Succeeded => (PaymentStatus::Recorded, Paid::AmountMismatch),
    }
}

/// How things stand with a payment that is told again.
fn standing(known: &Payment, order: Option<&Order>) -> Paid {
    match known.status {
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
            && payment.amount == order.amount
            && payment.currency == order.currency
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
    refund_recorded(conn, others, now).await?;
    let holds = order::holds(conn, &order.order_no).await?;
    let tasks = task::lock_of_ref(conn, &order.order_no).await?;
    let settle: Vec<NewTask> = holds_left(&holds, &tasks, order.round)
        .into_iter()
        .filter(|left| left.left > 0)
        .map(|left| close::task_for(&left, Action::Settle, source::PAY))
        .collect();
    task::insert(conn, &settle, now).await?;
    close::refuse_unadopted(conn, &tasks, &order.order_no, now, counts).await?;
    counts.add(counters::PAID, "", 1);
    Ok(())
}

/// Successful payments that no longer can be applied are money to give back.
pub(super) async fn refund_recorded(
    conn: &mut Conn,
    payments: impl Iterator<Item = &Payment>,
    now: i64,
) -> store::Result<()> {
    for other in payments {
        for status in [PaymentStatus::Recorded, PaymentStatus::Unmatched] {
            payment::move_on(conn, other.id, status, PaymentStatus::RefundDue, now).await?;
        }
    }
    Ok(())
}

/// Matches a payment that came before its order, or an order found paid by other hands: under the order's
/// lock, a PENDING order with a matching payment is taken to PAID. Harmless when there is nothing to do.
pub async fn match_payments(core: &Core, order_no: &str) -> Result<bool> {
    let now = core.now();
    let order_no = order_no.to_owned();
    let done = core.db.write(move |conn| {
        let order_no = order_no.clone();
        Box::pin(async move {
            let Some(order) = order::lock(conn, &order_no).await? else { return Ok(Decision::Rollback(false)) };
            let payments = payment::lock_of_order(conn, &order_no).await?;
            let mut counts = Counts::default();
            if order.status != OrderStatus::Pending {
                let unmatched = payments.iter().filter(|p| p.status == PaymentStatus::Unmatched);
                refund_recorded(conn, unmatched, now).await?;
                return Ok(Decision::Commit(true));
            }
            if let Some(paying) = matching(&order, &payments) {
                make_paid(conn, &order, Some(paying), &payments, now, &mut counts).await?;
            } else {
                for payment in payments.iter().filter(|p| p.status == PaymentStatus::Unmatched) {
                    payment::move_on(conn, payment.id, PaymentStatus::Unmatched, PaymentStatus::Recorded, now).await?;
                }
            }
            counter::append(conn, &counts, now).await?;
            Ok(Decision::Commit(true))
        })
    });
    let done = done.await?;
    core.ring();
    Ok(done)
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
