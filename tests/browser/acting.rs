//! The act the console is for: find a failed task, retry it, force-close another, and see both on the page;
//! with and without script, in both languages.

use fantoccini::Locator;
use serde_json::json;

use crate::support::browser::{Browser, Person};
use crate::support::database::{Engine, fresh_database};
use crate::support::process::{Api, Handback, Running};

const PASSWORD: &str = "three long words";

/// A shop with two closed orders whose tasks failed for a person: of `A1` everything is locked again by now.
struct Scene {
    url: String,
    retryable: i64,
    hopeless: i64,
    _serve: Running,
}

async fn scene() -> Scene {
    let db = fresh_database(Engine::Sqlite).await;
    let add = ["user", "add", "otto", "--role", "operator", "--password-stdin"];
    Handback::new(add).database(&db.url).input(PASSWORD).run().ok();
    let (serve, url) = Handback::new(["serve", "--listen", "127.0.0.1:0"]).database(&db.url).serve();
    let api = Api::with_new_token(&url, &db.url, "admin");
    let done = |answer: crate::support::process::Answer| assert!(answer.status < 300, "{answer:?}");
    done(api.put("/ledger/stock/sku", json!({"available": 10})).await);
    for (order_no, qty) in [("A1", 2), ("A2", 3)] {
        let holds = json!([{"type": "stock", "key": "sku", "qty": qty}]);
        let order = json!({"order_no": order_no, "buyer": "u1", "amount": 100, "currency": "CNY", "holds": holds});
        done(api.post("/orders", order).await);
    }
    let stocktake = |by: i64, name: &str| json!({"adjust_locked": by, "ref": name, "reason": "stocktake"});
    done(api.put("/ledger/stock/sku", stocktake(-5, "s1")).await);
    for order_no in ["A1", "A2"] {
        done(api.post(&format!("/orders/{order_no}/close"), json!({"reason": "buyer"})).await);
    }
    assert_eq!(api.get("/idle?wait_s=30").await.body["idle"], true);
    done(api.put("/ledger/stock/sku", stocktake(2, "s2")).await);
    let tasks = api.get("/tasks?status=manual").await.body;
    let id = |order_no: &str| {
        let items = tasks["items"].as_array().unwrap();
        items.iter().find(|task| task["order_no"] == order_no).unwrap()["id"].as_i64().unwrap()
    };
    Scene { retryable: id("A1"), hopeless: id("A2"), url, _serve: serve }
}

async fn fill(browser: &Browser, name: &str, text: &str) {
    let field = browser.client.find(Locator::Css(name)).await.unwrap();
    field.clear().await.unwrap();
    field.send_keys(text).await.unwrap();
}

async fn click(browser: &Browser, what: &str) {
    let element = browser.client.find(Locator::Css(what)).await.unwrap();
    // What lies under the fixed bar of a phone is scrolled to by a person; the driver only does so when it is
    // out of sight. The keyboard reaches it either way.
    if element.click().await.is_err() {
        element.send_keys("\u{E007}").await.unwrap();
    }
}

/// Waits for an element and answers its words.
async fn sees(browser: &Browser, what: &str) -> String {
    browser.client.wait().for_element(Locator::Css(what)).await.unwrap().text().await.unwrap()
}

/// The whole walk. `done` and `closed` are the status words of the language.
async fn acts(person: Person, name: &str, done: &str, closed: &str) {
    let scene = scene().await;
    let browser = person.opens(&format!("{}/login", scene.url)).await;
    fill(&browser, "[name=username]", "otto").await;
    fill(&browser, "[name=password]", PASSWORD).await;
    click(&browser, "form[action='/login'] button").await;
    sees(&browser, "[data-stat='backlog.manual.stock']").await;
    browser.screenshot(&format!("{name}-overview")).await;

    // From the figure to the list to the task.
    click(&browser, "[data-stat='backlog.manual.stock']").await;
    let row = |id: i64| format!("[data-task-id='{id}'] a[href='/tasks/{id}']");
    sees(&browser, &row(scene.retryable)).await;
    browser.screenshot(&format!("{name}-tasks")).await;
    click(&browser, &row(scene.retryable)).await;
    fill(&browser, "[name=reason][type=text]", "the stocktake was wrong").await;
    click(&browser, "form[action$='/retries'] button").await;
    let said = sees(&browser, "h1 .st.ok").await.to_lowercase();
    assert!(said.contains(done), "{said}");
    browser.screenshot(&format!("{name}-retried")).await;

    browser.client.goto(&format!("{}/tasks?status=manual", scene.url)).await.unwrap();
    click(&browser, &row(scene.hopeless)).await;
    fill(&browser, "textarea[name=reason]", "written off").await;
    click(&browser, "form[action$='/closures'] button").await;
    let said = sees(&browser, "h1 .st.force").await.to_lowercase();
    assert!(said.contains(closed), "{said}");
    browser.screenshot(&format!("{name}-closed")).await;

    // Both stand on the page of their order.
    for (order_no, mark) in [("A1", "ok"), ("A2", "force")] {
        browser.client.goto(&format!("{}/orders/{order_no}", scene.url)).await.unwrap();
        sees(&browser, &format!("[data-task-id] .st.{mark}")).await;
    }
    browser.screenshot(&format!("{name}-order")).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_retries_and_force_closes_with_script() {
    acts(Person::new(), "acting-en", "succeeded", "force-closed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_retries_and_force_closes_without_script_on_a_phone() {
    acts(Person::new().without_script().on_a_phone().in_the_dark(), "acting-en-phone", "succeeded", "force-closed")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_retries_and_force_closes_in_chinese() {
    acts(Person::new().reads("zh-CN"), "acting-zh", "成功", "强制关闭").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_retries_and_force_closes_in_chinese_without_script() {
    acts(Person::new().reads("zh-CN").without_script(), "acting-zh-plain", "成功", "强制关闭").await;
}
