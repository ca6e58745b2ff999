//! Ledgers: opening, adjusting and retiring keys, their figures and their flow.

use axum::body::{Body as HttpBody, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use futures_util::stream::{self, Stream};

use super::caller::{Caller, ToRead, ToShop};
use super::fields::Unread;
use super::ledger_body::PutLedger;
use super::request::{Body, Resource};
use super::show::{FlowShown, LedgerShown};
use super::{Answered, Outcome, ok};
use crate::core::ledger::{self, Adjusted, Opened, Retired};
use crate::core::text::FieldError;
use crate::store::flow::Of;
use crate::store::ledger::Ledger;
use crate::store::token::Scope;
use crate::store::{self, Db, flow};
use crate::web::error::Problem;
use crate::web::state::App;

/// Open a key, or adjust its figures
///
/// Opening again with the same start changes nothing, and so does a `ref` that was applied before.
#[utoipa::path(put, path = "/ledger/{type}/{key}", tag = "ledger", request_body = PutLedger,
    params(("type" = String, Path, description = "stock, coupon, funds, quota or slot"), ("key" = String, Path)),
    responses((status = 200, description = "As it stands now", body = LedgerShown),
        (status = 404, description = "No such key to adjust"),
        (status = 409, description = "`ledger_exists`, `insufficient`")))]
pub(super) async fn put(
    State(app): State<App>,
    caller: Caller<ToShop>,
    resource: Resource,
    body: Body<Unread>,
) -> Answered {
    let put = PutLedger::read(resource.kind, body.value).map_err(|errors| Problem::invalid(&errors))?;
    let row = match put {
        PutLedger::Adjust(adjust) => adjusted(&app, &caller, &resource, adjust.into()).await?,
        open => opened(ledger::open(&app.core, &caller.actor(), open.into_new(resource.kind, resource.key)).await?)?,
    };
    ok(&LedgerShown::of(&row, app.core.now()))
}

fn opened(opened: Opened) -> Result<Ledger, Problem> {
    match opened {
        Opened::Opened(row) | Opened::Same(row) => Ok(row),
        Opened::Exists(_) => {
            let detail = "this key exists with another start; its figures change by adjust";
            Err(Problem::conflict("ledger_exists", detail))
        }
    }
}

async fn adjusted(
    app: &App,
    caller: &Caller<ToShop>,
    resource: &Resource,
    adjustment: ledger::Adjustment,
) -> Result<Ledger, Problem> {
    if adjustment.locked.is_some() {
        caller.require(Scope::Admin)?;
    }
    match ledger::adjust(&app.core, &caller.actor(), resource.kind, &resource.key, adjustment).await? {
        Adjusted::Adjusted(row) | Adjusted::Same(row) => Ok(row),
        Adjusted::Insufficient(_) => Err(Problem::conflict("insufficient", "a figure would fall below zero")),
        Adjusted::Unknown => Err(unknown()),
        Adjusted::WrongTask(why) => Err(Problem::invalid(&[FieldError::new("task", why)])),
    }
}

/// Retire a key
///
/// It can't be locked any more. Old holds settle and return on the retired row.
#[utoipa::path(delete, path = "/ledger/{type}/{key}", tag = "ledger",
    params(("type" = String, Path), ("key" = String, Path)),
    responses((status = 200, description = "`retired` or `already_retired`", body = Outcome), (status = 404)))]
pub(super) async fn retire(State(app): State<App>, caller: Caller<ToShop>, resource: Resource) -> Answered {
    match ledger::retire(&app.core, &caller.actor(), resource.kind, &resource.key).await? {
        Retired::Retired => ok(&Outcome::of("retired")),
        Retired::AlreadyRetired => ok(&Outcome::of("already_retired")),
        Retired::Unknown => Err(unknown()),
    }
}

/// Figures or state of a key
#[utoipa::path(get, path = "/ledger/{type}/{key}", tag = "ledger",
    params(("type" = String, Path), ("key" = String, Path)),
    responses((status = 200, body = LedgerShown), (status = 404)))]
pub(super) async fn show(State(app): State<App>, _: Caller<ToRead>, resource: Resource) -> Answered {
    let row = find(&app.core.db, &resource).await?;
    ok(&LedgerShown::of(&row, app.core.now()))
}

/// Everything that ever changed a key, oldest first
#[utoipa::path(get, path = "/ledger/{type}/{key}/flow", tag = "ledger",
    params(("type" = String, Path), ("key" = String, Path)),
    responses((status = 200, body = Vec<FlowShown>), (status = 404)))]
pub(super) async fn history(State(app): State<App>, _: Caller<ToRead>, resource: Resource) -> Answered {
    let row = find(&app.core.db, &resource).await?;
    let of = match app.core.policy.homes.is_mapped(resource.kind) {
        true => Of::Shops { resource: resource.kind, key: row.key.clone() },
        false => Of::Ledger(row.id),
    };
    let body = HttpBody::from_stream(flow_json(app.core.db.clone(), of));
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

async fn find(db: &Db, resource: &Resource) -> Result<Ledger, Problem> {
    let row = store::ledger::find(&mut db.read().await?, resource.kind, &resource.key).await?;
    row.ok_or_else(unknown)
}

fn unknown() -> Problem {
    Problem::not_found("there is no such key")
}

/// Where in a list that is being written.
enum Place {
    After(i64),
    End,
}

/// A JSON list written page by page: a key that ten thousand orders touched has a long history, and
/// none of it needs to be in memory at once.
fn flow_json(db: Db, of: Of) -> impl Stream<Item = store::Result<Bytes>> {
    stream::try_unfold(Place::After(0), move |place| {
        let (db, of) = (db.clone(), of.clone());
        async move {
            let Place::After(after) = place else { return Ok(None) };
            let page = flow::history(&mut db.read().await?, &of, after, PAGE).await?;
            let mut text = String::from(if after == 0 { "[" } else { "" });
            for row in &page {
                if !text.ends_with('[') {
                    text.push(',');
                }
                let row = serde_json::to_string(&FlowShown::of(row));
                text += &row.map_err(|error| store::Error::broken(error.to_string()))?;
            }
            let next = match page.last() {
                Some(last) if page.len() as i64 == PAGE => Place::After(last.id),
                _ => Place::End,
            };
            if matches!(next, Place::End) {
                text.push(']');
            }
            Ok(Some((Bytes::from(text), next)))
        }
    })
}

const PAGE: i64 = 500;
