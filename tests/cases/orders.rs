//! Cases 2, 5, 6, 9: closes that come twice, too early, or for something that was never locked.

use handback::core::order::close::Closed;
use handback::core::order::place::{Lacking, Placed};
use handback::core::words::{Action, AttemptOutcome, ResourceType, TaskStatus};

use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering, START_MS, Shop, an_order};

use ResourceType::{Funds, Quota, Stock};

/// Closes that told "already closed", as the counters have it.
async fn repeated_closes(shop: &Shop) -> i64 {
    let folded = shop.core.db.write(|conn| {
        Box::pin(
            async move { Ok(handback::store::Decision::Commit(handback::store::counter::fold(conn, 10_000).await?)) },
        )
    });
    folded.await.unwrap();
    let mut conn = shop.core.db.read().await.unwrap();
    let name = handback::core::counters::CLOSE_REPEATED;
    handback::store::counter::sums(&mut conn, name, START_MS).await.unwrap().iter().map(|(_, n)| n).sum()
}

on_every_engine!(case_02_the_same_notice_twice_closes_once);

async fn case_02_the_same_notice_twice_closes_once(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("S", 5).await;
    shop.placed(an_order("O1").holding(Stock, "S", 2)).await;
    assert_eq!(shop.stock_figures("S").await, (3, 2, 0));
    assert_eq!(shop.close("O1", "channel").await, Closed::Closed);
    shop.work().await;
    let again = ["N1", "N2"].map(|_| {
        let shop = shop.clone();
        tokio::spawn(async move {
            let answer = shop.close("O1", "channel").await;
            shop.work().await;
            answer
        })
    });
    for answer in again {
        assert_eq!(answer.await.unwrap(), Closed::AlreadyClosed);
    }
    assert_eq!(repeated_closes(&shop).await, 2);
    assert_eq!(shop.task("O1").await.status, TaskStatus::Succeeded);
    assert_eq!(shop.stock_figures("S").await, (5, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(case_05_closing_an_order_that_never_locked_makes_nothing_negative);

async fn case_05_closing_an_order_that_never_locked_makes_nothing_negative(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("S", 4).await;
    // The lock step fails: something else lacks, so nothing of it is kept.
    let order = || an_order("O1").holding(Stock, "S", 3).holding(Quota, "sold out", 1);
    assert!(matches!(shop.place(order()).await, Placed::Lacking(_)));
    assert_eq!(shop.stock_figures("S").await, (4, 0, 0));

    assert_eq!(shop.close("O1", "buyer").await, Closed::Tombstoned);
    // The shop believes that it had locked and asks for it back.
    db.execute(&format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at) VALUES ('O1', 1, 'S', 3, {START_MS})"
    ))
    .await
    .unwrap();
    shop.work().await;
    let task = shop.task("O1").await;
    assert_eq!(
        (task.status, task.outcome, task.retry),
        (TaskStatus::Succeeded, Some(AttemptOutcome::NothingLocked), 0)
    );
    assert!(shop.moves("O1").await.is_empty());
    assert_eq!(shop.stock_figures("S").await, (4, 0, 0));
    assert_eq!(shop.place(an_order("O1").holding(Stock, "S", 3)).await, Placed::Tombstone);
    shop.rules_hold().await;
}

on_every_engine!(case_06_a_release_before_its_lock_is_a_success_and_the_lock_is_refused);

async fn case_06_a_release_before_its_lock_is_a_success_and_the_lock_is_refused(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("S", 10).await;
    assert_eq!(shop.close("O1", "buyer").await, Closed::Tombstoned);
    shop.work().await;
    shop.work().await;
    assert_eq!(shop.place(an_order("O1").holding(Stock, "S", 2)).await, Placed::Tombstone);
    assert_eq!(shop.stock_figures("S").await, (10, 0, 0));
    assert_eq!(shop.close("O1", "buyer").await, Closed::AlreadyClosed);
    shop.work().await;
    assert!(shop.tasks("O1").await.is_empty(), "nothing is retried");
    assert_eq!(shop.stock_figures("S").await, (10, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(case_09_two_listeners_of_one_refusal_give_the_credit_back_once);

async fn case_09_two_listeners_of_one_refusal_give_the_credit_back_once(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.balance("U", 100).await;
    let refused = ["payment refused", "placement failed"];
    for (order_no, reasons, at_once) in [
        ("O1", refused, false),
        ("O2", [refused[1], refused[0]], false),
        ("O3", refused, true),
        ("O4", [refused[1], refused[0]], true),
    ] {
        shop.placed(an_order(order_no).holding(Funds, "U", 40)).await;
        assert_eq!(shop.figures(Funds, "U").await, (60, 40, 0));
        let close = |reason: &'static str| {
            let shop = shop.clone();
            async move {
                let answer = shop.close(order_no, reason).await;
                shop.work().await;
                answer
            }
        };
        let answers = if at_once {
            let (one, two) = (tokio::spawn(close(reasons[0])), tokio::spawn(close(reasons[1])));
            [one.await.unwrap(), two.await.unwrap()]
        } else {
            [close(reasons[0]).await, close(reasons[1]).await]
        };
        assert_eq!(answers.iter().filter(|a| **a == Closed::Closed).count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|a| **a == Closed::AlreadyClosed).count(), 1, "{answers:?}");
        let back: Vec<_> = shop.moves(order_no).await.into_iter().filter(|m| m.0 == Action::Release).collect();
        assert_eq!(back, [(Action::Release, "U".to_owned(), 40)]);
        assert_eq!(shop.figures(Funds, "U").await, (100, 0, 0));
    }
    shop.rules_hold().await;
}

on_every_engine!(case_16_a_retired_key_does_not_hold_up_the_close);

async fn case_16_a_retired_key_does_not_hold_up_the_close(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("S1", 3).await;
    shop.stock("S2", 3).await;
    shop.placed(an_order("O1").holding(Stock, "S1", 1).holding(Stock, "S2", 1)).await;
    shop.retire(Stock, "S1").await;
    let lacking = Lacking { resource: Stock, key: "S1".into(), qty: 1, available: 0 };
    assert_eq!(shop.place(an_order("O2").holding(Stock, "S1", 1)).await, Placed::Lacking(vec![lacking]));

    assert_eq!(shop.close("O1", "buyer").await, Closed::Closed);
    shop.work().await;
    assert_eq!(shop.stock_figures("S2").await, (3, 0, 0));
    let retired = shop.ledger(Stock, "S1").await;
    assert_eq!((retired.available, retired.locked, retired.retired_at.is_some()), (3, 0, true));
    shop.rules_hold().await;

    // A later row of the same name is another one; the old order's things don't land on it.
    shop.stock("S1", 7).await;
    assert_eq!(shop.stock_figures("S1").await, (7, 0, 0));
    shop.placed(an_order("O3").holding(Stock, "S1", 2)).await;
    shop.retire(Stock, "S1").await;
    shop.stock("S1", 1).await;
    shop.close("O3", "buyer").await;
    shop.work().await;
    assert_eq!(shop.stock_figures("S1").await, (1, 0, 0));
    assert_eq!(db.count("SELECT COUNT(*) FROM ledger WHERE biz_key = 'S1' AND available = 7 AND locked = 0").await, 1);
    shop.rules_hold().await;
}

on_every_engine!(case_17_the_same_key_on_two_lines_adds_up);

async fn case_17_the_same_key_on_two_lines_adds_up(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("S", 10).await;
    shop.placed(an_order("O1").holding(Stock, "S", 2).holding(Stock, "S", 3)).await;
    assert_eq!(shop.stock_figures("S").await, (5, 5, 0));
    assert_eq!(shop.moves("O1").await, [(Action::Lock, "S".to_owned(), 5)]);
    // The same order with its lines the other way round is the same order.
    assert_eq!(shop.place(an_order("O1").holding(Stock, "S", 3).holding(Stock, "S", 2)).await, Placed::Same);
    assert_eq!(shop.place(an_order("O1").holding(Stock, "S", 4)).await, Placed::Exists);
    shop.close("O1", "buyer").await;
    shop.work().await;
    assert_eq!(shop.stock_figures("S").await, (10, 0, 0));
    shop.rules_hold().await;
}
