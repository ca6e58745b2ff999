//! Finding an order, and showing it.

use axum::extract::{Path, Query, State};
use serde::Deserialize;

use crate::core::text;
use crate::store::order_view;
use crate::web::desk::Desk;
use crate::web::extract::{As, Viewer};
use crate::web::paths;
use crate::web::render::{self, Answer};
use crate::web::view::Section;
use crate::web::view::error::Trouble;
use crate::web::view::order::OrderPage;
use crate::web::view::orders::OrdersPage;

const HITS: usize = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    q: String,
}

/// What was typed may have stray spaces, other case, or be a part of the number. One hit opens.
pub async fn search(State(desk): State<Desk>, As(visit, ..): As<Viewer>, Query(asked): Query<Asked>) -> Answer {
    let typed = asked.q.trim();
    if !typed.is_empty() && text::check_text(typed, text::NUMBER_MAX).is_err() {
        return Err(visit.oops(Trouble::BadRequest));
    }
    let mut conn = desk.app.core.db.read().await?;
    let hits = order_view::search(&mut conn, typed, HITS + 1).await?;
    if let ([only], false) = (hits.as_slice(), typed.is_empty()) {
        return render::see_other(&paths::order(&only.order_no));
    }
    let mut s = visit.shell(Section::Orders);
    s.search = typed.to_owned();
    render::page(&OrdersPage::new(s, &visit.eye, &hits, HITS), visit.ask.part)
}

pub async fn show(State(desk): State<Desk>, As(visit, ..): As<Viewer>, Path(no): Path<String>) -> Answer {
    if text::check_text(&no, text::NUMBER_MAX).is_err() {
        return Err(visit.oops(Trouble::OrderUnknown));
    }
    let mut conn = desk.app.core.db.read().await?;
    let view = order_view::view(&mut conn, &no).await?;
    let view = view.ok_or_else(|| visit.oops(Trouble::OrderUnknown))?;
    let page = OrderPage::new(visit.shell(Section::Orders), &visit.eye, &view, desk.max_failures());
    render::page(&page, visit.ask.part)
}
