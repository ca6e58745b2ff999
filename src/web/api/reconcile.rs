//! The reconciliation: start one, look at one.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::{Caller, ToOperate, ToRead};
use super::fields::{Fields, FromFields};
use super::once::Once;
use super::order_body::TYPES;
use super::request::RunId;
use super::{Answered, ok};
use crate::core::instant::{moment, opt_moment};
use crate::core::reconcile::{self, Started};
use crate::core::words::ResourceType;
use crate::store::reconcile_run::{Diff, Run};
use crate::web::error::Problem;
use crate::web::state::App;

#[derive(Debug, ToSchema)]
pub(super) struct StartRun {
    /// Only this type; all when left out
    #[schema(value_type = Option<String>, example = "stock")]
    r#type: Option<ResourceType>,
}

impl FromFields for StartRun {
    fn read(f: &mut Fields) -> Option<Self> {
        Some(Self { r#type: f.opt_word("type", TYPES) })
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunStarted {
    run: i64,
}

/// Compare ledgers with orders and tasks, now
///
/// While a run is going on, its number is the answer.
#[utoipa::path(post, path = "/reconcile", tag = "reconcile",
    params(("Idempotency-Key" = Option<String>, Header)), request_body = StartRun,
    responses((status = 202, description = "Started", body = RunStarted),
        (status = 200, description = "Already running", body = RunStarted),
        (status = 409, description = "`idempotency_key_reused`")))]
pub(super) async fn start(State(app): State<App>, caller: Caller<ToOperate>, once: Once<StartRun>) -> Answered {
    let (app_in, actor) = (app.clone(), caller.actor());
    let act = move |asked: StartRun| async move {
        let (status, run) = match reconcile::start(&app_in.core, &actor, asked.r#type).await? {
            Started::Started(run) => (StatusCode::ACCEPTED, run),
            Started::Running(run) => (StatusCode::OK, run),
        };
        Ok((status, Json(RunStarted { run })).into_response())
    };
    once.run(&app, &caller.token, act).await
}

/// One run and what it found
#[utoipa::path(get, path = "/reconcile/{run}", tag = "reconcile", params(("run" = i64, Path)),
    responses((status = 200, body = RunShown), (status = 404)))]
pub(super) async fn show(State(app): State<App>, _: Caller<ToRead>, RunId(run): RunId) -> Answered {
    let found = reconcile::show(&app.core, run).await?;
    let (run, diffs) = found.ok_or_else(|| Problem::not_found("there is no such run"))?;
    ok(&RunShown::of(&run, &diffs))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunShown {
    run: i64,
    /// `running`, `done` or `failed`
    status: &'static str,
    /// The moment that was compared
    snapshot_at: Option<String>,
    /// Keys compared
    checked: i64,
    diffs: Vec<DiffShown>,
}

#[derive(Debug, Serialize, ToSchema)]
struct DiffShown {
    id: i64,
    r#type: &'static str,
    key: String,
    /// `missed_release`, `double_release`, `missing_lock`, `orphan_lock`, `holder_gone`, `flow_missing` or
    /// `edited_by_hand`
    class: &'static str,
    in_ledger: i64,
    /// What the holds of open orders have left
    expected: i64,
    /// What unfinished tasks still move
    explained: i64,
    /// in_ledger − expected − explained
    unexplained: i64,
    /// Up to 20 of each kind, the likeliest first
    orders: Vec<String>,
    tasks: Vec<i64>,
    first_seen: String,
    /// Null: none is offered
    repair: Option<&'static str>,
}

impl RunShown {
    pub fn of(run: &Run, diffs: &[Diff]) -> Self {
        Self {
            run: run.id,
            status: run.status.word(),
            snapshot_at: opt_moment(run.snapshot_at),
            checked: run.checked,
            diffs: diffs.iter().map(DiffShown::of).collect(),
        }
    }
}

impl DiffShown {
    fn of(diff: &Diff) -> Self {
        Self {
            id: diff.id,
            r#type: diff.resource.word(),
            key: diff.key.clone(),
            class: diff.class.word(),
            in_ledger: diff.in_ledger,
            expected: diff.expected,
            explained: diff.explained,
            unexplained: diff.unexplained,
            orders: diff.orders.clone(),
            tasks: diff.tasks.clone(),
            first_seen: moment(diff.first_seen),
            repair: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::assert_fields_are_described;
    use super::*;

    #[test]
    fn the_description_names_the_fields_that_are_read() {
        assert_fields_are_described::<StartRun>();
    }
}
