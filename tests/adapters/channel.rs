//! The payment channel: asked before a timeout closes an order, told to give money back (B5, R9).

use std::time::Duration;

use handback::core::order::ask::ask_due;
use handback::core::order::close::Closed;
use handback::core::order::pay::{NewPayment, Paid, Said};
use handback::core::order::refund::{Refunded, report_refunded};
use handback::core::policy::CHANNEL;
use handback::core::release::act::Retried;
use handback::core::words::{OrderStatus, PaymentStatus, ResourceType, TaskStatus};
use handback::store::payment;
use serde_json::json;

use super::Town;
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{a_payment, an_order, operator};
use crate::support::standin::Does;

const PAY_TIME: Duration = Duration::from_secs(900);

/// An order past its deadline, with a payment that has started.
async fn started(town: &Town, order_no: &str) {
    town.shop.placed(an_order(order_no)).await;
    let paid = town.shop.payment(NewPayment { said: Said::Started, ..a_payment(order_no, &format!("t-{order_no}")) });
    assert_eq!(paid.await, Paid::Recorded);
}

on_every_engine!(the_channel_is_asked_and_its_answer_pays_closes_or_postpones);

async fn the_channel_is_asked_and_its_answer_pays_closes_or_postpones(db: TestDb) {
    let town = Town::open(&db).await;
    for no in ["A/1 &ü+%", "unpaid", "unknown"] {
        started(&town, no).await;
    }
    town.bank.pays(
        "A/1 &ü+%",
        json!({"state": "paid", "channel": "alipay", "channel_txn": "t-A/1 &ü+%", "amount": 10_000,
               "currency": "CNY", "occurred_at": "2026-11-30T10:05:00+08:00"}),
    );
    town.bank.pays("unknown", json!({"state": "unknown"}));
    town.shop.later(PAY_TIME);
    town.shop.sweep().await;
    assert_eq!(town.shop.close("unpaid", "timeout").await, Closed::Postponed);
    assert_eq!(ask_due(&town.shop.core).await.unwrap(), 3);
    assert_eq!(town.shop.status("A/1 &ü+%").await, OrderStatus::Paid);
    assert_eq!(town.shop.status("unpaid").await, OrderStatus::Closed);
    for _ in 0..2 {
        assert_eq!(town.shop.status("unknown").await, OrderStatus::Pending);
        assert_eq!(ask_due(&town.shop.core).await.unwrap(), 0, "not before its time");
        town.shop.later(Duration::from_secs(60));
        assert_eq!(ask_due(&town.shop.core).await.unwrap(), 1);
    }
    town.shop.later(Duration::from_secs(86_400));
    assert_eq!(ask_due(&town.shop.core).await.unwrap(), 0, "after three answers it is left to a person");
    assert_eq!(town.shop.status("unknown").await, OrderStatus::Pending);
    town.all_is_well().await;
}

on_every_engine!(b5_a_channel_that_was_taken_out_of_the_configuration_holds_nothing_up);

async fn b5_a_channel_that_was_taken_out_of_the_configuration_holds_nothing_up(db: TestDb) {
    let town = Town::open(&db).await;
    started(&town, "o").await;
    town.shop.later(PAY_TIME);
    town.shop.sweep().await;
    assert_eq!(town.shop.status("o").await, OrderStatus::Pending, "the channel is to be asked");
    let mut other = town.shop.another_process(&db).await;
    other.core = handback::core::Core::new(other.core.db.clone(), other.clock.clone(), super::policy());
    assert_eq!(ask_due(&other.core).await.unwrap(), 0);
    other.sweep().await;
    assert_eq!(town.shop.status("o").await, OrderStatus::Closed);
    town.all_is_well().await;
}

on_every_engine!(half_an_answer_of_the_channel_is_no_payment);

async fn half_an_answer_of_the_channel_is_no_payment(db: TestDb) {
    let town = Town::open(&db).await;
    let lies = [
        Does::say(200, r#"{"state": "paid"}"#),
        Does::say(200, "{"),
        Does::say(404, r#"{"state": "not_paid"}"#),
        Does::say(500, ""),
        Does::Say(302, vec![("location", "/payment?order_no=x".into())], String::new()),
    ];
    for (n, lie) in lies.into_iter().enumerate() {
        let no = format!("o{n}");
        started(&town, &no).await;
        town.shop.later(PAY_TIME);
        town.shop.sweep().await;
        town.bank.next("/payment", lie);
        assert_eq!(ask_due(&town.shop.core).await.unwrap(), 1);
        assert_eq!(town.shop.status(&no).await, OrderStatus::Pending, "{no}");
        town.shop.close(&no, "operator").await;
    }
    town.all_is_well().await;
}

/// An order that can't be restored: its money goes back.
async fn refund_due(town: &Town, order_no: &str) -> i64 {
    town.shop.placed(an_order(order_no)).await;
    town.shop.pay(order_no).await;
    // Money in excess leaves the order PAID.
    assert_eq!(town.shop.payment(a_payment(order_no, &format!("more-{order_no}"))).await, Paid::RefundDue);
    let tasks = town.shop.tasks(order_no).await;
    tasks.iter().find(|task| task.resource == ResourceType::Payment).unwrap().id
}

async fn paid_back(town: &Town, order_no: &str) -> PaymentStatus {
    let payments = payment::of_order(&mut town.shop.core.db.read().await.unwrap(), order_no).await.unwrap();
    payments.into_iter().find(|payment| payment.channel_txn.starts_with("more")).unwrap().status
}

on_every_engine!(a_refund_is_made_once_whatever_the_channel_says_of_it);

async fn a_refund_is_made_once_whatever_the_channel_says_of_it(db: TestDb) {
    let town = Town::open(&db).await;
    for (no, does) in [
        ("plain", Does::Apply),
        ("before", Does::say(200, r#"{"result": "already_refunded"}"#)),
        ("unsaid", Does::ApplyAndSay(500, "boom".into())),
        ("busy", Does::busy(429, "3")),
    ] {
        refund_due(&town, no).await;
        town.bank.next("/refund", does);
        town.lane(CHANNEL).await;
    }
    assert_eq!(paid_back(&town, "unsaid").await, PaymentStatus::RefundDue);
    town.work_to_the_end().await;
    for no in ["plain", "before", "unsaid", "busy"] {
        assert_eq!(paid_back(&town, no).await, PaymentStatus::Refunded, "{no}");
        assert_eq!(town.shop.status(no).await, OrderStatus::Paid, "{no}");
    }
    let sent = &town.bank.seen("/refund")[0];
    let expected = json!({"order_no": "plain", "channel": "alipay", "channel_txn": "more-plain", "amount": 10_000, "currency": "CNY"});
    assert_eq!(sent.body, expected);
    assert!(sent.key.as_deref().unwrap().starts_with("hb1-"));
    town.all_is_well().await;
}

on_every_engine!(a_refund_in_doubt_is_not_sent_again_at_a_persons_word_and_can_be_reported);

async fn a_refund_in_doubt_is_not_sent_again_at_a_persons_word_and_can_be_reported(db: TestDb) {
    let town = Town::open(&db).await;
    let id = refund_due(&town, "o").await;
    town.bank.next("/refund", Does::say(500, "boom"));
    town.lane(CHANNEL).await;
    let retried = town.shop.retry("li", id).await;
    assert!(matches!(&retried, Retried::Failed(task) if task.status == TaskStatus::Manual), "{retried:?}");
    assert_eq!(town.bank.seen("/refund").len(), 1);
    let reported = report_refunded(&town.shop.core, &operator("li"), "o", "more-o").await.unwrap();
    assert_eq!(reported, Refunded::Refunded);
    assert_eq!(paid_back(&town, "o").await, PaymentStatus::Refunded);
    assert!(matches!(town.shop.retry("li", id).await, Retried::AlreadyDone(_)));
    town.all_is_well().await;
}
