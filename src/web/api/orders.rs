//! Orders: placing, showing, paying, closing, completing, releasing by type.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::caller::{Caller, ToOperate, ToRead, ToShop};
use super::fields::Nothing;
use super::once::Once;
use super::order_body::{PlaceOrder, Reason, ReduceOrder, ReleaseType, TellPayment, TellRefund};
use super::request::{Body, OrderNo};
use super::show_order::{Dossier, OrderShown};
use super::{Answered, Outcome, ok};
use crate::core::order::close::{CloseOrder, Closed, close_order};
use crate::core::order::complete::{Completed, complete_order};
use crate::core::order::pay::{Paid, record_payment};
use crate::core::order::place::{Lacking, Placed, place_order};
use crate::core::order::reduce::{Over, Reduced, reduce_order};
use crate::core::order::refund::{Refunded, report_refunded};
use crate::core::release::act::{Released, ReleasedType, release_type};
use crate::core::returns;
use crate::core::text::FieldError;
use crate::core::words::{FailureKind, Trigger};
use crate::store::{self, Db, flow, order, payment, task};
use crate::web::error::Problem;
use crate::web::state::App;

/// Place an order: it locks everything it names, or nothing
///
/// The same order again answers with it as it stands.
#[utoipa::path(post, path = "/orders", tag = "orders", request_body = PlaceOrder,
    responses((status = 201, description = "Placed", body = OrderShown),
        (status = 200, description = "Placed before with the same content", body = OrderShown),
        (status = 409, description = "`insufficient` with `lacking`, `order_exists`, `order_closed`")))]
pub(super) async fn place(State(app): State<App>, caller: Caller<ToShop>, body: Body<PlaceOrder>) -> Answered {
    let new = body.value.into_new();
    let order_no = new.order_no.clone();
    let status = match place_order(&app.core, &caller.actor(), new).await? {
        Placed::Placed => StatusCode::CREATED,
        Placed::Same => StatusCode::OK,
        refused => return Err(not_placed(refused)),
    };
    Ok((status, shown(&app, &order_no).await?).into_response())
}

fn not_placed(refused: Placed) -> Problem {
    match refused {
        Placed::Lacking(lacking) => {
            let lacking = lacking.into_iter().map(lacking_json).collect();
            Problem::conflict("insufficient", "not everything can be locked; nothing was").with("lacking", lacking)
        }
        Placed::Tombstone => Problem::conflict("order_closed", "this order number was closed before its order came"),
        _ => Problem::conflict("order_exists", "another order has this number"),
    }
}

fn lacking_json(lacking: Lacking) -> serde_json::Value {
    let Lacking { resource, key, qty, available } = lacking;
    json!({"type": resource.word(), "key": key, "qty": qty, "available": available})
}

/// One order with everything about it
#[utoipa::path(get, path = "/orders/{no}", tag = "orders", params(("no" = String, Path)),
    responses((status = 200, body = OrderShown), (status = 404)))]
pub(super) async fn show(State(app): State<App>, _: Caller<ToRead>, OrderNo(no): OrderNo) -> Answered {
    shown(&app, &no).await
}

async fn shown(app: &App, order_no: &str) -> Answered {
    let dossier = dossier(&app.core.db, order_no).await?;
    let dossier = dossier.ok_or_else(unknown)?;
    ok(&OrderShown::of(&dossier, app.core.now(), app.core.policy.retry.max_failures))
}

/// At one snapshot, so that holds, tasks and flow agree.
async fn dossier(db: &Db, order_no: &str) -> store::Result<Option<Dossier>> {
    let mut conn = db.snapshot().await?;
    let Some(order) = order::find(&mut conn, order_no).await? else {
        conn.done().await?;
        return Ok(None);
    };
    let holds = order::holds(&mut conn, order_no).await?;
    let tasks = task::of_ref(&mut conn, order_no).await?;
    let flow = flow::of_ref(&mut conn, order_no).await?;
    let payments = payment::of_order(&mut conn, order_no).await?;
    let returns = returns::of_order(&mut conn, order_no).await?;
    conn.done().await?;
    Ok(Some(Dossier { order, holds, tasks, flow, payments, returns }))
}

fn unknown() -> Problem {
    Problem::not_found("there is no such order")
}

/// Tell of a payment
///
/// Answers 200 whatever it means for the order, so that a channel never stops because of us. The same
/// `channel` and `channel_txn` again answers how things stand.
#[utoipa::path(post, path = "/orders/{no}/payments", tag = "orders", params(("no" = String, Path)),
    request_body = TellPayment,
    responses((status = 200, description = "`recorded`, `paid`, `already_paid`, `restored`, `restoring`, `refund_due`, \
        `amount_mismatch`, `unknown_order` or `txn_conflict`", body = Outcome)))]
pub(super) async fn pay(
    State(app): State<App>,
    _: Caller<ToShop>,
    OrderNo(no): OrderNo,
    body: Body<TellPayment>,
) -> Answered {
    let paid = record_payment(&app.core, body.value.into_new(no)).await?;
    ok(&Outcome::of(match paid {
        Paid::Recorded => "recorded",
        Paid::Paid => "paid",
        Paid::AlreadyPaid => "already_paid",
        Paid::Restored => "restored",
        Paid::Restoring => "restoring",
        Paid::RefundDue => "refund_due",
        Paid::AmountMismatch => "amount_mismatch",
        Paid::UnknownOrder => "unknown_order",
        Paid::TxnConflict => "txn_conflict",
    }))
}

/// Close an order
///
/// `timeout` closes nothing before the deadline; every other reason closes at once. An order nobody
/// knows leaves a tombstone: its late lock is refused.
#[utoipa::path(post, path = "/orders/{no}/close", tag = "orders", params(("no" = String, Path)), request_body = Reason,
    responses((status = 200, description = "`closed`, `already_closed`, `not_pending`, `not_due`, `postponed` or \
        `tombstoned`", body = Outcome)))]
pub(super) async fn close(
    State(app): State<App>,
    caller: Caller<ToShop>,
    OrderNo(no): OrderNo,
    body: Body<Reason>,
) -> Answered {
    let close = CloseOrder { order_no: no, reason: body.value.reason, trigger: Trigger::Api };
    ok(&Outcome::of(match close_order(&app.core, &caller.actor(), close).await? {
        Closed::Closed => "closed",
        Closed::AlreadyClosed => "already_closed",
        Closed::NotPending => "not_pending",
        Closed::NotDue => "not_due",
        Closed::Postponed => "postponed",
        Closed::Tombstoned => "tombstoned",
    }))
}

/// Give part of an open order's holds back early
///
/// `amount` is what is to be paid from now on. A known `ref` changes nothing, in any state.
#[utoipa::path(post, path = "/orders/{no}/reduce", tag = "orders", params(("no" = String, Path)),
    request_body = ReduceOrder,
    responses((status = 200, description = "`reduced`, `already_reduced` or `not_pending`", body = Outcome),
        (status = 404), (status = 409, description = "`over_reduce` with `over`"),
        (status = 422, description = "`invalid`, also for an amount above the present one")))]
pub(super) async fn reduce(
    State(app): State<App>,
    _: Caller<ToShop>,
    OrderNo(no): OrderNo,
    body: Body<ReduceOrder>,
) -> Answered {
    match reduce_order(&app.core, body.value.into_reduce(no)).await? {
        Reduced::Reduced => ok(&Outcome::of("reduced")),
        Reduced::AlreadyReduced => ok(&Outcome::of("already_reduced")),
        Reduced::NotPending => ok(&Outcome::of("not_pending")),
        Reduced::OverReduce(over) => {
            let over = over.into_iter().map(over_json).collect();
            Err(Problem::conflict("over_reduce", "more than is left; nothing was reduced").with("over", over))
        }
        Reduced::AmountAbove { present } => Err(Problem::invalid(&[FieldError::new(
            "amount",
            format!("must be at most {present}, the present amount"),
        )])),
        Reduced::UnknownOrder => Err(unknown()),
    }
}

fn over_json(over: Over) -> serde_json::Value {
    let Over { resource, key, qty, left } = over;
    json!({"type": resource.word(), "key": key, "qty": qty, "left": left})
}

/// Tell that the money of a payment went back
#[utoipa::path(post, path = "/orders/{no}/refunded", tag = "orders", params(("no" = String, Path)),
    request_body = TellRefund,
    responses((status = 200, description = "`refunded`, `already_refunded` or `not_refund_due`", body = Outcome),
        (status = 404)))]
pub(super) async fn refunded(
    State(app): State<App>,
    caller: Caller<ToShop>,
    OrderNo(no): OrderNo,
    body: Body<TellRefund>,
) -> Answered {
    match report_refunded(&app.core, &caller.actor(), &no, &body.value.channel_txn).await? {
        Refunded::Refunded => ok(&Outcome::of("refunded")),
        Refunded::AlreadyRefunded => ok(&Outcome::of("already_refunded")),
        Refunded::NotRefundDue => ok(&Outcome::of("not_refund_due")),
        Refunded::Unknown => Err(unknown()),
    }
}

/// A paid order is done with
#[utoipa::path(post, path = "/orders/{no}/complete", tag = "orders", params(("no" = String, Path)),
    responses((status = 200, description = "`completed`, `already_completed` or `not_paid`", body = Outcome),
        (status = 404)))]
pub(super) async fn complete(
    State(app): State<App>,
    _: Caller<ToShop>,
    OrderNo(no): OrderNo,
    _: Body<Nothing>,
) -> Answered {
    match complete_order(&app.core, &no).await? {
        Completed::Completed => ok(&Outcome::of("completed")),
        Completed::AlreadyCompleted => ok(&Outcome::of("already_completed")),
        Completed::NotPaid => ok(&Outcome::of("not_paid")),
        Completed::UnknownOrder => Err(unknown()),
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReleaseShown {
    /// Empty when all of the type are done
    tasks: Vec<TaskRan>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskRan {
    id: i64,
    key: String,
    action: &'static str,
    /// `succeeded` or `failed`
    result: &'static str,
    kind: Option<&'static str>,
}

impl TaskRan {
    fn of(released: &Released) -> Self {
        Self {
            id: released.task.id,
            key: released.task.key.clone(),
            action: released.task.action.word(),
            result: if released.is_done { "succeeded" } else { "failed" },
            kind: released.kind.map(FailureKind::word),
        }
    }
}

/// Run every unfinished task of one type of an order now
///
/// What has succeeded is not touched.
#[utoipa::path(post, path = "/orders/{no}/release", tag = "orders",
    params(("no" = String, Path), ("Idempotency-Key" = Option<String>, Header)), request_body = ReleaseType,
    responses((status = 200, body = ReleaseShown), (status = 404),
        (status = 409, description = "`order_open`, `idempotency_key_reused`")))]
pub(super) async fn release(
    State(app): State<App>,
    caller: Caller<ToOperate>,
    OrderNo(no): OrderNo,
    once: Once<ReleaseType>,
) -> Result<Response, Problem> {
    let (app_in, actor) = (app.clone(), caller.actor());
    let act = move |asked: ReleaseType| async move {
        match release_type(&app_in.core, &actor, &no, asked.r#type, &asked.reason).await? {
            ReleasedType::Ran(released) => ok(&ReleaseShown { tasks: released.iter().map(TaskRan::of).collect() }),
            ReleasedType::OrderOpen => Err(order_open()),
            ReleasedType::UnknownOrder => Err(unknown()),
        }
    };
    once.run(&app, &caller.token, act).await
}

pub(super) fn order_open() -> Problem {
    Problem::conflict("order_open", "the order is open: what it holds comes back when it is closed")
}
