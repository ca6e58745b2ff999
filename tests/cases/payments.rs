//! Cases 3, 4, 10, 20: payments that keep an order alive or come too late, and deadlines that must not wait for
//! one another.

use handback::core::order::ask::ask_due;
use handback::core::order::pay::{Paid, Said};
use handback::core::order::place::NewHold;
use handback::core::order::reduce::{Reduce, Reduced, reduce_order};
use handback::core::ports::Asked;
use handback::core::words::{Action, OrderStatus, PaymentStatus, ResourceType, TaskStatus};
use handback::store::payment;

use crate::support::channel::{started, with_channel};
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{MINUTE, Ordering, Shop, a_payment, an_order};

use ResourceType::{Quota, Stock};

/// Minute 3: a failed attempt. Minute 5: another is started and never finished. Then minute 16.
async fn attempts_that_lead_nowhere(shop: &Shop, order_no: &str) {
    shop.stock("S", 1).await;
    shop.placed(an_order(order_no).holding(Stock, "S", 1)).await;
    shop.later(3 * MINUTE);
    let mut failed = a_payment(order_no, "P1");
    failed.said = Said::Failed;
    assert_eq!(shop.payment(failed).await, Paid::Recorded);
    shop.later(2 * MINUTE);
    assert_eq!(shop.payment(started(order_no)).await, Paid::Recorded);
    shop.later(11 * MINUTE);
}

on_every_engine!(case_03_a_failed_attempt_does_not_keep_an_order_alive);

async fn case_03_a_failed_attempt_does_not_keep_an_order_alive(db: TestDb) {
    let shop = Shop::open(&db).await;
    attempts_that_lead_nowhere(&shop, "O1").await;
    assert_eq!(shop.sweep().await.closed, 1);
    shop.work().await;
    assert_eq!(shop.status("O1").await, OrderStatus::Closed);
    assert_eq!(shop.stock_figures("S").await, (1, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(case_03_a_started_attempt_causes_one_question_and_then_the_close);

async fn case_03_a_started_attempt_causes_one_question_and_then_the_close(db: TestDb) {
    let (shop, told) = with_channel(&db, vec![Asked::NotPaid]).await;
    attempts_that_lead_nowhere(&shop, "O1").await;
    assert_eq!(shop.sweep().await.closed, 0);
    assert_eq!(ask_due(&shop.core).await.unwrap(), 1);
    shop.work().await;
    assert_eq!(told.asked.lock().unwrap().len(), 1);
    assert_eq!(shop.status("O1").await, OrderStatus::Closed);
    assert_eq!(shop.stock_figures("S").await, (1, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(case_04_a_shorter_deadline_does_not_wait_behind_a_longer_one);

async fn case_04_a_shorter_deadline_does_not_wait_behind_a_longer_one(db: TestDb) {
    let setting = |seconds| handback::core::policy::Policy { pay_within_s: seconds, ..Default::default() };
    let long = Shop::with_policy(&db, setting(3_600)).await;
    long.stock("S", 10).await;
    long.placed(an_order("O1").holding(Stock, "S", 1)).await;
    // The setting is changed and the process started again; its clock goes on.
    let short = Shop::with_policy(&db, setting(600)).await;
    for shop in [&long, &short] {
        shop.later(MINUTE);
    }
    short.placed(an_order("O2").holding(Stock, "S", 1)).await;
    short.later(10 * MINUTE);
    assert_eq!(short.sweep().await.closed, 1, "at the first run after t = 11");
    short.later(MINUTE);
    short.work().await;
    assert_eq!((short.status("O1").await, short.status("O2").await), (OrderStatus::Pending, OrderStatus::Closed));
    assert_eq!(short.stock_figures("S").await, (9, 1, 0));
    short.later(47 * MINUTE);
    assert_eq!(short.sweep().await.closed, 0, "t = 59");
    short.later(MINUTE);
    assert_eq!(short.sweep().await.closed, 1, "t = 60");
    short.work().await;
    short.rules_hold().await;
}

on_every_engine!(case_10_money_after_the_channel_said_closed_revives_the_order);

async fn case_10_money_after_the_channel_said_closed_revives_the_order(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("S", 1).await;
    shop.placed(an_order("O1").holding(Stock, "S", 1)).await;
    shop.close("O1", "channel").await;
    shop.work().await;
    assert_eq!(shop.stock_figures("S").await, (1, 0, 0));
    assert_eq!(shop.pay("O1").await, Paid::Restored);
    shop.work().await;
    assert_eq!(shop.status("O1").await, OrderStatus::Paid);
    assert_eq!(shop.stock_figures("S").await, (0, 0, 1));
    let round_2: Vec<_> = shop.flows("O1").await.into_iter().filter(|f| f.round == 2).map(|f| f.action).collect();
    assert_eq!(round_2, [Action::TakeBack, Action::Settle]);
    shop.rules_hold().await;
}

on_every_engine!(case_10_or_is_refunded_once_when_somebody_else_has_the_last_piece);

async fn case_10_or_is_refunded_once_when_somebody_else_has_the_last_piece(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("S", 1).await;
    shop.placed(an_order("O1").holding(Stock, "S", 1)).await;
    shop.close("O1", "channel").await;
    shop.work().await;
    shop.placed(an_order("O2").holding(Stock, "S", 1)).await;
    shop.pay("O2").await;
    shop.work().await;
    for _ in 0..3 {
        assert_eq!(shop.pay("O1").await, Paid::RefundDue);
    }
    assert_eq!(shop.status("O1").await, OrderStatus::RefundDue);
    assert_eq!(shop.stock_figures("S").await, (0, 0, 1));
    let payments = payment::of_order(&mut shop.core.db.read().await.unwrap(), "O1").await.unwrap();
    assert_eq!(payments.iter().map(|p| (p.status, p.amount)).collect::<Vec<_>>(), [(PaymentStatus::RefundDue, 10_000)]);
    assert_eq!(db.count("SELECT COUNT(*) FROM order_release_task WHERE action = 5").await, 1);
    shop.rules_hold().await;
}

/// 12 of Q, one sold, one held by the voucher V, which is an order of its own. O1 uses V and holds no quota.
async fn a_voucher(shop: &Shop, valid_s: i64) {
    shop.quota("Q", 12).await;
    shop.stock("S", 1).await;
    shop.placed(an_order("O0").holding(Quota, "Q", 1)).await;
    shop.pay("O0").await;
    let mut voucher = an_order("V").holding(Quota, "Q", 1);
    voucher.pay_within_s = Some(valid_s);
    shop.placed(voucher).await;
    shop.placed(an_order("O1").holding(Stock, "S", 1)).await;
    shop.work().await;
    assert_eq!(shop.figures(Quota, "Q").await, (10, 1, 1));
}

on_every_engine!(case_20_a_voucher_that_is_still_valid_blocks_its_place_by_name);

async fn case_20_a_voucher_that_is_still_valid_blocks_its_place_by_name(db: TestDb) {
    let shop = Shop::open(&db).await;
    a_voucher(&shop, 86_400).await;
    shop.close("O1", "buyer").await;
    shop.later(16 * MINUTE);
    shop.sweep().await;
    shop.work().await;
    assert_eq!(shop.figures(Quota, "Q").await, (10, 1, 1));
    let holder =
        "SELECT h.order_no FROM hold h JOIN orders o ON o.order_no = h.order_no WHERE o.status = 0 AND h.biz_key = 'Q'";
    assert_eq!(db.texts(holder).await, ["V"], "never 10 without a named holder");
    shop.rules_hold().await;
}

on_every_engine!(case_20_a_voucher_past_its_end_gives_its_place_back);

async fn case_20_a_voucher_past_its_end_gives_its_place_back(db: TestDb) {
    let shop = Shop::open(&db).await;
    a_voucher(&shop, 600).await;
    shop.later(16 * MINUTE);
    shop.close("O1", "buyer").await;
    shop.sweep().await;
    shop.work().await;
    assert_eq!(shop.figures(Quota, "Q").await, (11, 0, 1));
    assert_eq!(shop.task("V").await.status, TaskStatus::Succeeded);
    shop.rules_hold().await;
}

on_every_engine!(case_17_giving_back_one_line_and_closing_the_rest_passes_through_both_figures);

async fn case_17_giving_back_one_line_and_closing_the_rest_passes_through_both_figures(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("S", 10).await;
    shop.placed(an_order("O1").holding(Stock, "S", 2).holding(Stock, "S", 3)).await;
    let line_2 = Reduce {
        order_no: "O1".into(),
        reference: "line 2".into(),
        amount: 4_000,
        holds: vec![NewHold { resource: Stock, key: "S".into(), qty: 3 }],
    };
    assert_eq!(reduce_order(&shop.core, line_2).await.unwrap(), Reduced::Reduced);
    shop.work().await;
    assert_eq!(shop.stock_figures("S").await, (8, 2, 0));
    shop.close("O1", "buyer").await;
    shop.work().await;
    assert_eq!(shop.stock_figures("S").await, (10, 0, 0));
    shop.rules_hold().await;
}
