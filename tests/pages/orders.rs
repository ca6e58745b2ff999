//! Finding an order by what a caller can read out, and what can be said about it.

use std::time::Duration;

use axum::http::StatusCode;
use handback::core::words::{ResourceType, Role};

use super::Site;
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering as _, an_order};

on_every_engine!(
    an_order_is_found_by_a_part_in_any_case,
    an_odd_number_opens_its_page,
    a_closed_order_says_what_came_back,
    an_open_and_a_paid_order_say_how_they_stand,
);

async fn an_order_is_found_by_a_part_in_any_case(db: TestDb) {
    let site = Site::open(&db).await;
    for no in ["HB-2026-0001", "HB-2026-0002", "50%_off"] {
        site.shop.placed(an_order(no)).await;
    }
    let mut browser = site.signed_in(Role::Service).await;
    assert_eq!(browser.get("/orders?q=%20hb-2026-0001%20").await.location(), "/orders/HB-2026-0001");
    assert_eq!(browser.get("/orders?q=0002").await.location(), "/orders/HB-2026-0002");
    assert_eq!(browser.get("/orders?q=50%25_").await.location(), "/orders/50%25_off");
    let many = browser.get("/orders?q=hb").await;
    many.says("2 orders match “hb”.");
    let none = browser.get("/orders?q=zz").await;
    none.says("No order matches “zz”.");
    browser.get("/orders").await.says("HB-2026-0001");
    assert_eq!(browser.get("/orders?q=%00").await.status, StatusCode::BAD_REQUEST);
}

async fn an_odd_number_opens_its_page(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    for no in ["a/b c", "券-7?", "x#y&z", "<b>"] {
        site.shop.placed(an_order(no)).await;
        let path = handback::web::paths::order(no);
        assert_eq!(browser.get(&path).await.status, StatusCode::OK, "{path}");
    }
    let seen = browser.get("/orders/unknown").await;
    assert_eq!(seen.status, StatusCode::NOT_FOUND);
    // Spelling counts.
    seen.says("doesn&#39;t know this order");
}

async fn a_closed_order_says_what_came_back(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.stock("sku-1", 10).await;
    site.shop.good_coupon("C-7").await;
    site.shop.balance("bal:u1", 10_000).await;
    let order = an_order("HB1").holding(ResourceType::Stock, "sku-1", 2).holding(ResourceType::Coupon, "C-7", 1);
    site.shop.placed(order.holding(ResourceType::Funds, "bal:u1", 5_000)).await;
    site.shop.later(Duration::from_secs(901));
    site.shop.sweep().await;
    let mut browser = site.signed_in(Role::Service).await;
    let seen = browser.get("/orders/HB1").await;
    seen.says("because it had not been paid");
    seen.says("Still on its way: 2 pieces of sku-1, the coupon C-7 and 50.00 CNY of balance.");
    site.shop.work().await;
    let seen = browser.get("/orders/HB1").await;
    seen.says("The order was closed at 18:15 because it had not been paid. Everything it reserved is back.");
    seen.says("Safe to say: every part is certain.");
    seen.says("available 8 → 10");
    seen.says("100.00");
    let chinese = browser.clone().with("accept-language", "zh-CN").get("/orders/HB1").await;
    chinese.says("订单因未付款，已于 18:15 关闭。占用的资源均已退回。");
}

async fn an_open_and_a_paid_order_say_how_they_stand(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.stock("sku-1", 10).await;
    site.shop.placed(an_order("P1").holding(ResourceType::Stock, "sku-1", 1)).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    browser.get("/orders/P1").await.says("The order waits for its payment until 18:15.");
    site.shop.pay("P1").await;
    site.shop.work().await;
    let seen = browser.get("/orders/P1").await;
    seen.says("The order was paid at 18:00.");
    seen.says("Payment received");
    seen.does_not_say("txn-P1");
}
