//! What the API shows of orders, tasks, ledgers and flows. Field names and their order are those of
//! the interface; a test of the description holds them to it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::core::instant::{moment, opt_moment};
use crate::core::words::{AttemptOutcome, FailureKind, ResourceType};
use crate::store::flow::Flow;
use crate::store::ledger::Ledger;
use crate::store::mapped::UNTOLD;
use crate::store::task::{Attempt, Task};

/// One effect owed to one resource.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskShown {
    id: i64,
    order_no: String,
    ref_no: String,
    round: i64,
    source: String,
    /// `release`, `settle`, `take_back`, `return_in` or `refund`
    action: &'static str,
    r#type: &'static str,
    key: String,
    qty: i64,
    /// `waiting`, `succeeded`, `retrying`, `manual`, `force_closed` or `superseded`
    status: &'static str,
    /// Of the last failure
    kind: Option<&'static str>,
    /// Of the last failure, as it came
    error: Option<String>,
    /// Failed tries so far
    retry: i64,
    /// The failure that hands the task to a person
    max_failures: i64,
    /// When it is tried next; null when no try is planned
    next_at: Option<String>,
    created_at: String,
    finished_at: Option<String>,
    ended_by: Option<String>,
    /// What force-closing expects
    version: i64,
}

impl TaskShown {
    pub fn of(task: &Task, max_failures: i64) -> Self {
        Self {
            id: task.id,
            order_no: task.order_no.clone(),
            ref_no: task.ref_no.clone(),
            round: task.round,
            source: task.source.clone(),
            action: task.action.word(),
            r#type: task.resource.word(),
            key: task.key.clone(),
            qty: task.qty,
            status: task.status.word(),
            kind: task.kind.map(FailureKind::word),
            error: task.error.clone(),
            retry: task.retry,
            max_failures,
            next_at: opt_moment(task.next_at),
            created_at: moment(task.created_at),
            finished_at: opt_moment(task.finished_at),
            ended_by: task.ended_by.clone(),
            version: task.version,
        }
    }
}

/// A task with its history.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskInFull {
    #[serde(flatten)]
    task: TaskShown,
    /// Every try, oldest first, the successful one too
    attempts: Vec<AttemptShown>,
    flow: Vec<FlowShown>,
}

impl TaskInFull {
    pub fn of(task: &Task, max_failures: i64, attempts: &[Attempt], flow: &[Flow]) -> Self {
        Self {
            task: TaskShown::of(task, max_failures),
            attempts: attempts.iter().map(AttemptShown::of).collect(),
            flow: flow.iter().map(FlowShown::of).collect(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AttemptShown {
    n: i64,
    started_at: String,
    ended_at: Option<String>,
    /// `succeeded`, `duplicate`, `nothing_locked` or `failed`; null while it runs
    outcome: Option<&'static str>,
    kind: Option<&'static str>,
    error: Option<String>,
    actor: String,
}

impl AttemptShown {
    fn of(attempt: &Attempt) -> Self {
        Self {
            n: attempt.n,
            started_at: moment(attempt.started_at),
            ended_at: opt_moment(attempt.ended_at),
            outcome: attempt.outcome.map(AttemptOutcome::word),
            kind: attempt.kind.map(FailureKind::word),
            error: attempt.error.clone(),
            actor: attempt.actor.clone(),
        }
    }
}

/// Why a ledger changed, once.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FlowShown {
    action: &'static str,
    r#type: &'static str,
    key: String,
    /// Signed only for `adjust` and `adjust_locked`
    qty: i64,
    ref_no: String,
    source: String,
    round: i64,
    task_id: Option<i64>,
    at: String,
    /// Who bears the cost of a coupon
    bearer: Option<String>,
    available_after: Option<i64>,
    locked_after: Option<i64>,
    sold_after: Option<i64>,
}

impl FlowShown {
    pub fn of(flow: &Flow) -> Self {
        Self {
            action: flow.action.word(),
            r#type: flow.resource.word(),
            key: flow.key.clone(),
            qty: flow.qty,
            ref_no: flow.ref_no.clone(),
            source: flow.source.clone(),
            round: flow.round,
            task_id: flow.task_id,
            at: moment(flow.at),
            bearer: flow.bearer.clone(),
            available_after: flow.available_after,
            locked_after: flow.locked_after,
            sold_after: flow.sold_after,
        }
    }
}

/// A ledger row: figures of what is counted, or the state of one piece.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum LedgerShown {
    Counted(CountedShown),
    Single(SingleShown),
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CountedShown {
    available: i64,
    /// Null where a table of the shop doesn't keep the figure
    locked: Option<i64>,
    sold: Option<i64>,
    /// Funds only: `balance` or `points`
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// Points only
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_expires_at: Option<String>,
    /// There while the key is retired
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    retired: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SingleShown {
    /// Coupon: `unused`, `locked`, `used`, `expired`; slot: `free`, `held`, `sold`
    status: &'static str,
    /// The order that holds or used it
    order_no: Option<String>,
    expires_at: Option<String>,
    /// The end it was opened with, also after it was extended
    original_expires_at: Option<String>,
    issuer: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    retired: bool,
}

impl LedgerShown {
    pub fn of(row: &Ledger, now: i64) -> Self {
        let retired = row.retired_at.is_some();
        let original_expires_at = opt_moment(row.original_expires_at.or(row.expires_at));
        if row.resource.is_single() {
            return Self::Single(SingleShown {
                status: single_status(row, now),
                order_no: row.holder_no.clone().filter(|_| row.available == 0),
                expires_at: opt_moment(row.expires_at),
                original_expires_at,
                issuer: row.issuer.clone(),
                retired,
            });
        }
        Self::Counted(CountedShown {
            available: row.available,
            locked: Some(row.locked).filter(|figure| *figure < UNTOLD),
            sold: Some(row.sold).filter(|figure| *figure < UNTOLD),
            kind: row.kind.map(|kind| kind.word()),
            expires_at: opt_moment(row.expires_at),
            original_expires_at,
            retired,
        })
    }
}

/// A coupon or slot is a row whose three figures add up to 1; past its end an unused coupon reads
/// `expired`.
fn single_status(row: &Ledger, now: i64) -> &'static str {
    let is_coupon = row.resource == ResourceType::Coupon;
    match (is_coupon, row.locked, row.sold) {
        (true, 1, _) => "locked",
        (true, _, 1) => "used",
        (true, _, _) if row.has_run_out(now) => "expired",
        (true, _, _) => "unused",
        (false, 1, _) => "held",
        (false, _, 1) => "sold",
        (false, _, _) => "free",
    }
}
