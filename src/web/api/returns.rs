//! Returns: accepting, receiving, showing.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::caller::{Caller, ToRead, ToShop};
use super::fields::{Fields, FromFields, Nothing};
use super::request::{Body, ReturnNo};
use super::show::TaskShown;
use super::{Answered, Outcome, ok};
use crate::core::returns::accept::{Accepted, Told, ToldItem, accept_return};
use crate::core::returns::{self, Received, ReturnInFull, receive_return, stands};
use crate::core::text::{HOLDS_MAX, KEY_MAX, NUMBER_MAX, QTY_MAX};
use crate::web::error::Problem;
use crate::web::state::App;

#[derive(Debug, ToSchema)]
pub(super) struct AcceptReturn {
    #[schema(max_length = 64)]
    return_no: String,
    /// Left out for goods that were sold elsewhere
    #[schema(max_length = 64)]
    order_no: Option<String>,
    #[schema(min_items = 1, max_items = 200)]
    items: Vec<ItemAsked>,
}

#[derive(Debug, ToSchema)]
pub(super) struct ItemAsked {
    #[schema(max_length = 128)]
    key: String,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    qty: i64,
    /// Whether it goes back on sale; true when left out
    restock: Option<bool>,
}

impl FromFields for AcceptReturn {
    fn read(f: &mut Fields) -> Option<Self> {
        let return_no = f.text("return_no", NUMBER_MAX);
        let order_no = f.opt_text("order_no", NUMBER_MAX);
        let items = f.list("items", HOLDS_MAX);
        Some(Self { return_no: return_no?, order_no, items: items? })
    }
}

impl FromFields for ItemAsked {
    fn read(f: &mut Fields) -> Option<Self> {
        let key = f.text("key", KEY_MAX);
        let qty = f.whole("qty", 0, QTY_MAX);
        let restock = f.opt_truth("restock");
        Some(Self { key: key?, qty: qty?, restock })
    }
}

impl AcceptReturn {
    fn into_told(self, raw: &[u8]) -> Told {
        let items = self.items.into_iter();
        Told {
            return_no: self.return_no,
            order_no: self.order_no,
            items: items
                .map(|item| ToldItem { key: item.key, qty: item.qty, restock: item.restock.unwrap_or(true) })
                .collect(),
            raw: String::from_utf8_lossy(raw).into_owned(),
        }
    }
}

/// A return with what became of it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReturnShown {
    return_no: String,
    order_no: Option<String>,
    /// `accepted`, `received`, or `completed` once all its tasks are done
    status: &'static str,
    items: Vec<ItemShown>,
    tasks: Vec<TaskShown>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ItemShown {
    key: String,
    qty: i64,
    restock: bool,
}

impl ReturnShown {
    pub fn of(full: &ReturnInFull, max_failures: i64) -> Self {
        let item = |item: &crate::store::return_order::Item| ItemShown {
            key: item.key.clone(),
            qty: item.qty,
            restock: item.restock,
        };
        Self {
            return_no: full.row.return_no.clone(),
            order_no: full.row.order_no.clone(),
            status: stands(&full.row, &full.tasks).word(),
            items: full.items.iter().map(item).collect(),
            tasks: full.tasks.iter().map(|task| TaskShown::of(task, max_failures)).collect(),
        }
    }
}

/// Accept a return
///
/// Stock follows once it is received. Of an order no more comes back than was paid for and has not come back
/// yet; lines of the same key add up. Without `order_no` the goods were sold elsewhere and nothing is compared.
#[utoipa::path(post, path = "/returns", tag = "returns", request_body = AcceptReturn,
    responses((status = 201, description = "Accepted", body = ReturnShown),
        (status = 200, description = "Accepted before with the same content", body = ReturnShown),
        (status = 404, description = "There is no such order"),
        (status = 409, description = "`over_return` with `over`, `return_exists`")))]
pub(super) async fn accept(State(app): State<App>, _: Caller<ToShop>, body: Body<AcceptReturn>) -> Answered {
    let told = body.value.into_told(&body.raw);
    let return_no = told.return_no.clone();
    let status = match accept_return(&app.core, told).await? {
        Accepted::Accepted => StatusCode::CREATED,
        Accepted::Same => StatusCode::OK,
        refused => return Err(not_accepted(refused)),
    };
    Ok((status, shown(&app, &return_no).await?).into_response())
}

fn not_accepted(refused: Accepted) -> Problem {
    match refused {
        Accepted::UnknownOrder => Problem::not_found("there is no such order"),
        Accepted::OverReturn(over) => {
            let over = over.into_iter().map(|over| json!({"key": over.key, "qty": over.qty, "left": over.left}));
            let detail = "more would come back than the order paid for and has not yet returned";
            Problem::conflict("over_return", detail).with("over", over.collect())
        }
        _ => Problem::conflict("return_exists", "another return has this number"),
    }
}

/// The goods of a return are here
#[utoipa::path(post, path = "/returns/{no}/received", tag = "returns", params(("no" = String, Path)),
    responses((status = 200, description = "`received` or `already_received`", body = Outcome), (status = 404)))]
pub(super) async fn receive(
    State(app): State<App>,
    _: Caller<ToShop>,
    ReturnNo(no): ReturnNo,
    _: Body<Nothing>,
) -> Answered {
    match receive_return(&app.core, &no).await? {
        Received::Received => ok(&Outcome::of("received")),
        Received::AlreadyReceived => ok(&Outcome::of("already_received")),
        Received::Unknown => Err(unknown()),
    }
}

/// One return with its lines and tasks
#[utoipa::path(get, path = "/returns/{no}", tag = "returns", params(("no" = String, Path)),
    responses((status = 200, body = ReturnShown), (status = 404)))]
pub(super) async fn show(State(app): State<App>, _: Caller<ToRead>, ReturnNo(no): ReturnNo) -> Answered {
    shown(&app, &no).await
}

async fn shown(app: &App, return_no: &str) -> Answered {
    let mut conn = app.core.db.snapshot().await?;
    let full = returns::find(&mut conn, return_no).await?;
    conn.done().await?;
    ok(&ReturnShown::of(&full.ok_or_else(unknown)?, app.core.policy.retry.max_failures))
}

fn unknown() -> Problem {
    Problem::not_found("there is no such return")
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::assert_fields_are_described;
    use super::*;

    #[test]
    fn the_description_names_the_fields_that_are_read() {
        assert_fields_are_described::<AcceptReturn>();
        assert_fields_are_described::<ItemAsked>();
    }
}
