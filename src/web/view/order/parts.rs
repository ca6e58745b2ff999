//! What became of each thing an order reserved, as its tasks say (R4): a hold falls into parts, of which some
//! may be back while others are on their way. Of a thing that was reserved again, the last round counts.

use super::spoken;
use crate::core::order::is_unadopted;
use crate::core::words::{Action, OrderStatus, TaskStatus};
use crate::store::order_view::{HoldRow, OrderView};
use crate::store::task_list::TaskRow;
use crate::web::view::mark::Caller;
use crate::web::view::{Eye, format};

pub struct Part<'a> {
    pub hold: &'a HoldRow,
    pub qty: i64,
    pub state: Caller,
    /// The last task that made it so.
    pub task: Option<&'a TaskRow>,
    /// When it is tried next, if that is planned.
    pub next_try: Option<i64>,
    /// As it is called within a sentence to the caller.
    pub spoken: String,
}

/// The parts of every hold of the last round it is in.
pub fn parts<'a>(eye: &Eye, view: &'a OrderView) -> Vec<Part<'a>> {
    let is_last = |hold: &&HoldRow| {
        let later =
            |other: &HoldRow| (other.resource, &other.key) == (hold.resource, &hold.key) && other.round > hold.round;
        !view.holds.iter().any(later)
    };
    view.holds.iter().filter(is_last).flat_map(|hold| of_hold(eye, view, hold)).collect()
}

/// The parts of one hold.
pub fn of_hold<'a>(eye: &Eye, view: &'a OrderView, hold: &'a HoldRow) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    let mut left = hold.locked;
    for task in view.tasks.iter().filter(|task| speaks_for(task, hold)) {
        left -= task.qty;
        let state = state(view, task);
        let next_try = task.next_at.filter(|at| task.status == TaskStatus::Retrying && *at > eye.now);
        match parts.iter_mut().find(|part| part.state == state) {
            Some(part) => {
                part.qty += task.qty;
                part.next_try = part.next_try.max(next_try);
                part.task = Some(task);
            }
            None => parts.push(Part { hold, qty: task.qty, state, task: Some(task), next_try, spoken: String::new() }),
        }
    }
    if left > 0 {
        let state = left_over(view.order.status);
        parts.push(Part { hold, qty: left, state, task: None, next_try: None, spoken: String::new() });
    }
    for part in &mut parts {
        let currency = Some(view.order.currency.as_str());
        let qty = format::quantity(eye.lang, hold.resource, part.qty, hold.funds, currency);
        part.spoken = spoken(eye.lang, hold, &qty);
    }
    parts
}

/// Whether a task settles or gives back something of this hold. A row that a shop wrote for a close that hasn't
/// come yet says nothing.
fn speaks_for(task: &TaskRow, hold: &HoldRow) -> bool {
    task.round == hold.round
        && task.resource == hold.resource
        && task.key == hold.key
        && matches!(task.action, Action::Release | Action::Settle)
        && task.status != TaskStatus::Superseded
        && !is_unadopted(&task.task)
}

fn state(view: &OrderView, task: &TaskRow) -> Caller {
    match (task.action, task.status) {
        // The buyer has it; how the ledger gets there is not the buyer's matter.
        (Action::Settle, _) => Caller::Bought,
        (_, TaskStatus::Succeeded)
            if view.order.status == OrderStatus::Restoring && is_stuck_on_its_way(view, task) =>
        {
            Caller::NeedsHelp
        }
        (_, TaskStatus::Succeeded) => Caller::Returned,
        (_, TaskStatus::Manual) => Caller::NeedsHelp,
        (_, TaskStatus::ForceClosed) if task.is_owed => Caller::NeedsHelp,
        // A person saw to it elsewhere.
        (_, TaskStatus::ForceClosed) => Caller::Returned,
        (_, TaskStatus::Waiting | TaskStatus::Retrying | TaskStatus::Superseded) => Caller::ComingBack,
    }
}

/// It should be reserved again and waits for a person.
fn is_stuck_on_its_way(view: &OrderView, back: &TaskRow) -> bool {
    view.tasks.iter().any(|task| {
        task.action == Action::TakeBack
            && task.status == TaskStatus::Manual
            && (task.resource, &task.key) == (back.resource, &back.key)
    })
}

/// What no task speaks for.
fn left_over(status: OrderStatus) -> Caller {
    match status {
        OrderStatus::Pending | OrderStatus::Restoring => Caller::Held,
        OrderStatus::Paid | OrderStatus::Completed => Caller::Bought,
        OrderStatus::Closed | OrderStatus::RefundDue | OrderStatus::Refunded => Caller::NeedsHelp,
    }
}
