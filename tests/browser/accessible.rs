//! Every page of the console under axe-core's rules for WCAG 2.2 A and AA: in both languages, light and dark, at a
//! desk and on a phone, where nothing may scroll sideways either. One database with everything a page can show,
//! one sign-in.

use fantoccini::Locator;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::browser::{Browser, Person};
use crate::support::database::{Engine, TestDb, fresh_database};
use crate::support::process::{Api, Handback};

const AXE: &str = include_str!("../vendor/axe/axe.min.js");
const PASSWORD: &str = "three long words";
const LANGUAGES: [&str; 2] = ["en", "zh-CN"];

/// Answers one line per violation, and what sticks out of the page. In the dark only rules about colours are asked
/// again: the markup is the same, and the others don't look at colours.
const LOOK: &str = "
    const [dark, done] = arguments;
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
    const colours = ['color-contrast', 'link-in-text-block'];
    const only = dark ? {type: 'rule', values: colours} : {type: 'tag', values: tags};
    axe.run(document, {runOnly: only, preload: !dark, resultTypes: ['violations']}).then(found => {
        const lines = found.violations.flatMap(v => v.nodes.map(n =>
            v.id + ' at ' + n.target.join(' ') + ': ' + n.failureSummary.replace(/\\s+/g, ' ')));
        const root = document.documentElement;
        if (root.scrollWidth > root.clientWidth) {
            lines.push('scrolls sideways: ' + root.scrollWidth + ' in ' + root.clientWidth);
        }
        if (!found.passes.some(rule => rule.id === 'color-contrast')) lines.push('axe looked at no text');
        done(lines);
    }, why => done(['axe failed: ' + why]));";

/// What a careless change would do to a page: a field without a label, words too pale, a wide box.
const SPOIL: &str = "
    document.querySelectorAll('main label').forEach(label => label.remove());
    document.querySelectorAll('main input').forEach(field => field.removeAttribute('aria-label'));
    const pale = document.querySelector('main h1');
    pale.style.setProperty('color', '#888');
    pale.style.setProperty('background', '#777');
    const wide = document.createElement('p');
    wide.style.width = '3000px';
    wide.append('wide');
    document.querySelector('main').append(wide);";

/// Looks at pages and keeps what is wrong with them.
struct Eye {
    browser: Browser,
    url: String,
    wrong: Vec<String>,
}

impl Eye {
    async fn looks_at(&mut self, paths: &[&str]) {
        for language in LANGUAGES {
            self.browser.asks_for(language).await;
            for path in paths {
                self.browser.client.goto(&format!("{}{path}", self.url)).await.unwrap();
                let own = self.browser.client.execute("return document.documentElement.lang", vec![]).await.unwrap();
                assert_eq!(own, language, "{path}");
                self.looks(&format!("{path} {language}")).await;
            }
        }
    }

    /// The page that is open, under four circumstances.
    async fn looks(&mut self, name: &str) {
        self.browser.client.execute(AXE, vec![]).await.unwrap();
        for (width, person) in [("desk", Person::new()), ("phone", Person::new().on_a_phone())] {
            for (scheme, person) in [("light", person), ("dark", person.in_the_dark())] {
                let dark = json!(scheme == "dark");
                self.browser.becomes(&person).await;
                let found: Value = self.browser.client.execute_async(LOOK, vec![dark]).await.unwrap();
                let lines = found.as_array().unwrap().iter().filter_map(Value::as_str);
                self.wrong.extend(lines.map(|line| format!("{name} {width} {scheme}: {line}")));
            }
        }
    }

    async fn fills(&self, what: &str, text: &str) {
        self.browser.client.find(Locator::Css(what)).await.unwrap().send_keys(text).await.unwrap();
    }

    async fn sends(&self, form: &str) {
        let script = format!("document.querySelector(\"form[action='{form}']\").submit()");
        self.browser.client.execute(&script, vec![]).await.unwrap();
    }

    async fn waits_for(&self, what: &str) -> String {
        let element = self.browser.client.wait().for_element(Locator::Css(what)).await;
        element.unwrap_or_else(|e| panic!("{what}: {e}")).text().await.unwrap()
    }
}

/// A shop in which something of every kind happened.
struct Scene {
    manual: i64,
    mismatch: String,
}

async fn scene(api: &Api) -> Scene {
    let done = |answer: crate::support::process::Answer| {
        assert!(answer.status < 300, "{answer:?}");
        answer.body
    };
    let put = async |path: &str, body: Value| done(api.put(path, body).await);
    let post = async |path: &str, body: Value| done(api.post(path, body).await);
    let order = async |no: &str, key: &str| {
        let holds = json!([{"type": "stock", "key": key, "qty": 1}]);
        post("/orders", json!({"order_no": no, "buyer": "u1", "amount": 100, "currency": "CNY", "holds": holds})).await
    };
    let pay = async |no: &str, amount: i64| {
        let at = jiff::Timestamp::now().to_string();
        let body = json!({"status": "succeeded", "channel": "wxpay", "channel_txn": format!("t-{no}"),
            "amount": amount, "currency": "CNY", "occurred_at": at});
        post(&format!("/orders/{no}/payments"), body).await["result"].clone()
    };
    let close = async |no: &str| post(&format!("/orders/{no}/close"), json!({"reason": "buyer"})).await;
    for (key, pieces) in [("sku", 10), ("last", 1), ("short", 5)] {
        put(&format!("/ledger/stock/{key}"), json!({"available": pieces})).await;
    }
    // MANUAL's stock isn't locked any more when it is given back; the reconciliation finds that too.
    order("MANUAL", "short").await;
    order("OPEN", "short").await;
    let gone = json!({"adjust_locked": -2, "ref": "s1", "reason": "stocktake"});
    put("/ledger/stock/short", gone).await;
    close("MANUAL").await;
    // LATE's piece was sold to another before its money came.
    order("LATE", "last").await;
    close("LATE").await;
    assert_eq!(api.get("/idle?wait_s=30").await.body["idle"], true);
    order("OTHER", "last").await;
    assert_eq!(pay("LATE", 100).await, "refund_due");
    for no in ["SOLD", "SOLD2"] {
        order(no, "sku").await;
        assert_eq!(pay(no, 100).await, "paid");
        let items = json!([{"key": "sku", "qty": 1, "restock": true}]);
        post("/returns", json!({"return_no": format!("R-{no}"), "order_no": no, "items": items})).await;
    }
    post("/returns/R-SOLD/received", json!({})).await;
    order("WRONG", "sku").await;
    assert_eq!(pay("WRONG", 90).await, "amount_mismatch");
    close("NEVER").await;
    assert_eq!(api.get("/idle?wait_s=30").await.body["idle"], true);
    post("/reconcile", json!({})).await;
    while api.get("/reconcile/1").await.body["status"] == "running" {
        tokio::task::yield_now().await;
    }
    let tasks = api.get("/tasks?status=manual").await.body;
    Scene { manual: tasks["items"][0]["id"].as_i64().unwrap(), mismatch: "/orders/WRONG".into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_keeps_the_rules_of_wcag_in_both_languages_and_schemes_at_a_desk_and_on_a_phone() {
    let db = fresh_database(Engine::Sqlite).await;
    let (_serve, url) = Handback::new(["serve", "--listen", "127.0.0.1:0"]).database(&db.url).serve();
    let browser = Person::new().opens(&format!("{url}/setup")).await;
    let mut eye = Eye { browser, url: url.clone(), wrong: Vec::new() };
    eye.looks_at(&["/setup"]).await;
    sign_in(&mut eye, &db).await;
    eye.looks_at(&["/", "/orders", "/tasks", "/returns", "/refunds", "/reconcile", "/admin/screens"]).await;

    let scene = scene(&Api::with_new_token(&url, &db.url, "admin")).await;
    eye.browser.client.goto(&format!("{url}{}", scene.mismatch)).await.unwrap();
    let accept = eye.browser.client.find(Locator::Css("a[href*='/acceptances']")).await.unwrap();
    let accept = accept.attr("href").await.unwrap().unwrap();
    let task = format!("/tasks/{}", scene.manual);
    eye.looks_at(&["/", "/tasks", "/tasks?status=manual", &task, "/orders", "/orders/MANUAL", "/orders/LATE"]).await;
    eye.looks_at(&["/orders/SOLD", "/orders/WRONG", "/orders/NEVER", "/reconcile", "/returns", "/refunds"]).await;
    eye.looks_at(&["/account", "/help", "/orders/MANUAL/reveals", &accept, "/orders/NEVER/tombstone/lifts"]).await;
    eye.looks_at(&["/orders/nobody-knows-this", "/nothing-here"]).await;
    // A form that comes back with what is wrong.
    eye.browser.client.goto(&format!("{url}{task}")).await.unwrap();
    eye.sends(&format!("{task}/closures")).await;
    eye.waits_for("[aria-invalid]").await;
    eye.looks("a closure without a reason").await;
    the_wall(&mut eye).await;
    assert!(eye.wrong.is_empty(), "{} findings:\n{}", eye.wrong.len(), eye.wrong.join("\n"));
    it_sees_what_is_wrong(&mut eye).await;
    eye.browser.close().await;
}

/// The test can fail: the same look at a page that was spoilt finds each thing, under each circumstance.
async fn it_sees_what_is_wrong(eye: &mut Eye) {
    eye.browser.client.goto(&format!("{}/admin/screens", eye.url)).await.unwrap();
    eye.browser.client.execute(SPOIL, vec![]).await.unwrap();
    eye.looks("spoilt").await;
    let found = |what: &str| eye.wrong.iter().filter(|line| line.contains(what)).count();
    let each = (found(" light: label at"), found("color-contrast at"), found("scrolls sideways"));
    assert!(each.0 >= 2 && each.1 >= 4 && each.2 == 4, "{each:?}\n{}", eye.wrong.join("\n"));
}

async fn sign_in(eye: &mut Eye, db: &TestDb) {
    let add = ["user", "add", "ada", "--role", "admin", "--password-stdin"];
    Handback::new(add).database(&db.url).input(PASSWORD).run().ok();
    eye.looks_at(&["/login", "/wall"]).await;
    eye.browser.client.goto(&format!("{}/login", eye.url)).await.unwrap();
    eye.fills("[name=username]", "ada").await;
    eye.fills("[name=password]", "not this").await;
    eye.sends("/login").await;
    eye.waits_for("[aria-invalid], [role=alert]").await;
    eye.looks("a wrong password").await;
    eye.browser.client.goto(&format!("{}/login", eye.url)).await.unwrap();
    eye.fills("[name=username]", "ada").await;
    eye.fills("[name=password]", PASSWORD).await;
    eye.sends("/login").await;
    eye.waits_for("[data-stat='backlog.total']").await;
}

async fn the_wall(eye: &mut Eye) {
    eye.browser.client.goto(&format!("{}/admin/screens", eye.url)).await.unwrap();
    eye.fills("main [name=name]", "hall-2").await;
    eye.sends("/admin/screens").await;
    let code = eye.waits_for("[data-code]").await;
    eye.looks("a new screen's code").await;
    eye.looks_at(&["/admin/screens"]).await;
    eye.browser.client.goto(&format!("{}/wall", eye.url)).await.unwrap();
    eye.fills("[name=code]", &code).await;
    eye.sends("/wall").await;
    eye.waits_for("[data-stat='backlog.total']").await;
    let path = eye.browser.client.current_url().await.unwrap().path().to_owned();
    eye.looks_at(&[&path]).await;
}

#[test]
fn axe_is_the_version_that_is_recorded() {
    let sum = hex::encode(Sha256::digest(AXE));
    assert!(include_str!("../vendor/axe/README.md").contains(&sum), "{sum}");
    assert!(AXE.starts_with("/*! axe v4.14.1"), "{}", &AXE[..40]);
}
