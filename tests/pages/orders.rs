//! Finding an order by what a caller can read out, and what can be said about it.

use std::time::Duration;

use axum::http::StatusCode;
use handback::core::order::place::NewHold;
use handback::core::order::reduce::{Reduce, Reduced, reduce_order};
use handback::core::words::{OrderStatus, ResourceType, Role};

use super::Site;
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering as _, a_payment, an_order};

on_every_engine!(
    an_order_is_found_by_a_part_in_any_case,
    an_odd_number_opens_its_page,
    a_closed_order_says_what_came_back,
    an_open_and_a_paid_order_say_how_they_stand,
    an_order_is_found_by_what_a_caller_can_read_out,
    a_buyer_is_masked_and_revealed_with_a_reason,
    a_lead_accepts_a_wrong_amount_and_lifts_a_tombstone,
    a_lead_settles_money_that_fits_nothing,
    a_late_payment_that_lacks_is_told_with_its_refund,
    a_reduced_order_says_what_is_where,
    service_asks_for_help_and_can_force_nothing,
    returns_stand_on_the_page_of_their_order,
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

async fn an_order_is_found_by_what_a_caller_can_read_out(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.good_coupon("C-7F3K").await;
    let mut order = an_order("HB-2026-0001").holding(ResourceType::Coupon, "C-7F3K", 1);
    order.buyer = "u_88213".into();
    site.shop.placed(order).await;
    site.shop.placed(an_order("HB-2026-0002")).await;
    site.shop.payment(a_payment("HB-2026-0001", "2026111100552")).await;
    db.execute("INSERT INTO return_order (return_no, order_no, content, raw) VALUES ('R-77', 'HB-2026-0001', '', '')")
        .await
        .unwrap();
    let mut service = site.signed_in(Role::Service).await;
    for typed in ["C-7F3K", "2026111100552", "R-77", "u_88213", "HB-2026%20-%200001", "%20%20b-2026-0001"] {
        let seen = service.get(&format!("/orders?q={typed}")).await;
        assert_eq!(seen.location(), "/orders/HB-2026-0001", "{typed}: {}", seen.body);
    }
    // Who may not know buyers finds nothing by them.
    let mut viewer = site.signed_in(Role::Viewer).await;
    viewer.get("/orders?q=u_88213").await.says("No order matches");
}

async fn a_buyer_is_masked_and_revealed_with_a_reason(db: TestDb) {
    let site = Site::open(&db).await;
    let mut order = an_order("A");
    order.buyer = "zhang-san-88213".into();
    site.shop.placed(order).await;
    let mut kim = site.signed_in(Role::Service).await;
    let seen = kim.get("/orders/A").await;
    seen.does_not_say("zhang-san");
    seen.says("href=\"/orders/A/reveals\"");
    kim.get("/orders/A/reveals").await.says("Look at the buyer of order A?");
    let refused = kim.post("/orders/A/reveals", &[("reason", " ")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.does_not_say("zhang-san");
    kim.post("/orders/A/reveals", &[("reason", "caller named the order")]).await.says("zhang-san-88213");
    kim.get("/orders/A").await.does_not_say("zhang-san");
    let rows = "SELECT COUNT(*) FROM audit_log WHERE action = 'order.reveal' AND target = 'order:A' AND reason = 'caller named the order' AND actor = 'operator:service'";
    assert_eq!(db.count(rows).await, 1);
    let mut viewer = site.signed_in(Role::Viewer).await;
    viewer.get("/orders/A").await.does_not_say("reveals");
}

async fn a_lead_accepts_a_wrong_amount_and_lifts_a_tombstone(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.placed(an_order("A")).await;
    let mut payment = a_payment("A", "t1");
    payment.amount = 9_900;
    site.shop.payment(payment).await;
    let mut viewer = site.signed_in(Role::Viewer).await;
    let seen = viewer.get("/orders/A").await;
    seen.says(
        "A payment of 99.00 CNY has arrived that differs from what is to be paid; our colleagues are looking at it.",
    );
    seen.does_not_say("acceptances");
    let mut lead = site.signed_in(Role::Lead).await;
    let seen = lead.get("/orders/A").await;
    seen.says("acceptances");
    let id = db.count("SELECT id FROM payment").await;
    let path = format!("/orders/A/payments/{id}/acceptances");
    lead.get(&path).await.says("99.00 CNY");
    let refused = lead.post(&path, &[("reason", "")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let accepted = lead.post_and_see(&path, &[("reason", "the coupon was missing")]).await;
    accepted.says("Accepted: the order is paid with this payment.");
    assert_eq!(site.shop.status("A").await, OrderStatus::Paid);
    lead.post_and_see(&path, &[("reason", "again")]).await.says("Not accepted");

    site.shop.close("T/1", "buyer").await;
    let seen = lead.get("/orders/T%2F1").await;
    seen.says("closed before it arrived");
    seen.says("href=\"/orders/T%2F1/tombstone/lifts\"");
    let lifted = lead.post_and_see("/orders/T%2F1/tombstone/lifts", &[("reason", "sent by mistake")]).await;
    lifted.says("The tombstone is lifted");
    site.shop.placed(an_order("T/1")).await;
    assert_eq!(db.count("SELECT COUNT(*) FROM audit_log WHERE action = 'order.lift_tombstone'").await, 1);
    // Now it is an order, and none of it may be lifted.
    lead.post_and_see("/orders/T%2F1/tombstone/lifts", &[("reason", "again")]).await.says("Nothing to lift");
    assert_eq!(site.shop.status("T/1").await, OrderStatus::Pending);
}

async fn a_lead_settles_money_that_fits_nothing(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.placed(an_order("A")).await;
    let mut wrong = a_payment("A", "t1");
    wrong.amount = 9_900;
    site.shop.payment(wrong).await;
    site.shop.payment(a_payment("nobody", "t2")).await;
    site.shop.payment(a_payment("B", "t1")).await;
    let mut operator = site.signed_in(Role::Operator).await;
    let seen = operator.get("/refunds").await;
    seen.says("Money that fits nothing");
    seen.says("differs from what order A asks for: 100.00 CNY");
    seen.says("no order of this number is known");
    seen.says("told again: order B, 100.00 CNY; the first telling counts");
    seen.does_not_say("settlements");
    let mut lead = site.signed_in(Role::Lead).await;
    lead.get("/refunds").await.says("acceptances");
    let seen = lead.get("/orders/A").await;
    seen.says("told again with other content");
    let conflict = db.count("SELECT id FROM payment_conflict").await;
    let settle = format!("/payment-conflicts/{conflict}/settlements");
    seen.says(&settle);
    lead.get(&settle).await.says("B · 100.00 CNY");
    assert_eq!(lead.post(&settle, &[("reason", "")]).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    lead.post_and_see(&settle, &[("reason", "the channel mixed them up")]).await.says("The case is closed.");
    lead.post_and_see(&settle, &[("reason", "again")]).await.says("this case was closed before");
    lead.get("/orders/A").await.says("Case of the payment told again closed");
    for txn in ["t1", "t2"] {
        let id = db.count(&format!("SELECT id FROM payment WHERE channel_txn = '{txn}'")).await;
        let back = format!("/payments/{id}/refunds");
        lead.get(&back).await.says("Give back the payment for order");
        assert_eq!(lead.post(&back, &[("reason", "")]).await.status, StatusCode::UNPROCESSABLE_ENTITY);
        lead.post_and_see(&back, &[("reason", "the buyer asked")]).await.says("its refund is under way");
        lead.post_and_see(&back, &[("reason", "again")]).await.says("Nothing was changed");
    }
    let seen = lead.get("/refunds").await;
    seen.says("2 payments go back.");
    seen.does_not_say("Money that fits nothing");
    assert_eq!(lead.get("/payments/4711/refunds").await.status, StatusCode::NOT_FOUND);
    assert_eq!(lead.get("/payment-conflicts/x/settlements").await.status, StatusCode::NOT_FOUND);
}

async fn a_late_payment_that_lacks_is_told_with_its_refund(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.stock("sku", 1).await;
    site.shop.placed(an_order("A").holding(ResourceType::Stock, "sku", 1)).await;
    site.shop.close("A", "timeout").await;
    site.shop.close("A", "buyer").await;
    site.shop.work().await;
    site.shop.placed(an_order("B").holding(ResourceType::Stock, "sku", 1)).await;
    site.shop.pay("A").await;
    assert_eq!(site.shop.status("A").await, OrderStatus::RefundDue);
    let mut service = site.signed_in(Role::Service).await;
    let seen = service.get("/orders/A").await;
    seen.says(
        "The payment came after the order was closed, and not everything could be reserved again. \
               Our colleagues are looking after the refund of 100.00 CNY. Everything it reserved is back.",
    );
    seen.says("Could not be had again:</b> Goods sku 1 piece");
    let refunds = service.get("/refunds").await;
    refunds.says("1 payment goes back.");
    refunds.says("Goods sku 1 piece");
    refunds.says("href=\"/orders/A\"");
    refunds.says("no payment channel is configured");
    // A restored order has a second round.
    site.shop.stock("rich", 9).await;
    site.shop.placed(an_order("R").holding(ResourceType::Stock, "rich", 2)).await;
    site.shop.close("R", "buyer").await;
    site.shop.work().await;
    site.shop.pay("R").await;
    site.shop.work().await;
    let seen = service.get("/orders/R").await;
    seen.says("The order was paid at 18:00.");
    seen.says("<h2 id=\"h-rounds\">");
    let chinese = service.with("accept-language", "zh-CN").get("/orders/A").await;
    chinese.says("同事正在处理 100.00 CNY 的退款。");
}

async fn a_reduced_order_says_what_is_where(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.stock("sku", 10).await;
    site.shop.placed(an_order("A").holding(ResourceType::Stock, "sku", 5)).await;
    let part = NewHold { resource: ResourceType::Stock, key: "sku".into(), qty: 2 };
    let reduce = Reduce { order_no: "A".into(), reference: "r1".into(), amount: 6_000, holds: vec![part] };
    assert_eq!(reduce_order(&site.shop.core, reduce).await.unwrap(), Reduced::Reduced);
    let mut viewer = site.signed_in(Role::Viewer).await;
    let seen = viewer.get("/orders/A").await;
    seen.says("Reserved: 3 pieces of sku. Still on its way: 2 pieces of sku. We keep trying.");
    seen.says("Order reduced");
    site.shop.work().await;
    viewer.get("/orders/A").await.says("Reserved: 3 pieces of sku. Back already: 2 pieces of sku.");
}

async fn service_asks_for_help_and_can_force_nothing(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.stock("sku", 10).await;
    site.shop.placed(an_order("A").holding(ResourceType::Stock, "sku", 1)).await;
    site.shop.close("A", "buyer").await;
    db.execute("UPDATE ledger SET locked = 0").await.unwrap();
    site.shop.work().await;
    let task = site.shop.task("A").await.id;
    let mut kim = site.signed_in(Role::Service).await;
    kim.get("/orders/A").await.says("Our colleagues are looking after: 1 piece of sku.");
    let seen = kim.get(&format!("/tasks/{task}")).await;
    seen.says("Ask for help with this task");
    seen.does_not_say("/closures");
    let path = format!("/tasks/{task}/calls");
    kim.post_and_see(&path, &[("reason", "the caller waits")]).await.says("the caller waits");
    assert_eq!(kim.post(&path, &[("reason", "")]).await.status, StatusCode::BAD_REQUEST);
    let mut otto = site.signed_in(Role::Operator).await;
    let seen = otto.get(&format!("/tasks/{task}")).await;
    seen.says("the caller waits");
    seen.does_not_say("Ask for help with this task");
    // What was sent without an answer says so.
    db.execute("UPDATE order_release_task SET doubt = 1, sent_at = created_at").await.unwrap();
    otto.get(&format!("/tasks/{task}")).await.says("no certain answer has come");
    db.execute("UPDATE order_release_task SET claimed_by = 'worker:w-9'").await.unwrap();
    otto.get(&format!("/tasks/{task}")).await.says("It is being sent at this moment by");
}

async fn returns_stand_on_the_page_of_their_order(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.placed(an_order("A")).await;
    let now = site.shop.core.now();
    let insert = format!(
        "INSERT INTO return_order (return_no, order_no, status, tasked, accepted_at, received_at) VALUES ('R-7', 'A', 1, 1, {now}, {now})"
    );
    db.execute(&insert).await.unwrap();
    db.execute("INSERT INTO return_item (return_no, line, biz_key, qty, restock) VALUES ('R-7', 1, 'sku', 2, 1)")
        .await
        .unwrap();
    let insert = format!(
        "INSERT INTO order_release_task (order_no, return_no, source, action, resource_type, biz_key, qty, next_at, created_at) VALUES ('A', 'R-7', 'return:1', 4, 1, 'sku', 2, {now}, {now})"
    );
    db.execute(&insert).await.unwrap();
    let mut viewer = site.signed_in(Role::Viewer).await;
    let seen = viewer.get("/orders/A").await;
    for words in ["Return R-7 accepted", "Return R-7 received", "received, owed to stock", "2 pieces of sku"] {
        seen.says(words);
    }
}
