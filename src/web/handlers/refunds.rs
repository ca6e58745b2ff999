//! Money that goes back, and money that fits nothing.

use axum::extract::State;

use crate::core::words::{Role, source};
use crate::store::{payment, payment_case, task};
use crate::web::desk::Desk;
use crate::web::extract::{As, Viewer};
use crate::web::render::{self, Answer};
use crate::web::view::Section;
use crate::web::view::refunds::{Cases, RefundsPage};

const ROWS: usize = 100;

pub async fn list(State(desk): State<Desk>, As(visit, ..): As<Viewer>) -> Answer {
    let mut conn = desk.app.core.db.read().await?;
    let mut due = Vec::new();
    for payment in payment::refund_due(&mut conn, (ROWS + 1) as i64).await? {
        let cause = source::refund(payment.id);
        let tasks = task::of_ref(&mut conn, &payment.order_no).await?;
        due.push((payment, tasks.into_iter().find(|task| task.source == cause)));
    }
    let cases = Cases {
        misfits: payment_case::misfits(&mut conn, (ROWS + 1) as i64).await?,
        conflicts: payment_case::open_conflicts(&mut conn, (ROWS + 1) as i64).await?,
        may_decide: visit.may(Role::Lead),
    };
    render::page(&RefundsPage::new(visit.shell(Section::Refunds), &visit.eye, &due, &cases, ROWS), visit.ask.part)
}
