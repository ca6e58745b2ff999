//! What the API shows of one order: itself, what of each hold is due, settled or released, and what
//! happened when.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::returns::ReturnShown;
use super::show::{FlowShown, TaskShown};
use crate::core::instant::{moment, opt_moment};
use crate::core::order::is_unadopted;
use crate::core::returns::ReturnInFull;
use crate::core::words::{Action, AttemptOutcome, OrderStatus, TaskStatus, source};
use crate::store::flow::Flow;
use crate::store::order::{Hold, Order};
use crate::store::payment::Payment;
use crate::store::task::Task;

/// Everything that is stored about an order, read at one snapshot.
pub(super) struct Dossier {
    pub order: Order,
    pub holds: Vec<Hold>,
    pub tasks: Vec<Task>,
    pub flow: Vec<Flow>,
    pub payments: Vec<Payment>,
    pub returns: Vec<ReturnInFull>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OrderShown {
    order_no: String,
    /// Null for a tombstone, as are amount, currency and the times of placing
    buyer: Option<String>,
    /// Minor units
    amount: Option<i64>,
    currency: Option<String>,
    /// `PENDING`, `PAID`, `COMPLETED`, `CLOSED`, `RESTORING`, `REFUND_DUE` or `REFUNDED`
    status: &'static str,
    round: i64,
    placed_at: Option<String>,
    pay_deadline: Option<String>,
    /// Null once the order isn't open any more
    pay_seconds_left: Option<i64>,
    paid_at: Option<String>,
    closed_at: Option<String>,
    close_reason: Option<String>,
    closed_by: Option<String>,
    /// A close that came before its order
    tombstone: bool,
    holds: Vec<HoldShown>,
    tasks: Vec<TaskShown>,
    flow: Vec<FlowShown>,
    payments: Vec<PaymentShown>,
    returns: Vec<ReturnShown>,
    timeline: Vec<Event>,
    /// As placed, for display
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Object>)]
    lines: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HoldShown {
    r#type: &'static str,
    key: String,
    round: i64,
    locked: i64,
    /// Unfinished settle and release tasks, and force-closed ones that no flow row names
    due: i64,
    settled: i64,
    released: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PaymentShown {
    channel: String,
    channel_txn: String,
    /// `started`, `failed`, `recorded`, `applied`, `refund_due`, `refunded` or `unmatched`
    status: &'static str,
    amount: i64,
    currency: String,
    occurred_at: String,
    recorded_at: String,
}

/// One thing that happened.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Event {
    at: String,
    /// `placed`, `paid`, `closed`, `payment`, `locked`, `settled`, `released`, `returned`, `failed`, `force_closed` …
    event: &'static str,
    actor: Option<String>,
    r#type: Option<&'static str>,
    key: Option<String>,
    qty: Option<i64>,
    task_id: Option<i64>,
    /// The reason of a close, the state of a payment, the error of a failed try
    note: Option<String>,
}

impl OrderShown {
    pub fn of(dossier: &Dossier, now: i64, max_failures: i64) -> Self {
        let Dossier { order, holds, tasks, flow, payments, returns } = dossier;
        let tombstone = order.is_tombstone();
        let known = |text: &String| (!tombstone).then(|| text.clone());
        let is_open = order.status == OrderStatus::Pending;
        Self {
            order_no: order.order_no.clone(),
            buyer: known(&order.buyer),
            amount: (!tombstone).then_some(order.amount),
            currency: known(&order.currency),
            status: order.status.word(),
            round: order.round,
            placed_at: (!tombstone).then(|| moment(order.placed_at)),
            pay_deadline: (!tombstone).then(|| moment(order.pay_deadline)),
            pay_seconds_left: is_open.then(|| seconds_left(order.pay_deadline, now)),
            paid_at: opt_moment(order.paid_at),
            closed_at: opt_moment(order.closed_at),
            close_reason: order.close_reason.clone(),
            closed_by: order.closed_by.clone(),
            tombstone,
            holds: holds.iter().map(|hold| HoldShown::of(hold, tasks)).collect(),
            tasks: tasks.iter().map(|task| TaskShown::of(task, max_failures)).collect(),
            flow: flow.iter().map(FlowShown::of).collect(),
            payments: payments.iter().map(PaymentShown::of).collect(),
            returns: returns.iter().map(|full| ReturnShown::of(full, max_failures)).collect(),
            timeline: timeline(dossier),
            lines: order.lines.clone().and_then(|lines| RawValue::from_string(lines).ok()),
        }
    }
}

/// Rounded up, so that a countdown shows 0 only when the time is over.
fn seconds_left(deadline: i64, now: i64) -> i64 {
    (deadline - now).max(0).saturating_add(999) / 1000
}

impl HoldShown {
    fn of(hold: &Hold, tasks: &[Task]) -> Self {
        let own = tasks.iter().filter(|task| {
            task.round == hold.round && task.resource == hold.resource && task.key == hold.key && !is_unadopted(task)
        });
        let mut shown = Self {
            r#type: hold.resource.word(),
            key: hold.key.clone(),
            round: hold.round,
            locked: hold.locked,
            due: 0,
            settled: 0,
            released: 0,
        };
        for task in own.filter(|task| matches!(task.action, Action::Settle | Action::Release)) {
            let moved = task.outcome != Some(AttemptOutcome::NothingLocked);
            match (task.status, task.action) {
                (TaskStatus::Succeeded, Action::Settle) if moved => shown.settled += task.qty,
                (TaskStatus::Succeeded, _) if moved => shown.released += task.qty,
                (status, _) if status.is_unfinished() || task.is_owed => shown.due += task.qty,
                _ => {}
            }
        }
        shown
    }
}

impl PaymentShown {
    fn of(payment: &Payment) -> Self {
        Self {
            channel: payment.channel.clone(),
            channel_txn: payment.channel_txn.clone(),
            status: payment.status.word(),
            amount: payment.amount,
            currency: payment.currency.clone(),
            occurred_at: moment(payment.occurred_at),
            recorded_at: moment(payment.recorded_at),
        }
    }
}

/// What happened, oldest first; things of one instant in the order they follow from each other.
fn timeline(dossier: &Dossier) -> Vec<Event> {
    let order = &dossier.order;
    let mut events = Vec::new();
    if !order.is_tombstone() {
        events.push((order.placed_at, Event::plain("placed")));
    }
    events.extend(dossier.payments.iter().map(|payment| {
        let note = format!("{} {}: {}", payment.channel, payment.channel_txn, payment.status.word());
        (payment.recorded_at, Event { note: Some(note), ..Event::plain("payment") })
    }));
    events.extend(order.paid_at.map(|at| (at, Event::plain("paid"))));
    events.extend(order.closed_at.map(|at| {
        let closed = Event::plain("closed");
        (at, Event { actor: order.closed_by.clone(), note: order.close_reason.clone(), ..closed })
    }));
    events.extend(dossier.flow.iter().map(|flow| (flow.at, Event::of_flow(flow))));
    events.extend(dossier.tasks.iter().filter_map(Event::of_task));
    for full in &dossier.returns {
        let told = |event| Event { note: Some(full.row.return_no.clone()), ..Event::plain(event) };
        events.extend(full.row.accepted_at.map(|at| (at, told("return_accepted"))));
        events.extend(full.row.received_at.map(|at| (at, told("return_received"))));
        events.extend(full.tasks.iter().filter_map(Event::of_return_task));
    }
    events.sort_by_key(|(at, _)| *at);
    events.into_iter().map(|(at, event)| Event { at: moment(at), ..event }).collect()
}

impl Event {
    fn plain(event: &'static str) -> Self {
        Self { at: String::new(), event, actor: None, r#type: None, key: None, qty: None, task_id: None, note: None }
    }

    fn of_flow(flow: &Flow) -> Self {
        let event = match flow.action {
            Action::Lock => "locked",
            Action::Release => "released",
            Action::Settle => "settled",
            Action::TakeBack => "taken_back",
            Action::ReturnIn => "returned",
            Action::Refund => "refunded",
            Action::Adjust | Action::AdjustLocked => source::ADJUST,
        };
        Self {
            actor: flow.actor.clone(),
            r#type: Some(flow.resource.word()),
            key: Some(flow.key.clone()),
            qty: Some(flow.qty),
            task_id: flow.task_id,
            note: flow.note.clone(),
            ..Self::plain(event)
        }
    }

    /// Goods that are back in stock, or why they aren't.
    fn of_return_task(task: &Task) -> Option<(i64, Self)> {
        match (task.status, task.finished_at) {
            (TaskStatus::Succeeded, Some(at)) => {
                let (_, shown) = Self::of_task(&Task { first_failed_at: Some(at), ..task.clone() })?;
                Some((at, Self { event: "returned", ..shown }))
            }
            _ => Self::of_task(task),
        }
    }

    /// The first failure of a task, and its end where no flow row tells of it.
    fn of_task(task: &Task) -> Option<(i64, Self)> {
        let (at, event) = match task.status {
            TaskStatus::ForceClosed => (task.finished_at?, "force_closed"),
            TaskStatus::Superseded => (task.finished_at?, "superseded"),
            TaskStatus::Succeeded if task.outcome == Some(AttemptOutcome::NothingLocked) => {
                (task.finished_at?, "nothing_locked")
            }
            _ => (task.first_failed_at?, "failed"),
        };
        let shown = Self {
            actor: task.ended_by.clone(),
            r#type: Some(task.resource.word()),
            key: Some(task.key.clone()),
            qty: Some(task.qty),
            task_id: Some(task.id),
            note: task.error.clone(),
            ..Self::plain(event)
        };
        Some((at, shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_countdown_reaches_zero_only_at_the_deadline() {
        assert_eq!(seconds_left(10_000, 0), 10);
        assert_eq!(seconds_left(10_000, 9_001), 1);
        assert_eq!(seconds_left(10_000, 9_999), 1);
        assert_eq!(seconds_left(10_000, 10_000), 0);
        assert_eq!(seconds_left(10_000, 99_999), 0);
    }
}
