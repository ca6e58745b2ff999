//! An order that the shop keeps itself: found by its number, shown as far as it is known, read only (E2).

use axum::http::StatusCode;
use handback::core::Core;
use handback::core::clock::Clock;
use handback::core::policy::Policy;
use handback::core::words::Role;

use super::Site;
use crate::support::database::{TestDb, on_every_engine};
use crate::support::mapped::{mapped_store, outbox};
use crate::support::shop::{START_MS, Shop, a_payment, an_order};

on_every_engine!(
    an_open_order_of_the_shop_shows_its_word_and_its_lines,
    a_closed_order_of_the_shop_says_what_its_rows_did,
    an_order_known_by_its_rows_alone_says_so,
    tables_that_cannot_be_read_are_told_and_the_rest_is_shown,
    an_order_of_the_shop_is_found_by_its_number_and_by_a_part,
    nothing_that_needs_an_order_of_handback_is_offered_or_done,
    a_return_of_the_same_number_is_no_order,
);

async fn site(db: &TestDb) -> Site {
    let clock = Clock::test(START_MS);
    let core = Core::new(mapped_store(db).await, clock.clone(), Policy::default());
    Site::of(Shop { core, clock }, "http://127.0.0.1:8080")
}

async fn an_open_order_of_the_shop_shows_its_word_and_its_lines(db: TestDb) {
    let site = site(&db).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    let seen = browser.get("/orders/A-1").await;
    assert_eq!(seen.status, StatusCode::OK);
    seen.says("The shop keeps this order itself, in its own table shop_orders.");
    seen.says("<blockquote id=\"sentence\">The order is open in the shop.</blockquote>");
    seen.says("<dt>Status there</dt><dd>PENDING</dd>");
    seen.says("<dt>That means</dt><dd>open</dd>");
    // Its two lines of one key, added up; held, by the shop's word.
    seen.says("<th scope=\"row\">1001</th><td class=\"num\">3</td>");
    seen.says("<code>1001</code> <b>3 pieces</b>");
    seen.does_not_say("To pay");
    let chinese = browser.clone().with("accept-language", "zh-CN").get("/orders/A-1").await;
    chinese.says("订单在商家处仍为未结状态。");
    assert_eq!(browser.get("/orders/A-9").await.status, StatusCode::NOT_FOUND);
}

async fn a_closed_order_of_the_shop_says_what_its_rows_did(db: TestDb) {
    let site = site(&db).await;
    outbox(&db, "A-2", "1001", 2).await;
    outbox(&db, "A-2", "1002", 1).await;
    let mut browser = site.signed_in(Role::Service).await;
    let seen = browser.get("/orders/A-2").await;
    seen.says("The order isn&#39;t open in the shop. Still on its way: 2 pieces of 1001 and 1 piece of 1002.");
    seen.says("The shop asked for its release");
    site.shop.work().await;
    let seen = browser.get("/orders/A-2").await;
    // 1002 has nothing locked: a person must look.
    seen.says("The order isn&#39;t open in the shop. Back already: 2 pieces of 1001. Our colleagues are looking after: 1 piece of 1002.");
    seen.says("Part of it waits for a person: promise no time.");
    seen.says("<dt>Status there</dt><dd>CLOSED</dd>");
    seen.says("available 0 → 2");
    seen.says("1 try failed, locked insufficient");
    assert_eq!(seen.task_ids().len(), 2, "{}", seen.body);
}

async fn an_order_known_by_its_rows_alone_says_so(db: TestDb) {
    let site = site(&db).await;
    let funds = format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at, created_at) \
         VALUES ('B-8', 3, '7', 50, {START_MS}, {START_MS})"
    );
    db.execute(&funds).await.unwrap();
    // Nobody told the currency: a figure without one isn't read out.
    let seen = site.signed_in(Role::Service).await.get("/orders/B-8").await;
    seen.says("Still on its way: what was reserved of the balance. We keep trying.");
    outbox(&db, "B-7", "1001", 2).await;
    site.shop.work().await;
    site.shop.payment(a_payment("B-7", "2026111100552")).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    let seen = browser.get("/orders/B-7").await;
    seen.says("Handback knows this order only from the release rows your shop wrote.");
    seen.says("<blockquote id=\"sentence\">Back already: 2 pieces of 1001.</blockquote>");
    seen.says("unmatched");
    seen.says("100.00 CNY");
    seen.does_not_say("2026111100552");
    seen.does_not_say("Status there");
}

async fn tables_that_cannot_be_read_are_told_and_the_rest_is_shown(db: TestDb) {
    let site = site(&db).await;
    outbox(&db, "A-2", "1001", 2).await;
    site.shop.work().await;
    let mut browser = site.signed_in(Role::Viewer).await;
    browser.get("/orders/A-2").await.says("CLOSED");
    db.execute("DROP TABLE shop_orders").await.unwrap();
    let seen = browser.get("/orders/A-2").await;
    assert_eq!(seen.status, StatusCode::OK);
    seen.says("own table shop_orders can&#39;t be read at the moment");
    seen.says("own record of the order just now. Back already: 2 pieces of 1001.");
    // Who looks for a number is answered, too, and an unknown one isn't called unknown.
    assert_eq!(browser.get("/orders?q=A-2").await.location(), "/orders/A-2");
    let seen = browser.get("/orders/A-1").await;
    seen.says("own table shop_orders can&#39;t be read at the moment");
    seen.says("Say no more than that.");
}

async fn an_order_of_the_shop_is_found_by_its_number_and_by_a_part(db: TestDb) {
    let site = site(&db).await;
    site.shop.placed(an_order("HB-55-1")).await;
    for no in ["SHOP-55-1", "SHOP-55-2", "SHOP-66-1"] {
        outbox(&db, no, "1001", 1).await;
    }
    let mut browser = site.signed_in(Role::Viewer).await;
    for (typed, found) in [("A-1", "A-1"), ("%20A%20-%201", "A-1"), ("SHOP-55-1", "SHOP-55-1"), ("op-66", "SHOP-66-1")]
    {
        let seen = browser.get(&format!("/orders?q={typed}")).await;
        assert_eq!(seen.location(), format!("/orders/{found}"), "{typed}: {}", seen.body);
    }
    let many = browser.get("/orders?q=55").await;
    many.says("3 orders match “55”.");
    many.says("shop&#39;s own");
    many.says("<td class=\"num k-age\">–</td><td class=\"num k-r\">–</td>");
    many.says("100.00 CNY");
    // What Handback has an order of is its own, whoever wrote the row.
    outbox(&db, "HB-55-1", "1001", 1).await;
    browser.get("/orders?q=55").await.says("3 orders match “55”.");
    assert_eq!(browser.get("/orders?q=HB-55-1").await.location(), "/orders/HB-55-1");
    browser.get("/orders/HB-55-1").await.does_not_say("release rows your shop wrote");
}

async fn nothing_that_needs_an_order_of_handback_is_offered_or_done(db: TestDb) {
    let site = site(&db).await;
    outbox(&db, "A-2", "1001", 2).await;
    site.shop.payment(a_payment("A-2", "t1")).await;
    let mut lead = site.signed_in(Role::Lead).await;
    let seen = lead.get("/orders/A-2").await;
    for act in ["reveals", "acceptances", "tombstone/lifts"] {
        seen.does_not_say(act);
    }
    let payment = db.count("SELECT id FROM payment").await;
    let acts = ["reveals".into(), format!("payments/{payment}/acceptances"), "tombstone/lifts".to_owned()];
    for path in acts.map(|act: String| format!("/orders/A-2/{act}")) {
        for seen in [lead.get(&path).await, lead.post(&path, &[("reason", "because")]).await] {
            assert_eq!(seen.status, StatusCode::NOT_FOUND, "{path}");
            seen.says("Handback doesn&#39;t know this order.");
        }
    }
    assert_eq!(db.count("SELECT COUNT(*) FROM audit_log WHERE target LIKE 'order:%'").await, 0);
}

/// Numbers of a shop's returns and orders may be counted alike.
async fn a_return_of_the_same_number_is_no_order(db: TestDb) {
    let site = site(&db).await;
    let row = format!(
        "INSERT INTO order_release_task (order_no, return_no, action, source, adopted, resource_type, biz_key, qty, next_at, created_at) \
         VALUES ('A-2', '90', 4, 'return', 1, 1, '1001', 5, {START_MS}, {START_MS})"
    );
    db.execute(&row).await.unwrap();
    let mut browser = site.signed_in(Role::Viewer).await;
    assert_eq!(browser.get("/orders/90").await.status, StatusCode::NOT_FOUND);
    outbox(&db, "90", "1001", 2).await;
    let seen = browser.get("/orders/90").await;
    assert_eq!(seen.task_ids().len(), 1);
    seen.does_not_say("5 pieces");
}
