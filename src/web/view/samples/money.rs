//! Money that goes back, and an act that is asked about first.

use super::*;

pub fn refunds(eye: &Eye, hostile: &str) -> RefundsPage {
    let lacking = serde_json::json!([{"type": "coupon", "key": format!("C-7{hostile}"), "qty": 1}]).to_string();
    let payment = Payment {
        id: 3,
        channel: format!("pay-a{hostile}"),
        channel_txn: format!("20261111005521{hostile}"),
        order_no: format!("HB20261111-0047193{hostile}"),
        status: PaymentStatus::RefundDue,
        amount: 26_800,
        currency: "CNY".to_owned(),
        occurred_at: NOW - 602_000,
        recorded_at: NOW - 600_000,
        lacking: Some(lacking),
    };
    let due = [(payment.clone(), Some(task(918_400, TaskStatus::Manual, hostile).task)), (payment.clone(), None)];
    let wrong = Payment { status: PaymentStatus::Recorded, ..payment.clone() };
    let unknown = Payment { status: PaymentStatus::Unmatched, ..payment.clone() };
    let cases = Cases {
        misfits: vec![
            Misfit { payment: wrong, asked: Some((26_900, "CNY".to_owned())) },
            Misfit { payment: unknown, asked: None },
        ],
        conflicts: vec![(conflict(hostile), payment)],
        may_decide: true,
    };
    RefundsPage::new(shell(eye, hostile), eye, &due, &cases, 100)
}

/// A transaction that was told twice.
pub fn conflict(hostile: &str) -> Conflict {
    Conflict {
        id: 1,
        payment_id: 2,
        order_no: format!("HB9{hostile}"),
        amount: 1,
        currency: "CNY".to_owned(),
        told_at: NOW - 500_000,
        settled_at: None,
        settled_by: None,
    }
}

pub fn refunds_none(eye: &Eye) -> RefundsPage {
    RefundsPage::new(shell(eye, ""), eye, &[], &Cases::default(), 100)
}

pub fn confirm(eye: &Eye, hostile: &str) -> ConfirmPage {
    let lang = eye.lang;
    ConfirmPage {
        s: shell(eye, hostile),
        title: lang.f("confirm.accept", &[("order", &format!("HB1{hostile}"))]),
        text: lang.t("confirm.accept_text").to_owned(),
        facts: vec![(lang.t("order.to_pay").to_owned(), "268.00 CNY".to_owned())],
        action: "/orders/HB1/payments/1/acceptances".to_owned(),
        button: lang.t("confirm.accept_button").to_owned(),
        back: "/orders/HB1".to_owned(),
        reason: hostile.to_owned(),
        problem: lang.t("task.reason_problem").to_owned(),
    }
}
