//! Every URL there is: the API and the probes for programs, the console's pages for people.

use axum::Router;

use super::state::App;
use super::{api, handlers};

pub fn router(app: App) -> Router {
    let programs = Router::new().nest("/api/v1", api::router()).merge(api::probes()).with_state(app.clone());
    programs.merge(handlers::router(app))
}
