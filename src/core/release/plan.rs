//! The release plan: a pure function of due tasks and the figures of their ledger rows, read under lock. Who
//! moves what, who fails with which kind; one sum per ledger row, however many tasks are behind it (E1).

use std::collections::HashMap;

use crate::core::policy::{OnRelease, Policy};
use crate::core::words::{Action, FailureKind, FundsKind, ResourceType};
use crate::store::flow::TaskFlow;
use crate::store::ledger::{Change, Ledger, Terms};
use crate::store::task::Due;

/// A try that fails, and why in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub task: Due,
    pub kind: FailureKind,
    pub error: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// One flow row per task that succeeds.
    pub flows: Vec<TaskFlow>,
    /// One sum per ledger row.
    pub changes: Vec<Change>,
    /// New holders and ends of coupons, slots and points accounts.
    pub terms: Vec<Terms>,
    pub failures: Vec<Failure>,
}

/// The note on a flow row of goods that were not sold here: `sold` didn't move.
pub const SOLD_ELSEWHERE: &str = "sold elsewhere";

/// A ledger row as the plan goes on.
struct State<'l> {
    row: &'l Ledger,
    available: i64,
    locked: i64,
    sold: i64,
    terms: Option<Terms>,
}

/// Plans `tasks` in the given order over `rows`. `ledger_of` says which row a task moves.
pub fn plan(tasks: &[Due], rows: &[Ledger], now: i64, policy: &Policy) -> Plan {
    let mut states: HashMap<i64, State<'_>> = rows.iter().map(|row| (row.id, State::of(row))).collect();
    let mut plan = Plan::default();
    for task in tasks {
        let state = task.ledger_id.and_then(|id| states.get_mut(&id));
        let Some(state) = state else {
            let error = format!("there is no {} ledger row {}", task.resource, task.key);
            plan.failures.push(Failure { task: task.clone(), kind: FailureKind::ResourceMissing, error });
            continue;
        };
        match state.step(task, now, policy) {
            Ok(flow) => plan.flows.push(flow),
            Err((kind, error)) => plan.failures.push(Failure { task: task.clone(), kind, error }),
        }
    }
    // In the order of `rows`, which is the lock order.
    for row in rows {
        let Some(state) = states.remove(&row.id) else { continue };
        let change = Change {
            id: row.id,
            available: state.available - row.available,
            locked: state.locked - row.locked,
            sold: state.sold - row.sold,
        };
        if change != (Change { id: row.id, ..Change::default() }) {
            plan.changes.push(change);
        }
        plan.terms.extend(state.terms);
    }
    plan
}

impl<'l> State<'l> {
    fn of(row: &'l Ledger) -> Self {
        Self { row, available: row.available, locked: row.locked, sold: row.sold, terms: None }
    }

    fn step(&mut self, task: &Due, now: i64, policy: &Policy) -> Result<TaskFlow, (FailureKind, String)> {
        match task.action {
            Action::Release | Action::Settle => self.give_up_lock(task, now, policy),
            Action::TakeBack => self.take_back(task),
            Action::ReturnIn => self.return_in(task),
            _ => Err((FailureKind::StateMismatch, format!("{} moves no ledger row", task.action))),
        }
    }

    /// Goods come back after they were sold; those sold elsewhere never were in `sold`.
    fn return_in(&mut self, task: &Due) -> Result<TaskFlow, (FailureKind, String)> {
        let was_sold_here = !task.order_no.is_empty();
        if was_sold_here && self.sold < task.qty {
            let error = format!("sold {} is less than the returned qty {}", self.sold, task.qty);
            return Err((FailureKind::StateMismatch, error));
        }
        let too_large = || (FailureKind::Poisoned, format!("{} of {} would be too large", task.qty, task.key));
        self.available = self.available.checked_add(task.qty).ok_or_else(too_large)?;
        if was_sold_here {
            self.sold -= task.qty;
        }
        Ok(self.flow(task, (!was_sold_here).then_some(SOLD_ELSEWHERE)))
    }

    /// Locks again what this order's release gave back. A retired row can't be locked any more.
    fn take_back(&mut self, task: &Due) -> Result<TaskFlow, (FailureKind, String)> {
        if self.row.retired_at.is_some() {
            return Err((FailureKind::ResourceMissing, format!("{} {} is retired", task.resource, task.key)));
        }
        if self.available < task.qty {
            let error = format!("available {} is less than qty {}", self.available, task.qty);
            return Err((FailureKind::LockedInsufficient, error));
        }
        self.available -= task.qty;
        self.locked += task.qty;
        if task.resource.is_single() {
            self.terms =
                Some(Terms { holder_no: Some(task.order_no.clone()), holder_round: Some(task.round), ..self.terms() });
        }
        Ok(self.flow(task, None))
    }

    fn flow(&self, task: &Due, note: Option<&str>) -> TaskFlow {
        TaskFlow {
            task_id: task.id,
            ledger_id: self.row.id,
            bearer: self.row.issuer.clone(),
            available_after: self.available,
            locked_after: self.locked,
            sold_after: self.sold,
            note: note.map(str::to_owned),
        }
    }

    fn give_up_lock(&mut self, task: &Due, now: i64, policy: &Policy) -> Result<TaskFlow, (FailureKind, String)> {
        if task.resource.is_single() {
            self.check_holder(task)?;
        }
        if self.locked < task.qty {
            let error = format!("locked {} is less than qty {}", self.locked, task.qty);
            return Err((FailureKind::LockedInsufficient, error));
        }
        let too_large = || (FailureKind::Poisoned, format!("{} of {} would be too large", task.qty, task.key));
        let mut note = None;
        if task.action == Action::Release {
            self.available = self.available.checked_add(task.qty).ok_or_else(too_large)?;
            note = self.give_back_terms(task, now, policy);
        } else {
            self.sold = self.sold.checked_add(task.qty).ok_or_else(too_large)?;
        }
        self.locked -= task.qty;
        Ok(self.flow(task, note))
    }

    /// Coupons and slots return only from the order and round that hold them (R16).
    fn check_holder(&self, task: &Due) -> Result<(), (FailureKind, String)> {
        let terms = self.terms();
        let is_holder = self.locked == 1
            && terms.holder_no.as_deref() == Some(task.order_no.as_str())
            // A table of the shop keeps no round.
            && terms.holder_round.is_none_or(|round| round == task.round);
        if is_holder {
            return Ok(());
        }
        let state = match (self.available, self.locked, &terms.holder_no) {
            (1, ..) => "not locked".to_owned(),
            (_, 1, Some(holder)) => format!("locked by order {holder}"),
            (_, 1, None) => "locked by nobody".to_owned(),
            (_, _, Some(holder)) => format!("used by order {holder}"),
            _ => "used".to_owned(),
        };
        Err((FailureKind::StateMismatch, format!("{} {} is {state}", task.resource, task.key)))
    }

    fn terms(&self) -> Terms {
        self.terms.clone().unwrap_or_else(|| Terms::of(self.row))
    }

    /// Nobody holds a coupon or slot that came back; one that ran out while locked returns by policy (R16).
    fn give_back_terms(&mut self, task: &Due, now: i64, policy: &Policy) -> Option<&'static str> {
        let before = self.terms();
        let mut terms = before.clone();
        if task.resource.is_single() {
            terms.holder_no = None;
            terms.holder_round = None;
        }
        let is_points = self.row.kind == Some(FundsKind::Points);
        let has_run_out = terms.expires_at.is_some_and(|end| end <= now);
        let mut note = None;
        if has_run_out && (task.resource == ResourceType::Coupon || is_points) {
            let (rule, once) = if is_points {
                (policy.points, true)
            } else {
                let rule = policy.coupon_of(self.row.issuer.as_deref());
                (rule.on_release, rule.extend_once)
            };
            note = Some("expired");
            let may_extend = match &terms.extended_by {
                None => true,
                Some(by) => !once && *by != task.order_no,
            };
            if let (OnRelease::Extend { days }, true) = (rule, may_extend) {
                terms.original_expires_at = terms.original_expires_at.or(terms.expires_at);
                terms.expires_at = Some(now + days * 86_400_000);
                terms.extended_by = Some(task.order_no.clone());
                note = Some("extended");
            }
        }
        if terms != before {
            self.terms = Some(terms);
        }
        note
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::policy::CouponRule;

    fn row(id: i64, resource: ResourceType, available: i64, locked: i64) -> Ledger {
        Ledger {
            id,
            resource,
            key: "k".into(),
            available,
            locked,
            sold: 0,
            kind: None,
            owner: None,
            issuer: None,
            holder_no: None,
            holder_round: None,
            expires_at: None,
            original_expires_at: None,
            extended_by: None,
            retired_at: None,
        }
    }

    fn due(id: i64, resource: ResourceType, ledger_id: i64, qty: i64) -> Due {
        Due {
            id,
            order_no: format!("O{id}"),
            round: 1,
            action: Action::Release,
            resource,
            key: "k".into(),
            qty,
            retry: 0,
            ledger_id: Some(ledger_id),
            first_failed_at: None,
            is_adopted: true,
            return_no: String::new(),
        }
    }

    #[test]
    fn ten_thousand_tasks_on_one_key_are_one_sum() {
        let tasks: Vec<Due> = (1..=10_000).map(|id| due(id, ResourceType::Stock, 7, 1)).collect();
        let plan = plan(&tasks, &[row(7, ResourceType::Stock, 0, 10_000)], 0, &Policy::default());
        assert_eq!(plan.changes, [Change { id: 7, available: 10_000, locked: -10_000, sold: 0 }]);
        assert_eq!(plan.flows.len(), 10_000);
        assert_eq!(plan.flows[9_999].available_after, 10_000);
    }

    #[test]
    fn a_key_that_lacks_fails_only_its_own_tasks() {
        let rows = [row(7, ResourceType::Stock, 0, 1), row(8, ResourceType::Stock, 0, 5)];
        let tasks = [
            due(1, ResourceType::Stock, 7, 1),
            due(2, ResourceType::Stock, 7, 1),
            due(3, ResourceType::Stock, 8, 5),
            due(4, ResourceType::Stock, 9, 1),
        ];
        let plan = plan(&tasks, &rows, 0, &Policy::default());
        assert_eq!(plan.flows.iter().map(|f| f.task_id).collect::<Vec<_>>(), [1, 3]);
        let failed: Vec<_> = plan.failures.iter().map(|f| (f.task.id, f.kind)).collect();
        assert_eq!(failed, [(2, FailureKind::LockedInsufficient), (4, FailureKind::ResourceMissing)]);
    }

    #[test]
    fn a_coupon_held_by_another_order_stays_where_it_is() {
        let mut coupon = row(7, ResourceType::Coupon, 0, 1);
        coupon.holder_no = Some("O2".into());
        coupon.holder_round = Some(1);
        let plan = plan(&[due(1, ResourceType::Coupon, 7, 1)], &[coupon], 0, &Policy::default());
        assert_eq!(plan.failures[0].kind, FailureKind::StateMismatch);
        assert!(plan.changes.is_empty() && plan.flows.is_empty());
    }

    #[test]
    fn a_coupon_is_extended_once_and_then_runs_out() {
        let mut coupon = row(7, ResourceType::Coupon, 0, 1);
        coupon.holder_no = Some("O1".into());
        coupon.holder_round = Some(1);
        coupon.expires_at = Some(100);
        let policy = Policy {
            coupon: CouponRule { on_release: OnRelease::Extend { days: 3 }, extend_once: true },
            ..Policy::default()
        };
        let task = [due(1, ResourceType::Coupon, 7, 1)];
        let first = plan(&task, std::slice::from_ref(&coupon), 200, &policy);
        assert_eq!(first.flows[0].note.as_deref(), Some("extended"));
        assert_eq!(first.terms[0].expires_at, Some(200 + 3 * 86_400_000));
        assert_eq!(first.terms[0].original_expires_at, Some(100));
        coupon.extended_by = Some("O0".into());
        let second = plan(&task, &[coupon], 200, &policy);
        assert_eq!(second.flows[0].note.as_deref(), Some("expired"));
        assert_eq!(second.terms[0].expires_at, Some(100));
    }
}
