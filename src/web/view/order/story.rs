//! What happened to one order, in words: the timeline of typed events. Every event is read from a row that was
//! written when it happened.

use std::collections::BTreeMap;

use super::parts::{self, Part};
use super::{Event, thing};
use crate::core::words::{Action, OrderStatus, PaymentStatus, ResourceType, TaskStatus, source};
use crate::store::flow::Flow;
use crate::store::order_view::{HoldRow, OrderView, ReturnView};
use crate::store::payment::Payment;
use crate::store::payment_case::Conflict;
use crate::store::reduction::Reduction;
use crate::store::return_order::Item;
use crate::store::shop_order::ShopOrder;
use crate::store::task::Attempt;
use crate::store::task_list::TaskRow;
use crate::web::i18n::Lang;
use crate::web::view::mark::{Caller, Mark};
use crate::web::view::overview::close_reason;
use crate::web::view::task::actor;
use crate::web::view::{Eye, format};

/// Whether every part of the sentence is certain.
pub fn certainty(lang: Lang, view: &OrderView, parts: &[Part<'_>]) -> Mark {
    let moving = parts.iter().any(|p| p.state == Caller::ComingBack);
    let help = parts.iter().any(|p| p.state == Caller::NeedsHelp);
    let money = view.payments.iter().any(|p| p.status == PaymentStatus::RefundDue);
    sure(lang, help || money, moving || view.order.status == OrderStatus::Restoring)
}

/// How sure a sentence is of which part waits for a person, or is on its way.
pub fn sure(lang: Lang, waits_for_a_person: bool, is_moving: bool) -> Mark {
    match (waits_for_a_person, is_moving) {
        (true, _) => Mark { class: "manual", icon: "manual", word: lang.t("order.certain_help") },
        (_, true) => Mark { class: "retry", icon: "retry", word: lang.t("order.certain_moving") },
        _ => Mark { class: "ok", icon: "ok", word: lang.t("order.certain") },
    }
}

/// What the timeline is told from, whoever keeps the order itself.
pub struct Told<'a> {
    currency: Option<&'a str>,
    holds: &'a [HoldRow],
    tasks: &'a [TaskRow],
    failed: &'a [(i64, Attempt)],
    flow: &'a [Flow],
    payments: &'a [Payment],
    conflicts: &'a [Conflict],
    returns: &'a [ReturnView],
}

impl<'a> Told<'a> {
    fn of(view: &'a OrderView) -> Told<'a> {
        Told {
            currency: Some(&view.order.currency),
            holds: &view.holds,
            tasks: &view.tasks,
            failed: &view.failed,
            flow: &view.flow,
            payments: &view.payments,
            conflicts: &view.conflicts,
            returns: &view.returns,
        }
    }

    /// `things` are what its rows name.
    pub fn of_shop(view: &'a ShopOrder, things: &'a [HoldRow]) -> Told<'a> {
        Told {
            currency: None,
            holds: things,
            tasks: &view.tasks,
            failed: &view.failed,
            flow: &view.flow,
            payments: &view.payments,
            conflicts: &view.conflicts,
            returns: &view.returns,
        }
    }
}

/// The timeline, newest first; what is planned stands on top.
pub fn events(eye: &Eye, view: &OrderView) -> Vec<Event> {
    let mut dated: Vec<(i64, Event)> = Vec::new();
    order_events(eye, view, &mut dated);
    dated.extend(view.reductions.iter().map(|r| (r.at, reduced(eye, view, r))));
    in_order(eye, &Told::of(view), dated)
}

/// The timeline of an order that the shop keeps: it begins with the rows that the shop wrote.
pub fn of_shop(eye: &Eye, view: &ShopOrder, told: &Told<'_>) -> Vec<Event> {
    let written = view.tasks.iter().filter(|task| parts::speaks_for_shop(task) && task.source == source::CLOSE);
    // Rows of one transaction are milliseconds apart.
    let mut by_second: BTreeMap<i64, Vec<&TaskRow>> = BTreeMap::new();
    for task in written {
        by_second.entry(task.created_at / 1_000).or_default().push(task);
    }
    let dated = by_second.into_values().filter_map(|tasks| asked_for(eye, &tasks)).collect();
    in_order(eye, told, dated)
}

/// The rows that a shop wrote at one time, as one event.
fn asked_for(eye: &Eye, tasks: &[&TaskRow]) -> Option<(i64, Event)> {
    let lang = eye.lang;
    let at = tasks.iter().map(|task| task.created_at).min()?;
    let row = |task: &&TaskRow| {
        let qty = format::quantity(lang, task.resource, task.qty, task.funds, None);
        (thing(lang, task.resource, task.funds).to_owned(), task.key.clone(), qty)
    };
    let asked = Event {
        by: lang.t("order.event.by_shop").to_owned(),
        fold_title: lang.n("order.event.rows", i64::try_from(tasks.len()).unwrap_or(0), &[]),
        folded: tasks.iter().map(row).collect(),
        ..event(eye, at, "", "closed", lang.t("order.event.shop_wrote").to_owned())
    };
    Some((at, asked))
}

fn in_order(eye: &Eye, told: &Told<'_>, mut dated: Vec<(i64, Event)>) -> Vec<Event> {
    let mut planned: Vec<(i64, Event)> = Vec::new();
    dated.extend(told.payments.iter().map(|p| (p.recorded_at, paid(eye, p))));
    dated.extend(told.conflicts.iter().map(|c| (c.told_at, told_otherwise(eye, c))));
    dated.extend(told.conflicts.iter().filter_map(|c| Some((c.settled_at?, looked_into(eye, c)))));
    for returned in told.returns {
        returns(eye, told, returned, &mut dated);
    }
    dated.extend(told.flow.iter().filter(|f| f.action != Action::Lock).map(|f| (f.at, moved(eye, told, f))));
    for task in told.tasks {
        if let Some(event) = failing(eye, told, task) {
            dated.push(event);
        }
        match task.next_at {
            Some(at) if task.status == TaskStatus::Retrying => planned.push((at, next_try(eye, task))),
            _ => {}
        }
        if let (TaskStatus::ForceClosed | TaskStatus::Superseded, Some(at)) = (task.status, task.finished_at) {
            dated.push((at, ended(eye, task, at)));
        }
    }
    dated.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    planned.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    planned.into_iter().chain(dated).map(|(_, event)| event).collect()
}

fn event(eye: &Eye, at: i64, tone: &'static str, icon: &'static str, title: String) -> Event {
    Event {
        at: eye.stamp(at),
        tone,
        icon,
        title,
        text: String::new(),
        by: String::new(),
        folded: Vec::new(),
        fold_title: String::new(),
        planned: false,
    }
}

fn order_events(eye: &Eye, view: &OrderView, out: &mut Vec<(i64, Event)>) {
    let (lang, order) = (eye.lang, &view.order);
    if !order.is_tombstone() {
        let held: Vec<(String, String, String)> = view
            .holds
            .iter()
            .filter(|h| h.round == 1)
            .map(|h| {
                let qty = format::quantity(lang, h.resource, h.locked, h.funds, Some(&order.currency));
                (thing(lang, h.resource, h.funds).to_owned(), h.key.clone(), qty)
            })
            .collect();
        out.push((
            order.placed_at,
            Event {
                text: lang.f("order.event.placed_text", &[("at", &eye.stamp(order.pay_deadline).short())]),
                by: lang.t("order.event.by_buyer").to_owned(),
                fold_title: lang.n("order.event.holds", i64::try_from(held.len()).unwrap_or(0), &[]),
                folded: held,
                ..event(eye, order.placed_at, "", "held", lang.t("order.event.placed").to_owned())
            },
        ));
    }
    if let Some(at) = order.closed_at {
        let reason = close_reason(lang, order.close_reason.as_deref().unwrap_or("timeout"));
        let late = (at - order.pay_deadline).max(0);
        let text = match order.close_reason.as_deref() {
            Some("timeout") => {
                lang.f("order.event.closed_late", &[("reason", &reason), ("late", &format::span(lang, late))])
            }
            _ => reason,
        };
        let by = order.closed_by.as_deref().map(|by| actor(lang, by)).unwrap_or_default();
        let trigger = order.close_trigger.map(|t| lang.word("trigger", t.word()));
        let by = match trigger {
            Some(trigger) if !by.contains(trigger) => format!("{by} · {} {trigger}", lang.word("actor", "trigger")),
            _ => by,
        };
        let title =
            lang.t(if order.is_tombstone() { "order.event.tombstone" } else { "order.event.closed" }).to_owned();
        out.push((at, Event { text, by, ..event(eye, at, "", "closed", title) }));
    }
}

fn paid(eye: &Eye, p: &Payment) -> Event {
    let lang = eye.lang;
    let (tone, icon, key) = match p.status {
        PaymentStatus::Started => ("", "clock", "order.event.pay_started"),
        PaymentStatus::Failed => ("bad", "end", "order.event.pay_failed"),
        PaymentStatus::Applied => ("good", "ok", "order.event.pay_applied"),
        PaymentStatus::Recorded => ("warn", "held", "order.event.pay_recorded"),
        PaymentStatus::RefundDue => ("bad", "owe", "order.event.pay_refund_due"),
        PaymentStatus::Refunded => ("", "refunded", "order.event.pay_refunded"),
        PaymentStatus::Unmatched => ("bad", "manual", "order.event.pay_unmatched"),
    };
    let occurred = eye.stamp(p.occurred_at).short();
    Event {
        text: lang
            .f("order.event.pay_text", &[("amount", &format::money(p.amount, &p.currency)), ("channel", &p.channel)]),
        by: lang.f("order.event.pay_by", &[("at", &occurred)]),
        ..event(eye, p.recorded_at, tone, icon, lang.t(key).to_owned())
    }
}

fn reduced(eye: &Eye, view: &OrderView, reduction: &Reduction) -> Event {
    let lang = eye.lang;
    let amount = format::money(reduction.amount, &view.order.currency);
    Event {
        text: lang.f("order.event.reduced_text", &[("amount", &amount), ("ref", &reduction.reference)]),
        by: lang.t("order.event.by_shop").to_owned(),
        ..event(eye, reduction.at, "", "retry", lang.t("order.event.reduced").to_owned())
    }
}

/// The same transaction told again with other content: nothing changed, a person looks.
fn told_otherwise(eye: &Eye, conflict: &Conflict) -> Event {
    let lang = eye.lang;
    let amount = format::money(conflict.amount, &conflict.currency);
    Event {
        text: lang.f("order.event.conflict_text", &[("order", &conflict.order_no), ("amount", &amount)]),
        ..event(eye, conflict.told_at, "bad", "manual", lang.t("order.event.conflict").to_owned())
    }
}

/// A person has found out which telling was right.
fn looked_into(eye: &Eye, conflict: &Conflict) -> Event {
    let at = conflict.settled_at.unwrap_or(conflict.told_at);
    Event {
        by: conflict.settled_by.as_deref().map(|by| actor(eye.lang, by)).unwrap_or_default(),
        ..event(eye, at, "", "done", eye.lang.t("order.event.conflict_settled").to_owned())
    }
}

/// A return: accepted, received, and each line as it reaches the stock.
fn returns(eye: &Eye, told: &Told<'_>, returned: &ReturnView, out: &mut Vec<(i64, Event)>) {
    let lang = eye.lang;
    let lines: Vec<String> = returned.items.iter().map(|item| return_line(lang, item)).collect();
    let title = |key| lang.f(key, &[("return", &returned.row.return_no)]);
    if let Some(at) = returned.row.accepted_at {
        let text = lines.join(lang.t("order.comma"));
        out.push((at, Event { text, ..event(eye, at, "", "held", title("order.event.return_accepted")) }));
    }
    if let Some(at) = returned.row.received_at {
        out.push((at, event(eye, at, "", "done", title("order.event.return_received"))));
    }
    for task in &returned.tasks {
        out.extend(failing(eye, told, task));
        if let (TaskStatus::Succeeded, Some(at)) = (task.status, task.finished_at) {
            let what = thing(lang, task.resource, task.funds);
            let qty = format::quantity(lang, task.resource, task.qty, task.funds, None);
            let done = event(eye, at, "good", "ok", lang.f("order.event.returned_in", &[("what", &what)]));
            out.push((at, Event { text: format!("{qty} · {}", task.key), ..done }));
        }
    }
}

/// `2 pieces of sku-1`, and whether they go back to stock.
pub fn return_line(lang: Lang, item: &Item) -> String {
    let qty = format::quantity(lang, ResourceType::Stock, item.qty, None, None);
    let line = lang.f("order.say_stock", &[("qty", &qty), ("key", &item.key)]);
    match item.restock {
        true => line,
        false => lang.f("order.not_restocked", &[("what", &line)]),
    }
}

/// One change of a ledger: what moved, and what the ledger said afterwards.
fn moved(eye: &Eye, told: &Told<'_>, f: &Flow) -> Event {
    let lang = eye.lang;
    let funds = told.holds.iter().find(|h| h.resource == f.resource && h.key == f.key).and_then(|h| h.funds);
    let what = thing(lang, f.resource, funds);
    let (tone, icon, key) = match f.action {
        Action::Release => ("good", "ok", "order.event.released"),
        Action::Settle => ("good", "used", "order.event.settled"),
        Action::TakeBack => ("", "held", "order.event.taken_back"),
        Action::ReturnIn => ("good", "ok", "order.event.returned_in"),
        Action::Refund => ("good", "refunded", "order.event.refunded"),
        _ => ("", "dot", "order.event.adjusted"),
    };
    let qty = format::quantity(lang, f.resource, f.qty, funds, told.currency);
    Event {
        text: format!("{qty} · {}{}", f.key, figures_after(lang, f)),
        by: f.actor.as_deref().map_or_else(|| "Handback".to_owned(), |by| actor(lang, by)),
        ..event(eye, f.at, tone, icon, lang.f(key, &[("what", &what)]))
    }
}

fn figures_after(lang: Lang, f: &Flow) -> String {
    let (ResourceType::Stock | ResourceType::Funds | ResourceType::Quota, Some(after)) =
        (f.resource, f.available_after)
    else {
        return String::new();
    };
    let before = match f.action {
        Action::Release | Action::ReturnIn => after - f.qty,
        Action::Lock | Action::TakeBack => after + f.qty,
        _ => return String::new(),
    };
    format!(
        " · {}",
        lang.f("order.event.available", &[("before", &format::count(before)), ("after", &format::count(after))])
    )
}

/// The failed tries of one task as one event, with each try folded into it.
fn failing(eye: &Eye, told: &Told<'_>, task: &TaskRow) -> Option<(i64, Event)> {
    let lang = eye.lang;
    let tries: Vec<&Attempt> = told.failed.iter().filter(|(id, _)| *id == task.id).map(|(_, a)| a).collect();
    let last = tries.last()?;
    let at = last.ended_at.unwrap_or(last.started_at);
    let folded = tries.iter().rev().map(|a| {
        let kind = a.kind.map_or("", |k| lang.word("kind", k.word()));
        let what = a.error.as_deref().map_or_else(|| kind.to_owned(), |error| format!("{kind} · {error}"));
        let stamp = eye.stamp(a.started_at);
        (format!("{}{}", stamp.short(), stamp.ms), what, actor(lang, &a.actor))
    });
    let what = thing(lang, task.resource, task.funds);
    let n = i64::try_from(tries.len()).unwrap_or(0);
    let (tone, icon) = if task.status == TaskStatus::Manual { ("bad", "manual") } else { ("warn", "retry") };
    let kind = last.kind.map_or("", |k| lang.word("kind", k.word()));
    Some((
        at,
        Event {
            text: lang.n("order.event.tries", n, &[("kind", &kind)]),
            by: "Handback".to_owned(),
            fold_title: lang.f("order.event.show_tries", &[("task", &task.id)]),
            folded: folded.collect(),
            ..event(eye, at, tone, icon, lang.f("order.event.not_back", &[("what", &what)]))
        },
    ))
}

fn next_try(eye: &Eye, task: &TaskRow) -> Event {
    let what = thing(eye.lang, task.resource, task.funds);
    let at = task.next_at.unwrap_or(eye.now);
    let title = eye.lang.f("order.event.next_try", &[("what", &what)]);
    Event { by: eye.lang.t("order.event.planned").to_owned(), planned: true, ..event(eye, at, "muted", "wait", title) }
}

fn ended(eye: &Eye, task: &TaskRow, at: i64) -> Event {
    let lang = eye.lang;
    let what = thing(lang, task.resource, task.funds);
    let (tone, icon, key) = match task.status {
        TaskStatus::ForceClosed => ("bad", "force", "order.event.force_closed"),
        _ => ("", "gone", "order.event.superseded"),
    };
    Event {
        text: task.key.clone(),
        by: task.ended_by.as_deref().map(|by| actor(lang, by)).unwrap_or_default(),
        ..event(eye, at, tone, icon, lang.f(key, &[("what", &what)]))
    }
}
