use axum::extract::State;

use crate::web::desk::Desk;
use crate::web::extract::{As, Viewer};
use crate::web::live;
use crate::web::render::{self, Answer};
use crate::web::view::Section;
use crate::web::view::overview::OverviewPage;

pub async fn show(State(desk): State<Desk>, As(visit, ..): As<Viewer>) -> Answer {
    let snapshot = live::read(&desk.app.core).await?;
    let page = OverviewPage::new(visit.shell(Section::Overview), &visit.eye, &snapshot);
    render::page(&page, visit.ask.part)
}
