//! R7, R9, B5: payments before and while an order is open, reducing it, and asking the channel before a timeout.

use handback::core::order::ask::ask_due;
use handback::core::order::cases::{Accepted, GivenBack, Settled, accept_payment, give_back, settle_conflict};
use handback::core::order::close::{Closed, Swept};
use handback::core::order::pay::Paid;
use handback::core::order::place::NewHold;
use handback::core::order::reduce::{Over, Reduce, Reduced, reduce_order};
use handback::core::ports::Asked;
use handback::core::words::{Action, OrderStatus, PaymentStatus, ResourceType, TaskStatus};
use handback::store::{payment, payment_case};

use crate::support::channel::{started, with_channel};
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{MINUTE, Ordering, START_MS, Shop, a_payment, an_order, operator};

use ResourceType::{Coupon, Stock};

fn part(key: &str, qty: i64) -> NewHold {
    NewHold { resource: Stock, key: key.into(), qty }
}

async fn reduce(shop: &Shop, order_no: &str, reference: &str, amount: i64, holds: Vec<NewHold>) -> Reduced {
    let reduce = Reduce { order_no: order_no.into(), reference: reference.into(), amount, holds };
    reduce_order(&shop.core, reduce).await.unwrap()
}

on_every_engine!(r4_reducing_gives_part_back_early_and_the_close_only_the_rest);

async fn r4_reducing_gives_part_back_early_and_the_close_only_the_rest(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("o").holding(Stock, "s", 2).holding(Stock, "s", 3)).await;
    assert_eq!(reduce(&shop, "o", "line 2", 4_000, vec![part("s", 1), part("s", 2)]).await, Reduced::Reduced);
    assert_eq!(reduce(&shop, "o", "line 2", 4_000, vec![part("s", 3)]).await, Reduced::AlreadyReduced);
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (8, 2, 0));
    let over = Over { resource: Stock, key: "s".into(), qty: 3, left: 2 };
    assert_eq!(reduce(&shop, "o", "too much", 1, vec![part("s", 3)]).await, Reduced::OverReduce(vec![over]));
    assert_eq!(reduce(&shop, "o", "up", 4_001, vec![]).await, Reduced::AmountAbove { present: 4_000 });
    assert_eq!(shop.close("o", "buyer").await, Closed::Closed);
    assert_eq!(reduce(&shop, "o", "late", 1, vec![]).await, Reduced::NotPending);
    assert_eq!(reduce(&shop, "o", "line 2", 1, vec![]).await, Reduced::AlreadyReduced);
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    assert_eq!(reduce(&shop, "nobody", "x", 1, vec![]).await, Reduced::UnknownOrder);
    shop.rules_hold().await;
}

on_every_engine!(r8_a_late_payment_of_a_reduced_order_takes_back_only_what_the_close_released);

async fn r8_a_late_payment_of_a_reduced_order_takes_back_only_what_the_close_released(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    for (order_no, runs) in [("ran", true), ("waits", false)] {
        shop.placed(an_order(order_no).holding(Stock, "s", 5)).await;
        reduce(&shop, order_no, "r", 4_000, vec![part("s", 3)]).await;
        shop.close(order_no, "buyer").await;
        if runs {
            shop.work().await;
        }
        let mut reduced = a_payment(order_no, order_no);
        reduced.amount = 4_000;
        assert_eq!(shop.payment(reduced).await, Paid::Restored);
        shop.work().await;
    }
    assert_eq!(shop.stock_figures("s").await, (6, 0, 4));
    shop.rules_hold().await;
}

on_every_engine!(r9_reducing_looks_at_recorded_payments_again);

async fn r9_reducing_looks_at_recorded_payments_again(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("o").holding(Stock, "s", 2)).await;
    let mut less = a_payment("o", "t");
    less.amount = 4_000;
    assert_eq!(shop.payment(less).await, Paid::AmountMismatch);
    assert_eq!(reduce(&shop, "o", "r", 4_000, vec![part("s", 1)]).await, Reduced::Reduced);
    assert_eq!(shop.status("o").await, OrderStatus::Paid);
    shop.placed(an_order("free").holding(Stock, "s", 2)).await;
    assert_eq!(reduce(&shop, "free", "r", 0, vec![]).await, Reduced::Reduced);
    assert_eq!(shop.status("free").await, OrderStatus::Paid, "nothing left to pay is PAID at once");
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (7, 0, 3));
    shop.rules_hold().await;
}

on_every_engine!(r7_a_lead_takes_a_wrong_amount_only_while_the_order_is_open);

async fn r7_a_lead_takes_a_wrong_amount_only_while_the_order_is_open(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    let accept = async |id| accept_payment(&shop.core, &operator("lead"), id, "the buyer sent 1 less").await.unwrap();
    for order_no in ["open", "closed"] {
        shop.placed(an_order(order_no).holding(Stock, "s", 1)).await;
        let mut wrong = a_payment(order_no, order_no);
        wrong.amount = 9_900;
        assert_eq!(shop.payment(wrong).await, Paid::AmountMismatch);
    }
    let id = async |order_no: &str| {
        payment::of_order(&mut shop.core.db.read().await.unwrap(), order_no).await.unwrap()[0].id
    };
    assert_eq!(accept(id("open").await).await, Accepted::Accepted);
    assert_eq!(accept(id("open").await).await, Accepted::NotRecorded, "pressed again");
    assert_eq!(shop.status("open").await, OrderStatus::Paid);
    shop.close("closed", "buyer").await;
    assert_eq!(accept(id("closed").await).await, Accepted::NotRecorded, "it is money to refund by now");
    assert_eq!(accept(4_711).await, Accepted::Unknown);
    assert_eq!(db.count("SELECT COUNT(*) FROM audit_log WHERE action = 'payment.accept'").await, 1);
    shop.work().await;
    shop.rules_hold().await;
}

on_every_engine!(r9_a_lead_gives_back_money_that_no_order_can_use);

async fn r9_a_lead_gives_back_money_that_no_order_can_use(db: TestDb) {
    let shop = Shop::open(&db).await;
    let give = async |id| give_back(&shop.core, &operator("lead"), id, "the buyer asked").await.unwrap();
    let only = async |order_no: &str| {
        payment::of_order(&mut shop.core.db.read().await.unwrap(), order_no).await.unwrap().remove(0)
    };
    // Nobody knows the order.
    assert_eq!(shop.payment(a_payment("nobody", "t1")).await, Paid::UnknownOrder);
    // The order is open and asks for more.
    shop.placed(an_order("open")).await;
    let mut wrong = a_payment("open", "t2");
    wrong.amount = 9_900;
    assert_eq!(shop.payment(wrong).await, Paid::AmountMismatch);
    for order_no in ["nobody", "open"] {
        let payment = only(order_no).await;
        assert_eq!(give(payment.id).await, GivenBack::RefundDue);
        assert_eq!(give(payment.id).await, GivenBack::NotWaiting, "pressed again");
        assert_eq!(only(order_no).await.status, PaymentStatus::RefundDue);
        let task = shop.task(order_no).await;
        assert_eq!((task.action, task.qty, task.status), (Action::Refund, payment.amount, TaskStatus::Manual));
    }
    assert_eq!(shop.status("open").await, OrderStatus::Pending, "it can still be paid");
    assert_eq!(shop.payment(a_payment("open", "t3")).await, Paid::Paid);
    // Money that pays its order is not given back.
    let paying = payment::of_order(&mut shop.core.db.read().await.unwrap(), "open").await.unwrap()[1].id;
    assert_eq!(give(paying).await, GivenBack::NotWaiting);
    assert_eq!(give(4_711).await, GivenBack::Unknown);
    // The order comes after all: its money went back, so it is to be paid like any other.
    shop.placed(an_order("nobody")).await;
    assert_eq!(shop.status("nobody").await, OrderStatus::Pending);
    assert_eq!(db.count("SELECT COUNT(*) FROM audit_log WHERE action = 'payment.give_back'").await, 2);
    assert_eq!(db.count("SELECT COUNT(*) FROM payment WHERE status = 4").await, 2);
    shop.rules_hold().await;
}

on_every_engine!(r9_a_case_of_a_transaction_told_twice_is_closed_once);

async fn r9_a_case_of_a_transaction_told_twice_is_closed_once(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.placed(an_order("o")).await;
    assert_eq!(shop.payment(a_payment("o", "t")).await, Paid::Paid);
    assert_eq!(shop.payment(a_payment("p", "t")).await, Paid::TxnConflict);
    let of = async |order_no: &str| {
        payment_case::conflicts_of(&mut shop.core.db.read().await.unwrap(), order_no).await.unwrap()
    };
    let told = of("p").await;
    assert_eq!(told, of("o").await, "both orders show it, once");
    let id = told[0].id;
    let settle = async |id| settle_conflict(&shop.core, &operator("lead"), id, "the channel mixed them up").await;
    assert_eq!(settle(id).await.unwrap(), Settled::Settled);
    assert_eq!(settle(id).await.unwrap(), Settled::AlreadySettled);
    assert_eq!(settle(id + 1).await.unwrap(), Settled::Unknown);
    // Told the same once more, it is the same case.
    assert_eq!(shop.payment(a_payment("p", "t")).await, Paid::TxnConflict);
    assert!(of("o").await[0].is_settled());
    assert_eq!(shop.payment(a_payment("o", "t")).await, Paid::AlreadyPaid, "nothing else changed");
    assert_eq!(db.count("SELECT COUNT(*) FROM audit_log WHERE action = 'payment.settle_conflict'").await, 1);
    shop.rules_hold().await;
}

on_every_engine!(r9_the_same_transaction_with_other_content_is_one_case_and_changes_nothing);

async fn r9_the_same_transaction_with_other_content_is_one_case_and_changes_nothing(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("o").holding(Stock, "s", 1)).await;
    shop.placed(an_order("p").holding(Stock, "s", 1)).await;
    assert_eq!(shop.payment(a_payment("o", "t")).await, Paid::Paid);
    for _ in 0..3 {
        assert_eq!(shop.payment(a_payment("p", "t")).await, Paid::TxnConflict);
    }
    let mut other = a_payment("o", "t");
    other.currency = "USD".into();
    assert_eq!(shop.payment(other).await, Paid::TxnConflict);
    assert_eq!(db.count("SELECT COUNT(*) FROM payment_conflict").await, 2);
    assert_eq!(shop.status("p").await, OrderStatus::Pending);
    assert_eq!(shop.payment(a_payment("o", "t")).await, Paid::AlreadyPaid);
    shop.work().await;
    shop.rules_hold().await;
}

on_every_engine!(r9_every_payment_that_is_not_applied_has_one_refund_task);

async fn r9_every_payment_that_is_not_applied_has_one_refund_task(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.payment(a_payment("never placed", "t0")).await;
    assert_eq!(shop.close("never placed", "buyer").await, Closed::Tombstoned);
    shop.placed(an_order("o").holding(Stock, "s", 1)).await;
    let mut wrong = a_payment("o", "t1");
    wrong.amount = 5;
    shop.payment(wrong).await;
    shop.payment(a_payment("o", "t2")).await;
    shop.payment(a_payment("o", "t3")).await;
    let refunds = "SELECT COUNT(*) FROM order_release_task WHERE action = 5 AND resource_type = 0 AND lane = 6";
    assert_eq!(db.count(refunds).await, 3);
    let unmatched = "SELECT COUNT(*) FROM payment p WHERE p.status = 4 AND NOT EXISTS \
                     (SELECT 1 FROM order_release_task t WHERE t.action = 5 AND t.qty = p.amount AND t.order_no = p.order_no)";
    assert_eq!(db.count(unmatched).await, 0);
    assert_eq!(shop.status("o").await, OrderStatus::Paid);
    shop.work().await;
    shop.rules_hold().await;
}

on_every_engine!(b5_the_channel_is_asked_once_and_an_unpaid_order_closes);

async fn b5_the_channel_is_asked_once_and_an_unpaid_order_closes(db: TestDb) {
    let (shop, told) = with_channel(&db, vec![Asked::NotPaid]).await;
    shop.stock("s", 5).await;
    shop.placed(an_order("o").holding(Stock, "s", 1)).await;
    shop.placed(an_order("plain").holding(Stock, "s", 1)).await;
    shop.payment(started("o")).await;
    assert_eq!(ask_due(&shop.core).await.unwrap(), 0, "nobody is asked before the deadline");
    shop.later(16 * MINUTE);
    assert_eq!(shop.close("o", "timeout").await, Closed::Postponed);
    let swept = shop.sweep().await;
    assert_eq!((swept.closed, swept.postponed), (1, 0), "one that is being asked about holds up no other: {swept:?}");
    assert_eq!(ask_due(&shop.core).await.unwrap(), 1);
    assert_eq!(*told.asked.lock().unwrap(), ["o"]);
    assert_eq!(shop.status("o").await, OrderStatus::Closed);
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (5, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(b5_what_the_channel_says_is_paid_is_a_payment);

async fn b5_what_the_channel_says_is_paid_is_a_payment(db: TestDb) {
    let paid = Asked::Paid {
        channel: "alipay".into(),
        channel_txn: "started-o".into(),
        amount: 10_000,
        currency: "CNY".into(),
        occurred_at: START_MS,
    };
    let (shop, _) = with_channel(&db, vec![paid]).await;
    shop.stock("s", 5).await;
    shop.placed(an_order("o").holding(Stock, "s", 1)).await;
    shop.payment(started("o")).await;
    shop.later(16 * MINUTE);
    shop.sweep().await;
    ask_due(&shop.core).await.unwrap();
    assert_eq!(shop.status("o").await, OrderStatus::Paid);
    let payments = payment::of_order(&mut shop.core.db.read().await.unwrap(), "o").await.unwrap();
    assert_eq!(payments.iter().map(|p| p.status).collect::<Vec<_>>(), [PaymentStatus::Applied]);
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (4, 0, 1));
    shop.rules_hold().await;
}

on_every_engine!(b5_a_channel_that_does_not_know_is_asked_again_and_then_a_person_decides);

async fn b5_a_channel_that_does_not_know_is_asked_again_and_then_a_person_decides(db: TestDb) {
    let (shop, told) = with_channel(&db, Vec::new()).await;
    shop.stock("s", 5).await;
    shop.placed(an_order("o").holding(Stock, "s", 1)).await;
    shop.payment(started("o")).await;
    shop.later(16 * MINUTE);
    shop.sweep().await;
    for round in 1..=3 {
        assert_eq!(ask_due(&shop.core).await.unwrap(), 1, "round {round}");
        assert_eq!(ask_due(&shop.core).await.unwrap(), 0, "not again at once");
        assert_eq!(shop.sweep().await, Swept::default());
        shop.later(MINUTE);
    }
    shop.later(60 * MINUTE);
    assert_eq!(ask_due(&shop.core).await.unwrap(), 0, "after three times it is left to a person");
    assert_eq!(told.asked.lock().unwrap().len(), 3);
    assert_eq!(shop.status("o").await, OrderStatus::Pending);
    assert_eq!(shop.close("o", "timeout").await, Closed::Postponed);
    assert_eq!(shop.close("o", "operator").await, Closed::Closed, "every other reason closes at once");
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (5, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(b5_without_a_channel_a_started_payment_holds_nothing_up);

async fn b5_without_a_channel_a_started_payment_holds_nothing_up(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.good_coupon("c").await;
    shop.placed(an_order("o").holding(Coupon, "c", 1)).await;
    shop.payment(started("o")).await;
    shop.later(16 * MINUTE);
    assert_eq!(shop.sweep().await.closed, 1);
    let task = shop.task("o").await;
    assert_eq!((task.action, task.status), (Action::Release, TaskStatus::Waiting));
    shop.work().await;
    shop.rules_hold().await;
}
