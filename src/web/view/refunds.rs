//! Money that goes back: each payment that is due, what its order could not have again, and where its refund stands.

use askama::Template;

use super::order::{lacking, masked};
use super::{Empty, Eye, Link, Mark, Section, Shell, Stamp, format};
use crate::store::payment::Payment;
use crate::store::task::Task;
use crate::web::paths;

#[derive(Template)]
#[template(path = "pages/refunds.html", blocks = ["content"])]
pub struct RefundsPage {
    pub s: Shell,
    pub headline: String,
    pub rows: Vec<RefundRow>,
    pub empty: Option<Empty>,
    pub more: bool,
}

pub struct RefundRow {
    pub order: Link,
    pub amount: String,
    pub payment: String,
    pub at: Stamp,
    pub lacking: String,
    pub task: Option<(Link, Mark)>,
    pub error: String,
}

impl RefundsPage {
    /// One more than `limit` means that there are more.
    pub fn new(mut s: Shell, eye: &Eye, due: &[(Payment, Option<Task>)], limit: usize) -> RefundsPage {
        s.section = Section::Refunds;
        let lang = eye.lang;
        let n = i64::try_from(due.len().min(limit)).unwrap_or(0);
        RefundsPage {
            headline: match (due.len() > limit, n) {
                (true, _) => lang.f("refunds.say_many", &[("n", &limit)]),
                (false, 0) => lang.t("refunds.none").to_owned(),
                (false, n) => lang.n("refunds.say", n, &[]),
            },
            rows: due.iter().take(limit).map(|(payment, task)| RefundRow::new(eye, payment, task.as_ref())).collect(),
            empty: due.is_empty().then(|| Empty {
                title: lang.t("refunds.none").to_owned(),
                text: lang.t("refunds.none_text").to_owned(),
                link: None,
            }),
            more: due.len() > limit,
            s,
        }
    }
}

impl RefundRow {
    fn new(eye: &Eye, payment: &Payment, task: Option<&Task>) -> RefundRow {
        let lang = eye.lang;
        RefundRow {
            order: Link { href: paths::order(&payment.order_no), text: payment.order_no.clone() },
            amount: format::money(payment.amount, &payment.currency),
            payment: format!("{} {}", payment.channel, masked(&payment.channel_txn)),
            at: eye.stamp(payment.recorded_at),
            lacking: lacking(lang, payment.lacking.as_deref(), &payment.currency),
            task: task.map(|task| {
                (Link { href: paths::task(task.id), text: task.id.to_string() }, Mark::task(lang, task.status))
            }),
            error: task.and_then(|task| task.error.clone()).unwrap_or_default(),
        }
    }
}
