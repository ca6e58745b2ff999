//! Cases 7, 8: coupons after the order that held them is gone.

use handback::core::order::close::Closed;
use handback::core::order::place::Placed;
use handback::core::policy::{CouponRule, OnRelease, Policy};
use handback::core::words::{Action, ResourceType};

use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{MINUTE, Ordering, START_MS, Shop, an_order};

use ResourceType::Coupon;

on_every_engine!(case_07_a_one_time_coupon_comes_back_whoever_closes_the_order);

async fn case_07_a_one_time_coupon_comes_back_whoever_closes_the_order(db: TestDb) {
    let shop = Shop::open(&db).await;
    for reason in ["timeout", "buyer", "operator", "channel"] {
        let (coupon, order_no, next) = (format!("C-{reason}"), format!("O-{reason}"), format!("N-{reason}"));
        shop.good_coupon(&coupon).await;
        shop.placed(an_order(&order_no).holding(Coupon, &coupon, 1)).await;
        assert!(matches!(shop.place(an_order("too late").holding(Coupon, &coupon, 1)).await, Placed::Lacking(_)));
        if reason == "timeout" {
            shop.later(16 * MINUTE);
        }
        assert_eq!(shop.close(&order_no, reason).await, Closed::Closed, "{reason}");
        shop.work().await;
        let moves = [(Action::Lock, coupon.clone(), 1), (Action::Release, coupon.clone(), 1)];
        assert_eq!(shop.moves(&order_no).await, moves);
        shop.placed(an_order(&next).holding(Coupon, &coupon, 1)).await;
        assert_eq!(shop.ledger(Coupon, &coupon).await.holder_no, Some(next));
    }
    shop.rules_hold().await;
}

/// C1 ends at 10:10; O1 of 10:00 holds it and is closed at 10:15.
async fn closed_after_its_coupon_ran_out(db: &TestDb, policy: Policy) -> Shop {
    let shop = Shop::with_policy(db, policy).await;
    shop.coupon("C1", START_MS + 600_000).await;
    shop.placed(an_order("O1").holding(Coupon, "C1", 1)).await;
    shop.later(15 * MINUTE);
    assert_eq!(shop.sweep().await.closed, 1);
    shop.work().await;
    shop.later(MINUTE);
    shop
}

on_every_engine!(case_08_a_coupon_that_ran_out_meanwhile_is_not_usable_again);

async fn case_08_a_coupon_that_ran_out_meanwhile_is_not_usable_again(db: TestDb) {
    let shop = closed_after_its_coupon_ran_out(&db, Policy::default()).await;
    let coupon = shop.ledger(Coupon, "C1").await;
    assert!(coupon.has_run_out(shop.core.now()));
    assert_eq!(shop.flows("O1").await.pop().unwrap().note.as_deref(), Some("expired"));
    assert!(matches!(shop.place(an_order("O2").holding(Coupon, "C1", 1)).await, Placed::Lacking(_)));
    shop.rules_hold().await;
}

on_every_engine!(case_08_or_is_extended_once_by_policy);

async fn case_08_or_is_extended_once_by_policy(db: TestDb) {
    let rule = CouponRule { on_release: OnRelease::Extend { days: 3 }, extend_once: true };
    let shop = closed_after_its_coupon_ran_out(&db, Policy { coupon: rule, ..Policy::default() }).await;
    let coupon = shop.ledger(Coupon, "C1").await;
    let new_end = START_MS + 15 * 60_000 + 3 * 86_400_000;
    assert_eq!(coupon.expires_at, Some(new_end));
    assert_eq!(coupon.original_expires_at, Some(START_MS + 600_000));
    assert_eq!(coupon.extended_by.as_deref(), Some("O1"));
    assert_eq!(shop.flows("O1").await.pop().unwrap().note.as_deref(), Some("extended"));

    let mut slow = an_order("O2").holding(Coupon, "C1", 1);
    slow.pay_within_s = Some(4 * 86_400);
    shop.placed(slow).await;
    shop.later(4 * 24 * 60 * MINUTE);
    assert_eq!(shop.sweep().await.closed, 1);
    shop.work().await;
    let coupon = shop.ledger(Coupon, "C1").await;
    assert_eq!(coupon.expires_at, Some(new_end), "a second order that isn't paid does not extend it again");
    assert!(matches!(shop.place(an_order("O3").holding(Coupon, "C1", 1)).await, Placed::Lacking(_)));
    shop.rules_hold().await;
}
