//! One order: first what can be said to the caller, then each thing it reserved as held, coming back,
//! returned or in need of help, then what happened, newest first, payments with what they lacked, rounds and
//! returns. Words only where they are certain.

mod money;
mod parts;
mod sentence;
mod shop;
mod story;

use askama::Template;

use super::mark::Caller;
use super::tasks::Row;
use super::{Eye, Flash, Link, Mark, Section, Shell, Stamp, format};
use crate::core::words::{FundsKind, OrderStatus, ResourceType};
use crate::store::order_view::{HoldRow, OrderView, ReturnView};
use crate::web::i18n::Lang;
use crate::web::paths;

use money::{PaymentRow, payment_row};
use parts::Part;

pub use money::lacking;

#[derive(Template)]
#[template(path = "pages/order.html", blocks = ["content"])]
pub struct OrderPage {
    pub s: Shell,
    pub order_no: String,
    pub mark: Mark,
    /// Where the order is kept, when it isn't here.
    pub kept: String,
    /// What can't be seen at this moment.
    pub trouble: Option<Flash>,
    pub sentence: String,
    pub certain: Mark,
    pub resources: Vec<Resource>,
    pub events: Vec<Event>,
    pub tasks: Vec<Row>,
    pub lines: Vec<Line>,
    /// Nothing where nobody told an amount.
    pub amount: Option<String>,
    pub payments: Vec<PaymentRow>,
    /// What each round held, once there is more than one.
    pub rounds: Vec<RoundRow>,
    pub returns: Vec<ReturnRow>,
    /// Acts of a person on the whole order.
    pub acts: Vec<Link>,
    /// Nothing where the reader may not ask for it, or it is shown.
    pub reveal: Option<Link>,
    pub facts: Vec<(String, String)>,
}

/// One thing the buyer reserved.
pub struct Resource {
    pub what: String,
    pub key: String,
    pub qty: String,
    pub mark: Mark,
    pub when: String,
}

/// One entry of the timeline: who, what, before → after.
pub struct Event {
    pub at: Stamp,
    pub tone: &'static str,
    pub icon: &'static str,
    pub title: String,
    pub text: String,
    pub by: String,
    /// Machine noise, folded: time, what, who.
    pub folded: Vec<(String, String, String)>,
    pub fold_title: String,
    pub planned: bool,
}

pub struct Line {
    pub name: String,
    pub qty: String,
    pub price: String,
}

/// What a round held of one thing, and what became of it.
pub struct RoundRow {
    pub round: i64,
    pub what: String,
    pub key: String,
    pub qty: String,
    pub mark: Mark,
}

/// A return of the order.
pub struct ReturnRow {
    pub return_no: String,
    pub mark: Mark,
    pub lines: Vec<String>,
    pub at: Option<Stamp>,
    pub tasks: Vec<Row>,
}

/// What the reader may do and see beyond reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct May<'a> {
    /// Accept payments, lift a tombstone.
    pub decide: bool,
    /// Ask for the buyer's name.
    pub reveal: bool,
    /// The buyer, revealed for this answer.
    pub buyer: Option<&'a str>,
}

impl OrderPage {
    pub fn new(mut s: Shell, eye: &Eye, view: &OrderView, max_failures: i64, may: May<'_>) -> OrderPage {
        s.section = Section::Orders;
        let (lang, order) = (eye.lang, &view.order);
        let parts = parts::parts(eye, view);
        let held_until = Some(order.pay_deadline).filter(|_| order.status == OrderStatus::Pending);
        OrderPage {
            order_no: order.order_no.clone(),
            mark: Mark::order(lang, order.status),
            kept: String::new(),
            trouble: None,
            sentence: sentence::sentence(eye, view, &parts),
            certain: story::certainty(lang, view, &parts),
            events: story::events(eye, view),
            tasks: view.tasks.iter().map(|t| Row::new(eye, t, max_failures)).collect(),
            lines: lines(view),
            amount: (!order.is_tombstone()).then(|| format::amount(order.amount, &order.currency)),
            payments: view.payments.iter().map(|p| payment_row(eye, view, p, may.decide)).collect(),
            rounds: rounds(eye, view),
            returns: view.returns.iter().map(|r| return_row(eye, r, max_failures)).collect(),
            acts: acts(lang, view, may),
            reveal: reveal(lang, view, may),
            facts: facts(eye, view, may),
            resources: parts.iter().map(|part| resource(eye, part, held_until, Some(&order.currency))).collect(),
            s,
        }
    }
}

fn acts(lang: Lang, view: &OrderView, may: May<'_>) -> Vec<Link> {
    let lift = view.order.is_tombstone() && may.decide;
    let text = || lang.t("order.lift").to_owned();
    lift.then(|| Link { href: paths::tombstone(&view.order.order_no), text: text() }).into_iter().collect()
}

fn reveal(lang: Lang, view: &OrderView, may: May<'_>) -> Option<Link> {
    let is_hidden = may.reveal && may.buyer.is_none() && !view.order.is_tombstone();
    let text = || lang.t("order.reveal").to_owned();
    is_hidden.then(|| Link { href: paths::reveals(&view.order.order_no), text: text() })
}

fn rounds(eye: &Eye, view: &OrderView) -> Vec<RoundRow> {
    if view.holds.iter().all(|hold| hold.round == 1) {
        return Vec::new();
    }
    let lang = eye.lang;
    let row = |part: Part<'_>| RoundRow {
        round: part.hold.round,
        what: thing(lang, part.hold.resource, part.hold.funds).to_owned(),
        key: part.hold.key.clone(),
        qty: format::quantity(lang, part.hold.resource, part.qty, part.hold.funds, Some(&view.order.currency)),
        mark: Mark::caller(lang, part.state),
    };
    view.holds.iter().flat_map(|hold| parts::of_hold(eye, view, hold)).map(row).collect()
}

fn return_row(eye: &Eye, returned: &ReturnView, max_failures: i64) -> ReturnRow {
    let lang = eye.lang;
    let owed = returned.tasks.iter().any(|task| task.status.is_unfinished() || task.is_owed);
    let mark = match (returned.row.is_received, owed || !returned.row.is_tasked) {
        (false, _) => Mark { class: "wait", icon: "wait", word: lang.word("return", "accepted") },
        (true, true) => Mark { class: "retry", icon: "retry", word: lang.word("return", "owed") },
        (true, false) => Mark { class: "ok", icon: "ok", word: lang.word("return", "completed") },
    };
    ReturnRow {
        return_no: returned.row.return_no.clone(),
        mark,
        lines: returned.items.iter().map(|item| story::return_line(lang, item)).collect(),
        at: returned.row.received_at.or(returned.row.accepted_at).map(|at| eye.stamp(at)),
        tasks: returned.tasks.iter().map(|t| Row::new(eye, t, max_failures)).collect(),
    }
}

fn resource(eye: &Eye, part: &Part<'_>, held_until: Option<i64>, currency: Option<&str>) -> Resource {
    let (lang, hold) = (eye.lang, part.hold);
    let at = |at: Option<i64>| at.map(|at| eye.stamp(at).short()).unwrap_or_default();
    let when = match (part.state, part.task) {
        (Caller::Held, _) => match held_until {
            Some(at) => lang.f("order.held_until", &[("at", &eye.stamp(at).spoken())]),
            None => String::new(),
        },
        (Caller::Returned | Caller::Bought, Some(task)) => at(task.finished_at),
        (Caller::ComingBack, Some(_)) if part.next_try.is_some() => {
            lang.f("order.next_try", &[("at", &at(part.next_try))])
        }
        (Caller::ComingBack, _) => lang.t("order.in_a_moment").to_owned(),
        (Caller::NeedsHelp, Some(task)) => lang.f("order.with_ops", &[("task", &task.id)]),
        (Caller::NeedsHelp, None) => lang.t("order.no_task").to_owned(),
        _ => String::new(),
    };
    Resource {
        what: thing(lang, hold.resource, hold.funds).to_owned(),
        key: hold.key.clone(),
        qty: format::quantity(lang, hold.resource, part.qty, hold.funds, currency),
        mark: Mark::caller(lang, part.state),
        when: with_end(eye, when, hold),
    }
}

/// A coupon's own end stands beside its state: it may end before it is back.
fn with_end(eye: &Eye, when: String, hold: &HoldRow) -> String {
    match hold.expires_at.filter(|_| hold.resource == ResourceType::Coupon) {
        Some(end) => {
            let end = eye.lang.f("order.valid_until", &[("at", &eye.stamp(end).spoken())]);
            if when.is_empty() { end } else { format!("{when} · {end}") }
        }
        None => when,
    }
}

/// What a caller calls it.
fn thing(lang: Lang, resource: ResourceType, funds: Option<FundsKind>) -> &'static str {
    match (resource, funds) {
        (ResourceType::Stock, _) => lang.t("order.thing_stock"),
        (ResourceType::Coupon, _) => lang.t("order.thing_coupon"),
        (ResourceType::Funds, Some(FundsKind::Points)) => lang.t("order.thing_points"),
        (ResourceType::Funds, _) => lang.t("order.thing_balance"),
        (ResourceType::Quota, _) => lang.t("order.thing_quota"),
        (ResourceType::Slot, _) => lang.t("order.thing_slot"),
        (ResourceType::Payment, _) => lang.t("order.thing_refund"),
    }
}

/// What a caller calls it within a sentence: `2 pieces of sku-1`, `the coupon C-7`.
fn spoken(lang: Lang, hold: &HoldRow, qty: &str) -> String {
    let key: &dyn std::fmt::Display = &hold.key;
    match (hold.resource, hold.funds) {
        (ResourceType::Stock, _) => lang.f("order.say_stock", &[("qty", &qty), ("key", key)]),
        (ResourceType::Coupon, _) => lang.f("order.say_coupon", &[("key", key)]),
        (ResourceType::Funds, Some(FundsKind::Points)) => lang.f("order.say_points", &[("qty", &qty)]),
        (ResourceType::Funds | ResourceType::Payment, _) => lang.f("order.say_balance", &[("qty", &qty)]),
        (ResourceType::Quota, _) => lang.f("order.say_quota", &[("key", key)]),
        (ResourceType::Slot, _) => lang.f("order.say_slot", &[("key", key)]),
    }
}

/// The lines a shop sent for display; anything unreadable is left out.
fn lines(view: &OrderView) -> Vec<Line> {
    let Some(text) = &view.order.lines else { return Vec::new() };
    let parsed: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(text).unwrap_or_default();
    let line = |map: serde_json::Map<String, serde_json::Value>| Line {
        name: map.get("name").and_then(|v| v.as_str()).unwrap_or("–").to_owned(),
        qty: map.get("qty").and_then(serde_json::Value::as_i64).map(format::count).unwrap_or_default(),
        price: match map.get("price").and_then(serde_json::Value::as_i64) {
            Some(price) => format::amount(price, &view.order.currency),
            None => String::new(),
        },
    };
    parsed.into_iter().take(200).map(line).collect()
}

/// All but the last characters of what could tell who the buyer is.
pub fn masked(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let shown = (chars.len() / 3).min(4);
    let tail: String = chars[chars.len() - shown..].iter().collect();
    format!("••••{tail}")
}

fn facts(eye: &Eye, view: &OrderView, may: May<'_>) -> Vec<(String, String)> {
    let (lang, order) = (eye.lang, &view.order);
    if order.is_tombstone() {
        return Vec::new();
    }
    let mut facts = vec![
        match may.buyer {
            Some(buyer) => (lang.t("order.buyer_shown").to_owned(), buyer.to_owned()),
            None => (lang.t("order.buyer").to_owned(), masked(&order.buyer)),
        },
        (lang.t("col.placed").to_owned(), eye.stamp(order.placed_at).full),
        (lang.t("order.deadline").to_owned(), eye.stamp(order.pay_deadline).full),
        (lang.t("order.round").to_owned(), order.round.to_string()),
    ];
    if let Some(at) = order.closed_at {
        facts.push((lang.t("order.closed_at").to_owned(), eye.stamp(at).full));
    }
    if let Some(at) = order.paid_at {
        facts.push((lang.t("order.paid_at").to_owned(), eye.stamp(at).full));
    }
    facts
}
