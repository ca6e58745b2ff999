//! The JSON API under `/api/v1`, fixed by `docs/api.md`. A handler extracts, calls the core once,
//! and shows what came of it; its future may be dropped at any time, because what the core decides
//! runs in tasks of its own.

mod caller;
mod description;
mod fields;
mod figures;
mod ledger;
mod ledger_body;
mod metrics;
mod node;
mod once;
mod order_body;
mod orders;
mod probes;
mod reconcile;
mod request;
mod returns;
mod show;
mod show_order;
mod task_list;
mod tasks;

use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::core::text::FieldError;
use crate::store::reconcile_run::{Diff, Run};
use crate::web::error::Problem;
use crate::web::state::App;

pub use probes::router as probes;

type Answered = Result<Response, Problem>;

/// Everything below `/api/v1`.
pub fn router() -> Router<App> {
    let (router, _) = routes().split_for_parts();
    router
        .fallback(nothing_here)
        .method_not_allowed_fallback(|| async {
            let detail = "this address doesn't take that method; Allow names those it takes";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        })
        .layer(DefaultBodyLimit::max(request::LARGEST_BODY))
}

/// The answer to an address that isn't one.
pub async fn nothing_here() -> Problem {
    Problem::not_found("there is nothing at this address")
}

fn routes() -> OpenApiRouter<App> {
    let plain = OpenApiRouter::with_openapi(description::frame())
        .routes(routes!(ledger::put, ledger::show, ledger::retire))
        .routes(routes!(ledger::history))
        .routes(routes!(orders::place))
        .routes(routes!(orders::show))
        .routes(routes!(orders::pay))
        .routes(routes!(orders::close))
        .routes(routes!(orders::reduce))
        .routes(routes!(orders::complete))
        .routes(routes!(orders::refunded))
        .routes(routes!(orders::release))
        .routes(routes!(returns::accept))
        .routes(routes!(returns::receive))
        .routes(routes!(returns::show))
        .routes(routes!(tasks::show))
        .routes(routes!(tasks::retry))
        .routes(routes!(tasks::force_close))
        .routes(routes!(reconcile::start))
        .routes(routes!(reconcile::show))
        .routes(routes!(figures::stats))
        .routes(routes!(description::show))
        .route_layer(from_fn(refuse_query));
    let asking = OpenApiRouter::new().routes(routes!(task_list::list)).routes(routes!(figures::idle));
    plain.merge(asking)
}

/// A query where none is read would be silently ignored, and its sender would never know.
async fn refuse_query(request: Request, next: Next) -> Response {
    match request.uri().query() {
        Some(query) if !query.is_empty() => {
            let name = query.split(['=', '&']).next().unwrap_or_default();
            let name: String = name.chars().take(80).collect();
            Problem::bad_query(&[FieldError::new(name, "is not a known name here")]).into_response()
        }
        _ => next.run(request).await,
    }
}

/// A reconciliation run as `GET /reconcile/{run}` shows it; the command prints the same.
pub fn run_shown(run: &Run, diffs: &[Diff]) -> String {
    serde_json::to_string(&reconcile::RunShown::of(run, diffs)).unwrap_or_default()
}

fn ok<T: Serialize>(value: &T) -> Answered {
    Ok(Json(value).into_response())
}

/// What came of an act, in one word.
#[derive(Debug, Serialize, ToSchema)]
struct Outcome {
    result: &'static str,
}

impl Outcome {
    const fn of(result: &'static str) -> Self {
        Self { result }
    }
}
