//! The payments of an order as its page shows them: what each is in words, what it could not have back, where
//! its refund stands, and what a lead may decide about it.

use super::{masked, thing};
use crate::core::order::late_plan::Lacks;
use crate::core::words::{OrderStatus, PaymentStatus, ResourceType};
use crate::store::order_view::OrderView;
use crate::store::payment::Payment;
use crate::store::payment_case::Conflict;
use crate::web::i18n::Lang;
use crate::web::paths;
use crate::web::view::{Eye, Link, Mark, Stamp, format};

pub struct PaymentRow {
    pub mark: Mark,
    pub channel: String,
    pub txn: String,
    pub amount: String,
    pub at: Stamp,
    /// What it is, in a sentence.
    pub means: &'static str,
    pub lacking: String,
    /// Its refund task.
    pub refund: Option<(Link, Mark)>,
    /// It was told again with other content.
    pub conflict: bool,
    /// What a lead may decide about it.
    pub acts: Vec<Link>,
}

pub fn payment_row(eye: &Eye, view: &OrderView, payment: &Payment, may_decide: bool) -> PaymentRow {
    let lang = eye.lang;
    let refund = view.refund_of(payment.id).map(|(task, _)| {
        (Link { href: paths::task(task.id), text: task.id.to_string() }, Mark::task(lang, task.status))
    });
    let open: Vec<&Conflict> =
        view.conflicts.iter().filter(|c| c.payment_id == payment.id && !c.is_settled()).collect();
    PaymentRow {
        mark: Mark::payment(lang, payment.status),
        channel: payment.channel.clone(),
        txn: masked(&payment.channel_txn),
        amount: format::money(payment.amount, &payment.currency),
        at: eye.stamp(payment.recorded_at),
        means: lang.word("payment_means", payment.status.word()),
        lacking: lacking(lang, payment.lacking.as_deref(), &payment.currency),
        refund,
        conflict: !open.is_empty(),
        acts: if may_decide { acts(lang, view, payment, &open) } else { Vec::new() },
    }
}

fn acts(lang: Lang, view: &OrderView, payment: &Payment, open: &[&Conflict]) -> Vec<Link> {
    let act = |href, text| Link { href, text: lang.t(text).to_owned() };
    let mut acts = Vec::new();
    if view.order.status == OrderStatus::Pending && payment.status == PaymentStatus::Recorded {
        acts.push(act(paths::acceptances(&view.order.order_no, payment.id), "refunds.accept"));
        acts.push(act(paths::give_backs(payment.id), "refunds.give_back"));
    }
    acts.extend(open.iter().map(|conflict| act(paths::settlements(conflict.id), "refunds.settle")));
    acts
}

/// What could not be had again: `Goods sku-1 2 pieces, Coupon C-7 1 coupon`; nothing when nothing is known.
pub fn lacking(lang: Lang, list: Option<&str>, currency: &str) -> String {
    let lacks: Vec<Lacks> = list.and_then(|list| serde_json::from_str(list).ok()).unwrap_or_default();
    let texts: Vec<String> = lacks
        .iter()
        .map(|lack| {
            let resource = ResourceType::from_word(&lack.resource).unwrap_or(ResourceType::Stock);
            let qty = format::quantity(lang, resource, lack.qty, None, Some(currency));
            format!("{} {} {qty}", thing(lang, resource, None), lack.key)
        })
        .collect();
    texts.join(lang.t("order.comma"))
}
