//! One order: first what can be said to the caller, then each thing it reserved as held, coming back,
//! returned or in need of help, then what happened, newest first. Words only where they are certain.

mod story;

use askama::Template;

use super::mark::Caller;
use super::tasks::Row;
use super::{Eye, Mark, Section, Shell, Stamp, format};
use crate::core::words::{Action, FundsKind, OrderStatus, ResourceType, TaskStatus};
use crate::store::order_view::{HoldRow, OrderView};
use crate::store::payment;
use crate::store::task_list::TaskRow;
use crate::web::i18n::Lang;

#[derive(Template)]
#[template(path = "pages/order.html", blocks = ["content"])]
pub struct OrderPage {
    pub s: Shell,
    pub order_no: String,
    pub mark: Mark,
    pub tombstone: bool,
    pub sentence: String,
    pub certain: Mark,
    pub resources: Vec<Resource>,
    pub events: Vec<Event>,
    pub tasks: Vec<Row>,
    pub lines: Vec<Line>,
    pub amount: String,
    pub payments: Vec<Payment>,
    pub facts: Vec<(String, String)>,
}

/// One thing the buyer reserved.
pub struct Resource {
    pub what: String,
    pub key: String,
    pub qty: String,
    pub mark: Mark,
    pub when: String,
    pub state: Caller,
    /// As it is called within a sentence to the caller.
    pub spoken: String,
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

pub struct Payment {
    pub mark: Mark,
    pub channel: String,
    pub txn: String,
    pub amount: String,
    pub at: Stamp,
}

impl OrderPage {
    pub fn new(mut s: Shell, eye: &Eye, view: &OrderView, max_failures: i64) -> OrderPage {
        s.section = Section::Orders;
        let (lang, order) = (eye.lang, &view.order);
        let resources: Vec<Resource> = view.holds.iter().map(|hold| resource(eye, view, hold)).collect();
        OrderPage {
            order_no: order.order_no.clone(),
            mark: Mark::order(lang, order.status),
            tombstone: order.is_tombstone(),
            sentence: story::sentence(eye, view, &resources),
            certain: story::certainty(lang, view, &resources),
            events: story::events(eye, view),
            tasks: view.tasks.iter().map(|t| Row::new(eye, t, max_failures)).collect(),
            lines: lines(view),
            amount: format::amount(order.amount, &order.currency),
            payments: view.payments.iter().map(|p| payment_row(eye, p)).collect(),
            facts: facts(eye, view),
            resources,
            s,
        }
    }
}

/// The task that settles or gives back this hold, the one that matters most first.
fn task_of<'a>(view: &'a OrderView, hold: &HoldRow) -> Option<&'a TaskRow> {
    let mine = view.tasks.iter().filter(|t| {
        t.round == hold.round
            && t.resource == hold.resource
            && t.key == hold.key
            && matches!(t.action, Action::Release | Action::Settle)
            && t.status != TaskStatus::Superseded
    });
    // A release that was asked for in part (reduce) may stand beside the one of the close.
    mine.max_by_key(|t| (t.status.is_unfinished(), t.status == TaskStatus::ForceClosed, t.id))
}

fn resource(eye: &Eye, view: &OrderView, hold: &HoldRow) -> Resource {
    let lang = eye.lang;
    let task = task_of(view, hold);
    let state = state(view.order.status, task);
    let when = match (state, task) {
        (Caller::Held, _) => lang.f("order.held_until", &[("at", &eye.stamp(view.order.pay_deadline).spoken())]),
        (Caller::Returned, Some(t)) => t.finished_at.map(|at| eye.stamp(at).short()).unwrap_or_default(),
        (Caller::Bought, Some(t)) => t.finished_at.map(|at| eye.stamp(at).short()).unwrap_or_default(),
        (Caller::ComingBack, Some(t)) if t.retry > 0 => {
            lang.f("order.next_try", &[("at", &super::tasks::next_text(eye, t))])
        }
        (Caller::ComingBack, _) => lang.t("order.in_a_moment").to_owned(),
        (Caller::NeedsHelp, Some(t)) => lang.f("order.with_ops", &[("task", &t.id)]),
        _ => String::new(),
    };
    let qty = format::quantity(lang, hold.resource, hold.locked, hold.funds, Some(&view.order.currency));
    Resource {
        what: thing(lang, hold.resource, hold.funds).to_owned(),
        key: hold.key.clone(),
        spoken: spoken(lang, hold, &qty),
        qty,
        mark: Mark::caller(lang, state),
        when: with_end(eye, when, hold),
        state,
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

fn state(status: OrderStatus, task: Option<&TaskRow>) -> Caller {
    match task.map(|t| (t.status, t.action)) {
        None if matches!(status, OrderStatus::Paid | OrderStatus::Completed) => Caller::Bought,
        None if status == OrderStatus::Closed => Caller::ComingBack,
        None => Caller::Held,
        Some((TaskStatus::Succeeded, Action::Settle)) => Caller::Bought,
        Some((TaskStatus::Succeeded, _)) => Caller::Returned,
        Some((TaskStatus::Manual | TaskStatus::ForceClosed, Action::Release)) => Caller::NeedsHelp,
        Some((_, Action::Settle)) => Caller::Bought,
        Some(_) => Caller::ComingBack,
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

fn payment_row(eye: &Eye, p: &payment::Payment) -> Payment {
    Payment {
        mark: Mark::payment(eye.lang, p.status),
        channel: p.channel.clone(),
        txn: masked(&p.channel_txn),
        amount: format::money(p.amount, &p.currency),
        at: eye.stamp(p.recorded_at),
    }
}

/// All but the last characters of what could tell who the buyer is.
pub fn masked(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let shown = (chars.len() / 3).min(4);
    let tail: String = chars[chars.len() - shown..].iter().collect();
    format!("••••{tail}")
}

fn facts(eye: &Eye, view: &OrderView) -> Vec<(String, String)> {
    let (lang, order) = (eye.lang, &view.order);
    if order.is_tombstone() {
        return Vec::new();
    }
    let mut facts = vec![
        (lang.t("order.buyer").to_owned(), masked(&order.buyer)),
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
