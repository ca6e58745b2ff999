//! Asks the payment channel before a timeout closes an order whose payment has started (B5): paid is a payment,
//! not paid closes, unknown is asked again a bounded number of times and then left to a person. Claim, call,
//! record: nothing is called while a transaction is open (R12).

use std::sync::Arc;

use futures_util::future::join_all;

use crate::core::clock::LATEST_MS;
use crate::core::order::close::{self, CloseOrder, Closed, TIMEOUT};
use crate::core::order::pay::{self, NewPayment, Said};
use crate::core::ports::{Asked, PaymentChannel};
use crate::core::words::{Actor, OrderStatus, Trigger};
use crate::core::{Core, Result};
use crate::store::{Decision, asking, order};

/// Questions side by side.
const AT_ONCE: i64 = 8;

/// Asks for orders whose time has come; how many were asked. Without a channel a started payment holds nothing
/// up: they are the scan's again.
pub async fn ask_due(core: &Core) -> Result<usize> {
    let now = core.now();
    let Some(channel) = core.services.channel.clone() else {
        let given_up =
            core.db.write(move |conn| Box::pin(async move { Ok(Decision::Commit(asking::give_up(conn, now).await?)) }));
        let given_up = given_up.await?;
        if given_up > 0 {
            tracing::warn!(orders.given_up = given_up, "orders waited for a payment channel, but none is configured");
        }
        return Ok(0);
    };
    let lease = channel.lease_ms();
    let claimed = core.db.write(move |conn| {
        Box::pin(async move {
            let due = asking::claim(conn, now, AT_ONCE).await?;
            for asked in &due {
                // A claim that is never recorded is due again when its lease is over.
                asking::again(conn, asked.id, now + lease, false).await?;
            }
            Ok(Decision::Commit(due))
        })
    });
    let claimed = claimed.await?;
    let asked = claimed.iter().map(|due| ask_one(core, channel.as_ref(), &due.order_no));
    for done in join_all(asked).await {
        if let Err(error) = done {
            if error.is_away() {
                return Err(error);
            }
            tracing::error!(error = %error, "what the channel said could not be recorded; it is asked again");
        }
    }
    Ok(claimed.len())
}

async fn ask_one(core: &Core, channel: &dyn PaymentChannel, order_no: &str) -> Result<()> {
    match channel.ask(order_no).await {
        Asked::Paid { channel, channel_txn, amount, currency, occurred_at } => {
            let new = NewPayment {
                order_no: order_no.to_owned(),
                said: Said::Succeeded,
                channel,
                channel_txn,
                amount,
                currency,
                occurred_at,
            };
            let paid = pay::record_payment(core, new).await?;
            tracing::info!(order.no = order_no, payment.result = ?paid, "the channel says that an order is paid");
            // A wrong amount doesn't stop the close.
            close_it(core, order_no).await
        }
        Asked::NotPaid => close_it(core, order_no).await,
        Asked::Unknown(why) => {
            tracing::debug!(order.no = order_no, error = why, "the channel doesn't know whether an order is paid");
            if postpone(core, order_no).await? {
                tracing::warn!(
                    order.no = order_no,
                    error = why,
                    "the channel never knew; a person decides about the order"
                );
            }
            Ok(())
        }
    }
}

async fn close_it(core: &Core, order_no: &str) -> Result<()> {
    let close = CloseOrder { order_no: order_no.to_owned(), reason: TIMEOUT.into(), trigger: Trigger::Scan };
    let closed = close::close_asked(core, &Actor::Trigger(Trigger::Scan), close).await?;
    if closed == Closed::Postponed {
        tracing::error!(order.no = order_no, "an order whose channel was asked was postponed again");
    }
    Ok(())
}

/// Asked so many times without an answer, it is left to a person: `true` when that happened now.
async fn postpone(core: &Core, order_no: &str) -> Result<bool> {
    let work = Arc::new((order_no.to_owned(), core.clone()));
    let now = core.now();
    let done = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let (order_no, core) = (&work.0, &work.1);
            let Some(order) = order::lock(conn, order_no).await?.filter(|o| o.status == OrderStatus::Pending) else {
                return Ok(Decision::Rollback(false));
            };
            let is_last = order.asked + 1 >= core.policy.ask_times;
            let until = if is_last { LATEST_MS } else { now + core.policy.ask_every_ms };
            asking::again(conn, order.id, until, true).await?;
            Ok(Decision::Commit(is_last))
        })
    });
    Ok(done.await?)
}
