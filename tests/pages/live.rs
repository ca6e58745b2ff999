//! The overview and the stream that renews it.

use axum::body::Body;
use axum::http::StatusCode;
use futures_util::StreamExt as _;
use handback::core::account;
use handback::core::words::{ResourceType, Role};
use tower::ServiceExt as _;

use super::{Browser, Site};
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering as _, an_order};

on_every_engine!(
    the_overview_counts_what_waits,
    a_stream_tells_the_time_and_renews_the_overview,
    a_stream_ends_when_the_process_stops,
);

async fn the_overview_counts_what_waits(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    let seen = browser.get("/").await;
    assert_eq!(seen.stat("backlog.waiting.stock"), "0");
    seen.says("No worker is alive. Nothing waits for one right now.");
    site.shop.stock("sku", 100).await;
    site.shop.balance("bal", 100_000).await;
    for n in 0..3 {
        let order = an_order(&format!("A{n}")).holding(ResourceType::Stock, "sku", 2);
        site.shop.placed(order.holding(ResourceType::Funds, "bal", 1_050)).await;
        site.shop.close(&format!("A{n}"), "buyer").await;
    }
    let seen = browser.get("/").await;
    assert_eq!(seen.stat("backlog.waiting.stock"), "3");
    assert_eq!(seen.stat("backlog.waiting.funds"), "3");
    seen.says("Nothing is being given back: no worker is alive.");
    seen.says("31.50 CNY");
    seen.says("data-value=\"6\" data-stat=\"backlog.total\"");
    seen.says("3 orders affected");
    seen.says("/orders/A2");
    site.shop.work().await;
    assert_eq!(browser.get("/").await.stat("backlog.waiting.stock"), "0");
}

/// Reads a stream until it has said `wanted`; what came before that.
async fn read_until(browser: &Browser, path: &str, wanted: &str) -> (String, axum::body::BodyDataStream) {
    let request = browser.request("GET", path).body(Body::empty()).unwrap();
    let response = browser.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut stream = response.into_body().into_data_stream();
    let mut said = String::new();
    while !said.contains(wanted) {
        let chunk = stream.next().await.unwrap_or_else(|| panic!("the stream ended after {said}")).unwrap();
        said.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    (said, stream)
}

async fn a_stream_tells_the_time_and_renews_the_overview(db: TestDb) {
    let site = Site::open(&db).await;
    let browser = site.signed_in(Role::Viewer).await;
    let (said, _stream) = read_until(&browser, "/events?view=overview", "data-stat=\"oldest_age_s\"").await;
    assert!(said.starts_with("event: tick\ndata: {"), "{said}");
    assert!(said.contains("\"time\":\"18:00:00\""), "{said}");
    assert!(said.lines().all(|line| line.is_empty() || line.starts_with("event: ") || line.starts_with("data: ")));
    assert!(!said.contains("hx-"), "the stream brings no elements that htmx works on");
    account::set_enabled(&site.shop.core, "test", "viewer", false).await.unwrap();
    let request = browser.request("GET", "/events").body(Body::empty()).unwrap();
    let response = browser.router.clone().oneshot(request).await.unwrap();
    assert!(response.status().is_redirection(), "no stream without a session");
}

async fn a_stream_ends_when_the_process_stops(db: TestDb) {
    let site = Site::open(&db).await;
    let browser = site.signed_in(Role::Viewer).await;
    let (_, mut stream) = read_until(&browser, "/events", "event: tick").await;
    site.stopping.cancel();
    while let Some(chunk) = stream.next().await {
        assert!(chunk.is_ok());
    }
}
