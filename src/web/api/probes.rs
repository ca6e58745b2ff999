//! What machines ask outside the API: is the process up, is it ready, how is it doing.

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::caller::authenticate;
use super::{figures, metrics};
use crate::store::token::Scope;
use crate::web::error::Problem;
use crate::web::state::App;

pub fn router() -> Router<App> {
    Router::new().route("/healthz", get(alive)).route("/readyz", get(ready)).route("/metrics", get(metrics_text))
}

async fn alive() -> &'static str {
    "alive\n"
}

/// Ready when the database answers and its schema is the one this binary knows. Never a page, never
/// a DSN: this is what load balancers see.
async fn ready(State(app): State<App>) -> Response {
    match app.core.db.is_current().await {
        Ok(true) => "ready\n".into_response(),
        Ok(false) => (StatusCode::SERVICE_UNAVAILABLE, "migrations are missing\n").into_response(),
        Err(error) => {
            tracing::debug!(error = %error, "not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "the database can't be reached\n").into_response()
        }
    }
}

async fn metrics_text(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    if app.config.metrics.require_token {
        let token = authenticate(&headers, &app).await?;
        if !token.scope.covers(Scope::Metrics) {
            return Err(Problem::forbidden("a token of the scope metrics is needed"));
        }
    }
    let now = app.core.now();
    let read = figures::read(&app.core.db, now).await;
    let text = metrics::text(read.as_ref().ok(), now);
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
