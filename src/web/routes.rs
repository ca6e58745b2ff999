//! Every URL there is: the API and the probes for programs, the console's pages for people.

use axum::Router;
use axum::routing::any;

use super::state::App;
use super::{api, handlers};

pub fn router(app: App) -> Router {
    let programs = Router::new()
        .nest("/api/v1", api::router())
        // Whatever else begins like the API was meant for it: a program gets no page for an answer.
        .route("/api/", any(api::nothing_here))
        .route("/api/{*rest}", any(api::nothing_here))
        .merge(api::probes())
        .with_state(app.clone());
    programs.merge(handlers::router(app))
}
