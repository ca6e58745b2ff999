//! Tasks as lists and pages show them: rows under a filter, page by page by key, never by offset.

use super::flow::Flow;
use super::task::{Attempt, Task};
use crate::core::words::{FailureKind, FundsKind, OrderStatus, ResourceType, TaskStatus};

/// What to list. Empty means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub statuses: Vec<TaskStatus>,
    pub types: Vec<ResourceType>,
    pub kinds: Vec<FailureKind>,
    pub order_no: String,
    pub key: String,
    /// A part of the error text, in any case.
    pub error: String,
    pub older_than_s: Option<i64>,
}

impl Filter {
    /// What a list starts with: everything still owed and still tried by someone.
    pub fn open() -> Filter {
        let statuses = vec![TaskStatus::Waiting, TaskStatus::Retrying, TaskStatus::Manual];
        Filter { statuses, ..Filter::default() }
    }
}

/// A task's row, and beside it what saying its quantity needs.
#[derive(Clone, Debug)]
pub struct TaskRow {
    pub task: Task,
    /// Of the ledger row: money or points.
    pub funds: Option<FundsKind>,
    /// Of the order, when it is known.
    pub currency: Option<String>,
}

impl std::ops::Deref for TaskRow {
    type Target = Task;

    fn deref(&self) -> &Task {
        &self.task
    }
}

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub rows: Vec<TaskRow>,
    pub next: Option<String>,
    /// How many match; when there are more than `COUNT_LIMIT` of them only that is known.
    pub matching: Option<i64>,
}

/// Counting stops here, so that a list costs the same however much there is.
pub const COUNT_LIMIT: i64 = 10_000;

/// The ledger row behind a task, as it is now.
#[derive(Clone, Debug)]
pub struct LedgerNow {
    pub available: i64,
    pub locked: i64,
    pub sold: i64,
    pub holder_no: Option<String>,
    pub expires_at: Option<i64>,
    pub issuer: Option<String>,
    pub retired: bool,
}

/// The order around a task, if Handback knows it.
#[derive(Clone, Debug)]
pub struct OrderHead {
    pub status: OrderStatus,
    pub closed_at: Option<i64>,
    pub close_reason: Option<String>,
    pub tombstone: bool,
}

/// Everything the page of one task shows.
#[derive(Clone, Debug)]
pub struct TaskView {
    pub row: TaskRow,
    pub attempts: Vec<Attempt>,
    pub siblings: Vec<TaskRow>,
    pub flow: Vec<Flow>,
    pub ledger: Option<LedgerNow>,
    pub order: Option<OrderHead>,
    /// How many unfinished tasks have the same type and kind of failure; counted up to a limit.
    pub same_failure: Option<i64>,
}
