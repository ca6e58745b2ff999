//! The pages. One table says which address there is, who may use it, and who answers; the router is made
//! from the table, so an address without a line in it does not exist. What the line says about roles is
//! checked by the handler's own signature, and a test walks every line as every role to see that they agree.

mod account;
mod confirm;
mod events;
mod files;
mod gate;
mod orders;
mod overview;
mod payments;
mod reconcile;
mod refunds;
mod returns;
mod task;
mod tasks;
mod wall;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};

use super::desk::Desk;
use super::middleware::frame;
use super::state::App;
use super::trouble::Oops;
use super::view::error::Trouble;
use crate::core::words::Role;

/// Who may use an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Anyone, also before signing in.
    Anyone,
    /// Whoever is signed in with a role that includes this one.
    From(Role),
}

/// One address of the console.
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    pub who: Who,
    handler: fn() -> MethodRouter<Desk>,
}

const fn route(method: &'static str, path: &'static str, who: Who, handler: fn() -> MethodRouter<Desk>) -> Route {
    Route { method, path, who, handler }
}

const ANYONE: Who = Who::Anyone;
const VIEWER: Who = Who::From(Role::Viewer);
const SERVICE: Who = Who::From(Role::Service);
const OPERATOR: Who = Who::From(Role::Operator);
const LEAD: Who = Who::From(Role::Lead);
const ADMIN: Who = Who::From(Role::Admin);

/// Every address of the console.
pub const ROUTES: &[Route] = &[
    route("GET", "/static/{file}", ANYONE, || get(files::show)),
    route("GET", "/setup", ANYONE, || get(gate::show_set_up)),
    route("POST", "/setup", ANYONE, || post(gate::set_up)),
    route("GET", "/login", ANYONE, || get(gate::show_sign_in)),
    route("POST", "/login", ANYONE, || post(gate::sign_in)),
    route("POST", "/account/language", ANYONE, || post(account::set_language)),
    route("POST", "/logout", VIEWER, || post(gate::sign_out)),
    route("GET", "/", VIEWER, || get(overview::show)),
    route("GET", "/events", VIEWER, || get(events::stream)),
    route("GET", "/tasks", VIEWER, || get(tasks::list)),
    route("GET", "/tasks/{id}", VIEWER, || get(task::show)),
    route("POST", "/tasks/{id}/calls", SERVICE, || post(task::call)),
    route("POST", "/tasks/{id}/retries", OPERATOR, || post(task::retry)),
    route("POST", "/tasks/{id}/closures", OPERATOR, || post(task::close)),
    route("GET", "/orders", VIEWER, || get(orders::search)),
    route("GET", "/orders/{no}", VIEWER, || get(orders::show)),
    route("GET", "/orders/{no}/reveals", SERVICE, || get(orders::ask_reveal)),
    route("POST", "/orders/{no}/reveals", SERVICE, || post(orders::reveal)),
    route("GET", "/orders/{no}/payments/{id}/acceptances", LEAD, || get(orders::ask_accept)),
    route("POST", "/orders/{no}/payments/{id}/acceptances", LEAD, || post(orders::accept)),
    route("GET", "/orders/{no}/tombstone/lifts", LEAD, || get(orders::ask_lift)),
    route("POST", "/orders/{no}/tombstone/lifts", LEAD, || post(orders::lift)),
    route("GET", "/refunds", VIEWER, || get(refunds::list)),
    route("GET", "/payments/{id}/refunds", LEAD, || get(payments::ask_return)),
    route("POST", "/payments/{id}/refunds", LEAD, || post(payments::give)),
    route("GET", "/payment-conflicts/{id}/settlements", LEAD, || get(payments::ask_settle)),
    route("POST", "/payment-conflicts/{id}/settlements", LEAD, || post(payments::settle)),
    route("GET", "/reconcile", VIEWER, || get(reconcile::show)),
    route("GET", "/reconcile/{run}", VIEWER, || get(reconcile::show_run)),
    route("POST", "/reconcile/runs", OPERATOR, || post(reconcile::run)),
    route("GET", "/returns", VIEWER, || get(returns::list)),
    route("GET", "/admin/screens", ADMIN, || get(wall::list)),
    route("POST", "/admin/screens", ADMIN, || post(wall::register)),
    route("POST", "/admin/screens/{id}/revocations", ADMIN, || post(wall::revoke)),
    route("GET", "/wall", ANYONE, || get(wall::show_code)),
    route("POST", "/wall", ANYONE, || post(wall::open)),
    route("GET", "/wall/{screen}", ANYONE, || get(wall::show)),
    route("GET", "/wall/{screen}/tiles", ANYONE, || get(wall::tiles)),
    route("GET", "/wall/{screen}/events", ANYONE, || get(wall::stream)),
    route("GET", "/account", VIEWER, || get(account::show)),
    route("POST", "/account", VIEWER, || post(account::save)),
    route("POST", "/account/sessions/end", VIEWER, || post(account::end_session)),
    route("GET", "/help", VIEWER, || get(account::help)),
];

/// The console, on its own state.
pub fn router(app: App) -> Router {
    let desk = Desk::new(app);
    let pages = ROUTES.iter().fold(Router::new(), |router, line| router.route(line.path, (line.handler)()));
    let pages = pages.fallback(|| async { Oops::from(Trouble::NotFound) });
    pages.layer(from_fn_with_state(desk.clone(), frame)).with_state(desk)
}
