//! The list of returns, as a viewer without script meets it.

use handback::core::returns::accept::{Told, ToldItem, accept_return};
use handback::core::returns::receive_return;
use handback::core::words::Role;

use super::Site;
use crate::support::database::{TestDb, on_every_engine};

on_every_engine!(returns_show_what_is_still_owed_to_stock, pages_go_on_by_key_and_keep_the_filter);

async fn a_return(site: &Site, return_no: &str, key: &str) {
    let items = vec![ToldItem { key: key.into(), qty: 3, restock: true }];
    let told = Told { return_no: return_no.into(), order_no: None, items, raw: "{}".into() };
    accept_return(&site.shop.core, told).await.unwrap();
}

async fn returns_show_what_is_still_owed_to_stock(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.stock("sku", 1).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    browser.get("/returns").await.says("No returns.");
    for (no, key) in [("R-open", "sku"), ("R-done", "sku"), ("R-stuck", "nowhere")] {
        a_return(&site, no, key).await;
    }
    for no in ["R-done", "R-stuck"] {
        receive_return(&site.shop.core, no).await.unwrap();
    }
    site.shop.work().await;
    let seen = browser.get("/returns").await;
    seen.says("1 return on this page is still owed to stock.");
    for no in ["R-open", "R-done", "R-stuck"] {
        seen.says(no);
    }
    seen.says("waits for a person");
    for (state, shows, hides) in
        [("accepted", "R-open", "R-done"), ("owed", "R-stuck", "R-open"), ("completed", "R-done", "R-stuck")]
    {
        let seen = browser.get(&format!("/returns?status={state}")).await;
        seen.says(shows);
        seen.does_not_say(hides);
    }
    assert_eq!(browser.get("/returns?status=lost").await.status, 400);
    assert_eq!(browser.get("/returns?cursor=x").await.status, 400);
    let chinese = browser.clone().with("accept-language", "zh-CN").get("/returns").await;
    chinese.says("本页有 1 张退货单尚欠库存。");
}

async fn pages_go_on_by_key_and_keep_the_filter(db: TestDb) {
    let site = Site::open(&db).await;
    for n in 0..53 {
        a_return(&site, &format!("R{n:03}"), "sku").await;
    }
    let mut browser = site.signed_in(Role::Viewer).await;
    let first = browser.get("/returns?status=accepted").await;
    first.says("R052");
    first.does_not_say("R002");
    first.says("50 returns shown");
    let next =
        first.body.split("href=\"").filter_map(|rest| rest.split('"').next()).find(|href| href.contains("cursor"));
    let next = next.unwrap_or_else(|| panic!("{}", first.body)).replace("&amp;", "&").replace("&#38;", "&");
    assert!(next.contains("status=accepted"), "{next}");
    let second = browser.get(&next).await;
    second.says("R002");
    second.says("3 returns shown");
    second.does_not_say("R003");
}
