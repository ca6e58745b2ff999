//! Finding an order, showing it, and what a person may do with it: look at the buyer's name, take a payment as
//! it is, lift a tombstone. Each act has a page of its own that asks why.

use axum::extract::{Path, Query, State};
use serde::Deserialize;

use super::confirm::{Question, ReasonForm, ask};
use crate::core::order::cases::{Accepted, accept_payment};
use crate::core::order::close::{Lifted, lift_tombstone};
use crate::core::order::look::reveal_buyer;
use crate::core::text;
use crate::core::words::Role;
use crate::store::order_search;
use crate::store::order_view::{self, OrderView};
use crate::store::shop_order::{self, ShopOrder};
use crate::web::desk::Desk;
use crate::web::extract::{As, Checked, Lead, Service, Viewer, Visit};
use crate::web::i18n::Lang;
use crate::web::notice::Notice;
use crate::web::paths;
use crate::web::render::{self, Answer};
use crate::web::trouble::Oops;
use crate::web::view::error::Trouble;
use crate::web::view::order::{May, OrderPage};
use crate::web::view::orders::OrdersPage;
use crate::web::view::{Section, format};

const HITS: usize = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    q: String,
}

/// What was typed may have stray spaces, other case, or be a part of the number, or name the order in another
/// way. One hit opens.
pub async fn search(State(desk): State<Desk>, As(visit, ..): As<Viewer>, Query(asked): Query<Asked>) -> Answer {
    let typed = asked.q.trim();
    if !typed.is_empty() && text::check_text(typed, text::KEY_MAX).is_err() {
        return Err(visit.oops(Trouble::BadRequest));
    }
    let mut conn = desk.app.core.db.read().await?;
    let hits = match typed {
        "" => order_search::newest(&mut conn, HITS + 1).await?,
        typed => order_search::search(&mut conn, typed, HITS + 1, visit.may(Role::Service)).await?,
    };
    if let ([only], false) = (hits.as_slice(), typed.is_empty()) {
        return render::see_other(&paths::order(&only.order_no));
    }
    let mut s = visit.shell(Section::Orders);
    s.search = typed.to_owned();
    render::page(&OrdersPage::new(s, &visit.eye, &hits, HITS), visit.ask.part)
}

pub async fn show(State(desk): State<Desk>, As(visit, ..): As<Viewer>, Path(no): Path<String>) -> Answer {
    match find(&desk, &visit, &no).await {
        Ok(view) => shown(&desk, &visit, &view, None),
        Err(unknown) => match find_at_shop(&desk, &no).await? {
            Some(view) => shown_of_shop(&desk, &visit, &view),
            None => Err(unknown),
        },
    }
}

/// An order that only the shop keeps: it can be looked at, and nothing else.
async fn find_at_shop(desk: &Desk, no: &str) -> Result<Option<ShopOrder>, Oops> {
    if text::check_text(no, text::NUMBER_MAX).is_err() {
        return Ok(None);
    }
    Ok(shop_order::view(&mut desk.app.core.db.read().await?, no).await?)
}

fn shown_of_shop(desk: &Desk, visit: &Visit, view: &ShopOrder) -> Answer {
    let mut s = visit.shell(Section::Orders);
    s.here = paths::order(&view.order_no);
    render::page(&OrderPage::of_shop(s, &visit.eye, view, desk.max_failures()), visit.ask.part)
}

async fn find(desk: &Desk, visit: &Visit, no: &str) -> Result<OrderView, Oops> {
    if text::check_text(no, text::NUMBER_MAX).is_err() {
        return Err(visit.oops(Trouble::OrderUnknown));
    }
    let mut conn = desk.app.core.db.read().await?;
    order_view::view(&mut conn, no).await?.ok_or_else(|| visit.oops(Trouble::OrderUnknown))
}

fn shown(desk: &Desk, visit: &Visit, view: &OrderView, buyer: Option<&str>) -> Answer {
    let may = May { decide: visit.may(Role::Lead), reveal: visit.may(Role::Service), buyer };
    let mut s = visit.shell(Section::Orders);
    s.here = paths::order(&view.order.order_no);
    render::page(&OrderPage::new(s, &visit.eye, view, desk.max_failures(), may), visit.ask.part)
}

fn reveal_question(lang: Lang, no: &str) -> Question {
    Question {
        title: lang.f("confirm.reveal", &[("order", &no)]),
        text: "confirm.reveal_text",
        button: "confirm.reveal_button",
        action: paths::reveals(no),
        back: paths::order(no),
        section: Section::Orders,
        facts: Vec::new(),
    }
}

pub async fn ask_reveal(State(desk): State<Desk>, As(visit, ..): As<Service>, Path(no): Path<String>) -> Answer {
    find(&desk, &visit, &no).await?;
    ask(&visit, reveal_question(visit.eye.lang, &no), None)
}

/// Shows the order once with its buyer; the audit log says who looked and why.
pub async fn reveal(
    State(desk): State<Desk>,
    As(visit, ..): As<Service>,
    Path(no): Path<String>,
    Checked(form): Checked<ReasonForm>,
) -> Answer {
    let view = find(&desk, &visit, &no).await?;
    let Some(reason) = form.reason() else { return ask(&visit, reveal_question(visit.eye.lang, &no), Some(&form)) };
    let buyer = reveal_buyer(&desk.app.core, &visit.actor(), &no, reason).await?;
    shown(&desk, &visit, &view, buyer.as_deref())
}

fn accept_question(visit: &Visit, view: &OrderView, payment: i64) -> Result<Question, Oops> {
    let lang = visit.eye.lang;
    let own = view.payments.iter().find(|p| p.id == payment).ok_or_else(|| visit.oops(Trouble::NotFound))?;
    let facts = vec![
        (lang.t("order.to_pay").to_owned(), format::money(view.order.amount, &view.order.currency)),
        (lang.t("confirm.arrived").to_owned(), format::money(own.amount, &own.currency)),
    ];
    let no = &view.order.order_no;
    Ok(Question {
        title: lang.f("confirm.accept", &[("order", no)]),
        text: "confirm.accept_text",
        button: "confirm.accept_button",
        action: paths::acceptances(no, payment),
        back: paths::order(no),
        section: Section::Orders,
        facts,
    })
}

pub async fn ask_accept(
    State(desk): State<Desk>,
    As(visit, ..): As<Lead>,
    Path((no, payment)): Path<(String, String)>,
) -> Answer {
    let payment = payment.parse().map_err(|_| visit.oops(Trouble::NotFound))?;
    let view = find(&desk, &visit, &no).await?;
    ask(&visit, accept_question(&visit, &view, payment)?, None)
}

pub async fn accept(
    State(desk): State<Desk>,
    As(visit, ..): As<Lead>,
    Path((no, payment)): Path<(String, String)>,
    Checked(form): Checked<ReasonForm>,
) -> Answer {
    let payment = payment.parse().map_err(|_| visit.oops(Trouble::NotFound))?;
    let view = find(&desk, &visit, &no).await?;
    let question = accept_question(&visit, &view, payment)?;
    let Some(reason) = form.reason() else { return ask(&visit, question, Some(&form)) };
    let notice = match accept_payment(&desk.app.core, &visit.actor(), payment, reason).await? {
        Accepted::Accepted => Notice::PaymentAccepted,
        Accepted::NotPending | Accepted::NotRecorded | Accepted::Unknown => Notice::PaymentNotAccepted,
    };
    render::then(&desk, &paths::order(&no), notice)
}

fn lift_question(lang: Lang, no: &str) -> Question {
    Question {
        title: lang.f("confirm.lift", &[("order", &no)]),
        text: "confirm.lift_text",
        button: "confirm.lift_button",
        action: paths::tombstone(no),
        back: paths::order(no),
        section: Section::Orders,
        facts: Vec::new(),
    }
}

pub async fn ask_lift(State(desk): State<Desk>, As(visit, ..): As<Lead>, Path(no): Path<String>) -> Answer {
    find(&desk, &visit, &no).await?;
    ask(&visit, lift_question(visit.eye.lang, &no), None)
}

pub async fn lift(
    State(desk): State<Desk>,
    As(visit, ..): As<Lead>,
    Path(no): Path<String>,
    Checked(form): Checked<ReasonForm>,
) -> Answer {
    let Some(reason) = form.reason() else { return ask(&visit, lift_question(visit.eye.lang, &no), Some(&form)) };
    match lift_tombstone(&desk.app.core, &visit.actor(), &no, reason).await? {
        Lifted::Lifted => render::then(&desk, paths::ORDERS, Notice::Lifted),
        Lifted::NoTombstone if find_at_shop(&desk, &no).await?.is_some() => Err(visit.oops(Trouble::OrderUnknown)),
        Lifted::NoTombstone => render::then(&desk, paths::ORDERS, Notice::NoTombstone),
    }
}
