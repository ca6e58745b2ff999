//! What a lead decides about money that fits nothing: it goes back, or the case of a transaction that was told
//! twice is closed. Taking a payment as it is belongs to the page of its order.

use axum::extract::{Path, State};

use super::confirm::{Question, ReasonForm, ask};
use crate::core::order::cases::{GivenBack, Settled, give_back, settle_conflict};
use crate::store::{payment, payment_case};
use crate::web::desk::Desk;
use crate::web::extract::{As, Checked, Lead, Visit};
use crate::web::notice::Notice;
use crate::web::paths;
use crate::web::render::{self, Answer};
use crate::web::trouble::Oops;
use crate::web::view::error::Trouble;
use crate::web::view::order::masked;
use crate::web::view::{Section, format};

async fn return_question(desk: &Desk, visit: &Visit, id: i64) -> Result<Question, Oops> {
    let mut conn = desk.app.core.db.read().await?;
    let payment = payment::find(&mut conn, id).await?.ok_or_else(|| visit.oops(Trouble::NotFound))?;
    let lang = visit.eye.lang;
    Ok(Question {
        title: lang.f("confirm.give_back", &[("order", &payment.order_no)]),
        text: "confirm.give_back_text",
        button: "confirm.give_back_button",
        action: paths::give_backs(id),
        back: paths::REFUNDS.to_owned(),
        section: Section::Refunds,
        facts: vec![
            (lang.t("confirm.arrived").to_owned(), format::money(payment.amount, &payment.currency)),
            (lang.t("order.payments").to_owned(), format!("{} {}", payment.channel, masked(&payment.channel_txn))),
        ],
    })
}

pub async fn ask_return(State(desk): State<Desk>, As(visit, ..): As<Lead>, Path(id): Path<String>) -> Answer {
    let id = number(&visit, &id)?;
    ask(&visit, return_question(&desk, &visit, id).await?, None)
}

pub async fn give(
    State(desk): State<Desk>,
    As(visit, ..): As<Lead>,
    Path(id): Path<String>,
    Checked(form): Checked<ReasonForm>,
) -> Answer {
    let id = number(&visit, &id)?;
    let question = return_question(&desk, &visit, id).await?;
    let Some(reason) = form.reason() else { return ask(&visit, question, Some(&form)) };
    let notice = match give_back(&desk.app.core, &visit.actor(), id, reason).await? {
        GivenBack::RefundDue => Notice::MoneyGoesBack,
        GivenBack::NotWaiting | GivenBack::Unknown => Notice::MoneyNotGivenBack,
    };
    render::then(&desk, paths::REFUNDS, notice)
}

async fn settle_question(desk: &Desk, visit: &Visit, id: i64) -> Result<Question, Oops> {
    let mut conn = desk.app.core.db.read().await?;
    let missing = || visit.oops(Trouble::NotFound);
    let conflict = payment_case::find_conflict(&mut conn, id).await?.ok_or_else(missing)?;
    let payment = payment::find(&mut conn, conflict.payment_id).await?.ok_or_else(missing)?;
    let lang = visit.eye.lang;
    let told = |order: &str, amount: i64, currency: &str| format!("{order} · {}", format::money(amount, currency));
    Ok(Question {
        title: lang.f("confirm.settle", &[("order", &payment.order_no)]),
        text: "confirm.settle_text",
        button: "confirm.settle_button",
        action: paths::settlements(id),
        back: paths::REFUNDS.to_owned(),
        section: Section::Refunds,
        facts: vec![
            (lang.t("refunds.told_first").to_owned(), told(&payment.order_no, payment.amount, &payment.currency)),
            (lang.t("refunds.told_again").to_owned(), told(&conflict.order_no, conflict.amount, &conflict.currency)),
        ],
    })
}

pub async fn ask_settle(State(desk): State<Desk>, As(visit, ..): As<Lead>, Path(id): Path<String>) -> Answer {
    let id = number(&visit, &id)?;
    ask(&visit, settle_question(&desk, &visit, id).await?, None)
}

pub async fn settle(
    State(desk): State<Desk>,
    As(visit, ..): As<Lead>,
    Path(id): Path<String>,
    Checked(form): Checked<ReasonForm>,
) -> Answer {
    let id = number(&visit, &id)?;
    let question = settle_question(&desk, &visit, id).await?;
    let Some(reason) = form.reason() else { return ask(&visit, question, Some(&form)) };
    let notice = match settle_conflict(&desk.app.core, &visit.actor(), id, reason).await? {
        Settled::Settled => Notice::ConflictSettled,
        Settled::AlreadySettled | Settled::Unknown => Notice::ConflictSettledBefore,
    };
    render::then(&desk, paths::REFUNDS, notice)
}

fn number(visit: &Visit, text: &str) -> Result<i64, Oops> {
    text.parse().map_err(|_| visit.oops(Trouble::NotFound))
}
