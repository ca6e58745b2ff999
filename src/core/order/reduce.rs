//! Gives part of an open order's holds back early, and lowers what is to be paid. Once per reference.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::order::place::NewHold;
use crate::core::order::{close, holds_left, pay};
use crate::core::text::{self, FieldError};
use crate::core::words::{Action, OrderStatus, ResourceType, source};
use crate::core::{Core, Error, Result};
use crate::store::counter::Counts;
use crate::store::order::Order;
use crate::store::reduction::{self, Reduction};
use crate::store::task::NewTask;
use crate::store::{self, Conn, Decision, counter, order, payment, task};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduce {
    pub order_no: String,
    /// The shop's own name for this reduction; each counts once.
    pub reference: String,
    /// What is to be paid from now on, in minor units.
    pub amount: i64,
    pub holds: Vec<NewHold>,
}

/// Something of which less is left than is to be given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    pub resource: ResourceType,
    pub key: String,
    pub qty: i64,
    pub left: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reduced {
    Reduced,
    /// The reference is known, in whatever state the order is.
    AlreadyReduced,
    NotPending,
    OverReduce(Vec<Over>),
    /// More to pay than now, which is no reduction.
    AmountAbove {
        present: i64,
    },
    UnknownOrder,
}

/// Reduces an open order. The same reference again says so and changes nothing.
///
/// # Errors
/// `Invalid` names every field that can't be taken.
pub async fn reduce_order(core: &Core, reduce: Reduce) -> Result<Reduced> {
    let parts = check(&reduce).map_err(Error::Invalid)?;
    let now = core.now();
    let work = Arc::new((reduce, parts, core.clone()));
    let reduced = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { reduce_one(conn, &work.0, &work.1, now, &work.2).await })
    });
    let reduced = reduced.await?;
    core.ring();
    Ok(reduced)
}

type Parts = BTreeMap<(ResourceType, String), i64>;

async fn reduce_one(
    conn: &mut Conn,
    reduce: &Reduce,
    parts: &Parts,
    now: i64,
    core: &Core,
) -> store::Result<Decision<Reduced>> {
    let Some(order) = order::lock(conn, &reduce.order_no).await?.filter(|order| !order.is_tombstone()) else {
        return Ok(Decision::Rollback(Reduced::UnknownOrder));
    };
    if reduction::is_known(conn, &order.order_no, &reduce.reference).await? {
        return Ok(Decision::Rollback(Reduced::AlreadyReduced));
    }
    if order.status != OrderStatus::Pending {
        return Ok(Decision::Rollback(Reduced::NotPending));
    }
    let payments = payment::lock_of_order(conn, &order.order_no).await?;
    if let Some(paying) = pay::matching(&order, &payments) {
        // Found paid by other hands (R7): there is nothing open to reduce.
        let mut counts = Counts::default();
        pay::make_paid(conn, &order, Some(paying), &payments, now, &mut counts, core).await?;
        counter::append(conn, &counts, now).await?;
        return Ok(Decision::Commit(Reduced::NotPending));
    }
    if reduce.amount > order.amount {
        return Ok(Decision::Rollback(Reduced::AmountAbove { present: order.amount }));
    }
    let tasks = match releases(conn, &order, reduce, parts, core).await? {
        Ok(tasks) => tasks,
        Err(over) => return Ok(Decision::Rollback(Reduced::OverReduce(over))),
    };
    let body = serde_json::json!({
        "amount_before": order.amount,
        "holds": parts.iter().map(|((t, key), qty)| serde_json::json!([t.word(), key, qty])).collect::<Vec<_>>(),
    });
    let new = Reduction { reference: reduce.reference.clone(), amount: reduce.amount, body: body.to_string(), at: now };
    reduction::insert(conn, &order.order_no, &new).await?;
    order::set_amount(conn, order.id, reduce.amount).await?;
    task::insert(conn, &tasks, now).await?;
    look_at_payments_again(conn, &Order { amount: reduce.amount, ..order }, now, core).await?;
    Ok(Decision::Commit(Reduced::Reduced))
}

async fn releases(
    conn: &mut Conn,
    order: &Order,
    reduce: &Reduce,
    parts: &Parts,
    core: &Core,
) -> store::Result<std::result::Result<Vec<NewTask>, Vec<Over>>> {
    let holds = order::holds(conn, &order.order_no).await?;
    let tasks = task::lock_of_ref(conn, &order.order_no).await?;
    let left = holds_left(&holds, &tasks, order.round);
    let cause = source::reduce(&reduce.reference);
    let (mut new, mut over) = (Vec::new(), Vec::new());
    for ((resource, key), qty) in parts {
        let hold = left.iter().find(|l| l.hold.resource == *resource && l.hold.key == *key);
        match hold.filter(|hold| hold.left >= *qty) {
            Some(hold) => {
                let task = close::task_for(hold, Action::Release, &cause, &core.policy.homes);
                new.push(NewTask { qty: *qty, ..task });
            }
            None => over.push(Over {
                resource: *resource,
                key: key.clone(),
                qty: *qty,
                left: hold.map_or(0, |hold| hold.left.max(0)),
            }),
        }
    }
    Ok(if over.is_empty() { Ok(new) } else { Err(over) })
}

/// A payment that was too little may fit now; an order that asks for nothing is PAID at once.
async fn look_at_payments_again(conn: &mut Conn, order: &Order, now: i64, core: &Core) -> store::Result<()> {
    let payments = payment::lock_of_order(conn, &order.order_no).await?;
    let mut counts = Counts::default();
    if let Some(paying) = pay::matching(order, &payments) {
        pay::make_paid(conn, order, Some(paying), &payments, now, &mut counts, core).await?;
    } else if order.amount == 0 {
        pay::make_paid(conn, order, None, &payments, now, &mut counts, core).await?;
    }
    counter::append(conn, &counts, now).await
}

fn check(reduce: &Reduce) -> std::result::Result<Parts, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut say = |field: String, result: std::result::Result<(), String>| {
        errors.extend(result.err().map(|message| FieldError::new(&field, message)));
    };
    say("order_no".into(), text::check_text(&reduce.order_no, text::NUMBER_MAX));
    say("ref".into(), text::check_text(&reduce.reference, text::NUMBER_MAX));
    say("amount".into(), text::check_range(reduce.amount, 0, text::AMOUNT_MAX));
    if reduce.holds.len() > text::HOLDS_MAX {
        say("holds".into(), Err(format!("must have at most {} entries, has {}", text::HOLDS_MAX, reduce.holds.len())));
    }
    let mut parts = Parts::new();
    for (at, hold) in reduce.holds.iter().take(text::HOLDS_MAX).enumerate() {
        say(format!("holds[{at}].key"), text::check_text(&hold.key, text::KEY_MAX));
        if hold.resource == ResourceType::Payment {
            say(format!("holds[{at}].type"), Err("must be stock, coupon, funds, quota or slot".into()));
        }
        let in_range = text::check_range(hold.qty, 0, text::QTY_MAX);
        let is_good = in_range.is_ok();
        say(format!("holds[{at}].qty"), in_range);
        if is_good && hold.qty > 0 {
            *parts.entry((hold.resource, hold.key.clone())).or_default() += hold.qty;
        }
    }
    if errors.is_empty() { Ok(parts) } else { Err(errors) }
}
