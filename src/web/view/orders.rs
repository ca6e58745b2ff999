//! The search for an order: one box, its number or a part of it. One hit opens by itself.

use askama::Template;

use super::{Empty, Eye, Mark, Section, Shell, Stamp, format};
use crate::store::order_search::Hit;
use crate::web::paths;

#[derive(Template)]
#[template(path = "pages/orders.html", blocks = ["content"])]
pub struct OrdersPage {
    pub s: Shell,
    pub headline: String,
    pub hits: Vec<HitRow>,
    pub empty: Option<Empty>,
    pub more: String,
}

pub struct HitRow {
    pub order_no: String,
    pub href: String,
    pub mark: Mark,
    /// Of an order that the shop keeps, neither is known here.
    pub placed: Option<Stamp>,
    pub amount: String,
}

impl OrdersPage {
    /// `hits` of the search for `s.search`, newest first; one more than `limit` means that there are more.
    pub fn new(mut s: Shell, eye: &Eye, hits: &[Hit], limit: usize) -> OrdersPage {
        s.section = Section::Orders;
        let lang = eye.lang;
        let rows: Vec<HitRow> = hits.iter().take(limit).map(|hit| HitRow::new(eye, hit)).collect();
        let asked = !s.search.is_empty();
        let headline = match (asked, hits.len() > limit) {
            (false, _) => lang.t("orders.recent").to_owned(),
            (true, true) => lang.f("orders.say_many", &[("n", &limit), ("text", &s.search)]),
            (true, false) if rows.is_empty() => lang.f("orders.say_none", &[("text", &s.search)]),
            (true, false) => lang.n("orders.say", i64::try_from(rows.len()).unwrap_or(0), &[("text", &s.search)]),
        };
        let empty = rows.is_empty().then(|| Empty {
            title: lang.t(if asked { "orders.none" } else { "orders.no_orders" }).to_owned(),
            text: lang.t(if asked { "orders.none_text" } else { "orders.no_orders_text" }).to_owned(),
            link: None,
        });
        let more = if asked && hits.len() > limit { lang.t("orders.more").to_owned() } else { String::new() };
        OrdersPage { headline, hits: rows, empty, more, s }
    }
}

impl HitRow {
    fn new(eye: &Eye, hit: &Hit) -> HitRow {
        HitRow {
            order_no: hit.order_no.clone(),
            href: paths::order(&hit.order_no),
            mark: hit.own.as_ref().map_or(Mark::shops_own(eye.lang), |own| Mark::order(eye.lang, own.status)),
            placed: hit.own.as_ref().map(|own| eye.stamp(own.placed_at)),
            amount: hit.own.as_ref().map_or("–".to_owned(), |own| format::money(own.amount, &own.currency)),
        }
    }
}
