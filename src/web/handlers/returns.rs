//! The list of returns. The filter lives in the address.

use axum::extract::{Query, State};
use serde::Deserialize;

use crate::store::return_order;
use crate::web::desk::Desk;
use crate::web::extract::{As, Viewer};
use crate::web::render::{self, Answer};
use crate::web::view::Section;
use crate::web::view::error::Trouble;
use crate::web::view::returns::{ReturnsPage, state_of};

const ROWS: usize = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    status: String,
    cursor: String,
}

pub async fn list(State(desk): State<Desk>, As(visit, ..): As<Viewer>, Query(asked): Query<Asked>) -> Answer {
    let state = state_of(&asked.status).ok_or_else(|| visit.oops(Trouble::BadRequest))?;
    let before = match asked.cursor.as_str() {
        "" => None,
        text => Some(text.parse::<i64>().map_err(|_| visit.oops(Trouble::BadRequest))?),
    };
    let mut conn = desk.app.core.db.read().await?;
    let listing = return_order::list(&mut conn, state, before, ROWS).await?;
    let page = ReturnsPage::new(visit.shell(Section::Returns), &visit.eye, state, &listing, before.is_none());
    render::page(&page, visit.ask.part)
}
