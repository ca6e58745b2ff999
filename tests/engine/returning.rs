//! C1, C2, R1, R2: goods come back once, never more than was paid for, never before they were sold, also
//! when another program writes the return.

use std::sync::Arc;

use futures_util::future::join_all;
use handback::core::order::close::Closed;
use handback::core::order::pay::Paid;
use handback::core::release::act::Retried;
use handback::core::returns::accept::{Accepted, Told, ToldItem, accept_return};
use handback::core::returns::detect::{Detected, detect};
use handback::core::returns::{self, Received, Stands, receive_return, stands};
use handback::core::words::{Action, FailureKind, ResourceType, TaskStatus};
use handback::store::stats;
use handback::store::task::Task;
use tokio::sync::Barrier;

use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering, Shop, an_order};

use ResourceType::Stock;

impl Shop {
    async fn accept(&self, return_no: &str, order_no: Option<&str>, items: &[(&str, i64, bool)]) -> Accepted {
        let item =
            |(key, qty, restock): &(&str, i64, bool)| ToldItem { key: (*key).into(), qty: *qty, restock: *restock };
        let told = Told {
            return_no: return_no.into(),
            order_no: order_no.map(Into::into),
            items: items.iter().map(item).collect(),
            raw: "{}".into(),
        };
        accept_return(&self.core, told).await.unwrap()
    }

    async fn receive(&self, return_no: &str) -> Received {
        receive_return(&self.core, return_no).await.unwrap()
    }

    async fn returns(&self, return_no: &str, order_no: &str, items: &[(&str, i64, bool)]) {
        assert_eq!(self.accept(return_no, Some(order_no), items).await, Accepted::Accepted);
        assert_eq!(self.receive(return_no).await, Received::Received);
    }

    async fn return_tasks(&self, return_no: &str) -> Vec<Task> {
        returns::own_tasks(&mut self.core.db.read().await.unwrap(), return_no).await.unwrap()
    }

    async fn stands(&self, return_no: &str) -> Stands {
        let full = returns::find(&mut self.core.db.read().await.unwrap(), return_no).await.unwrap().unwrap();
        stands(&full.row, &full.tasks)
    }

    async fn detect(&self) -> Detected {
        detect(&self.core).await.unwrap()
    }

    /// Placed and paid; its settle waits.
    async fn sold(&self, order_no: &str, key: &str, qty: i64) {
        self.placed(an_order(order_no).holding(Stock, key, qty)).await;
        assert_eq!(self.pay(order_no).await, Paid::Paid);
    }
}

on_every_engine!(
    case_1_a_refund_that_restocked_and_a_cancel_after_it_put_the_goods_back_once,
    case_1_a_cancel_before_the_return_moves_nothing_either,
    case_1_two_returns_at_once_never_bring_back_more_than_was_sold,
    case_19_two_quick_clicks_on_receive_book_the_goods_once,
    case_19_a_receive_beside_the_detector_books_the_goods_once,
    case_19_receiving_after_the_key_was_retired_goes_to_the_retired_row
);

async fn case_1_a_refund_that_restocked_and_a_cancel_after_it_put_the_goods_back_once(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.sold("o1", "s", 1).await;
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (9, 0, 1));
    shop.returns("r1", "o1", &[("s", 1, true)]).await;
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    for _ in 0..2 {
        assert_eq!(shop.close("o1", "operator").await, Closed::NotPending);
        shop.work().await;
        assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    }
    let moved: Vec<Action> = shop.moves("o1").await.into_iter().map(|(action, ..)| action).collect();
    assert_eq!(moved, [Action::Lock, Action::Settle]);
    assert_eq!(shop.moves("r1").await, [(Action::ReturnIn, "s".to_owned(), 1)]);
    shop.rules_hold().await;
}

async fn case_1_a_cancel_before_the_return_moves_nothing_either(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("o1").holding(Stock, "s", 1)).await;
    assert_eq!(shop.close("o1", "operator").await, Closed::Closed);
    shop.work().await;
    assert!(matches!(shop.accept("r1", Some("o1"), &[("s", 1, true)]).await, Accepted::OverReturn(_)));
    assert_eq!(shop.receive("r1").await, Received::Unknown);
    assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    shop.rules_hold().await;
}

async fn case_1_two_returns_at_once_never_bring_back_more_than_was_sold(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.sold("o1", "s", 3).await;
    shop.work().await;
    let gate = Arc::new(Barrier::new(6));
    let tellers = (0..6).map(|n| {
        let (shop, gate) = (shop.clone(), gate.clone());
        tokio::spawn(async move {
            gate.wait().await;
            shop.accept(&format!("r{n}"), Some("o1"), &[("s", 1, true)]).await
        })
    });
    let told: Vec<Accepted> = join_all(tellers).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(told.iter().filter(|t| **t == Accepted::Accepted).count(), 3, "{told:?}");
    for n in 0..6 {
        shop.receive(&format!("r{n}")).await;
    }
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    shop.rules_hold().await;
}

async fn case_19_two_quick_clicks_on_receive_book_the_goods_once(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 7).await;
    assert_eq!(shop.accept("t1", None, &[("s", 2, true)]).await, Accepted::Accepted);
    let gate = Arc::new(Barrier::new(2));
    let clicks = [(); 2].map(|()| {
        let (shop, gate) = (shop.clone(), gate.clone());
        tokio::spawn(async move {
            gate.wait().await;
            shop.receive("t1").await
        })
    });
    let answers: Vec<Received> = join_all(clicks).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.iter().filter(|a| **a == Received::Received).count(), 1, "{answers:?}");
    assert_eq!(shop.receive("t1").await, Received::AlreadyReceived);
    assert_eq!(shop.detect().await, Detected::default());
    shop.work().await;
    assert_eq!(shop.detect().await, Detected::default());
    assert_eq!(shop.stock_figures("s").await, (9, 0, 0));
    let inbound = shop.flows("t1").await;
    assert_eq!((inbound.len(), inbound[0].source.as_str()), (1, "return:1"));
    assert_eq!(shop.stands("t1").await, Stands::Completed);
    shop.rules_hold().await;
}

async fn case_19_a_receive_beside_the_detector_books_the_goods_once(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 7).await;
    for n in 0..8 {
        let no = format!("t{n}");
        assert_eq!(shop.accept(&no, None, &[("s", 1, true)]).await, Accepted::Accepted);
    }
    // Another program sets them to received at the moment somebody clicks.
    db.execute("UPDATE return_order SET status = 1").await.unwrap();
    let (clicker, finder) = (shop.clone(), shop.clone());
    let clicks = tokio::spawn(async move {
        for n in 0..8 {
            clicker.receive(&format!("t{n}")).await;
        }
    });
    let looks = tokio::spawn(async move { (finder.detect().await, finder.detect().await) });
    clicks.await.unwrap();
    looks.await.unwrap();
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (15, 0, 0));
    shop.rules_hold().await;
}

async fn case_19_receiving_after_the_key_was_retired_goes_to_the_retired_row(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 7).await;
    shop.sold("o1", "s", 2).await;
    shop.work().await;
    shop.retire(Stock, "s").await;
    shop.stock("s", 100).await;
    shop.returns("r1", "o1", &[("s", 2, true)]).await;
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (100, 0, 0), "the new row of the name has nothing to do with it");
    assert_eq!(db.count("SELECT available FROM ledger WHERE retired_at IS NOT NULL").await, 7);
    shop.rules_hold().await;
}

on_every_engine!(
    c1_goods_wait_for_their_settle_and_say_so,
    c1_a_force_closed_settle_lets_the_goods_go_on,
    c1_a_line_that_is_not_restocked_moves_nothing,
    c1_a_settle_that_ends_elsewhere_wakes_its_goods_at_the_next_look
);

/// The settle fails: its ledger lacks what the order locked.
async fn a_stuck_settle(db: &TestDb, shop: &Shop) -> Task {
    shop.stock("s", 10).await;
    shop.sold("o1", "s", 2).await;
    db.execute("UPDATE ledger SET locked = 0, available = 10").await.unwrap();
    shop.work().await;
    let settle = shop.task("o1").await;
    assert_eq!(settle.status, TaskStatus::Manual);
    settle
}

async fn c1_goods_wait_for_their_settle_and_say_so(db: TestDb) {
    let shop = Shop::open(&db).await;
    let settle = a_stuck_settle(&db, &shop).await;
    shop.returns("r1", "o1", &[("s", 2, true)]).await;
    shop.work().await;
    let waiting = shop.return_tasks("r1").await.remove(0);
    assert_eq!((waiting.status, waiting.retry, waiting.next_at), (TaskStatus::Waiting, 0, None));
    assert!(waiting.error.as_deref().is_some_and(|said| said.contains("settle")), "{waiting:?}");
    let now = shop.core.now();
    let left = stats::remaining(&mut shop.core.db.read().await.unwrap(), now).await.unwrap();
    assert!(left.is_idle(), "{left:?}");
    assert!(matches!(shop.retry("ann", waiting.id).await, Retried::NotRetryable(_)));
    assert_eq!(shop.detect().await, Detected::default(), "it is not woken before");
    // The ledger is put right; the settle's success wakes the goods in the same transaction.
    db.execute("UPDATE ledger SET locked = 2, available = 8").await.unwrap();
    assert!(matches!(shop.retry("ann", settle.id).await, Retried::Succeeded(_)));
    assert_eq!(shop.work().await.succeeded, 1);
    assert_eq!(shop.stock_figures("s").await, (10, 0, 0));
    assert_eq!(shop.stands("r1").await, Stands::Completed);
    let done = shop.return_tasks("r1").await.remove(0);
    assert_eq!((done.retry, done.error), (0, None));
    shop.rules_hold().await;
}

async fn c1_a_force_closed_settle_lets_the_goods_go_on(db: TestDb) {
    let shop = Shop::open(&db).await;
    let settle = a_stuck_settle(&db, &shop).await;
    shop.returns("r1", "o1", &[("s", 2, true)]).await;
    shop.force_close("ann", settle.id, settle.version).await;
    shop.work().await;
    // Nothing was ever sold here: a person has to look.
    let task = shop.return_tasks("r1").await.remove(0);
    assert_eq!((task.status, task.kind), (TaskStatus::Manual, Some(FailureKind::StateMismatch)));
    assert_eq!(shop.stands("r1").await, Stands::Received);
}

async fn c1_a_line_that_is_not_restocked_moves_nothing(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.sold("o1", "s", 5).await;
    shop.work().await;
    shop.returns("r1", "o1", &[("s", 2, false), ("s", 0, true), ("s", 1, true)]).await;
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (6, 0, 4));
    assert_eq!(shop.return_tasks("r1").await.iter().map(|t| t.source.as_str()).collect::<Vec<_>>(), ["return:3"]);
    assert!(matches!(shop.accept("r2", Some("o1"), &[("s", 3, true)]).await, Accepted::OverReturn(_)));
    shop.rules_hold().await;
}

async fn c1_a_settle_that_ends_elsewhere_wakes_its_goods_at_the_next_look(db: TestDb) {
    let shop = Shop::open(&db).await;
    let settle = a_stuck_settle(&db, &shop).await;
    shop.returns("r1", "o1", &[("s", 2, true)]).await;
    let gone = format!("UPDATE order_release_task SET status = 5, next_at = NULL WHERE id = {}", settle.id);
    db.execute(&gone).await.unwrap();
    assert_eq!(shop.detect().await.woken, 1);
    assert_eq!(shop.detect().await.woken, 0);
}

on_every_engine!(
    c2_a_return_another_program_completed_gets_its_tasks_whatever_its_age,
    c2_no_false_task_for_what_is_open_or_done_or_has_no_lines_yet,
    c2_more_than_was_sold_waits_for_a_person,
    c2_one_return_that_breaks_does_not_hold_up_the_others
);

async fn written(db: &TestDb, return_no: &str, order_no: &str, status: i64, items: &[(i64, &str, i64)]) {
    let order_no = if order_no.is_empty() { "NULL".to_owned() } else { format!("'{order_no}'") };
    // Five years ago, by a program that knows nothing of Handback's marks.
    let head = format!(
        "INSERT INTO return_order (return_no, order_no, status, accepted_at) VALUES ('{return_no}', {order_no}, {status}, 1640995200000)"
    );
    db.execute(&head).await.unwrap();
    for (line, key, qty) in items {
        let item = format!(
            "INSERT INTO return_item (return_no, line, biz_key, qty) VALUES ('{return_no}', {line}, '{key}', {qty})"
        );
        db.execute(&item).await.unwrap();
    }
}

async fn c2_a_return_another_program_completed_gets_its_tasks_whatever_its_age(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.sold("o1", "s", 3).await;
    shop.work().await;
    written(&db, "r1", "o1", 1, &[(1, "s", 2)]).await;
    written(&db, "r2", "", 1, &[(1, "s", 5)]).await;
    written(&db, "r3", "nobody-knows", 1, &[(1, "s", 1)]).await;
    assert_eq!(shop.detect().await.written, 3);
    assert_eq!(shop.detect().await, Detected::default());
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (15, 0, 1));
    assert_eq!(shop.receive("r1").await, Received::AlreadyReceived);
    assert_eq!(shop.stands("r1").await, Stands::Completed);
    assert!(matches!(shop.accept("r4", Some("o1"), &[("s", 2, true)]).await, Accepted::OverReturn(_)));
    shop.rules_hold().await;
}

async fn c2_no_false_task_for_what_is_open_or_done_or_has_no_lines_yet(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    written(&db, "open", "", 0, &[(1, "s", 2)]).await;
    written(&db, "bare", "", 1, &[]).await;
    assert_eq!(shop.accept("ours", None, &[("s", 1, true)]).await, Accepted::Accepted);
    assert_eq!(shop.receive("ours").await, Received::Received);
    for _ in 0..3 {
        assert_eq!(shop.detect().await, Detected::default());
    }
    assert_eq!(db.count("SELECT COUNT(*) FROM order_release_task").await, 1);
    // Its lines come, the other is completed: both are found, once.
    db.execute("INSERT INTO return_item (return_no, line, biz_key, qty) VALUES ('bare', 1, 's', 4)").await.unwrap();
    db.execute("UPDATE return_order SET status = 1 WHERE return_no = 'open'").await.unwrap();
    assert_eq!(shop.detect().await.written, 2);
    assert_eq!(shop.detect().await, Detected::default());
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (17, 0, 0));
    shop.rules_hold().await;
}

async fn c2_more_than_was_sold_waits_for_a_person(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.sold("o1", "s", 3).await;
    shop.placed(an_order("o2").holding(Stock, "s", 1)).await;
    shop.work().await;
    written(&db, "r1", "o1", 1, &[(1, "s", 2), (2, "s", 2), (3, "other", 1)]).await;
    written(&db, "r2", "o2", 1, &[(1, "s", 1)]).await;
    assert_eq!(shop.detect().await.written, 2);
    shop.work().await;
    let states = async |no: &str| {
        let tasks = shop.return_tasks(no).await;
        tasks.into_iter().map(|t| (t.status, t.kind)).collect::<Vec<_>>()
    };
    let wrong = (TaskStatus::Manual, Some(FailureKind::StateMismatch));
    assert_eq!(states("r1").await, [(TaskStatus::Succeeded, None), wrong, wrong]);
    assert_eq!(states("r2").await, [wrong]);
    assert_eq!(shop.stock_figures("s").await, (8, 1, 1));
    shop.rules_hold().await;
}

async fn c2_one_return_that_breaks_does_not_hold_up_the_others(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    // More than any task can carry.
    written(&db, "huge", "", 1, &[(1, "s", 9_000_000_000_000_000)]).await;
    written(&db, "fine", "", 1, &[(1, "s", 1)]).await;
    assert_eq!(shop.detect().await, Detected { written: 1, failed: 1, woken: 0 });
    assert_eq!(shop.detect().await, Detected { written: 0, failed: 1, woken: 0 });
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (11, 0, 0));
}
