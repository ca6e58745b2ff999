//! The reconciliation: how things stand, one run, and beginning one.

use axum::extract::{Path, State};
use axum::http::HeaderValue;
use axum::http::header::REFRESH;
use serde::Deserialize;

use crate::core::reconcile::{self, Known, Latest, Started};
use crate::core::words::{ResourceType, Role, RunStatus};
use crate::store::reconcile_run::{self, Diff};
use crate::web::desk::Desk;
use crate::web::extract::{As, Checked, Operator, Part, Viewer, Visit};
use crate::web::notice::Notice;
use crate::web::paths;
use crate::web::render::{self, Answer};
use crate::web::view::Section;
use crate::web::view::error::Trouble;
use crate::web::view::reconcile::{ROWS, ReconcilePage, Seen};

const RUNS: i64 = 20;

pub async fn show(State(desk): State<Desk>, As(visit, ..): As<Viewer>) -> Answer {
    let mut conn = desk.app.core.db.read().await?;
    let known = Known::of(&reconcile_run::latest_done(&mut conn).await?);
    let mut diffs: Vec<Diff> = Vec::new();
    for Latest { run, total } in known.latest.iter().filter(|known| known.total.findings > 0) {
        let found = reconcile_run::diffs_of(&mut conn, *run, Some(total.resource), (ROWS + 1) as i64).await?;
        diffs.extend(found);
    }
    let runs = reconcile_run::newest(&mut conn, RUNS).await?;
    let seen = Seen {
        latest: &known.latest,
        snapshot_at: known.snapshot_at,
        diffs: &diffs,
        runs: &runs,
        only: None,
        may_run: visit.may(Role::Operator),
    };
    shown(&visit, &seen)
}

pub async fn show_run(State(desk): State<Desk>, As(visit, ..): As<Viewer>, Path(run): Path<String>) -> Answer {
    let run: i64 = run.parse().map_err(|_| visit.oops(Trouble::NotFound))?;
    let mut conn = desk.app.core.db.read().await?;
    let run = reconcile_run::find(&mut conn, run).await?.ok_or_else(|| visit.oops(Trouble::NotFound))?;
    let latest: Vec<Latest> = run.totals.iter().map(|total| Latest { run: run.id, total: total.clone() }).collect();
    let diffs = reconcile_run::diffs_of(&mut conn, run.id, None, (ROWS + 1) as i64).await?;
    let runs = [run];
    let seen = Seen {
        latest: &latest,
        snapshot_at: runs[0].snapshot_at,
        diffs: &diffs,
        runs: &runs,
        only: Some(&runs[0]),
        may_run: false,
    };
    shown(&visit, &seen)
}

/// While a run is going on, the page looks again by itself, with and without script.
fn shown(visit: &Visit, seen: &Seen<'_>) -> Answer {
    let page = ReconcilePage::new(visit.shell(Section::Reconcile), &visit.eye, seen);
    let mut answer = render::page(&page, visit.ask.part)?;
    let is_running = seen.runs.iter().any(|run| run.status == RunStatus::Running);
    if is_running && visit.ask.part == Part::Whole {
        answer.headers_mut().insert(REFRESH, HeaderValue::from_static("2"));
    }
    Ok(answer)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RunForm {
    #[serde(rename = "type")]
    kind: String,
}

pub async fn run(State(desk): State<Desk>, As(visit, ..): As<Operator>, Checked(form): Checked<RunForm>) -> Answer {
    let kind = match form.kind.as_str() {
        "" => None,
        word => Some(ResourceType::from_word(word).ok_or_else(|| visit.oops(Trouble::BadRequest))?),
    };
    let notice = match reconcile::start(&desk.app.core, &visit.actor(), kind).await? {
        Started::Started(run) => Notice::RunStarted(run),
        Started::Running(run) => Notice::RunGoesOn(run),
    };
    render::then(&desk, paths::RECONCILE, notice)
}
