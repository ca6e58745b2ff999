//! The sentence for the caller, from three tables: the order's state × the state of each thing it reserved, the
//! order's state × the state of each payment, and for an order that the shop keeps, its standing there × the
//! state of each thing. It says only what is certain, names a time only when one is
//! planned, and never says whose fault something is.

use super::parts::Part;
use super::shop::Standing;
use crate::core::words::{OrderStatus, PaymentStatus};
use crate::store::order_view::OrderView;
use crate::store::payment::Payment;
use crate::web::i18n::Lang;
use crate::web::view::mark::Caller;
use crate::web::view::{Eye, format};

/// What is said of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clause {
    Held,
    Back,
    /// On its way back.
    Coming,
    /// It came back, and is being reserved again for a payment that came late.
    Again,
    /// It was on its way back when the payment came: where it is is being found out.
    Checking,
    Help,
}

/// The table of things. Nothing where the opening says it.
pub const fn clause(order: OrderStatus, thing: Caller) -> Option<Clause> {
    use OrderStatus::{Closed, Completed, Paid, Pending, RefundDue, Refunded, Restoring};
    match (order, thing) {
        (_, Caller::NeedsHelp) => Some(Clause::Help),
        (_, Caller::Bought) => None,
        (Pending | Restoring, Caller::Held) => Some(Clause::Held),
        (Paid | Completed, Caller::Held) => None,
        // Nothing gives it back, although the order is over: somebody has to look.
        (Closed | RefundDue | Refunded, Caller::Held) => Some(Clause::Help),
        (Restoring, Caller::Returned) => Some(Clause::Again),
        (_, Caller::Returned) => Some(Clause::Back),
        (Restoring, Caller::ComingBack) => Some(Clause::Checking),
        (_, Caller::ComingBack) => Some(Clause::Coming),
    }
}

/// What is said of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Money {
    /// Started, and no result yet.
    Started,
    /// It doesn't match what is to be paid.
    Differs,
    /// It goes back.
    Due,
    Back,
    /// Its refund waits for a person.
    Help,
}

/// The table of payments. Nothing where the opening says it, or nothing is certain.
pub const fn money(order: OrderStatus, payment: PaymentStatus, is_with_a_person: bool) -> Option<Money> {
    match (order, payment) {
        (OrderStatus::Pending, PaymentStatus::Started) => Some(Money::Started),
        (OrderStatus::Pending, PaymentStatus::Recorded) => Some(Money::Differs),
        (_, PaymentStatus::RefundDue) if is_with_a_person => Some(Money::Help),
        (_, PaymentStatus::RefundDue) => Some(Money::Due),
        (OrderStatus::Refunded, PaymentStatus::Refunded) => None,
        (_, PaymentStatus::Refunded) => Some(Money::Back),
        _ => None,
    }
}

/// The table of an order that the shop keeps. That its lines are reserved is the shop's word, which nobody here
/// has checked: it stands on the page and isn't promised to the caller.
pub const fn shop_clause(standing: Standing, thing: Caller) -> Option<Clause> {
    match (standing, thing) {
        (_, Caller::Held | Caller::Bought) => None,
        (_, Caller::Returned) => Some(Clause::Back),
        (_, Caller::ComingBack) => Some(Clause::Coming),
        (_, Caller::NeedsHelp) => Some(Clause::Help),
    }
}

/// What can be said of an order that the shop keeps.
pub fn of_shop(eye: &Eye, standing: Standing, parts: &[Part<'_>]) -> String {
    let opening = match standing {
        Standing::Open => Some("order.say.shop_open"),
        Standing::NotOpen => Some("order.say.shop_not_open"),
        Standing::Unreadable => Some("order.say.shop_unreadable"),
        Standing::Unlisted if says_nothing(standing, parts) => Some("order.say.shop_nothing"),
        Standing::Unlisted => None,
    };
    let mut said: Vec<String> = opening.iter().map(|key| eye.lang.t(key).to_owned()).collect();
    said.extend(of_things(eye, parts, Extent::AsFarAsKnown, |state| shop_clause(standing, state)));
    said.join(eye.lang.gap())
}

/// Whether nothing about the order can be said for certain.
pub fn says_nothing(standing: Standing, parts: &[Part<'_>]) -> bool {
    matches!(standing, Standing::Unlisted | Standing::Unreadable)
        && parts.iter().all(|part| shop_clause(standing, part.state).is_none())
}

/// Whether the parts are all that an order reserved: only then may it be said of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Whole,
    AsFarAsKnown,
}

/// What can be said to the buyer, in the reader's language.
pub fn sentence(eye: &Eye, view: &OrderView, parts: &[Part<'_>]) -> String {
    let lang = eye.lang;
    let mut said = vec![opening(eye, view)];
    if !view.order.is_tombstone() {
        said.extend(view.payments.iter().filter_map(|payment| of_payment(eye, view, payment)));
        said.extend(of_things(eye, parts, Extent::Whole, |state| clause(view.order.status, state)));
    }
    said.join(lang.gap())
}

fn opening(eye: &Eye, view: &OrderView) -> String {
    let (lang, order) = (eye.lang, &view.order);
    let at = |ms: Option<i64>| ms.map(|ms| eye.stamp(ms).spoken()).unwrap_or_default();
    match order.status {
        _ if order.is_tombstone() => lang.t("order.say.tombstone").to_owned(),
        OrderStatus::Pending => lang.f("order.say.pending", &[("at", &eye.stamp(order.pay_deadline).spoken())]),
        OrderStatus::Paid => lang.f("order.say.paid", &[("at", &at(order.paid_at))]),
        OrderStatus::Completed => lang.t("order.say.completed").to_owned(),
        OrderStatus::Closed => match order.close_reason.as_deref() {
            Some("timeout") | None => lang.f("order.say.closed_unpaid", &[("at", &at(order.closed_at))]),
            Some("buyer") => lang.f("order.say.closed_buyer", &[("at", &at(order.closed_at))]),
            Some(_) => lang.f("order.say.closed", &[("at", &at(order.closed_at))]),
        },
        OrderStatus::Restoring => lang.t("order.say.restoring").to_owned(),
        OrderStatus::RefundDue => lang.t("order.say.refund_due").to_owned(),
        OrderStatus::Refunded => lang.t("order.say.refunded").to_owned(),
    }
}

fn of_payment(eye: &Eye, view: &OrderView, payment: &Payment) -> Option<String> {
    let amount = format::money(payment.amount, &payment.currency);
    let money = money(view.order.status, payment.status, view.refund_of(payment.id).is_some_and(|t| t.1))?;
    Some(say_money(eye, money, &amount, payment.occurred_at))
}

fn say_money(eye: &Eye, money: Money, amount: &str, occurred_at: i64) -> String {
    let lang = eye.lang;
    match money {
        Money::Started => lang.f("order.say.money_started", &[("at", &eye.stamp(occurred_at).spoken())]),
        Money::Differs => lang.f("order.say.money_differs", &[("amount", &amount)]),
        Money::Due => lang.f("order.say.money_due", &[("amount", &amount)]),
        Money::Back => lang.f("order.say.money_back", &[("amount", &amount)]),
        Money::Help => lang.f("order.say.money_help", &[("amount", &amount)]),
    }
}

/// One sentence per clause, in the clauses' order; what has a planned time apart from what has none.
fn of_things(eye: &Eye, parts: &[Part<'_>], extent: Extent, clause: impl Fn(Caller) -> Option<Clause>) -> Vec<String> {
    let mut said: Vec<(Clause, bool, Vec<&Part<'_>>)> = Vec::new();
    for part in parts {
        let Some(clause) = clause(part.state) else { continue };
        let is_promised = clause == Clause::Coming && part.next_try.is_some();
        match said.iter_mut().find(|(known, promised, _)| (*known, *promised) == (clause, is_promised)) {
            Some((_, _, things)) => things.push(part),
            None => said.push((clause, is_promised, vec![part])),
        }
    }
    said.sort_by_key(|(clause, promised, _)| (*clause, *promised));
    said.into_iter()
        .map(|(clause, _, things)| {
            let latest = things.iter().filter_map(|part| part.next_try).max();
            let spoken: Vec<&str> = things.iter().map(|part| part.spoken.as_str()).collect();
            let is_all = extent == Extent::Whole && spoken.len() == parts.len();
            say_things(eye, clause, &spoken, is_all, latest)
        })
        .collect()
}

fn say_things(eye: &Eye, clause: Clause, spoken: &[&str], is_all: bool, next_try: Option<i64>) -> String {
    let lang = eye.lang;
    let things = things(lang, spoken);
    let things: (&str, &dyn std::fmt::Display) = ("things", &things);
    match (clause, next_try) {
        (Clause::Held, _) if is_all => lang.t("order.say.all_held").to_owned(),
        (Clause::Held, _) => lang.f("order.say.held", &[things]),
        (Clause::Back, _) if is_all => lang.t("order.say.all_back").to_owned(),
        (Clause::Back, _) => lang.f("order.say.back", &[things]),
        (Clause::Coming, Some(at)) => lang.f("order.say.coming_at", &[things, ("at", &eye.stamp(at).spoken())]),
        (Clause::Coming, None) => lang.f("order.say.coming", &[things]),
        (Clause::Again, _) => lang.f("order.say.again", &[things]),
        (Clause::Checking, _) => lang.f("order.say.checking", &[things]),
        (Clause::Help, _) => lang.f("order.say.help", &[things]),
    }
}

/// `2 pieces of sku-1, the coupon C-7 and 50.00 CNY of balance`.
fn things(lang: Lang, spoken: &[&str]) -> String {
    match spoken.split_last() {
        Some((last, rest)) if !rest.is_empty() => {
            lang.f("order.and", &[("first", &rest.join(lang.t("order.comma"))), ("last", last)])
        }
        Some((last, _)) => (*last).to_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::words::ResourceType;
    use crate::store::order_view::HoldRow;
    use crate::web::view::samples::{NOW, eye};

    /// Every cell: the order's state, then held, coming back, returned, bought, needs help.
    const THINGS: [(OrderStatus, [&str; 5]); 7] = [
        (OrderStatus::Pending, ["Reserved: X.", "Still on its way: X. We keep trying.", "Back already: X.", "", HELP]),
        (OrderStatus::Paid, ["", "Still on its way: X. We keep trying.", "Back already: X.", "", HELP]),
        (OrderStatus::Completed, ["", "Still on its way: X. We keep trying.", "Back already: X.", "", HELP]),
        (OrderStatus::Closed, [HELP, "Still on its way: X. We keep trying.", "Back already: X.", "", HELP]),
        (
            OrderStatus::Restoring,
            ["Reserved: X.", "We are finding out about: X.", "Being reserved again: X.", "", HELP],
        ),
        (OrderStatus::RefundDue, [HELP, "Still on its way: X. We keep trying.", "Back already: X.", "", HELP]),
        (OrderStatus::Refunded, [HELP, "Still on its way: X. We keep trying.", "Back already: X.", "", HELP]),
    ];
    const HELP: &str = "Our colleagues are looking after: X.";

    #[test]
    fn every_cell_of_order_and_thing_says_what_is_certain() {
        assert!(THINGS.iter().map(|(status, _)| *status).eq(OrderStatus::ALL.iter().copied()));
        for (status, row) in THINGS {
            let states = [Caller::Held, Caller::ComingBack, Caller::Returned, Caller::Bought, Caller::NeedsHelp];
            for (state, expected) in states.into_iter().zip(row) {
                let say = |lang| clause(status, state).map(|c| say_things(&eye(lang), c, &["X"], false, None));
                assert_eq!(say(Lang::En).unwrap_or_default(), expected, "{status} {state:?}");
                let chinese = say(Lang::Zh).unwrap_or_default();
                assert_eq!(chinese.is_empty(), expected.is_empty(), "{status} {state:?}");
                assert!(expected.is_empty() || chinese.contains('X') && chinese.ends_with('。'), "{chinese}");
                // No time stands in it that nobody planned.
                assert!(!chinese.contains(':') && !expected.contains("at "), "{expected} {chinese}");
            }
        }
    }

    #[test]
    fn every_cell_of_a_shops_order_and_thing_says_what_is_certain() {
        use Standing::{NotOpen, Open, Unlisted, Unreadable};
        let openings = [
            (Open, "The order is open in the shop.", "订单在商家处仍为未结状态。"),
            (NotOpen, "The order isn't open in the shop.", "订单在商家处不是未结状态。"),
            (Unlisted, "", ""),
            (
                Unreadable,
                "We can't look into the shop's own record of the order just now.",
                "目前无法查看商家自己的订单记录。",
            ),
        ];
        assert!(openings.iter().map(|row| row.0).eq(Standing::ALL));
        let things = [
            (Caller::Held, "", ""),
            (Caller::ComingBack, "Still on its way: X. We keep trying.", "仍在退回途中：X。我们会继续处理。"),
            (Caller::Returned, "Back already: X.", "已退回：X。"),
            (Caller::Bought, "", ""),
            (Caller::NeedsHelp, HELP, "同事正在处理：X。"),
        ];
        assert!(things.iter().map(|row| row.0).eq(Caller::ALL));
        let hold = a_hold();
        for (standing, opening, opening_zh) in openings {
            for (state, thing, thing_zh) in things {
                let parts = [Part { hold: &hold, qty: 1, state, task: None, next_try: None, spoken: "X".into() }];
                let joined = |gap: &str, parts: [&str; 2], nothing: &str| match parts {
                    ["", ""] => nothing.to_owned(),
                    ["", one] | [one, ""] => one.to_owned(),
                    both => both.join(gap),
                };
                let nothing = "We have to look this order up in the shop first.";
                let english = of_shop(&eye(Lang::En), standing, &parts);
                assert_eq!(english, joined(" ", [opening, thing], nothing), "{standing:?} {state:?}");
                let chinese = of_shop(&eye(Lang::Zh), standing, &parts);
                let nothing = "这个订单要先到商家处查看。";
                assert_eq!(chinese, joined("", [opening_zh, thing_zh], nothing), "{standing:?} {state:?}");
            }
        }
    }

    /// Rows that a shop wrote may be a part of what its order reserved.
    #[test]
    fn of_a_shops_order_nothing_is_said_of_everything() {
        let hold = a_hold();
        let part = |spoken: &str| Part {
            hold: &hold,
            qty: 1,
            state: Caller::Returned,
            task: None,
            next_try: None,
            spoken: spoken.into(),
        };
        let said = of_shop(&eye(Lang::En), Standing::NotOpen, &[part("a"), part("b")]);
        assert_eq!(said, "The order isn't open in the shop. Back already: a and b.");
    }

    fn a_hold() -> HoldRow {
        let (resource, key) = (ResourceType::Stock, "x".to_owned());
        HoldRow { round: 1, resource, key, locked: 1, funds: None, expires_at: None }
    }

    #[test]
    fn every_cell_of_order_and_payment_says_what_is_certain() {
        for status in OrderStatus::ALL {
            for payment in PaymentStatus::ALL {
                let expected = match (status, payment) {
                    (OrderStatus::Pending, PaymentStatus::Started) => Some(Money::Started),
                    (OrderStatus::Pending, PaymentStatus::Recorded) => Some(Money::Differs),
                    (_, PaymentStatus::RefundDue) => Some(Money::Due),
                    (OrderStatus::Refunded, PaymentStatus::Refunded) => None,
                    (_, PaymentStatus::Refunded) => Some(Money::Back),
                    _ => None,
                };
                assert_eq!(money(*status, *payment, false), expected, "{status} {payment}");
                let with_a_person = if *payment == PaymentStatus::RefundDue { Some(Money::Help) } else { expected };
                assert_eq!(money(*status, *payment, true), with_a_person, "{status} {payment}");
            }
        }
        for lang in Lang::ALL {
            for money in [Money::Started, Money::Differs, Money::Due, Money::Back, Money::Help] {
                let said = say_money(&eye(lang), money, "9.00 CNY", NOW);
                assert!(!said.contains('{') && said.ends_with(['.', '。']), "{said}");
                assert_eq!(said.contains("9.00 CNY"), money != Money::Started, "{said}");
            }
        }
    }

    #[test]
    fn a_time_is_named_where_one_is_planned() {
        let said = say_things(&eye(Lang::En), Clause::Coming, &["the coupon C"], false, Some(NOW + 100_000));
        assert_eq!(said, "Still on its way: the coupon C. We try again at 14:20.");
        let said = say_things(&eye(Lang::Zh), Clause::Coming, &["优惠券 C"], false, Some(NOW + 100_000));
        assert!(said.contains("14:20"), "{said}");
    }

    #[test]
    fn all_of_it_is_said_shortly() {
        let en = eye(Lang::En);
        assert_eq!(say_things(&en, Clause::Back, &["a", "b"], true, None), "Everything it reserved is back.");
        assert_eq!(say_things(&en, Clause::Held, &["a"], true, None), "Everything in it is reserved.");
        assert_eq!(
            say_things(&en, Clause::Help, &["a", "b", "c"], true, None),
            "Our colleagues are looking after: a, b and c."
        );
    }
}
