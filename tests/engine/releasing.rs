//! R10, R14, R16, R19: any number of workers on one queue, one bad row among good ones, what a coupon,
//! slot or points account comes back as.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use handback::core::order::close::Closed;
use handback::core::order::place::Placed;
use handback::core::policy::{CouponRule, OnRelease, Policy};
use handback::core::release::Ran;
use handback::core::words::{AttemptOutcome, FailureKind, OrderStatus, ResourceType, TaskStatus};
use tokio::sync::Barrier;

use crate::support::database::{Engine, TestDb, on_every_engine};
use crate::support::shop::{MINUTE, Ordering, START_MS, Shop, an_order};

use ResourceType::{Coupon, Funds, Slot, Stock};

/// Closed orders whose releases wait: `orders` of one piece each, spread over `keys`.
async fn a_backlog(shop: &Shop, orders: usize, keys: usize) {
    for key in 0..keys {
        shop.stock(&format!("s{key}"), orders as i64).await;
    }
    for chunk in (0..orders).collect::<Vec<_>>().chunks(50) {
        join_all(chunk.iter().map(|n| async move {
            let order_no = format!("o{n}");
            shop.placed(an_order(&order_no).holding(Stock, &format!("s{}", n % keys), 1)).await;
            assert_eq!(shop.close(&order_no, "buyer").await, Closed::Closed);
        }))
        .await;
    }
}

async fn all_is_back(shop: &Shop, orders: usize, keys: usize) {
    for key in 0..keys {
        assert_eq!(shop.stock_figures(&format!("s{key}")).await, (orders as i64, 0, 0), "s{key}");
    }
    shop.rules_hold().await;
}

on_every_engine!(r10_two_workers_share_a_queue_and_run_each_task_once);

async fn r10_two_workers_share_a_queue_and_run_each_task_once(db: TestDb) {
    const ORDERS: usize = 600;
    let shop = Shop::open(&db).await;
    a_backlog(&shop, ORDERS, 3).await;
    let gate = Arc::new(Barrier::new(2));
    let workers = ["w1", "w2"].map(|name| {
        let gate = gate.clone();
        let db = db.clone();
        let shop = shop.clone();
        tokio::spawn(async move {
            let process = shop.another_process(&db).await;
            gate.wait().await;
            let mut all = Ran::default();
            loop {
                let ran = process.run_once(name, 7).await;
                all += ran;
                // Skipped rows of the other's batch are not the end of the queue.
                if ran == Ran::default() && db.count(OPEN).await == 0 {
                    return all;
                }
            }
        })
    });
    let mut all = Ran::default();
    for worker in workers {
        all += worker.await.unwrap();
    }
    assert_eq!(all, Ran { claimed: ORDERS, succeeded: ORDERS, failed: 0 });
    assert_eq!(db.count("SELECT COUNT(*) FROM resource_flow WHERE action = 1").await, ORDERS as i64);
    assert_eq!(db.count("SELECT COUNT(*) FROM task_attempt").await, 0, "nobody failed over the other");
    all_is_back(&shop, ORDERS, 3).await;
}

const OPEN: &str = "SELECT COUNT(*) FROM order_release_task WHERE next_at IS NOT NULL";

on_every_engine!(r10_a_write_with_an_older_fence_changes_nothing);

/// A worker that comes back from the dead with the claim it once had. Local tasks are claimed by row
/// locks, which its database took away with its connection; what it still knows is the fence.
async fn r10_a_write_with_an_older_fence_changes_nothing(db: TestDb) {
    let shop = Shop::open(&db).await;
    a_backlog(&shop, 1, 1).await;
    let seen = shop.task("o0").await;
    shop.work().await;
    let done = shop.task("o0").await;
    assert!(done.fence > seen.fence, "each try moves the fence");
    let late = format!(
        "UPDATE order_release_task SET status = 2, next_at = {START_MS} WHERE id = {} AND fence = {}",
        seen.id, seen.fence
    );
    assert_eq!(db.execute(&late).await.unwrap(), 0);
    assert_eq!(shop.task("o0").await, done);
}

on_every_engine!(r10_a_worker_that_lost_its_connection_mid_batch_changes_nothing_when_it_wakes);

/// The first worker sleeps with the batch claimed until its server gives it up; a second one runs
/// everything; the first wakes and tries to go on where it was.
async fn r10_a_worker_that_lost_its_connection_mid_batch_changes_nothing_when_it_wakes(db: TestDb) {
    use sqlx::{AssertSqlSafe, Executor};
    let shop = Shop::open(&db).await;
    a_backlog(&shop, 20, 1).await;
    let mut sleeper = db.connect().await.unwrap();
    let (begin, lock, id) = match db.engine {
        Engine::Sqlite => ("BEGIN IMMEDIATE", "", ""),
        Engine::Postgres => ("BEGIN", " FOR UPDATE", "SELECT pg_backend_pid()::bigint"),
        Engine::Mariadb => ("START TRANSACTION", " FOR UPDATE", "SELECT CAST(CONNECTION_ID() AS SIGNED)"),
    };
    sleeper.execute(sqlx::raw_sql(begin)).await.unwrap();
    let claim = format!("SELECT id FROM order_release_task WHERE next_at <= {} ORDER BY next_at{lock}", i64::MAX);
    assert_eq!(sqlx::query(AssertSqlSafe(claim)).fetch_all(&mut sleeper).await.unwrap().len(), 20);
    sleeper.execute("UPDATE ledger SET available = available + 20, locked = locked - 20").await.unwrap();

    // While it sleeps nobody waits for it and nobody runs its tasks; then the server ends its session.
    if db.engine == Engine::Sqlite {
        drop(sleeper);
    } else {
        assert_eq!(shop.run_once("w2", 100).await, Ran::default());
        let id: i64 = sqlx::query_scalar(id).fetch_one(&mut sleeper).await.unwrap();
        let end = match db.engine {
            Engine::Postgres => format!("SELECT pg_terminate_backend({id}::int)"),
            _ => format!("KILL {id}"),
        };
        db.execute(&end).await.unwrap();
        let mark = "UPDATE order_release_task SET status = 1, next_at = NULL WHERE status = 0";
        sleeper.execute(mark).await.unwrap_err();
        sleeper.execute(sqlx::raw_sql("COMMIT")).await.unwrap_err();
    }
    let mut all = Ran::default();
    while all.succeeded < 20 {
        all += shop.run_once("w2", 100).await;
    }
    assert_eq!(all, Ran { claimed: 20, succeeded: 20, failed: 0 });
    all_is_back(&shop, 20, 1).await;
}

/// The database refuses one row, whoever tries: a fault that no plan can foresee.
async fn refuse(db: &TestDb, table: &str, column: &str, value: &str) {
    match db.engine {
        Engine::Sqlite => {
            db.execute(&format!(
                "CREATE TRIGGER refuse_{table} BEFORE INSERT ON {table} WHEN NEW.{column} = '{value}' \
                 BEGIN SELECT RAISE(ABORT, 'refused by a trigger'); END"
            ))
            .await
            .unwrap();
        }
        Engine::Postgres => {
            db.execute(&format!(
                "CREATE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 IF NEW.{column} = '{value}' THEN RAISE 'refused by a trigger'; END IF; RETURN NEW; END $$"
            ))
            .await
            .unwrap();
            db.execute(&format!(
                "CREATE TRIGGER refuse_{table} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_{table}()"
            ))
            .await
            .unwrap();
        }
        Engine::Mariadb => {
            use sqlx::Executor;
            let mut connection = db.connect().await.unwrap();
            let text = format!(
                "CREATE TRIGGER refuse_{table} BEFORE INSERT ON {table} FOR EACH ROW \
                 IF NEW.{column} = '{value}' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by a trigger'; END IF"
            );
            // Triggers can't be prepared.
            connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(text))).await.unwrap();
        }
    }
}

on_every_engine!(r14_one_bad_task_stands_alone_and_the_others_succeed);

async fn r14_one_bad_task_stands_alone_and_the_others_succeed(db: TestDb) {
    let shop = Shop::open(&db).await;
    a_backlog(&shop, 40, 2).await;
    refuse(&db, "resource_flow", "ref_no", "o17").await;
    let ran = shop.work().await;
    assert_eq!((ran.succeeded, ran.failed), (39, 1));
    let bad = shop.task("o17").await;
    assert_eq!((bad.status, bad.kind), (TaskStatus::Manual, Some(FailureKind::Poisoned)));
    assert!(bad.error.as_deref().unwrap_or_default().contains("refused by a trigger"), "{bad:?}");
    assert_eq!(shop.work().await, Ran::default(), "it is not read again and again");
    assert_eq!(shop.stock_figures("s0").await, (40, 0, 0));
    assert_eq!(shop.stock_figures("s1").await, (39, 1, 0));
    shop.rules_hold().await;
}

on_every_engine!(r14_one_order_that_cannot_be_closed_holds_up_no_other);

async fn r14_one_order_that_cannot_be_closed_holds_up_no_other(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    for n in 1..=5 {
        shop.placed(an_order(&format!("o{n}")).holding(Stock, "s", 1)).await;
    }
    refuse(&db, "order_release_task", "order_no", "o2").await;
    shop.later(16 * MINUTE);
    let swept = shop.sweep().await;
    assert_eq!((swept.closed, swept.postponed), (4, 1));
    for _ in 0..2 {
        assert_eq!(shop.sweep().await.found, 0, "the bad one isn't looked at again at once");
    }
    assert_eq!(shop.status("o2").await, OrderStatus::Pending);
    shop.work().await;
    assert_eq!(shop.stock_figures("s").await, (9, 1, 0));
    shop.rules_hold().await;
}

on_every_engine!(r14_a_shops_row_whose_order_cannot_be_closed_holds_up_no_other);

async fn r14_a_shops_row_whose_order_cannot_be_closed_holds_up_no_other(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.stock("t", 10).await;
    for n in 1..=5 {
        let order_no = format!("o{n}");
        shop.placed(an_order(&order_no).holding(Stock, "s", 1).holding(Stock, "t", 1)).await;
        db.execute(&format!(
            "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at) \
             VALUES ('{order_no}', 1, 's', 1, {START_MS})"
        ))
        .await
        .unwrap();
    }
    // The close of o2 writes a task for t, and can't.
    refuse(&db, "order_release_task", "order_no", "o2").await;
    shop.work().await;
    for n in [1, 3, 4, 5] {
        assert_eq!(shop.status(&format!("o{n}")).await, OrderStatus::Closed, "o{n}");
    }
    let bad = shop.task("o2").await;
    assert_eq!((bad.status, bad.kind), (TaskStatus::Manual, Some(FailureKind::Poisoned)));
    assert_eq!(shop.stock_figures("s").await, (9, 1, 0));
    shop.rules_hold().await;
}

on_every_engine!(r14_a_key_that_lacks_sends_only_its_own_tasks_to_a_person);

async fn r14_a_key_that_lacks_sends_only_its_own_tasks_to_a_person(db: TestDb) {
    let shop = Shop::open(&db).await;
    a_backlog(&shop, 10, 2).await;
    // Somebody took two pieces of s1 by hand, behind Handback's back.
    db.execute("UPDATE ledger SET locked = locked - 2 WHERE biz_key = 's1'").await.unwrap();
    let ran = shop.work().await;
    assert_eq!((ran.succeeded, ran.failed), (8, 2));
    assert_eq!(shop.stock_figures("s0").await, (10, 0, 0));
    assert_eq!(shop.stock_figures("s1").await, (8, 0, 0));
    let manual = "SELECT COUNT(*) FROM order_release_task WHERE status = 3 AND kind = 4";
    assert_eq!(db.count(manual).await, 2);
}

on_every_engine!(r16_a_coupon_comes_back_only_from_the_order_that_holds_it);

async fn r16_a_coupon_comes_back_only_from_the_order_that_holds_it(db: TestDb) {
    let shop = Shop::open(&db).await;
    for coupon in ["c1", "c2"] {
        shop.good_coupon(coupon).await;
    }
    shop.slot("seat").await;
    shop.placed(an_order("holder").holding(Coupon, "c1", 1).holding(Coupon, "c2", 1).holding(Slot, "seat", 1)).await;
    assert!(matches!(shop.place(an_order("late").holding(Coupon, "c1", 1)).await, Placed::Lacking(_)));
    // Rows for somebody else's coupon and seat, by plain SQL.
    for (kind, key) in [(2, "c1"), (5, "seat")] {
        db.execute(&format!(
            "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at) \
             VALUES ('thief', {kind}, '{key}', 1, {START_MS})"
        ))
        .await
        .unwrap();
    }
    shop.work().await;
    for task in shop.tasks("thief").await {
        assert_eq!((task.status, task.kind), (TaskStatus::Manual, Some(FailureKind::StateMismatch)), "{task:?}");
    }
    assert_eq!(shop.figures(Coupon, "c1").await, (0, 1, 0));

    shop.close("holder", "buyer").await;
    shop.work().await;
    for (resource, key) in [(Coupon, "c1"), (Coupon, "c2"), (Slot, "seat")] {
        assert_eq!(shop.figures(resource, key).await, (1, 0, 0), "{key}");
        assert_eq!(shop.ledger(resource, key).await.holder_no, None, "{key}");
    }
    shop.placed(an_order("next").holding(Coupon, "c1", 1).holding(Slot, "seat", 1)).await;
    // The old order's task, run again by a person, doesn't take it away from the new holder.
    let old = shop.tasks("holder").await.into_iter().find(|t| t.key == "c1").unwrap();
    assert!(matches!(shop.retry("zhang", old.id).await, handback::core::release::act::Retried::AlreadyDone(_)));
    assert_eq!(shop.ledger(Coupon, "c1").await.holder_no.as_deref(), Some("next"));
    shop.rules_hold().await;
}

const DAY_MS: i64 = 86_400_000;

fn extending() -> Policy {
    Policy {
        coupon: CouponRule { on_release: OnRelease::Extend { days: 3 }, extend_once: true },
        points: OnRelease::Extend { days: 3 },
        ..Policy::default()
    }
}

on_every_engine!(r16_what_ran_out_while_locked_is_extended_once_and_keeps_its_first_end);

async fn r16_what_ran_out_while_locked_is_extended_once_and_keeps_its_first_end(db: TestDb) {
    let shop = Shop::with_policy(&db, extending()).await;
    let first_end = START_MS + 600_000;
    shop.coupon("c", first_end).await;
    shop.points("p", 50, first_end).await;
    let rows = [(Coupon, "c", 1), (Funds, "p", 20)];
    let order = |no: &str| an_order(no).holding(Coupon, "c", 1).holding(Funds, "p", 20);
    shop.placed(order("o1")).await;
    shop.later(16 * MINUTE);
    shop.sweep().await;
    shop.work().await;
    let extended = START_MS + 16 * 60_000 + 3 * DAY_MS;
    for (resource, key, _) in rows {
        let row = shop.ledger(resource, key).await;
        assert_eq!((row.expires_at, row.original_expires_at), (Some(extended), Some(first_end)), "{key}");
        assert_eq!(row.extended_by.as_deref(), Some("o1"), "{key}");
    }
    // Ordering and not paying does not extend for ever: the second time it simply runs out.
    shop.later(Duration::from_millis(3 * DAY_MS as u64) - MINUTE);
    shop.placed(order("o2")).await;
    shop.later(16 * MINUTE);
    shop.sweep().await;
    shop.work().await;
    for (resource, key, qty) in rows {
        let row = shop.ledger(resource, key).await;
        assert_eq!(row.expires_at, Some(extended), "{key}");
        let notes: Vec<_> = shop.flows("o2").await.into_iter().filter(|f| f.key == key).map(|f| f.note).collect();
        assert_eq!(notes, [None, Some("expired".into())], "{key}");
        assert!(row.available >= qty, "{key} is back, visible");
    }
    assert!(matches!(shop.place(order("o3")).await, Placed::Lacking(lacking) if lacking.len() == 2));
    shop.rules_hold().await;
}

on_every_engine!(r16_points_that_ran_out_come_back_visible_and_not_lockable);

async fn r16_points_that_ran_out_come_back_visible_and_not_lockable(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.points("p", 50, START_MS + 600_000).await;
    shop.placed(an_order("o1").holding(Funds, "p", 20)).await;
    assert_eq!(shop.figures(Funds, "p").await, (30, 20, 0));
    shop.later(16 * MINUTE);
    shop.sweep().await;
    shop.work().await;
    assert_eq!(shop.figures(Funds, "p").await, (50, 0, 0));
    assert!(matches!(shop.place(an_order("o2").holding(Funds, "p", 1)).await, Placed::Lacking(_)));
    shop.rules_hold().await;
}

on_every_engine!(r19_workers_orders_payments_and_closes_never_stop_each_other);

/// Everything at once on five hot keys: locks are taken in one order, so nothing is lost to a deadlock.
async fn r19_workers_orders_payments_and_closes_never_stop_each_other(db: TestDb) {
    const EACH: usize = 120;
    let shop = Shop::open(&db).await;
    for key in 0..5 {
        shop.stock(&format!("s{key}"), 10_000).await;
    }
    let orders = join_all((0..3).map(|part| {
        let shop = shop.clone();
        tokio::spawn(async move {
            for n in 0..EACH {
                let order_no = format!("o{part}-{n}");
                // Each order names its keys in another order.
                let keys = (0..5).map(|k| (n * 3 + part + k * 2) % 5);
                let order = keys.fold(an_order(&order_no), |order, k| order.holding(Stock, &format!("s{k}"), 1));
                shop.placed(order).await;
                if n % 3 == 0 {
                    shop.pay(&order_no).await;
                } else {
                    shop.close(&order_no, "buyer").await;
                }
            }
        })
    }));
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let workers = ["w1", "w2"].map(|name| {
        let (shop, stopped) = (shop.clone(), stopped.clone());
        tokio::spawn(async move {
            let mut failed = 0;
            while !*stopped.borrow() {
                failed += shop.run_once(name, 20).await.failed;
                tokio::task::yield_now().await;
            }
            failed
        })
    });
    for part in orders.await {
        part.unwrap();
    }
    stop.send(true).unwrap();
    for worker in workers {
        assert_eq!(worker.await.unwrap(), 0);
    }
    shop.work().await;
    let sold = (3 * EACH / 3) as i64;
    for key in 0..5 {
        assert_eq!(shop.stock_figures(&format!("s{key}")).await, (10_000 - sold, 0, sold), "s{key}");
    }
    assert_eq!(db.count("SELECT COUNT(*) FROM task_attempt").await, 0);
    shop.rules_hold().await;
}

on_every_engine!(a_retry_that_waits_is_spread_and_the_eighth_failure_is_a_persons);

/// Failures that may pass by themselves: the database says "busy" once more than is retried inside.
async fn a_retry_that_waits_is_spread_and_the_eighth_failure_is_a_persons(db: TestDb) {
    let shop = Shop::open(&db).await;
    a_backlog(&shop, 1, 1).await;
    let task = shop.task("o0").await;
    // Seven failures on record, as `remote_timeout` of a time when the resource was elsewhere.
    db.execute(&format!(
        "UPDATE order_release_task SET status = 2, retry = 7, kind = 1, next_at = {START_MS} WHERE id = {}",
        task.id
    ))
    .await
    .unwrap();
    db.execute("UPDATE ledger SET locked = 0").await.unwrap();
    shop.work().await;
    let failed = shop.task("o0").await;
    assert_eq!((failed.status, failed.retry), (TaskStatus::Manual, 8));
    let mut conn = shop.core.db.read().await.unwrap();
    let attempts = handback::store::task::attempts(&mut conn, &failed).await.unwrap();
    assert_eq!(attempts.last().map(|a| (a.n, a.outcome)), Some((8, Some(AttemptOutcome::Failed))));
}
