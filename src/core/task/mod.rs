//! What a failed try means: `failure` has the one table of verdicts, `backoff` the pure waits, `answer` what a
//! service's answer means for the task that was sent.

pub mod answer;
pub mod backoff;
pub mod failure;

use crate::core::policy::Policy;
use crate::core::words::{FailureKind, TaskStatus};
use crate::store::task::{Due, Failed, NEVER};

/// Turns a failure into the row's next state: retried after its wait, or left to a person.
pub fn failed(task: &Due, kind: FailureKind, error: String, now: i64, policy: &Policy) -> Failed {
    let failures = task.retry + 1;
    let goes_on = failure::verdict(kind) == failure::Verdict::Retry && failures < policy.retry.max_failures;
    let (status, next_at) = if goes_on {
        (TaskStatus::Retrying, now + backoff::wait_ms(&policy.retry, failures, backoff::spread()))
    } else {
        (TaskStatus::Manual, NEVER)
    };
    Failed { task_id: task.id, status: status.code(), next_at, kind: kind.code(), error }
}
