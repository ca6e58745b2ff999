//! Where forms come from, and what browsers are told.

use axum::http::StatusCode;
use handback::core::words::{ResourceType, Role};
use handback::web::handlers::ROUTES;

use super::Site;
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering as _, an_order};

on_every_engine!(no_form_is_taken_from_elsewhere, a_form_without_headers_needs_the_sessions_token);

async fn no_form_is_taken_from_elsewhere(db: TestDb) {
    let site = Site::open(&db).await;
    let browser = site.signed_in(Role::Admin).await;
    for route in ROUTES.iter().filter(|route| route.method == "POST") {
        let path = route.path.replace("{id}", "1");
        let mut foreign = browser.clone();
        foreign.origin = Some("https://evil.example".into());
        assert_eq!(foreign.post(&path, &[]).await.status, StatusCode::FORBIDDEN, "{path} by origin");
        let mut sandboxed = browser.clone();
        sandboxed.origin = Some("null".into());
        assert_eq!(sandboxed.post(&path, &[]).await.status, StatusCode::FORBIDDEN, "{path} by null origin");
        let mut neighbour = browser.clone().with("sec-fetch-site", "same-site");
        assert_eq!(neighbour.post(&path, &[]).await.status, StatusCode::FORBIDDEN, "{path} by fetch metadata");
        let mut silent = browser.clone();
        silent.origin = None;
        assert_eq!(silent.post(&path, &[]).await.status, StatusCode::FORBIDDEN, "{path} without a word");
        assert_eq!(silent.post(&path, &[("csrf", "guess")]).await.status, StatusCode::FORBIDDEN, "{path} by a guess");
    }
}

async fn a_form_without_headers_needs_the_sessions_token(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    browser.origin = None;
    let token = browser.get("/account").await.field("csrf").to_owned();
    assert_eq!(browser.post("/account", &[("csrf", &token)]).await.status, StatusCode::SEE_OTHER);
    let mut other = site.sign_in("viewer").await;
    other.origin = None;
    assert_eq!(other.post("/account", &[("csrf", &token)]).await.status, StatusCode::FORBIDDEN, "another session's");

    let mut stranger = site.browser();
    stranger.origin = None;
    let token = stranger.get("/login").await.field("csrf").to_owned();
    let fields = [("username", "viewer"), ("password", super::PASSWORD), ("csrf", token.as_str())];
    let mut forged = site.browser();
    forged.origin = None;
    assert_eq!(forged.post("/login", &fields).await.status, StatusCode::FORBIDDEN, "a token without its cookie");
    assert_eq!(stranger.post("/login", &fields).await.status, StatusCode::SEE_OTHER);
}

on_every_engine!(every_answer_tells_the_browser_to_be_careful);

async fn every_answer_tells_the_browser_to_be_careful(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    let mut nonces = Vec::new();
    for path in ["/", "/tasks", "/nowhere", "/tasks/77", "/help"] {
        let seen = browser.get(path).await;
        let policy = seen.header("content-security-policy").to_owned();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
        seen.says(&format!("nonce=\"{nonce}\""));
        assert_eq!(seen.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(seen.header("cache-control"), "no-store", "{path}");
        nonces.push(nonce);
    }
    nonces.sort();
    nonces.dedup();
    assert_eq!(nonces.len(), 5, "each answer has its own nonce");
}

on_every_engine!(files_are_kept_for_good_under_names_that_change);

async fn files_are_kept_for_good_under_names_that_change(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.browser();
    // A site without users leads to the first run, which has the same files.
    let page = browser.get("/setup").await;
    let files: Vec<&str> = page.body.split('"').filter(|text| text.starts_with("/static/")).collect();
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        let seen = browser.get(file).await;
        assert_eq!(seen.status, StatusCode::OK, "{file}");
        assert!(seen.header("cache-control").contains("immutable"), "{file}");
    }
    assert_eq!(browser.get("/static/app.js").await.status, StatusCode::NOT_FOUND);
}

on_every_engine!(hostile_error_text_reaches_the_page_as_text);

async fn hostile_error_text_reaches_the_page_as_text(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.stock("sku", 10).await;
    site.shop.placed(an_order("A1").holding(ResourceType::Stock, "sku", 1)).await;
    site.shop.close("A1", "<b>buyer</b>").await;
    let error = "<img src=x hx-get=\"/logout\" hx-trigger=\"load\"><script>alert(1)</script>";
    db.execute(&format!(
        "UPDATE order_release_task SET status = 3, kind = 7, error = '{error}', next_at = 4102444800000"
    ))
    .await
    .unwrap();
    let task = site.shop.task("A1").await.id;
    let mut browser = site.signed_in(Role::Viewer).await;
    for path in ["/tasks".to_owned(), format!("/tasks/{task}"), "/orders/A1".to_owned(), "/".to_owned()] {
        let seen = browser.get(&path).await;
        assert_eq!(seen.status, StatusCode::OK, "{path}");
        seen.does_not_say("<img");
        seen.does_not_say("<script>alert");
        seen.does_not_say("<b>buyer");
    }
    browser.get(&format!("/tasks/{task}")).await.says("&lt;img src=x hx-get=");
}

on_every_engine!(a_database_that_is_away_is_said_so);

async fn a_database_that_is_away_is_said_so(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.signed_in(Role::Viewer).await.with("accept-language", "zh-CN");
    site.shop.core.db.close().await;
    let seen = browser.get("/tasks").await;
    assert_eq!(seen.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(seen.header("retry-after"), "2");
    seen.says("连不上数据库");
}
