//! Money that goes back.

use axum::extract::State;

use crate::core::words::source;
use crate::store::{payment, task};
use crate::web::desk::Desk;
use crate::web::extract::{As, Viewer};
use crate::web::render::{self, Answer};
use crate::web::view::Section;
use crate::web::view::refunds::RefundsPage;

const ROWS: usize = 100;

pub async fn list(State(desk): State<Desk>, As(visit, ..): As<Viewer>) -> Answer {
    let mut conn = desk.app.core.db.read().await?;
    let mut due = Vec::new();
    for payment in payment::refund_due(&mut conn, (ROWS + 1) as i64).await? {
        let cause = source::refund(payment.id);
        let tasks = task::of_ref(&mut conn, &payment.order_no).await?;
        due.push((payment, tasks.into_iter().find(|task| task.source == cause)));
    }
    render::page(&RefundsPage::new(visit.shell(Section::Refunds), &visit.eye, &due, ROWS), visit.ask.part)
}
