//! R8, R16: money that comes after the close. Everything comes back, all or nothing, or goes to the refund
//! branch; never back to PENDING.

use std::time::Duration;

use handback::core::ledger::Adjustment;
use handback::core::order::late_plan::Lacks;
use handback::core::order::pay::Paid;
use handback::core::order::refund::{Refunded, report_refunded};
use handback::core::policy::{CouponRule, LatePayment, OnRelease, Policy};
use handback::core::release::act::ForceClosed;
use handback::core::words::{Action, OrderStatus, PaymentStatus, ResourceType, TaskStatus};
use handback::store::payment;

use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{MINUTE, Ordering, START_MS, Shop, a_payment, an_order, operator};

use ResourceType::{Coupon, Funds, Quota, Slot, Stock};

const DAY: Duration = Duration::from_secs(86_400);

/// Action, round, status of each task, in the order they were written.
async fn acts(shop: &Shop, order_no: &str) -> Vec<(Action, i64, TaskStatus)> {
    shop.tasks(order_no).await.into_iter().map(|t| (t.action, t.round, t.status)).collect()
}

async fn paid_by(shop: &Shop, order_no: &str) -> Vec<payment::Payment> {
    payment::of_order(&mut shop.core.db.read().await.unwrap(), order_no).await.unwrap()
}

/// What lacked, as the payment keeps it.
async fn lacked(shop: &Shop, order_no: &str) -> Vec<Lacks> {
    let payments = paid_by(shop, order_no).await;
    let list = payments.iter().find_map(|p| p.lacking.clone()).unwrap_or_else(|| panic!("{payments:#?}"));
    serde_json::from_str(&list).unwrap()
}

on_every_engine!(r8_a_late_payment_supersedes_what_has_not_been_released_yet);

async fn r8_a_late_payment_supersedes_what_has_not_been_released_yet(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("o").holding(Stock, "s", 3)).await;
    shop.close("o", "buyer").await;
    assert_eq!(shop.pay("o").await, Paid::Restored);
    assert_eq!(shop.status("o").await, OrderStatus::Paid);
    let expected = [(Action::Release, 1, TaskStatus::Superseded), (Action::Settle, 1, TaskStatus::Waiting)];
    assert_eq!(acts(&shop, "o").await, expected);
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (7, 0, 3));
    let moves = shop.moves("o").await;
    assert_eq!(moves, [(Action::Lock, "s".into(), 3), (Action::Settle, "s".into(), 3)], "never released and re-taken");
    assert_eq!(shop.pay("o").await, Paid::AlreadyPaid);
    shop.rules_hold().await;
}

on_every_engine!(r8_a_late_payment_takes_everything_back_in_the_next_round);

async fn r8_a_late_payment_takes_everything_back_in_the_next_round(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.quota("q", 5).await;
    shop.balance("u", 1_000).await;
    shop.slot("seat").await;
    shop.good_coupon("c").await;
    let order = an_order("o").holding(Stock, "s", 3).holding(Quota, "q", 1).holding(Funds, "u", 400);
    shop.placed(order.holding(Slot, "seat", 1).holding(Coupon, "c", 1)).await;
    shop.close("o", "buyer").await;
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    assert_eq!(shop.pay("o").await, Paid::Restored);
    assert_eq!(shop.stock_figures("s").await, (7, 3, 0));
    assert_eq!(shop.ledger(Coupon, "c").await.holder_round, Some(2));
    shop.work().await;
    let figures = [(Stock, "s", (7, 0, 3)), (Quota, "q", (4, 0, 1)), (Funds, "u", (600, 0, 400))];
    for (resource, key, figures) in figures.into_iter().chain([(Slot, "seat", (0, 0, 1)), (Coupon, "c", (0, 0, 1))]) {
        assert_eq!(shop.figures(resource, key).await, figures, "{key}");
    }
    let of_stock: Vec<_> =
        shop.flows("o").await.into_iter().filter(|f| f.key == "s").map(|f| (f.action, f.round, f.qty)).collect();
    let expected = [(Action::Lock, 1, 3), (Action::Release, 1, 3), (Action::TakeBack, 2, 3), (Action::Settle, 2, 3)];
    assert_eq!(of_stock, expected);
    assert_eq!(shop.pay("o").await, Paid::AlreadyPaid, "told again, nothing changes");
    assert_eq!(shop.flows("o").await.len(), 20);
    shop.rules_hold().await;
}

on_every_engine!(r8_what_ran_and_what_did_not_come_back_together);

async fn r8_what_ran_and_what_did_not_come_back_together(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.stock("t", 10).await;
    shop.placed(an_order("o").holding(Stock, "s", 2).holding(Stock, "t", 4)).await;
    shop.close("o", "buyer").await;
    shop.run_once("w", 1).await;
    assert_eq!(shop.pay("o").await, Paid::Restored);
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (8, 0, 2));
    assert_eq!(shop.stock_figures("t").await, (6, 0, 4));
    let rounds: Vec<_> =
        shop.tasks("o").await.into_iter().filter(|t| t.action == Action::Settle).map(|t| (t.key, t.round)).collect();
    assert_eq!(rounds, [("t".to_owned(), 1), ("s".to_owned(), 2)]);
    shop.rules_hold().await;
}

on_every_engine!(r8_when_one_thing_lacks_nothing_is_taken_and_the_money_goes_back);

async fn r8_when_one_thing_lacks_nothing_is_taken_and_the_money_goes_back(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 1).await;
    shop.stock("t", 5).await;
    shop.placed(an_order("o").holding(Stock, "s", 1).holding(Stock, "t", 2)).await;
    shop.close("o", "buyer").await;
    shop.work().await;
    shop.placed(an_order("next").holding(Stock, "s", 1)).await;
    shop.pay("next").await;
    shop.work().await;
    let before = shop.flows("o").await;
    assert_eq!(shop.pay("o").await, Paid::RefundDue);
    assert_eq!(shop.pay("o").await, Paid::RefundDue, "told again, nothing changes");
    assert_eq!(shop.status("o").await, OrderStatus::RefundDue);
    assert_eq!(lacked(&shop, "o").await, [Lacks::of(Stock, "s", 1)]);
    assert_eq!(shop.flows("o").await, before);
    let refunds: Vec<_> = shop.tasks("o").await.into_iter().filter(|t| t.action == Action::Refund).collect();
    assert_eq!(refunds.len(), 1);
    // Without a channel a person gives the money back and reports it.
    assert_eq!((refunds[0].status, refunds[0].qty), (TaskStatus::Manual, 10_000));
    let report = async |txn| report_refunded(&shop.core, &operator("zhang"), "o", txn).await.unwrap();
    assert_eq!(report("another").await, Refunded::NotRefundDue);
    assert_eq!(report("txn-o").await, Refunded::Refunded);
    assert_eq!(report("txn-o").await, Refunded::AlreadyRefunded);
    assert_eq!(shop.status("o").await, OrderStatus::Refunded);
    assert_eq!(paid_by(&shop, "o").await[0].status, PaymentStatus::Refunded);
    assert_eq!(shop.pay("o").await, Paid::RefundDue, "refunded is answered as refund_due");
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (0, 0, 1));
    assert_eq!(shop.stock_figures("t").await, (5, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(r8_a_retired_key_lacks_and_its_release_runs_on);

async fn r8_a_retired_key_lacks_and_its_release_runs_on(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 5).await;
    shop.stock("t", 5).await;
    for (order_no, runs_first) in [("done", true), ("waits", false)] {
        shop.placed(an_order(order_no).holding(Stock, "s", 1).holding(Stock, "t", 1)).await;
        shop.close(order_no, "buyer").await;
        if runs_first {
            shop.work().await;
        }
    }
    shop.retire(Stock, "s").await;
    assert_eq!(shop.pay("done").await, Paid::RefundDue);
    assert_eq!(lacked(&shop, "done").await, [Lacks::of(Stock, "s", 1)]);
    // What was never released needs no taking back: it settles on the retired row.
    assert_eq!(shop.pay("waits").await, Paid::Restored);
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (4, 0, 1));
    shop.rules_hold().await;
}

on_every_engine!(r16_a_coupon_that_ran_out_comes_back_to_the_order_that_held_it);

async fn r16_a_coupon_that_ran_out_comes_back_to_the_order_that_held_it(db: TestDb) {
    let extend = CouponRule { on_release: OnRelease::Extend { days: 3 }, extend_once: true };
    for (name, rule, days_later) in [
        ("expired", CouponRule { on_release: OnRelease::Keep, extend_once: true }, 0),
        ("extended", extend, 0),
        ("extended, and past that end", extend, 4),
    ] {
        let shop = Shop::with_policy(&db, Policy { coupon: rule, ..Policy::default() }).await;
        let (coupon, order_no) = (format!("c {name}"), format!("o {name}"));
        let placed_at = shop.core.now();
        shop.coupon(&coupon, placed_at + 600_000).await;
        shop.placed(an_order(&order_no).holding(Coupon, &coupon, 1)).await;
        shop.later(16 * MINUTE);
        shop.close(&order_no, "timeout").await;
        shop.work().await;
        shop.later(days_later * DAY);
        assert_eq!(shop.pay(&order_no).await, Paid::Restored, "{name}");
        shop.work().await;
        assert_eq!(shop.figures(Coupon, &coupon).await, (0, 0, 1), "{name}");
        shop.rules_hold().await;
    }
}

on_every_engine!(r16_a_coupon_that_somebody_held_since_does_not_come_back);

async fn r16_a_coupon_that_somebody_held_since_does_not_come_back(db: TestDb) {
    let coupon = CouponRule { on_release: OnRelease::Extend { days: 3 }, extend_once: true };
    let shop = Shop::with_policy(&db, Policy { coupon, ..Policy::default() }).await;
    shop.coupon("c", START_MS + 600_000).await;
    shop.placed(an_order("o").holding(Coupon, "c", 1)).await;
    shop.later(16 * MINUTE);
    shop.close("o", "timeout").await;
    shop.work().await;
    // Extended, so another order may hold it; it comes back and runs out for good.
    shop.placed(an_order("other").holding(Coupon, "c", 1)).await;
    shop.later(4 * DAY);
    shop.close("other", "timeout").await;
    shop.work().await;
    assert_eq!(shop.pay("o").await, Paid::RefundDue);
    assert_eq!(lacked(&shop, "o").await, [Lacks::of(Coupon, "c", 1)]);
    assert_eq!(shop.pay("other").await, Paid::Restored, "the one who held it last may have it back");
    shop.work().await;
    shop.rules_hold().await;
}

on_every_engine!(r16_points_on_an_account_that_ran_out_come_back_to_their_order);

async fn r16_points_on_an_account_that_ran_out_come_back_to_their_order(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.points("p", 500, START_MS + 600_000).await;
    shop.placed(an_order("o").holding(Funds, "p", 200)).await;
    shop.later(16 * MINUTE);
    shop.close("o", "timeout").await;
    shop.work().await;
    assert_eq!(shop.figures(Funds, "p").await, (500, 0, 0), "visible, not lockable");
    assert_eq!(shop.pay("o").await, Paid::Restored);
    shop.work().await;
    assert_eq!(shop.figures(Funds, "p").await, (300, 0, 200));
    shop.rules_hold().await;
}

on_every_engine!(r8_by_policy_every_late_payment_is_refunded);

async fn r8_by_policy_every_late_payment_is_refunded(db: TestDb) {
    let policy = Policy { late_payment: LatePayment::Refund, ..Policy::default() };
    let shop = Shop::with_policy(&db, policy).await;
    shop.stock("s", 5).await;
    shop.placed(an_order("o").holding(Stock, "s", 1)).await;
    shop.close("o", "buyer").await;
    assert_eq!(shop.pay("o").await, Paid::RefundDue);
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (5, 0, 0));
    assert_eq!(shop.status("o").await, OrderStatus::RefundDue);
    shop.rules_hold().await;
}

on_every_engine!(r21_a_force_closed_release_counts_as_not_done_until_a_flow_row_names_it);

async fn r21_a_force_closed_release_counts_as_not_done_until_a_flow_row_names_it(db: TestDb) {
    let shop = Shop::open(&db).await;
    for (order_no, key, is_adjusted) in [("owed", "s", false), ("named", "t", true)] {
        shop.stock(key, 10).await;
        shop.placed(an_order(order_no).holding(Stock, key, 2)).await;
        shop.close(order_no, "buyer").await;
        let release = shop.task(order_no).await;
        assert!(matches!(shop.force_close("li", release.id, release.version).await, ForceClosed::ForceClosed(_)));
        if is_adjusted {
            // A person moved the pieces back by hand and said for which task.
            shop.adjust(
                key,
                Adjustment {
                    available: Some(2),
                    locked: Some(-2),
                    reference: "count".into(),
                    reason: "counted".into(),
                    task: Some(release.id),
                },
            )
            .await;
        }
        assert_eq!(shop.pay(order_no).await, Paid::Restored, "{order_no}");
        shop.work().await;
        assert_eq!(shop.stock_figures(key).await, (8, 0, 2), "{order_no}");
    }
    assert_eq!(acts(&shop, "owed").await[0].2, TaskStatus::Superseded);
    assert_eq!(acts(&shop, "named").await[0].2, TaskStatus::ForceClosed);
    assert_eq!(acts(&shop, "named").await[1], (Action::TakeBack, 2, TaskStatus::Succeeded));
    shop.rules_hold().await;
}

on_every_engine!(r8_a_payment_of_another_amount_leaves_a_closed_order_closed);

async fn r8_a_payment_of_another_amount_leaves_a_closed_order_closed(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 5).await;
    shop.placed(an_order("o").holding(Stock, "s", 1)).await;
    shop.close("o", "buyer").await;
    let mut wrong = a_payment("o", "wrong");
    wrong.amount = 1;
    assert_eq!(shop.payment(wrong).await, Paid::RefundDue);
    assert_eq!(shop.status("o").await, OrderStatus::Closed);
    assert_eq!(report_refunded(&shop.core, &operator("li"), "o", "wrong").await.unwrap(), Refunded::Refunded);
    assert_eq!(shop.status("o").await, OrderStatus::Closed, "its own state changes only by a matching payment");
    assert_eq!(shop.pay("o").await, Paid::Restored);
    assert_eq!(shop.payment(a_payment("o", "second")).await, Paid::RefundDue);
    assert_eq!(shop.status("o").await, OrderStatus::Paid, "money in excess leaves it PAID");
    shop.work().await;
    shop.rules_hold().await;
}

on_every_engine!(r8_the_same_late_payment_from_many_sides_restores_once);

async fn r8_the_same_late_payment_from_many_sides_restores_once(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 1_000).await;
    for n in 0..30 {
        let order_no = format!("o{n}");
        shop.placed(an_order(&order_no).holding(Stock, "s", 2)).await;
        shop.close(&order_no, "buyer").await;
        let told = (0..4).map(|_| {
            let (shop, order_no) = (shop.clone(), order_no.clone());
            tokio::spawn(async move { shop.pay(&order_no).await })
        });
        let running = tokio::spawn({
            let shop = shop.clone();
            async move { shop.work().await }
        });
        let answers: Vec<Paid> = futures_util::future::join_all(told).await.into_iter().map(Result::unwrap).collect();
        running.await.unwrap();
        assert_eq!(answers.iter().filter(|a| **a == Paid::Restored).count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|a| **a == Paid::AlreadyPaid).count(), 3, "{answers:?}");
        shop.work().await;
        assert_eq!(shop.stock_figures("s").await, (1_000 - 2 * (n + 1), 0, 2 * (n + 1)), "{order_no}");
    }
    shop.rules_hold().await;
}
