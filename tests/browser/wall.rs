//! The wall in Chromium: it marks its data stale when the server stops, gives it up after a while, and recovers
//! when the server is back, without a touch.

use std::time::Duration;

use fantoccini::Locator;
use serde_json::json;

use crate::support::browser::{Browser, Person};
use crate::support::database::{Engine, fresh_database};
use crate::support::process::{Api, Handback};

const PASSWORD: &str = "three long words";

async fn sees(browser: &Browser, what: &str) -> String {
    let wait = browser.client.wait().at_most(Duration::from_secs(60));
    wait.for_element(Locator::Css(what)).await.unwrap_or_else(|e| panic!("{what}: {e}")).text().await.unwrap()
}

async fn fill(browser: &Browser, what: &str, text: &str) {
    browser.client.find(Locator::Css(what)).await.unwrap().send_keys(text).await.unwrap();
}

async fn click(browser: &Browser, what: &str) {
    browser.client.find(Locator::Css(what)).await.unwrap().click().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wall_says_that_its_data_is_stale_and_recovers_by_itself() {
    let db = fresh_database(Engine::Sqlite).await;
    let add = ["user", "add", "ada", "--role", "admin", "--password-stdin"];
    Handback::new(add).database(&db.url).input(PASSWORD).run().ok();
    let (serve, url) = Handback::new(["serve", "--listen", "127.0.0.1:0"]).database(&db.url).serve();
    let admin = Person::new().opens(&format!("{url}/login")).await;
    fill(&admin, "[name=username]", "ada").await;
    fill(&admin, "[name=password]", PASSWORD).await;
    click(&admin, "form[action='/login'] button").await;
    sees(&admin, "[data-stat='backlog.total']").await;
    admin.client.goto(&format!("{url}/admin/screens")).await.unwrap();
    fill(&admin, "main [name=name]", "hall-2").await;
    click(&admin, "form[action='/admin/screens'] button").await;
    let code = sees(&admin, "[data-code]").await;
    admin.screenshot("screens").await;

    let screen = Person::new().with_size(1920, 1080).in_the_dark().opens(&format!("{url}/wall")).await;
    fill(&screen, "[name=code]", &code).await;
    click(&screen, "form[action='/wall'] button").await;
    assert_eq!(sees(&screen, "[data-stat='backlog.total']").await, "0");
    sees(&screen, "#wall [data-tile='oldest']:not(.stale)").await;
    screen.screenshot("wall-dark").await;

    let address = url.trim_start_matches("http://").to_owned();
    serve.stop();
    let stale = sees(&screen, "[data-tile='backlog'].stale:not(.nodata) [data-age]").await;
    assert!(stale.contains("STALE"), "{stale}");
    screen.screenshot("wall-stale").await;
    let since = sees(&screen, "[data-tile='backlog'].nodata [data-gone]").await;
    assert!(since.starts_with("no data since "), "{since}");
    sees(&screen, "#server.lost").await;
    screen.screenshot("wall-nodata").await;

    let (serve, _) = Handback::new(["serve", "--listen", &address, "--no-worker"]).database(&db.url).serve();
    let api = Api::with_new_token(&url, &db.url, "admin");
    let done = |answer: crate::support::process::Answer| assert!(answer.status < 300, "{answer:?}");
    done(api.put("/ledger/stock/sku", json!({"available": 10})).await);
    let holds = json!([{"type": "stock", "key": "sku", "qty": 1}]);
    done(
        api.post("/orders", json!({"order_no": "A1", "buyer": "u", "amount": 1, "currency": "CNY", "holds": holds}))
            .await,
    );
    done(api.post("/orders/A1/close", json!({"reason": "buyer"})).await);
    sees(&screen, "[data-tile='backlog']:not(.stale):not(.nodata)").await;
    sees(&screen, "#server:not(.lost)").await;
    let wait = screen.client.wait().at_most(Duration::from_secs(30));
    wait.for_element(Locator::XPath("//*[@data-stat='backlog.total' and text()='1']")).await.unwrap();
    screen.screenshot("wall-recovered").await;
    screen.close().await;
    admin.close().await;
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn customer_service_finds_a_disputed_order_by_a_part_of_its_number() {
    let db = fresh_database(Engine::Sqlite).await;
    let add = ["user", "add", "kim", "--role", "service", "--password-stdin"];
    Handback::new(add).database(&db.url).input(PASSWORD).run().ok();
    let (_serve, url) = Handback::new(["serve", "--listen", "127.0.0.1:0"]).database(&db.url).serve();
    let api = Api::with_new_token(&url, &db.url, "admin");
    let done = |answer: crate::support::process::Answer| assert!(answer.status < 300, "{answer:?}");
    done(api.put("/ledger/stock/sku-1", json!({"available": 10})).await);
    done(api.put("/ledger/coupon/C-7", json!({"issuer": "platform", "expires_at": "2099-01-01T00:00:00Z"})).await);
    let holds = json!([{"type": "stock", "key": "sku-1", "qty": 2}, {"type": "coupon", "key": "C-7", "qty": 1}]);
    let order = json!({"order_no": "HB20261111-0047193", "buyer": "u_88213", "amount": 26800, "currency": "CNY", "holds": holds});
    done(api.post("/orders", order).await);
    done(api.post("/orders/HB20261111-0047193/close", json!({"reason": "buyer"})).await);
    assert_eq!(api.get("/idle?wait_s=30").await.body["idle"], true);
    for (name, person) in [("service", Person::new()), ("service-phone", Person::new().on_a_phone().without_script())] {
        let kim = person.opens(&format!("{url}/login")).await;
        fill(&kim, "[name=username]", "kim").await;
        fill(&kim, "[name=password]", PASSWORD).await;
        click(&kim, "form[action='/login'] button").await;
        kim.client.goto(&format!("{url}/orders")).await.unwrap();
        fill(&kim, "#q2", " 0047193 ").await;
        click(&kim, "main form[action='/orders'] button").await;
        let said = sees(&kim, "#sentence").await;
        assert!(said.contains("cancelled by the buyer") && said.contains("Everything it reserved is back."), "{said}");
        kim.screenshot(&format!("{name}-order")).await;
        if name == "service" {
            let fits = "return document.documentElement.scrollWidth <= window.innerWidth";
            assert_eq!(kim.client.execute(fits, vec![]).await.unwrap(), true, "no sideways scrolling");
        }
        kim.close().await;
    }
}
