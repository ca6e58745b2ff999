//! The page of an order that the shop keeps itself: where it is kept and how it stands there, in the shop's own
//! word; what its release rows did here. Nothing is offered that needs an order of Handback's own.

use super::money::PaymentRow;
use super::parts::{self, Part};
use super::story::{self, Told};
use super::{Line, OrderPage, masked, resource, return_row, sentence};
use crate::core::words::ResourceType;
use crate::store::order_view::HoldRow;
use crate::store::payment::Payment;
use crate::store::shop_order::{Kept, ShopOrder};
use crate::web::i18n::Lang;
use crate::web::view::mark::Caller;
use crate::web::view::tasks::Row;
use crate::web::view::{Eye, Flash, Mark, Section, Shell, Tone, format};

/// How an order stands in the shop, as far as it can be seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Open,
    /// Its word is another: paid, closed, or whatever else the shop has.
    NotOpen,
    /// The shop's table doesn't name it, or none is mapped.
    Unlisted,
    Unreadable,
}

impl Standing {
    #[cfg(test)]
    pub const ALL: [Standing; 4] = [Self::Open, Self::NotOpen, Self::Unlisted, Self::Unreadable];

    pub fn of(kept: &Kept) -> Standing {
        match kept {
            Kept::There(document) if document.counts => Self::Open,
            Kept::There(_) => Self::NotOpen,
            Kept::Nowhere => Self::Unlisted,
            Kept::Unreadable => Self::Unreadable,
        }
    }
}

impl OrderPage {
    /// The page of a number that only the shop, or its release rows, know.
    pub fn of_shop(mut s: Shell, eye: &Eye, view: &ShopOrder, max_failures: i64) -> OrderPage {
        s.section = Section::Orders;
        let lang = eye.lang;
        let things = things(view);
        let parts = parts::of_shop(eye, view, &things);
        let standing = Standing::of(&view.kept);
        let told = Told::of_shop(view, &things);
        OrderPage {
            order_no: view.order_no.clone(),
            mark: Mark::shops_order(lang, standing),
            kept: kept(lang, view),
            trouble: trouble(lang, view),
            sentence: sentence::of_shop(eye, standing, &parts),
            certain: certainty(lang, standing, &parts),
            events: story::of_shop(eye, view, &told),
            tasks: view.tasks.iter().map(|t| Row::new(eye, t, max_failures)).collect(),
            lines: lines(view),
            amount: None,
            payments: view.payments.iter().map(|p| payment_row(eye, view, p)).collect(),
            rounds: Vec::new(),
            returns: view.returns.iter().map(|r| return_row(eye, r, max_failures)).collect(),
            acts: Vec::new(),
            reveal: None,
            facts: facts(lang, view),
            resources: parts.iter().map(|part| resource(eye, part, None, None)).collect(),
            s,
        }
    }
}

/// What its rows and, while it is open, its lines name, as holds would be: of each thing as much as is known.
fn things(view: &ShopOrder) -> Vec<HoldRow> {
    let mut things: Vec<HoldRow> = Vec::new();
    for task in view.tasks.iter().filter(|task| parts::speaks_for_shop(task)) {
        let is_it = |t: &&mut HoldRow| (t.round, t.resource, &t.key) == (task.round, task.resource, &task.key);
        match things.iter_mut().find(is_it) {
            Some(thing) => thing.locked += task.qty,
            None => things.push(HoldRow {
                round: task.round,
                resource: task.resource,
                key: task.key.clone(),
                locked: task.qty,
                funds: task.funds,
                expires_at: None,
            }),
        }
    }
    if let Kept::There(document) = &view.kept
        && document.counts
    {
        for (key, qty) in &document.items {
            match things.iter_mut().find(|t| t.resource == ResourceType::Stock && t.key == *key) {
                Some(thing) => thing.locked = thing.locked.max(*qty),
                None => things.push(HoldRow {
                    round: 1,
                    resource: ResourceType::Stock,
                    key: key.clone(),
                    locked: *qty,
                    funds: None,
                    expires_at: None,
                }),
            }
        }
    }
    things.sort_by(|a, b| (a.resource, &a.key, a.round).cmp(&(b.resource, &b.key, b.round)));
    things
}

fn kept(lang: Lang, view: &ShopOrder) -> String {
    match (&view.kept, view.table.as_deref()) {
        (Kept::There(_), Some(table)) => lang.f("order.kept_there", &[("table", &table)]),
        (Kept::Unreadable, _) if view.tasks.is_empty() => String::new(),
        _ => lang.t("order.kept_in_rows").to_owned(),
    }
}

fn trouble(lang: Lang, view: &ShopOrder) -> Option<Flash> {
    let table = view.table.as_deref().filter(|_| view.kept == Kept::Unreadable)?;
    Some(Flash { tone: Tone::Warn, text: lang.f("order.kept_unreadable", &[("table", &table)]) })
}

fn lines(view: &ShopOrder) -> Vec<Line> {
    let Kept::There(document) = &view.kept else { return Vec::new() };
    let line = |(key, qty): (&String, &i64)| Line {
        name: key.clone(),
        qty: format::count(*qty),
        // The shop's line says a quantity, no price.
        price: String::new(),
    };
    document.items.iter().take(200).map(line).collect()
}

fn facts(lang: Lang, view: &ShopOrder) -> Vec<(String, String)> {
    let Kept::There(document) = &view.kept else { return Vec::new() };
    let fact = |name: &str, value: &str| (lang.t(name).to_owned(), value.to_owned());
    let is_open = if document.counts { "order.shops_is_open" } else { "order.shops_is_not_open" };
    vec![
        fact("order.shops_table", view.table.as_deref().unwrap_or_default()),
        fact("order.shops_status", &document.status),
        fact("order.shops_counts", lang.t(is_open)),
    ]
}

/// Money told for a number that isn't placed here: neither refunded nor accepted from here.
fn payment_row(eye: &Eye, view: &ShopOrder, payment: &Payment) -> PaymentRow {
    let lang = eye.lang;
    PaymentRow {
        mark: Mark::payment(lang, payment.status),
        channel: payment.channel.clone(),
        txn: masked(&payment.channel_txn),
        amount: format::money(payment.amount, &payment.currency),
        at: eye.stamp(payment.recorded_at),
        means: lang.word("payment_means", payment.status.word()),
        lacking: String::new(),
        refund: None,
        conflict: view.conflicts.iter().any(|c| c.payment_id == payment.id && !c.is_settled()),
        acts: Vec::new(),
    }
}

fn certainty(lang: Lang, standing: Standing, parts: &[Part<'_>]) -> Mark {
    let has = |state| parts.iter().any(|part| part.state == state);
    if sentence::says_nothing(standing, parts) {
        return Mark { class: "wait", icon: "wait", word: lang.t("order.certain_nothing") };
    }
    story::sure(lang, has(Caller::NeedsHelp), has(Caller::ComingBack))
}

impl Mark {
    /// An order that the shop keeps itself.
    pub fn shops_order(lang: Lang, standing: Standing) -> Mark {
        let (class, icon, word) = match standing {
            Standing::Open => ("wait", "clock", "order.shops_open"),
            Standing::NotOpen => ("gone", "closed", "order.shops_not_open"),
            Standing::Unlisted | Standing::Unreadable => return Mark::shops_own(lang),
        };
        Mark { class, icon, word: lang.t(word) }
    }

    /// That it is the shop's, and no more.
    pub fn shops_own(lang: Lang) -> Mark {
        Mark { class: "gone", icon: "dot", word: lang.t("order.shops_own") }
    }
}
