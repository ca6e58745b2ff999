//! Release tasks: one in full, retrying and force-closing it.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::{Caller, ToOperate, ToRead};
use super::fields::{Fields, FromFields};
use super::once::Once;
use super::order_body::Reason;
use super::orders::order_open;
use super::request::TaskId;
use super::show::{TaskInFull, TaskShown};
use super::{Answered, ok};
use crate::core::release::act::{self, ForceClose, ForceClosed, Resolution, Retried};
use crate::core::text::REASON_MAX;
use crate::core::words::FailureKind;
use crate::store::task::{self, Task};
use crate::web::error::Problem;
use crate::web::state::App;

/// One task with every try and the flow it made
#[utoipa::path(get, path = "/tasks/{id}", tag = "tasks", params(("id" = i64, Path)),
    responses((status = 200, body = TaskInFull), (status = 404)))]
pub(super) async fn show(State(app): State<App>, _: Caller<ToRead>, TaskId(id): TaskId) -> Answered {
    let mut conn = app.core.db.snapshot().await?;
    let task = task::find(&mut conn, id).await?.ok_or_else(unknown)?;
    let attempts = task::attempts(&mut conn, &task).await?;
    let flow = act::flow_of(&mut conn, &task).await?;
    conn.done().await?;
    ok(&TaskInFull::of(&task, app.core.policy.retry.max_failures, &attempts, &flow))
}

fn unknown() -> Problem {
    Problem::not_found("there is no such task")
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RetryShown {
    /// `succeeded`, `already_done` or `failed`
    result: &'static str,
    /// Why it failed
    kind: Option<&'static str>,
    task: TaskShown,
}

/// Run a task now
#[utoipa::path(post, path = "/tasks/{id}/retry", tag = "tasks",
    params(("id" = i64, Path), ("Idempotency-Key" = Option<String>, Header)), request_body = Reason,
    responses((status = 200, body = RetryShown), (status = 404),
        (status = 409, description = "`not_retryable`, `order_open`, `idempotency_key_reused`")))]
pub(super) async fn retry(
    State(app): State<App>,
    caller: Caller<ToOperate>,
    TaskId(id): TaskId,
    once: Once<Reason>,
) -> Answered {
    let (app_in, actor) = (app.clone(), caller.actor());
    let act = move |asked: Reason| async move {
        let retried = act::retry(&app_in.core, &actor, id, &asked.reason).await?;
        let max_failures = app_in.core.policy.retry.max_failures;
        let answer = |result, kind: Option<FailureKind>, task: &Task| RetryShown {
            result,
            kind: kind.map(FailureKind::word),
            task: TaskShown::of(task, max_failures),
        };
        match retried {
            Retried::Succeeded(task) => ok(&answer("succeeded", None, &task)),
            Retried::AlreadyDone(task) => ok(&answer("already_done", None, &task)),
            Retried::Failed(task) => ok(&answer("failed", task.kind, &task)),
            Retried::NotRetryable(task) => Err(settled("not_retryable", &task)),
            Retried::OrderOpen(_) => Err(order_open()),
            Retried::Unknown => Err(unknown()),
        }
    };
    once.run(&app, &caller.token, act).await
}

/// A refusal because of the task's state.
fn settled(code: &'static str, task: &Task) -> Problem {
    Problem::conflict(code, format!("the task is {}", task.status))
}

#[derive(Debug, ToSchema)]
pub(super) struct ForceCloseAsked {
    #[schema(max_length = 500)]
    reason: String,
    /// The `version` that was seen; anything newer is `stale`
    #[schema(minimum = 0)]
    expected_version: i64,
    /// `leave_owed` (the default) or `done_outside`
    #[schema(value_type = Option<String>)]
    resolution: Option<Resolution>,
}

impl FromFields for ForceCloseAsked {
    fn read(f: &mut Fields) -> Option<Self> {
        let reason = f.text("reason", REASON_MAX);
        let expected_version = f.whole("expected_version", 0, i64::MAX);
        let resolutions = [Resolution::LeaveOwed, Resolution::DoneOutside].map(|known| (known.word(), known));
        let resolution = f.opt_word("resolution", &resolutions);
        Some(Self { reason: reason?, expected_version: expected_version?, resolution })
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ForceCloseShown {
    /// `force_closed` or `already_force_closed`
    result: &'static str,
    task: TaskShown,
}

/// End the trying of a task; moves no quantity
#[utoipa::path(post, path = "/tasks/{id}/force-close", tag = "tasks",
    params(("id" = i64, Path), ("Idempotency-Key" = Option<String>, Header)), request_body = ForceCloseAsked,
    responses((status = 200, body = ForceCloseShown), (status = 404),
        (status = 409, description = "`not_closable`, `stale`, `idempotency_key_reused`")))]
pub(super) async fn force_close(
    State(app): State<App>,
    caller: Caller<ToOperate>,
    TaskId(task_id): TaskId,
    once: Once<ForceCloseAsked>,
) -> Answered {
    let (app_in, actor) = (app.clone(), caller.actor());
    let act = move |asked: ForceCloseAsked| async move {
        let ForceCloseAsked { reason, expected_version, resolution } = asked;
        let resolution = resolution.unwrap_or(Resolution::LeaveOwed);
        let closing = ForceClose { task_id, reason, expected_version, resolution };
        let closed = act::force_close(&app_in.core, &actor, closing).await?;
        force_closed(&closed, app_in.core.policy.retry.max_failures)
    };
    once.run(&app, &caller.token, act).await
}

fn force_closed(closed: &ForceClosed, max_failures: i64) -> Answered {
    let answer = |result, task| ok(&ForceCloseShown { result, task: TaskShown::of(task, max_failures) });
    match closed {
        ForceClosed::ForceClosed(task) => answer("force_closed", task),
        ForceClosed::AlreadyForceClosed(task) => answer("already_force_closed", task),
        ForceClosed::NotClosable(task) => Err(settled("not_closable", task)),
        ForceClosed::Stale(task) => {
            let detail = format!("the task changed since it was seen: it is {}, version {}", task.status, task.version);
            Err(Problem::conflict("stale", detail))
        }
        ForceClosed::Unknown => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::assert_fields_are_described;
    use super::*;

    #[test]
    fn the_description_names_the_fields_that_are_read() {
        assert_fields_are_described::<ForceCloseAsked>();
    }
}
