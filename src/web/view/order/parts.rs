//! What became of each thing an order reserved, as its tasks say (R4): a hold falls into parts, of which some
//! may be back while others are on their way. Of a thing that was reserved again, the last round counts.

use super::spoken;
use crate::core::order::is_unadopted;
use crate::core::words::{Action, FundsKind, OrderStatus, ResourceType, TaskStatus};
use crate::store::order_view::{HoldRow, OrderView};
use crate::store::shop_order::ShopOrder;
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
    let tasks = view.tasks.iter().filter(|task| speaks_for(task, hold)).map(|task| (task, state(view, task)));
    divided(eye, hold, tasks, left_over(view.order.status), Some(&view.order.currency))
}

/// The parts of what a shop's order names. What no row speaks for is held, as its open lines say.
pub fn of_shop<'a>(eye: &Eye, view: &'a ShopOrder, things: &'a [HoldRow]) -> Vec<Part<'a>> {
    let parts = |thing| {
        let is_of = |task: &&TaskRow| speaks_for_shop(task) && is_about(task, thing);
        let tasks = view.tasks.iter().filter(is_of).map(|task| (task, as_it_stands(task)));
        divided(eye, thing, tasks, Caller::Held, None)
    };
    things.iter().flat_map(parts).collect()
}

fn divided<'a>(
    eye: &Eye,
    hold: &'a HoldRow,
    tasks: impl Iterator<Item = (&'a TaskRow, Caller)>,
    left_over: Caller,
    currency: Option<&str>,
) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    let mut left = hold.locked;
    for (task, state) in tasks {
        left -= task.qty;
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
        parts.push(Part { hold, qty: left, state: left_over, task: None, next_try: None, spoken: String::new() });
    }
    for part in &mut parts {
        let qty = format::quantity(eye.lang, hold.resource, part.qty, hold.funds, currency);
        part.spoken = match (hold.resource, hold.funds, currency) {
            // Nobody told its currency: the figure can't be read out.
            (ResourceType::Funds, Some(FundsKind::Balance) | None, None) => eye.lang.t("order.say_some_balance").into(),
            _ => spoken(eye.lang, hold, &qty),
        };
    }
    parts
}

/// Whether a task settles or gives back something of this hold. A row that a shop wrote for a close that hasn't
/// come yet says nothing.
fn speaks_for(task: &TaskRow, hold: &HoldRow) -> bool {
    is_about(task, hold) && speaks_for_shop(task) && !is_unadopted(&task.task)
}

fn is_about(task: &TaskRow, hold: &HoldRow) -> bool {
    task.round == hold.round && task.resource == hold.resource && task.key == hold.key
}

/// Whether a task settles or gives back something, of an order that only the shop closes.
pub fn speaks_for_shop(task: &TaskRow) -> bool {
    matches!(task.action, Action::Release | Action::Settle) && task.status != TaskStatus::Superseded
}

fn state(view: &OrderView, task: &TaskRow) -> Caller {
    match as_it_stands(task) {
        Caller::Returned
            if task.status == TaskStatus::Succeeded
                && view.order.status == OrderStatus::Restoring
                && is_stuck_on_its_way(view, task) =>
        {
            Caller::NeedsHelp
        }
        state => state,
    }
}

fn as_it_stands(task: &TaskRow) -> Caller {
    match (task.action, task.status) {
        // The buyer has it; how the ledger gets there is not the buyer's matter.
        (Action::Settle, _) => Caller::Bought,
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
