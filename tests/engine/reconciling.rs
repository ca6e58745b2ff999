//! R22: what is locked is what open orders hold and unfinished tasks still move, at one snapshot and in both
//! directions; everything else is a finding with its sign, its orders and its tasks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use handback::core::ports::{Answer, RemoteCall, RemoteService, Services, Told};
use handback::core::reconcile::{self, Known, SILENT_MS, Started};
use handback::core::words::{Action, DiffClass, OrderStatus, ResourceType, RunStatus};
use handback::store::reconcile_run::{self as runs, Diff, Run};
use handback::store::{Decision, Result};

use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{MINUTE, Ordering as _, Shop, an_order, operator};

const STOCK: ResourceType = ResourceType::Stock;

impl Shop {
    async fn reconciled(&self) -> (Run, Vec<Diff>) {
        let found = reconcile::run_now(&self.core, &operator("otto"), None).await.unwrap();
        assert_eq!(found.0.status, RunStatus::Done, "{found:?}");
        found
    }

    /// What was found, shortly: class, key, unexplained.
    async fn findings(&self) -> Vec<(DiffClass, String, i64)> {
        let (_, diffs) = self.reconciled().await;
        diffs.into_iter().map(|diff| (diff.class, diff.key, diff.unexplained)).collect()
    }
}

on_every_engine!(
    r22_a_healthy_backlog_is_no_difference,
    r22_what_force_closed_tasks_owe_is_explained,
    r22_a_lock_that_was_taken_away_is_found,
    r22_a_lock_that_nobody_asked_for_is_found,
    r22_a_deleted_task_is_a_missed_release_of_its_order,
    r22_a_release_too_many_is_a_double_release,
    r22_a_key_without_a_ledger_row_is_seen,
    r22_shops_own_rows_count_where_their_order_is_unknown,
    r22_restoring_orders_hold_what_they_had,
    r22_types_that_services_keep_are_left_out,
    r22_retired_rows_add_up_with_the_live_one,
    r22_a_coupon_locked_by_a_stranger_is_found,
    r22_only_lines_of_open_orders_count,
    r22_one_runs_at_a_time_and_a_dead_one_blocks_nobody,
    r22_many_findings_come_page_by_page,
    a_finding_keeps_since_when_it_is_seen,
    a_snapshot_sees_one_moment,
);

/// Orders in every state: open, closing, closed, paying, paid.
async fn a_busy_shop(shop: &Shop) {
    shop.stock("s", 100).await;
    shop.balance("bal", 10_000).await;
    shop.quota("q", 50).await;
    shop.slot("seat").await;
    shop.good_coupon("c").await;
    for no in ["open", "done", "sold"] {
        shop.placed(an_order(no).holding(STOCK, "s", 2).holding(ResourceType::Funds, "bal", 500)).await;
    }
    shop.close("done", "buyer").await;
    shop.pay("sold").await;
    shop.work().await;
    let all = an_order("closing").holding(STOCK, "s", 3).holding(ResourceType::Coupon, "c", 1);
    shop.placed(all.holding(ResourceType::Quota, "q", 1).holding(ResourceType::Slot, "seat", 1)).await;
    shop.placed(an_order("paying").holding(STOCK, "s", 5)).await;
    shop.close("closing", "buyer").await;
    shop.pay("paying").await;
}

async fn r22_a_healthy_backlog_is_no_difference(db: TestDb) {
    let shop = Shop::open(&db).await;
    a_busy_shop(&shop).await;
    let (run, diffs) = shop.reconciled().await;
    assert_eq!(diffs, []);
    assert_eq!(run.checked, 5);
    let stock = run.totals.iter().find(|total| total.resource == STOCK.code()).unwrap();
    // Open: 2 held; on their way: 3 to be released, 5 to be settled.
    assert_eq!((stock.in_ledger, stock.expected, stock.explained), (10, 2, 8));
    assert_eq!((stock.over, stock.under, stock.findings), (0, 0, 0));
    shop.work().await;
    assert_eq!(shop.findings().await, []);
    shop.rules_hold().await;
}

async fn r22_what_force_closed_tasks_owe_is_explained(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("A").holding(STOCK, "s", 4)).await;
    shop.close("A", "buyer").await;
    let task = shop.task("A").await;
    shop.force_close("otto", task.id, task.version).await;
    let (run, diffs) = shop.reconciled().await;
    assert_eq!(diffs, []);
    assert_eq!((run.totals[0].in_ledger, run.totals[0].explained), (4, 4));
    // Once a flow names it, it explains nothing any more.
    db.execute("UPDATE order_release_task SET next_at = NULL").await.unwrap();
    assert_eq!(shop.findings().await, [(DiffClass::MissedRelease, "s".to_owned(), 4)]);
}

async fn r22_a_lock_that_was_taken_away_is_found(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.stock("t", 10).await;
    shop.placed(an_order("A").holding(STOCK, "s", 3).holding(STOCK, "t", 1)).await;
    shop.placed(an_order("B").holding(STOCK, "s", 2)).await;
    shop.close("B", "buyer").await;
    db.execute("UPDATE ledger SET locked = locked - 1 WHERE biz_key = 's'").await.unwrap();
    let (_, diffs) = shop.reconciled().await;
    let [diff] = diffs.as_slice() else { panic!("{diffs:#?}") };
    assert_eq!((diff.class, diff.key.as_str()), (DiffClass::DoubleRelease, "s"));
    assert_eq!((diff.in_ledger, diff.expected, diff.explained, diff.unexplained), (4, 3, 2, -1));
    assert_eq!(diff.orders, ["A", "B"]);
    assert_eq!(diff.tasks, [shop.task("B").await.id]);
    // Nothing locked at all has a name of its own.
    db.execute("UPDATE ledger SET locked = 0 WHERE biz_key = 't'").await.unwrap();
    assert!(shop.findings().await.contains(&(DiffClass::MissingLock, "t".to_owned(), -1)));
}

async fn r22_a_lock_that_nobody_asked_for_is_found(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("A").holding(STOCK, "s", 1)).await;
    shop.close("A", "buyer").await;
    shop.work().await;
    db.execute("UPDATE ledger SET locked = 2").await.unwrap();
    let (_, diffs) = shop.reconciled().await;
    assert_eq!((diffs[0].class, diffs[0].unexplained), (DiffClass::OrphanLock, 2));
    assert!(diffs[0].orders.is_empty() && diffs[0].tasks.is_empty(), "{diffs:#?}");
}

async fn r22_a_deleted_task_is_a_missed_release_of_its_order(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    for no in ["A", "B", "C"] {
        shop.placed(an_order(no).holding(STOCK, "s", 2)).await;
    }
    shop.close("B", "buyer").await;
    shop.close("C", "buyer").await;
    db.execute("DELETE FROM order_release_task WHERE order_no = 'B'").await.unwrap();
    let (_, diffs) = shop.reconciled().await;
    let [diff] = diffs.as_slice() else { panic!("{diffs:#?}") };
    assert_eq!((diff.class, diff.unexplained), (DiffClass::MissedRelease, 2));
    // The one that looks guilty first, then who else holds the key.
    assert_eq!(diff.orders, ["B", "A", "C"]);
}

async fn r22_a_release_too_many_is_a_double_release(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("A").holding(STOCK, "s", 2)).await;
    shop.placed(an_order("B").holding(STOCK, "s", 2)).await;
    shop.close("A", "buyer").await;
    shop.work().await;
    // A second release of A by another hand, with its flow, as seed programs do it.
    db.execute("UPDATE ledger SET locked = locked - 2, available = available + 2").await.unwrap();
    db.execute(
        "INSERT INTO resource_flow (ledger_id, resource_type, biz_key, action, qty, ref_no, source, round, at) \
         SELECT ledger_id, resource_type, biz_key, action, qty, ref_no, 'again', round, at FROM resource_flow WHERE action = 1",
    )
    .await
    .unwrap();
    db.execute("UPDATE ledger SET locked = locked + 1, available = available - 1").await.unwrap();
    let (_, diffs) = shop.reconciled().await;
    assert_eq!((diffs[0].class, diffs[0].unexplained), (DiffClass::DoubleRelease, -1));
    assert_eq!(diffs[0].orders, ["A", "B"], "the flow says that A gave back more than it had");
}

async fn r22_a_key_without_a_ledger_row_is_seen(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("A").holding(STOCK, "s", 2)).await;
    db.execute("DELETE FROM ledger").await.unwrap();
    let (run, diffs) = shop.reconciled().await;
    assert_eq!((diffs[0].class, diffs[0].unexplained), (DiffClass::MissingLock, -2));
    assert_eq!((diffs[0].orders.as_slice(), run.checked), (&["A".to_owned()][..], 1));
}

async fn r22_shops_own_rows_count_where_their_order_is_unknown(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("A").holding(STOCK, "s", 2)).await;
    let insert = |no: &str, qty: i64| {
        format!("INSERT INTO order_release_task (order_no, resource_type, biz_key, qty) VALUES ('{no}', 1, 's', {qty})")
    };
    // The close of A arriving: its hold says what is locked, the row's own quantity says nothing.
    db.execute(&insert("A", 7)).await.unwrap();
    assert_eq!(shop.findings().await, []);
    // An order that only the shop knows explains its own quantity.
    db.execute("UPDATE ledger SET locked = locked + 3").await.unwrap();
    assert_eq!(shop.findings().await, [(DiffClass::MissedRelease, "s".to_owned(), 3)]);
    db.execute(&insert("elsewhere", 3)).await.unwrap();
    assert_eq!(shop.findings().await, []);
}

/// A service that never answers for certain.
struct Silent;

impl RemoteService for Silent {
    fn supports(&self, _: Action) -> bool {
        true
    }
    fn has_status(&self) -> bool {
        true
    }
    fn key_lifetime_ms(&self) -> i64 {
        86_400_000
    }
    fn max_concurrency(&self) -> usize {
        1
    }
    fn lease_ms(&self) -> i64 {
        60_000
    }
    fn send<'a>(&'a self, _: &'a RemoteCall) -> BoxFuture<'a, Answer> {
        let kind = handback::core::words::FailureKind::RemoteTimeout;
        Box::pin(async move { Answer::Unknown { kind, error: "no answer".into() } })
    }
    fn status<'a>(&'a self, _: &'a RemoteCall) -> BoxFuture<'a, Told> {
        Box::pin(async { Told::Unknown })
    }
}

async fn r22_types_that_services_keep_are_left_out(db: TestDb) {
    let shop = Shop::open(&db).await;
    let services = Services {
        remote: HashMap::from([(ResourceType::Coupon, Arc::new(Silent) as Arc<dyn RemoteService>)]),
        ..Services::default()
    };
    let (own, clock, policy) = (shop.core.db.clone(), shop.clock.clone(), shop.core.policy.clone());
    let core = handback::core::Core::with_services(own, clock, policy, services);
    let (run, _) = reconcile::run_now(&core, &operator("otto"), None).await.unwrap();
    let compared: Vec<i64> = run.totals.iter().map(|total| total.resource).collect();
    assert_eq!(compared, [1, 3, 4, 5]);
    let refused = reconcile::run_now(&core, &operator("otto"), Some(ResourceType::Coupon)).await;
    assert!(refused.is_err(), "a remote type is not compared here");
}

async fn r22_restoring_orders_hold_what_they_had(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.stock("t", 10).await;
    shop.good_coupon("c").await;
    shop.good_coupon("d").await;
    shop.placed(an_order("A").holding(STOCK, "s", 2).holding(ResourceType::Coupon, "c", 1)).await;
    shop.placed(an_order("B").holding(STOCK, "t", 3).holding(ResourceType::Coupon, "d", 1)).await;
    // Coupons are sent to a service, and of its answer nobody knows.
    let sent = "UPDATE order_release_task SET lane = 2, doubt = 1, sent_at = created_at WHERE resource_type = 2";
    // The stock of A is back when the payment comes, that of B isn't yet.
    shop.close("A", "buyer").await;
    db.execute(sent).await.unwrap();
    shop.work().await;
    shop.close("B", "buyer").await;
    db.execute(sent).await.unwrap();
    for no in ["A", "B"] {
        shop.pay(no).await;
        assert_eq!(shop.status(no).await, OrderStatus::Restoring);
    }
    let (run, diffs) = shop.reconciled().await;
    assert_eq!(diffs, []);
    // Round 2 of A and round 1 of B are held; the coupons are explained by their releases.
    let figures: Vec<_> = run.totals.iter().take(2).map(|t| (t.in_ledger, t.expected, t.explained)).collect();
    assert_eq!(figures, [(5, 5, 0), (2, 0, 2)]);
}

async fn r22_retired_rows_add_up_with_the_live_one(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    shop.placed(an_order("A").holding(STOCK, "s", 2)).await;
    shop.retire(STOCK, "s").await;
    shop.stock("s", 5).await;
    shop.placed(an_order("B").holding(STOCK, "s", 1)).await;
    let (run, diffs) = shop.reconciled().await;
    assert_eq!((diffs.len(), run.checked, run.totals[0].in_ledger), (0, 1, 3));
}

async fn r22_a_coupon_locked_by_a_stranger_is_found(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.good_coupon("c").await;
    shop.good_coupon("d").await;
    shop.placed(an_order("A").holding(ResourceType::Coupon, "c", 1)).await;
    assert_eq!(shop.findings().await, []);
    // The sums agree, and yet the coupon would not come back from A.
    db.execute("UPDATE ledger SET holder_no = 'X' WHERE biz_key = 'c'").await.unwrap();
    db.execute("UPDATE ledger SET holder_no = 'Y', holder_round = 1, locked = 1, available = 0 WHERE biz_key = 'd'")
        .await
        .unwrap();
    let (run, diffs) = shop.reconciled().await;
    let found: Vec<_> = diffs.iter().map(|d| (d.class, d.key.as_str(), d.unexplained)).collect();
    assert_eq!(found, [(DiffClass::HolderGone, "c", 0), (DiffClass::HolderGone, "d", 1)]);
    assert!(diffs.iter().all(reconcile::is_unexplained));
    assert_eq!(run.totals[1].findings, 2, "each key once");
}

async fn r22_only_lines_of_open_orders_count(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 100).await;
    for no in 0..6 {
        shop.placed(an_order(&format!("o{no}")).holding(STOCK, "s", 2)).await;
        if no < 3 {
            shop.close(&format!("o{no}"), "buyer").await;
        } else if no < 5 {
            shop.pay(&format!("o{no}")).await;
        }
    }
    shop.work().await;
    let (run, diffs) = shop.reconciled().await;
    assert_eq!((diffs.len(), run.totals[0].expected), (0, 2), "closed and paid orders hold nothing");
}

async fn r22_one_runs_at_a_time_and_a_dead_one_blocks_nobody(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 1).await;
    let now = shop.core.now();
    let core = shop.core.clone();
    let begin = async || -> Result<Option<i64>> {
        let begun = core.db.write(move |conn| {
            Box::pin(async move { Ok(Decision::Commit(runs::begin(conn, None, "operator:gone", now).await?)) })
        });
        begun.await
    };
    let dead = begin().await.unwrap();
    assert!(dead.is_some() && begin().await.unwrap().is_none());
    let otto = operator("otto");
    let started = reconcile::start(&shop.core, &otto, None).await.unwrap();
    assert_eq!(Some(started), dead.map(Started::Running));
    shop.later(Duration::from_millis(SILENT_MS.unsigned_abs()) + MINUTE);
    let (run, _) = shop.reconciled().await;
    assert_ne!(Some(run.id), dead);
    let (gone, _) = reconcile::show(&shop.core, dead.unwrap()).await.unwrap().unwrap();
    assert_eq!(gone.status, RunStatus::Failed);
    assert_eq!(db.count("SELECT COUNT(*) FROM reconcile_run WHERE running = 1").await, 0);
}

async fn r22_many_findings_come_page_by_page(db: TestDb) {
    let shop = Shop::open(&db).await;
    let rows: Vec<String> =
        (0..2_100).map(|n| format!("(1, 'k{n:05}', {}, {}, {})", 5, n % 2, handback_time(&shop))).collect();
    for some in rows.chunks(500) {
        let insert = "INSERT INTO ledger (resource_type, biz_key, available, locked, created_at) VALUES ";
        db.execute(&format!("{insert}{}", some.join(", "))).await.unwrap();
    }
    let (run, diffs) = shop.reconciled().await;
    assert_eq!((run.checked, diffs.len()), (2_100, 1_050));
    assert_eq!((run.totals[0].findings, run.totals[0].over), (1_050, 1_050));
    assert!(diffs.windows(2).all(|two| two[0].key < two[1].key));
}

fn handback_time(shop: &Shop) -> i64 {
    shop.core.now()
}

async fn a_finding_keeps_since_when_it_is_seen(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    db.execute("UPDATE ledger SET locked = 1").await.unwrap();
    let first = shop.reconciled().await.1.remove(0).first_seen;
    shop.later(MINUTE);
    assert_eq!(shop.reconciled().await.1.remove(0).first_seen, first);
    // A run over another type neither knows it nor forgets it.
    let coupons = Some(ResourceType::Coupon);
    reconcile::run_now(&shop.core, &operator("otto"), coupons).await.unwrap();
    let known = Known::of(&runs::latest_done(&mut shop.core.db.read().await.unwrap()).await.unwrap());
    assert_eq!(known.findings(), Some(1), "{known:?}");
    db.execute("UPDATE ledger SET locked = 0").await.unwrap();
    assert_eq!(shop.findings().await, []);
    db.execute("UPDATE ledger SET locked = 1").await.unwrap();
    shop.later(MINUTE);
    let again = shop.reconciled().await.1.remove(0).first_seen;
    assert!(again > first, "it was gone in between");
}

async fn a_snapshot_sees_one_moment(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 10).await;
    let mut conn = shop.core.db.snapshot().await.unwrap();
    let count = "SELECT COUNT(*) FROM ledger";
    assert_eq!(conn.stmt(count).int().await.unwrap(), 1);
    shop.stock("t", 10).await;
    assert_eq!(conn.stmt(count).int().await.unwrap(), 1, "what is committed meanwhile is not seen");
    conn.done().await.unwrap();
    assert_eq!(shop.core.db.read().await.unwrap().stmt(count).int().await.unwrap(), 2);
}
