//! Money that goes back: each payment that is due, what its order could not have again, and where its refund stands;
//! and money that fits nothing, with the acts that settle it.

use askama::Template;

use super::order::{lacking, masked};
use super::{Empty, Eye, Link, Mark, Section, Shell, Stamp, format};
use crate::store::payment::Payment;
use crate::store::payment_case::{Conflict, Misfit};
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
    pub cases: Vec<CaseRow>,
}

/// What waits for a decision, and whether the reader may decide.
#[derive(Default)]
pub struct Cases {
    pub misfits: Vec<Misfit>,
    pub conflicts: Vec<(Conflict, Payment)>,
    pub may_decide: bool,
}

/// Money that fits nothing.
pub struct CaseRow {
    pub mark: Mark,
    /// Nothing to open where no order is known.
    pub order: Link,
    pub payment: String,
    pub why: String,
    pub amount: String,
    pub at: Stamp,
    pub acts: Vec<Link>,
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
    pub fn new(mut s: Shell, eye: &Eye, due: &[(Payment, Option<Task>)], cases: &Cases, limit: usize) -> RefundsPage {
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
            more: [due.len(), cases.misfits.len(), cases.conflicts.len()].iter().any(|n| *n > limit),
            cases: case_rows(eye, cases, limit),
            s,
        }
    }
}

fn case_rows(eye: &Eye, cases: &Cases, limit: usize) -> Vec<CaseRow> {
    let lang = eye.lang;
    let acts = |acts: &[(String, &str)]| -> Vec<Link> {
        let acts = acts.iter().filter(|_| cases.may_decide);
        acts.map(|(href, text)| Link { href: href.clone(), text: lang.t(text).to_owned() }).collect()
    };
    let misfits = cases.misfits.iter().take(limit).map(|misfit| {
        let payment = &misfit.payment;
        let give_back = (paths::give_backs(payment.id), "refunds.give_back");
        match &misfit.asked {
            Some((amount, currency)) => {
                let asked = format::money(*amount, currency);
                let why = lang.f("refunds.wrong_amount", &[("order", &payment.order_no), ("asked", &asked)]);
                let accept = (paths::acceptances(&payment.order_no, payment.id), "refunds.accept");
                CaseRow::new(eye, payment, paths::order(&payment.order_no), why, acts(&[accept, give_back]))
            }
            None => {
                let why = lang.t("refunds.unmatched").to_owned();
                CaseRow::new(eye, payment, String::new(), why, acts(&[give_back]))
            }
        }
    });
    let conflicts = cases.conflicts.iter().take(limit).map(|(conflict, payment)| {
        let amount = format::money(conflict.amount, &conflict.currency);
        let why = lang.f("refunds.twice", &[("order", &conflict.order_no), ("amount", &amount)]);
        let settle = (paths::settlements(conflict.id), "refunds.settle");
        CaseRow::new(eye, payment, paths::order(&payment.order_no), why, acts(&[settle]))
    });
    misfits.chain(conflicts).collect()
}

impl CaseRow {
    fn new(eye: &Eye, payment: &Payment, href: String, why: String, acts: Vec<Link>) -> CaseRow {
        CaseRow {
            mark: Mark::payment(eye.lang, payment.status),
            order: Link { href, text: payment.order_no.clone() },
            payment: format!("{} {}", payment.channel, masked(&payment.channel_txn)),
            why,
            amount: format::money(payment.amount, &payment.currency),
            at: eye.stamp(payment.recorded_at),
            acts,
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
