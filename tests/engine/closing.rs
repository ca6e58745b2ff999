//! R3 to R7, R15, R18, R23: what a close writes, what it takes over, and who wins against a payment.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use handback::core::order::close::{Closed, Swept};
use handback::core::order::pay::Paid;
use handback::core::order::place::Placed;
use handback::core::release::act::ForceClosed;
use handback::core::words::{Action, AttemptOutcome, FailureKind, OrderStatus, ResourceType, TaskStatus};
use sqlx::Executor as _;
use tokio::sync::Barrier;

use crate::support::database::{Engine, TestDb, on_every_engine, on_every_server};
use crate::support::shop::{MINUTE, Ordering, Shop, a_payment, an_order};

use ResourceType::{Coupon, Quota, Stock};

on_every_engine!(r3_closing_again_and_again_writes_one_task_per_hold);

async fn r3_closing_again_and_again_writes_one_task_per_hold(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 5).await;
    shop.quota("q", 5).await;
    shop.placed(an_order("o").holding(Stock, "s", 2).holding(Quota, "q", 1)).await;
    assert_eq!(shop.close("o", "buyer").await, Closed::Closed);
    assert_eq!(shop.close("o", "buyer").await, Closed::AlreadyClosed);
    shop.work().await;
    assert_eq!(shop.close("o", "timeout").await, Closed::AlreadyClosed);
    shop.work().await;
    assert_eq!(shop.tasks("o").await.len(), 2);
    assert_eq!(shop.stock_figures("s").await, (5, 0, 0));
    shop.rules_hold().await;
}

/// A row as a shop writes it.
async fn a_shop_asks(db: &TestDb, order_no: &str, key: &str, qty: i64) {
    // On the test's clock, like the rest: the server's own would be the column's default.
    let start = crate::support::shop::START_MS;
    let insert = format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at) \
         VALUES ('{order_no}', 1, '{key}', {qty}, {start})"
    );
    db.execute(&insert).await.unwrap();
}

on_every_engine!(r4_a_shops_row_is_the_close_arriving_by_another_way);

async fn r4_a_shops_row_is_the_close_arriving_by_another_way(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.stock("t", 10).await;
    shop.placed(an_order("open").holding(Stock, "s", 2).holding(Stock, "t", 1)).await;
    // The shop says 1 of s; the hold says 2. What is due comes from the hold, never from elsewhere.
    a_shop_asks(&db, "open", "s", 1).await;
    shop.work().await;
    assert_eq!(shop.status("open").await, OrderStatus::Closed);
    assert_eq!(db.count("SELECT COUNT(*) FROM orders WHERE close_reason = 'shop' AND close_trigger = 6").await, 1);
    let tasks = shop.tasks("open").await;
    let done: Vec<_> = tasks.iter().map(|t| (t.key.as_str(), t.qty, t.status)).collect();
    assert_eq!(done, [("s", 2, TaskStatus::Succeeded), ("t", 1, TaskStatus::Succeeded)]);
    assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(r4_a_close_takes_over_a_row_that_the_shop_wrote_first);

async fn r4_a_close_takes_over_a_row_that_the_shop_wrote_first(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("o").holding(Stock, "s", 2)).await;
    a_shop_asks(&db, "o", "s", 7).await;
    a_shop_asks(&db, "o", "not held", 7).await;
    assert_eq!(shop.close("o", "buyer").await, Closed::Closed);
    shop.work().await;
    let tasks = shop.tasks("o").await;
    let done: Vec<_> = tasks.iter().map(|t| (t.key.as_str(), t.qty, t.status, t.outcome)).collect();
    assert_eq!(
        done,
        [
            ("s", 2, TaskStatus::Succeeded, Some(AttemptOutcome::Succeeded)),
            ("not held", 7, TaskStatus::Succeeded, Some(AttemptOutcome::NothingLocked)),
        ]
    );
    assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(r4_a_close_lets_a_force_closed_row_of_the_shop_owe_what_the_hold_has_left);

async fn r4_a_close_lets_a_force_closed_row_of_the_shop_owe_what_the_hold_has_left(db: TestDb) {
    let shop = Shop::open(&db).await;
    for (order_no, key, asked) in [("less", "s", 2), ("more", "t", 9)] {
        shop.stock(key, 10).await;
        shop.placed(an_order(order_no).holding(Stock, key, 5)).await;
        a_shop_asks(&db, order_no, key, asked).await;
        let row = shop.task(order_no).await;
        assert!(matches!(shop.force_close("zhang", row.id, row.version).await, ForceClosed::ForceClosed(_)));
    }
    shop.later(20 * MINUTE);
    assert_eq!(shop.sweep().await, Swept { found: 2, closed: 2, postponed: 0 });
    shop.work().await;
    for (order_no, key) in [("less", "s"), ("more", "t")] {
        let row = shop.task(order_no).await;
        assert_eq!((row.status, row.qty, row.is_owed), (TaskStatus::ForceClosed, 5, true));
        // Nothing moved: a person said so (R21).
        assert_eq!(shop.stock_figures(key).await, (5, 5, 0));
    }
    shop.rules_hold().await;
}

on_every_engine!(r15_an_order_whose_release_ran_before_it_came_is_refused);

async fn r15_an_order_whose_release_ran_before_it_came_is_refused(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("theirs").holding(Stock, "s", 5)).await;
    a_shop_asks(&db, "o", "s", 2).await;
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (7, 3, 0));
    assert_eq!(shop.place(an_order("o").holding(Stock, "s", 2)).await, Placed::Tombstone);
    assert_eq!(shop.stock_figures("s").await, (7, 3, 0));
    // A row that nobody has run yet is the close of the order that comes after it.
    a_shop_asks(&db, "p", "s", 1).await;
    assert_eq!(shop.place(an_order("p").holding(Stock, "s", 1)).await, Placed::Placed);
    shop.work().await;
    assert_eq!(shop.status("p").await, OrderStatus::Closed);
    assert_eq!(shop.stock_figures("s").await, (7, 3, 0));
    shop.rules_hold().await;
}

on_every_server!(r19_placing_waits_for_payments_before_it_locks_a_ledger_row);

async fn r19_placing_waits_for_payments_before_it_locks_a_ledger_row(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    assert_eq!(shop.pay("o").await, Paid::UnknownOrder);
    let mut holder = db.connect().await.unwrap();
    for sql in ["BEGIN", "SELECT id FROM payment FOR UPDATE"] {
        holder.execute(sql).await.unwrap();
    }
    let placing = tokio::spawn({
        let shop = shop.clone();
        async move { shop.place(an_order("o").holding(Stock, "s", 2)).await }
    });
    let waiting = match db.engine {
        Engine::Postgres => {
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        }
        _ => {
            "SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p \
             ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()"
        }
    };
    while db.count(waiting).await == 0 {
        tokio::task::yield_now().await;
    }
    // Nobody who works on the ledger waits behind it.
    db.execute("SELECT id FROM ledger WHERE biz_key = 's' FOR UPDATE NOWAIT").await.unwrap();
    holder.execute("ROLLBACK").await.unwrap();
    assert_eq!(placing.await.unwrap(), Placed::Placed);
    assert_eq!(shop.status("o").await, OrderStatus::Paid);
    shop.rules_hold().await;
}

on_every_engine!(r4_a_shops_row_for_a_paid_order_is_a_mismatch_and_moves_nothing);

async fn r4_a_shops_row_for_a_paid_order_is_a_mismatch_and_moves_nothing(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    for (order_no, asks_first) in [("before", true), ("after", false)] {
        shop.placed(an_order(order_no).holding(Stock, "s", 2)).await;
        if asks_first {
            a_shop_asks(&db, order_no, "s", 2).await;
        }
        assert_eq!(shop.pay(order_no).await, Paid::Paid);
        if !asks_first {
            a_shop_asks(&db, order_no, "s", 2).await;
        }
        shop.work().await;
        assert_eq!(shop.status(order_no).await, OrderStatus::Paid);
        let asked = shop.tasks(order_no).await.into_iter().find(|t| t.action == Action::Release).unwrap();
        assert_eq!((asked.status, asked.kind), (TaskStatus::Manual, Some(FailureKind::StateMismatch)));
    }
    assert_eq!(shop.stock_figures("s").await, (6, 0, 4));
    shop.rules_hold().await;
}

on_every_engine!(r4_a_shops_row_for_an_order_nobody_knows_counts_with_its_own_quantity);

async fn r4_a_shops_row_for_an_order_nobody_knows_counts_with_its_own_quantity(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("o").holding(Stock, "s", 5)).await;
    a_shop_asks(&db, "unknown", "s", 3).await;
    a_shop_asks(&db, "unknown 2", "no such key", 3).await;
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (8, 2, 0));
    let missing = shop.task("unknown 2").await;
    assert_eq!((missing.status, missing.kind), (TaskStatus::Manual, Some(FailureKind::ResourceMissing)));
}

on_every_engine!(r5_a_task_whose_effect_exists_succeeds_as_a_duplicate);

async fn r5_a_task_whose_effect_exists_succeeds_as_a_duplicate(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.stock("other", 10).await;
    shop.placed(an_order("o").holding(Stock, "s", 2).holding(Stock, "other", 1)).await;
    shop.placed(an_order("later").holding(Stock, "s", 2)).await;
    shop.close("o", "buyer").await;
    shop.work().await;
    // As if the mark had been lost and the effect not; beside it, work that is really due.
    let due = crate::support::shop::START_MS;
    db.execute(&format!(
        "UPDATE order_release_task SET status = 0, next_at = {due}, outcome = NULL WHERE order_no = 'o' AND biz_key = 's'"
    ))
    .await
    .unwrap();
    shop.rule_is_broken("R5").await;
    shop.close("later", "buyer").await;
    let ran = shop.work().await;
    assert_eq!((ran.succeeded, ran.failed), (2, 0));
    let again = shop.tasks("o").await.into_iter().find(|t| t.key == "s").unwrap();
    assert_eq!((again.status, again.outcome), (TaskStatus::Succeeded, Some(AttemptOutcome::Duplicate)));
    assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(r6_a_close_is_whole_or_not_at_all);

async fn r6_a_close_is_whole_or_not_at_all(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.good_coupon("c").await;
    shop.placed(an_order("o").holding(Stock, "s", 2).holding(Coupon, "c", 1)).await;
    assert_eq!(shop.close("o", "buyer").await, Closed::Closed);
    let owed: Vec<_> = shop.tasks("o").await.into_iter().map(|t| (t.resource, t.key, t.qty, t.action)).collect();
    assert_eq!(owed, [(Stock, "s".to_owned(), 2, Action::Release), (Coupon, "c".to_owned(), 1, Action::Release)]);
    assert_eq!(shop.stock_figures("s").await, (8, 2, 0), "nothing is released in the close itself");
    shop.rules_hold().await;
    db.execute("DELETE FROM order_release_task WHERE biz_key = 'c'").await.unwrap();
    shop.rule_is_broken("R6").await;
}

on_every_engine!(r7_exactly_one_of_pay_and_close_wins);

/// A thousand orders; payment and close of each are let go at the same moment, each order of calls for
/// half of them.
async fn r7_exactly_one_of_pay_and_close_wins(db: TestDb) {
    const ROUNDS: usize = 1_000;
    let shop = Shop::open(&db).await;
    shop.stock("s", ROUNDS as i64).await;
    place_many(&shop, ROUNDS).await;
    shop.later(16 * MINUTE);

    let mut first_paid = 0;
    for chunk in (0..ROUNDS).collect::<Vec<_>>().chunks(10) {
        for (n, won_by_pay) in join_all(chunk.iter().map(|n| pay_against_close(&shop, *n))).await {
            let order_no = format!("o{n}");
            assert_eq!(shop.status(&order_no).await, OrderStatus::Paid, "{order_no}");
            let tasks = shop.tasks(&order_no).await;
            let actions: Vec<_> = tasks.iter().map(|t| (t.action, t.status)).collect();
            let settle = (Action::Settle, TaskStatus::Waiting);
            // A close that won wrote the release; the payment that came late superseded it.
            let release = (Action::Release, TaskStatus::Superseded);
            assert_eq!(actions, if won_by_pay { vec![settle] } else { vec![release, settle] }, "{order_no}");
            first_paid += usize::from(won_by_pay);
        }
    }
    assert!(first_paid > 0 && first_paid < ROUNDS, "one side won all {ROUNDS}: {first_paid}");
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (0, 0, ROUNDS as i64));
    shop.rules_hold().await;
}

/// Orders o0, o1, … of one piece each.
async fn place_many(shop: &Shop, orders: usize) {
    for some in (0..orders).collect::<Vec<_>>().chunks(25) {
        join_all(some.iter().map(|n| shop.placed(an_order(&format!("o{n}")).holding(Stock, "s", 1)))).await;
    }
}

async fn pay_against_close(shop: &Shop, n: usize) -> (usize, bool) {
    let order_no = format!("o{n}");
    let gate = Arc::new(Barrier::new(2));
    let pay = {
        let (shop, gate, order_no) = (shop.clone(), gate.clone(), order_no.clone());
        async move {
            gate.wait().await;
            shop.pay(&order_no).await
        }
    };
    let close = {
        let (shop, order_no) = (shop.clone(), order_no.clone());
        async move {
            gate.wait().await;
            shop.close(&order_no, "timeout").await
        }
    };
    let (paid, closed) = if n.is_multiple_of(2) {
        let (pay, close) = (tokio::spawn(pay), tokio::spawn(close));
        (pay.await.unwrap(), close.await.unwrap())
    } else {
        let (close, pay) = (tokio::spawn(close), tokio::spawn(pay));
        (pay.await.unwrap(), close.await.unwrap())
    };
    let won_by_pay = match (paid, closed) {
        (Paid::Paid, Closed::NotPending) => true,
        (Paid::Restored, Closed::Closed) => false,
        both => panic!("{order_no}: {both:?}"),
    };
    (n, won_by_pay)
}

on_every_engine!(r7_the_scan_and_a_payment_never_both_win);

async fn r7_the_scan_and_a_payment_never_both_win(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 120).await;
    place_many(&shop, 120).await;
    shop.later(16 * MINUTE);
    let sweeps = tokio::spawn({
        let shop = shop.clone();
        async move { while shop.sweep().await != Swept::default() {} }
    });
    let paid = join_all((0..120).map(|n| {
        let shop = shop.clone();
        tokio::spawn(async move { (n, shop.pay(&format!("o{n}")).await) })
    }))
    .await;
    sweeps.await.unwrap();
    shop.sweep().await;
    for (n, answer) in paid.into_iter().map(Result::unwrap) {
        let order_no = format!("o{n}");
        assert!(matches!(answer, Paid::Paid | Paid::Restored), "{order_no}: {answer:?}");
        assert_eq!(shop.status(&order_no).await, OrderStatus::Paid, "{order_no}");
        let was_closed = shop.tasks(&order_no).await.iter().any(|t| t.action == Action::Release);
        assert_eq!(was_closed, answer == Paid::Restored, "{order_no}");
    }
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (0, 0, 120));
    shop.rules_hold().await;
}

on_every_engine!(r7_an_order_with_a_payment_from_other_hands_is_found_paid);

async fn r7_an_order_with_a_payment_from_other_hands_is_found_paid(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 3).await;
    shop.placed(an_order("o").holding(Stock, "s", 1)).await;
    let now = crate::support::shop::START_MS;
    db.execute(&format!(
        "INSERT INTO payment (channel, channel_txn, order_no, status, amount, currency, occurred_at, recorded_at) \
         VALUES ('alipay', 't', 'o', 2, 10000, 'CNY', {now}, {now})"
    ))
    .await
    .unwrap();
    shop.later(16 * MINUTE);
    assert_eq!(shop.close("o", "timeout").await, Closed::NotPending);
    assert_eq!(shop.status("o").await, OrderStatus::Paid);
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (2, 0, 1));
    shop.rules_hold().await;
}

on_every_engine!(r7_a_wrong_amount_does_not_stop_the_close);

async fn r7_a_wrong_amount_does_not_stop_the_close(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 3).await;
    shop.placed(an_order("o").holding(Stock, "s", 1)).await;
    let mut payment = a_payment("o", "t");
    payment.amount = 9_999;
    assert_eq!(shop.payment(payment.clone()).await, Paid::AmountMismatch);
    shop.later(16 * MINUTE);
    assert_eq!(shop.sweep().await.closed, 1);
    assert_eq!(shop.status("o").await, OrderStatus::Closed);
    assert_eq!(shop.payment(payment).await, Paid::RefundDue);
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (3, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(r9_a_payment_is_recorded_first_and_counts_once);

async fn r9_a_payment_is_recorded_first_and_counts_once(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 3).await;
    assert_eq!(shop.payment(a_payment("early", "t0")).await, Paid::UnknownOrder);
    shop.placed(an_order("early").holding(Stock, "s", 1)).await;
    assert_eq!(shop.status("early").await, OrderStatus::Paid, "a payment that came first is applied when placing");
    assert_eq!(shop.payment(a_payment("early", "t0")).await, Paid::AlreadyPaid);
    assert_eq!(shop.payment(a_payment("early", "t1")).await, Paid::RefundDue);
    assert_eq!(shop.payment(a_payment("another", "t0")).await, Paid::TxnConflict);
    assert_eq!(db.count("SELECT COUNT(*) FROM payment").await, 2);
    let same = (0..20).map(|_| shop.payment(a_payment("nobody", "t2")));
    assert!(join_all(same).await.iter().all(|answer| *answer == Paid::UnknownOrder));
    assert_eq!(db.count("SELECT COUNT(*) FROM payment").await, 3);
    shop.work().await;
    shop.rules_hold().await;
}

on_every_engine!(r15_a_close_that_comes_first_refuses_the_late_lock);

async fn r15_a_close_that_comes_first_refuses_the_late_lock(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    assert_eq!(shop.close("o", "buyer").await, Closed::Tombstoned);
    assert_eq!(shop.place(an_order("o").holding(Stock, "s", 2)).await, Placed::Tombstone);
    assert_eq!(shop.close("o", "buyer").await, Closed::AlreadyClosed);
    assert_eq!(shop.payment(a_payment("o", "t")).await, Paid::RefundDue);
    assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(r15_a_close_and_its_late_order_at_the_same_moment_leave_one_of_them);

async fn r15_a_close_and_its_late_order_at_the_same_moment_leave_one_of_them(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 1_000).await;
    for n in 0..60 {
        let order_no = format!("o{n}");
        let place = tokio::spawn({
            let (shop, order) = (shop.clone(), an_order(&order_no).holding(Stock, "s", 1));
            async move { shop.place(order).await }
        });
        let close = tokio::spawn({
            let (shop, order_no) = (shop.clone(), order_no.clone());
            async move { shop.close(&order_no, "buyer").await }
        });
        match (place.await.unwrap(), close.await.unwrap()) {
            (Placed::Placed, Closed::Closed) | (Placed::Tombstone, Closed::Tombstoned) => {}
            both => panic!("{order_no}: {both:?}"),
        }
    }
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (1_000, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(r18_a_deadline_is_fixed_when_the_order_is_placed);

async fn r18_a_deadline_is_fixed_when_the_order_is_placed(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("usual").holding(Stock, "s", 1)).await;
    let mut short = an_order("short").holding(Stock, "s", 1);
    short.pay_within_s = Some(60);
    shop.placed(short).await;
    // Another process with another setting changes nothing about orders that are there.
    let mut other = shop.another_process(&db).await;
    let policy = handback::core::policy::Policy { pay_within_s: 1, ..Default::default() };
    other.core = handback::core::Core::new(other.core.db.clone(), other.clock.clone(), policy);

    shop.later(Duration::from_millis(59_999));
    assert_eq!(other.sweep().await, Swept::default());
    assert_eq!(other.close("short", "timeout").await, Closed::NotDue);
    shop.later(Duration::from_millis(1));
    assert_eq!(other.sweep().await, Swept { found: 1, closed: 1, postponed: 0 });
    shop.later(14 * MINUTE - Duration::from_millis(1));
    assert_eq!(other.sweep().await, Swept::default());
    shop.later(Duration::from_millis(1));
    assert_eq!(other.sweep().await, Swept { found: 1, closed: 1, postponed: 0 });
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(r23_the_database_alone_is_the_timer_of_record);

/// Nothing of the process that placed the orders survives; the next one finds all of them.
async fn r23_the_database_alone_is_the_timer_of_record(db: TestDb) {
    let first = Shop::open(&db).await;
    first.stock("s", 100).await;
    for n in 0..30 {
        first.placed(an_order(&format!("o{n}")).holding(Stock, "s", 1)).await;
    }
    first.close("o0", "buyer").await;
    first.core.db.close().await;
    drop(first);

    let next = Shop::open(&db).await;
    next.later(16 * MINUTE);
    assert_eq!(next.sweep().await, Swept { found: 29, closed: 29, postponed: 0 });
    next.work().await;
    assert_eq!(next.stock_figures("s").await, (100, 0, 0));
    next.rules_hold().await;
}
