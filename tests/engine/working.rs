//! R11, R23 of the worker's loop: how it starts after an unclean end, and that it needs no bell to find work.

use std::time::Duration;

use handback::core::words::{Actor, ResourceType};
use handback::worker::duties::{BatchSize, Next, release_once};
use handback::worker::{Settings, Worker};
use tokio_util::sync::CancellationToken;

use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering, START_MS, Shop, an_order};

on_every_engine!(r11_after_an_unclean_end_batches_start_at_one_and_grow);

async fn r11_after_an_unclean_end_batches_start_at_one_and_grow(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 100).await;
    for n in 0..12 {
        shop.placed(an_order(&format!("o{n}")).holding(ResourceType::Stock, "s", 1)).await;
        shop.close(&format!("o{n}"), "buyer").await;
    }
    assert_eq!(BatchSize::new(100, false).now(), 100);
    let size = BatchSize::new(100, true);
    let worker = Actor::Worker("w1".into());
    let done = "SELECT COUNT(*) FROM order_release_task WHERE status = 1";
    for (batch, so_far) in [(1, 1), (2, 3), (4, 7), (8, 12)] {
        assert_eq!(size.now(), batch);
        assert_eq!(release_once(&shop.core, &worker, &size).await.unwrap(), Next::AtOnce);
        assert_eq!(db.count(done).await, so_far);
    }
    let idle = release_once(&shop.core, &worker, &size).await.unwrap();
    assert!(matches!(idle, Next::After(wait) if wait > Duration::ZERO), "an empty queue is not read in a circle");
    assert_eq!(size.now(), 16, "an empty look is no batch");
    shop.rules_hold().await;
}

on_every_engine!(a_worker_finds_rows_that_ring_no_bell_and_takes_its_leave);

async fn a_worker_finds_rows_that_ring_no_bell_and_takes_its_leave(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("s", 5).await;
    shop.placed(an_order("o").holding(ResourceType::Stock, "s", 2)).await;
    // Somebody who died without a word.
    db.execute("INSERT INTO worker (name, started_at, seen_at) VALUES ('w-dead', 1577836800000, 1577836800000)")
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let settings =
        Settings { name: "w-test".into(), scan_interval: Duration::from_secs(1), database_url: db.url.clone() };
    let working = tokio::spawn(Worker::new(shop.core.clone(), settings, stop.clone()).run());
    // Heartbeats follow the server's time; the row is due on any clock.
    db.execute(&format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at) VALUES ('o', 1, 's', 2, {START_MS})"
    ))
    .await
    .unwrap();
    let looks = async {
        while db.count("SELECT COUNT(*) FROM order_release_task WHERE status = 1").await == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looks).await.expect("the row is noticed");
    assert_eq!(db.count("SELECT COUNT(*) FROM worker WHERE name = 'w-dead'").await, 0);
    stop.cancel();
    working.await.unwrap();
    assert_eq!(db.count("SELECT COUNT(*) FROM worker").await, 0, "a clean end leaves no row");
    assert_eq!(shop.stock_figures("s").await, (5, 0, 0));
    shop.rules_hold().await;
}
