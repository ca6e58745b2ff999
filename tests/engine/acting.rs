//! R10, R20, R21: what a person does to tasks, alone, twice, and beside another person or a worker.

use handback::core::Error;
use handback::core::ledger::{Adjusted, Adjustment};
use handback::core::release::act::{
    ForceClose, ForceClosed, ReleasedType, Resolution, Retried, force_close, release_type,
};
use handback::core::words::{Action, FailureKind, ResourceType, TaskStatus};

use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering, Shop, an_order, operator};

use ResourceType::{Quota, Stock};

/// A closed order whose release of `s` failed because two pieces were taken from the lock by hand.
async fn a_manual_task(shop: &Shop, db: &TestDb, order_no: &str) -> i64 {
    let key = format!("s-{order_no}");
    shop.stock(&key, 10).await;
    shop.placed(an_order(order_no).holding(Stock, &key, 2)).await;
    shop.close(order_no, "buyer").await;
    set_locked(db, &key, 0).await;
    shop.work().await;
    let task = shop.task(order_no).await;
    assert_eq!(task.status, TaskStatus::Manual);
    task.id
}

async fn set_locked(db: &TestDb, key: &str, locked: i64) {
    db.execute(&format!("UPDATE ledger SET locked = {locked} WHERE biz_key = '{key}'")).await.unwrap();
}

const AUDITED: &str = "SELECT COUNT(*) FROM audit_log WHERE action = 'task.retry'";

on_every_engine!(r20_two_operators_retrying_at_once_run_it_once);

async fn r20_two_operators_retrying_at_once_run_it_once(db: TestDb) {
    let shop = Shop::open(&db).await;
    for round in 0..30 {
        let order_no = format!("o{round}");
        let id = a_manual_task(&shop, &db, &order_no).await;
        let good = round % 2 == 0;
        if good {
            set_locked(&db, &format!("s-{order_no}"), 2).await;
        }
        let before = db.count(AUDITED).await;
        let (one, two) = tokio::join!(spawn_retry(&shop, "zhang", id), spawn_retry(&shop, "li", id));
        let runs = db.count(AUDITED).await - before;
        let task = shop.task(&order_no).await;
        if good {
            assert_eq!(runs, 1, "{one:?}, {two:?}");
            assert_eq!(task.status, TaskStatus::Succeeded);
            let ran = |retried: &Retried| matches!(retried, Retried::Succeeded(_));
            assert!(ran(&one) != ran(&two), "one ran it, the other is told: {one:?}, {two:?}");
        } else {
            // The second may also come after the first has ended; then it is a try of its own.
            assert_eq!(task.retry, 1 + runs);
            assert!([&one, &two].iter().all(|r| matches!(r, Retried::Failed(_))), "{one:?}, {two:?}");
        }
        assert_eq!(
            db.count(&format!("SELECT COUNT(*) FROM resource_flow WHERE action = 1 AND task_id = {id}")).await,
            i64::from(good)
        );
        if !good {
            set_locked(&db, &format!("s-{order_no}"), 2).await;
        }
    }
    shop.rules_hold().await;
}

async fn spawn_retry(shop: &Shop, by: &'static str, id: i64) -> Retried {
    let shop = shop.clone();
    tokio::spawn(async move { shop.retry(by, id).await }).await.unwrap()
}

on_every_engine!(r20_a_retry_of_a_shops_own_row_is_on_the_audit_log_once);

async fn r20_a_retry_of_a_shops_own_row_is_on_the_audit_log_once(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    let ask = |order_no: &str| {
        format!(
            "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty) VALUES ('{order_no}', 1, 's', 1)"
        )
    };
    for (order_no, ends) in [("closed", TaskStatus::Succeeded), ("paid", TaskStatus::Manual)] {
        shop.placed(an_order(order_no)).await;
        if order_no == "paid" {
            shop.pay(order_no).await;
        } else {
            shop.close(order_no, "buyer").await;
        }
        db.execute(&ask(order_no)).await.unwrap();
        let before = db.count(AUDITED).await;
        let retried = shop.retry("zhang", shop.task(order_no).await.id).await;
        assert_eq!(shop.task(order_no).await.status, ends, "{retried:?}");
        assert_eq!(db.count(AUDITED).await - before, 1, "{order_no}");
    }
    // Pressed again: the finished one says so and leaves no trace.
    let again = shop.retry("li", shop.task("closed").await.id).await;
    assert!(matches!(again, Retried::AlreadyDone(_)), "{again:?}");
    assert_eq!(db.count(AUDITED).await, 2);
    shop.rules_hold().await;
}

on_every_engine!(r20_a_retry_against_a_force_close_leaves_one_of_them);

async fn r20_a_retry_against_a_force_close_leaves_one_of_them(db: TestDb) {
    let shop = Shop::open(&db).await;
    let (mut retried, mut closed) = (0, 0);
    for round in 0..40 {
        let order_no = format!("o{round}");
        let id = a_manual_task(&shop, &db, &order_no).await;
        set_locked(&db, &format!("s-{order_no}"), 2).await;
        let seen = shop.task(&order_no).await.version;
        let closing = tokio::spawn({
            let shop = shop.clone();
            async move { shop.force_close("li", id, seen).await }
        });
        let retry = spawn_retry(&shop, "zhang", id).await;
        let close = closing.await.unwrap();
        let task = shop.task(&order_no).await;
        match (retry, close) {
            (Retried::Succeeded(_), ForceClosed::NotClosable(_) | ForceClosed::Stale(_)) => {
                assert_eq!(task.status, TaskStatus::Succeeded);
                retried += 1;
            }
            (Retried::NotRetryable(_), ForceClosed::ForceClosed(_)) => {
                assert_eq!(task.status, TaskStatus::ForceClosed);
                closed += 1;
            }
            // The retry had seen the task before it was closed: it is told what happened.
            (Retried::Failed(told), ForceClosed::ForceClosed(_)) => {
                assert_eq!((told.status, task.status), (TaskStatus::ForceClosed, TaskStatus::ForceClosed));
                closed += 1;
            }
            both => panic!("{both:?}"),
        }
        let flows = format!("SELECT COUNT(*) FROM resource_flow WHERE action = 1 AND task_id = {id}");
        assert_eq!(db.count(&flows).await, i64::from(task.status == TaskStatus::Succeeded));
    }
    assert_eq!(retried + closed, 40);
    shop.rules_hold().await;
}

on_every_engine!(r20_a_persons_act_wins_against_the_running_worker_or_says_stale);

async fn r20_a_persons_act_wins_against_the_running_worker_or_says_stale(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 1_000).await;
    for round in 0..40 {
        let order_no = format!("o{round}");
        shop.placed(an_order(&order_no).holding(Stock, "s", 2)).await;
        shop.close(&order_no, "buyer").await;
        let seen = shop.task(&order_no).await;
        let working = tokio::spawn({
            let shop = shop.clone();
            async move { shop.run_once("w1", 10).await }
        });
        let close = shop.force_close("li", seen.id, seen.version).await;
        working.await.unwrap();
        let task = shop.task(&order_no).await;
        match close {
            ForceClosed::ForceClosed(_) => assert_eq!(task.status, TaskStatus::ForceClosed),
            ForceClosed::NotClosable(_) => assert_eq!(task.status, TaskStatus::Succeeded),
            other => panic!("{other:?}"),
        }
    }
    let owed = 2 * db.count("SELECT COUNT(*) FROM order_release_task WHERE status = 4").await;
    assert_eq!(shop.stock_figures("s").await, (1_000 - owed, owed, 0), "what was force-closed stays owed");
    shop.rules_hold().await;
}

on_every_engine!(r21_a_force_close_moves_nothing_and_is_asked_in_this_order);

async fn r21_a_force_close_moves_nothing_and_is_asked_in_this_order(db: TestDb) {
    let shop = Shop::open(&db).await;
    let id = a_manual_task(&shop, &db, "o").await;
    set_locked(&db, "s-o", 2).await;
    let seen = shop.task("o").await.version;
    assert!(matches!(shop.force_close("li", id, seen - 1).await, ForceClosed::Stale(_)));
    let outside =
        ForceClose { task_id: id, reason: "r".into(), expected_version: seen, resolution: Resolution::DoneOutside };
    let refused = force_close(&shop.core, &operator("li"), outside).await.unwrap_err();
    assert!(matches!(&refused, Error::Invalid(fields) if fields[0].field == "resolution"), "{refused:?}");

    assert!(matches!(shop.force_close("li", id, seen).await, ForceClosed::ForceClosed(task) if task.is_owed));
    assert!(matches!(shop.force_close("li", id, 99).await, ForceClosed::AlreadyForceClosed(_)));
    assert!(matches!(shop.retry("li", id).await, Retried::NotRetryable(_)));
    assert_eq!(shop.force_close("li", id + 1_000, 0).await, ForceClosed::Unknown);
    assert_eq!(shop.stock_figures("s-o").await, (8, 2, 0));
    assert_eq!(db.count("SELECT COUNT(*) FROM audit_log WHERE action = 'task.force_close'").await, 1);
    assert_eq!(shop.work().await.claimed, 0, "a force-closed task is never run again");

    let done = a_manual_task(&shop, &db, "done").await;
    set_locked(&db, "s-done", 2).await;
    assert!(matches!(shop.retry("li", done).await, Retried::Succeeded(_)));
    assert!(matches!(shop.force_close("li", done, 0).await, ForceClosed::NotClosable(_)));
    shop.rules_hold().await;
}

on_every_engine!(r21_an_adjustment_that_names_the_task_settles_its_debt);

async fn r21_an_adjustment_that_names_the_task_settles_its_debt(db: TestDb) {
    let shop = Shop::open(&db).await;
    let id = a_manual_task(&shop, &db, "o").await;
    set_locked(&db, "s-o", 2).await;
    let by = |reference: &str, task| Adjustment {
        available: Some(2),
        locked: Some(-2),
        reference: reference.into(),
        reason: "found in the returns cage".into(),
        task: Some(task),
    };
    assert!(matches!(shop.adjust("s-o", by("r1", id)).await, Adjusted::WrongTask(_)), "not force-closed yet");
    let seen = shop.task("o").await.version;
    shop.force_close("li", id, seen).await;
    shop.stock("another", 1).await;
    assert!(matches!(shop.adjust("another", by("r1", id)).await, Adjusted::WrongTask(_)));
    assert!(matches!(shop.adjust("s-o", by("r1", id)).await, Adjusted::Adjusted(_)));
    assert!(matches!(shop.adjust("s-o", by("r1", id)).await, Adjusted::Same(_)));
    let task = shop.task("o").await;
    assert_eq!((task.status, task.is_owed), (TaskStatus::ForceClosed, false));
    assert_eq!(shop.stock_figures("s-o").await, (10, 0, 0));
    shop.rules_hold().await;
}

on_every_engine!(a11_one_type_of_one_order_is_run_again_and_the_rest_leaves_no_trace);

async fn a11_one_type_of_one_order_is_run_again_and_the_rest_leaves_no_trace(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.stock("t", 10).await;
    shop.quota("q", 10).await;
    let order = an_order("o").holding(Stock, "s", 2).holding(Stock, "t", 1).holding(Quota, "q", 1);
    shop.placed(order).await;
    let run = |resource| {
        let core = shop.core.clone();
        async move { release_type(&core, &operator("li"), "o", resource, "asked by the buyer").await.unwrap() }
    };
    assert_eq!(run(Stock).await, ReleasedType::OrderOpen);
    shop.close("o", "buyer").await;
    set_locked(&db, "s", 0).await;
    set_locked(&db, "q", 0).await;
    shop.work().await;
    let before = shop.moves("o").await.len();
    set_locked(&db, "s", 2).await;

    let ReleasedType::Ran(ran) = run(Stock).await else { panic!("the order is closed") };
    assert_eq!(ran.iter().map(|r| (r.task.key.as_str(), r.is_done)).collect::<Vec<_>>(), [("s", true)]);
    let moves = shop.moves("o").await;
    assert_eq!(moves.len(), before + 1);
    assert_eq!(moves.last(), Some(&(Action::Release, "s".to_owned(), 2)));
    assert_eq!(run(Stock).await, ReleasedType::Ran(Vec::new()), "all done: nothing is run");

    let ReleasedType::Ran(ran) = run(Quota).await else { panic!("the order is closed") };
    assert_eq!(ran[0].kind, Some(FailureKind::LockedInsufficient));
    set_locked(&db, "q", 1).await;
    shop.rules_hold().await;
}
