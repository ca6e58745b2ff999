//! The figures behind the overview: one read per tick, shared by everyone who looks.

use crate::core::words::{FailureKind, FundsKind, ResourceType, TaskStatus, Trigger};

/// Everything the overview shows, as of one instant. What is not known is `None`, never 0.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub at: i64,
    pub backlog: Vec<Backlog>,
    /// When the oldest task that is still waiting or retrying was written, and which it is.
    pub oldest: Option<Oldest>,
    /// When the oldest manual task was written.
    pub oldest_manual: Option<i64>,
    pub failures: Vec<Failures>,
    /// Tries of the last hour and day, by how they ended; none tried = `None`.
    pub tries_hour: Option<Tries>,
    pub tries_day: Option<Tries>,
    /// Orders that wait for an unfinished task.
    pub orders_affected: i64,
    pub recent_closes: Vec<Closed>,
    pub workers: Vec<Worker>,
}

#[derive(Clone, Debug)]
pub struct Backlog {
    pub status: TaskStatus,
    pub resource: ResourceType,
    pub funds: Option<FundsKind>,
    pub tasks: i64,
    pub qty: i64,
}

#[derive(Clone, Debug)]
pub struct Oldest {
    pub task: i64,
    pub resource: ResourceType,
    pub created_at: i64,
}

#[derive(Clone, Debug)]
pub struct Failures {
    pub resource: ResourceType,
    pub kind: FailureKind,
    pub hour: i64,
    pub day: i64,
}

#[derive(Clone, Copy, Debug)]
pub struct Tries {
    pub succeeded: i64,
    pub all: i64,
}

#[derive(Clone, Debug)]
pub struct Closed {
    pub order_no: String,
    pub at: i64,
    pub reason: String,
    pub trigger: Option<Trigger>,
}

#[derive(Clone, Debug)]
pub struct Worker {
    pub name: String,
    pub seen_at: i64,
}
