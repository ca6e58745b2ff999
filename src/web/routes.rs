//! Every URL there is.

use axum::Router;

use super::api;
use super::state::App;

pub fn router(app: App) -> Router {
    Router::new().nest("/api/v1", api::router()).merge(api::probes()).with_state(app)
}
