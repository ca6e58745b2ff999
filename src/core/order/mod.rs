//! Orders: one table of allowed transitions, and what an order still holds.

pub mod ask;
pub mod cases;
pub mod close;
pub mod complete;
pub mod late;
pub mod late_plan;
pub mod look;
pub mod pay;
pub mod place;
pub mod reduce;
pub mod refund;

use crate::core::words::{Action, OrderStatus, TaskStatus, source};
use crate::store::order::Hold;
use crate::store::task::Task;

/// Every transition there is (B1). Each is a conditional update in the store; never back to PENDING.
pub const TRANSITIONS: &[(OrderStatus, OrderStatus)] = &[
    (OrderStatus::Pending, OrderStatus::Paid),
    (OrderStatus::Pending, OrderStatus::Closed),
    (OrderStatus::Paid, OrderStatus::Completed),
    (OrderStatus::Closed, OrderStatus::Paid),
    (OrderStatus::Closed, OrderStatus::Restoring),
    (OrderStatus::Closed, OrderStatus::RefundDue),
    (OrderStatus::Restoring, OrderStatus::Paid),
    (OrderStatus::Restoring, OrderStatus::RefundDue),
    (OrderStatus::RefundDue, OrderStatus::Refunded),
];

pub fn may_move(from: OrderStatus, to: OrderStatus) -> bool {
    TRANSITIONS.contains(&(from, to))
}

/// A hold and what of it is still neither settled nor released (R4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub hold: Hold,
    pub left: i64,
}

/// What is left of each hold of a round: locked − the quantities of its settle and release tasks that are not
/// superseded. A row that a shop wrote for the close counts only once the close has taken it over.
pub fn holds_left(holds: &[Hold], tasks: &[Task], round: i64) -> Vec<Left> {
    holds
        .iter()
        .filter(|hold| hold.round == round)
        .map(|hold| {
            let spoken_for: i64 = tasks
                .iter()
                .filter(|task| {
                    task.round == hold.round
                        && task.resource == hold.resource
                        && task.key == hold.key
                        && matches!(task.action, Action::Settle | Action::Release)
                        && task.status != TaskStatus::Superseded
                        && !is_shops(task)
                })
                .map(|task| task.qty)
                .sum();
            Left { hold: hold.clone(), left: hold.locked - spoken_for }
        })
        .collect()
}

/// A row that a shop wrote itself and that nobody has taken over or finished.
pub fn is_unadopted(task: &Task) -> bool {
    is_shops(task) && task.status.is_unfinished()
}

/// A row that a shop wrote itself and that no close has taken over: its quantity is the shop's word. One that
/// was force-closed still owes what the hold has left.
pub fn is_shops(task: &Task) -> bool {
    !task.is_adopted && task.source == source::CLOSE && (task.status.is_unfinished() || task.is_owed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_back_to_pending_and_ends_are_ends() {
        assert!(OrderStatus::ALL.iter().all(|from| !may_move(*from, OrderStatus::Pending)));
        for end in [OrderStatus::Completed, OrderStatus::Refunded] {
            assert!(OrderStatus::ALL.iter().all(|to| !may_move(end, *to)));
        }
    }
}
