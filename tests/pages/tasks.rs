//! Finding tasks, looking into one, retrying it, force-closing it.

use std::time::Duration;

use axum::http::StatusCode;
use handback::core::words::{ResourceType, Role, TaskStatus};

use super::{PASSWORD, Site};
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering as _, an_order};

on_every_engine!(
    the_list_shows_every_task_once_those_for_a_person_first,
    the_filter_lives_in_the_address,
    a_task_is_retried_by_form,
    a_task_is_force_closed_by_form,
    a_closure_of_what_has_changed_meanwhile_says_so,
    a_closure_asks_for_the_password_when_sign_in_is_old,
    a_viewer_sees_a_task_and_no_forms,
    a_part_is_answered_with_a_part,
    what_is_not_there_is_said_so,
);

/// Orders whose stock has vanished from the ledger: their tasks end up with a person.
async fn broken_orders(site: &Site, db: &TestDb, count: usize) -> Vec<i64> {
    site.shop.stock("gone", 1_000).await;
    let mut ids = Vec::new();
    for n in 0..count {
        let no = format!("B{n}");
        site.shop.placed(an_order(&no).holding(ResourceType::Stock, "gone", 1)).await;
        site.shop.close(&no, "buyer").await;
        ids.push(site.shop.task(&no).await.id);
    }
    db.execute("UPDATE ledger SET available = available + locked, locked = 0 WHERE biz_key = 'gone'").await.unwrap();
    site.shop.work().await;
    ids
}

async fn the_list_shows_every_task_once_those_for_a_person_first(db: TestDb) {
    let site = Site::open(&db).await;
    let manual = broken_orders(&site, &db, 3).await;
    site.shop.stock("sku", 1_000).await;
    let mut waiting = Vec::new();
    for n in 0..120 {
        let no = format!("A{n}");
        site.shop.placed(an_order(&no).holding(ResourceType::Stock, "sku", 1)).await;
        site.shop.close(&no, "buyer").await;
        waiting.push(site.shop.task(&no).await.id);
    }
    let mut browser = site.signed_in(Role::Viewer).await;
    let mut path = "/tasks".to_owned();
    let mut shown = Vec::new();
    for _ in 0..10 {
        let seen = browser.get(&path).await;
        if shown.is_empty() {
            seen.says("123 tasks match.");
        }
        shown.extend(seen.task_ids());
        let later = seen.body.split("<a class=\"btn\" href=\"").filter(|a| a.contains("Later rows")).last();
        match later {
            Some(link) if link.starts_with("/tasks?") => {
                path = link.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
            }
            _ => break,
        }
    }
    let expected: Vec<i64> = manual.into_iter().chain(waiting).collect();
    assert_eq!(shown, expected);
    site.shop.work().await;
    let newest = browser.get("/tasks?status=succeeded").await.task_ids();
    assert_eq!(newest.len(), 50);
    assert!(newest.is_sorted_by(|a, b| a > b), "finished ones newest first");
}

async fn the_filter_lives_in_the_address(db: TestDb) {
    let site = Site::open(&db).await;
    let ids = broken_orders(&site, &db, 2).await;
    site.shop.good_coupon("c-1").await;
    site.shop.placed(an_order("C").holding(ResourceType::Coupon, "c-1", 1)).await;
    site.shop.close("C", "buyer").await;
    let coupon = site.shop.task("C").await.id;
    let mut browser = site.signed_in(Role::Viewer).await;
    for (query, expected) in [
        ("status=manual", ids.clone()),
        ("type=coupon", vec![coupon]),
        ("kind=locked_insufficient", ids.clone()),
        ("order_no=B1", vec![ids[1]]),
        ("key=c-1", vec![coupon]),
        ("key=C-1", vec![]),
        ("error=LOCKED", ids.clone()),
        ("error=%25", vec![]),
        ("older_than_s=60", vec![]),
        ("status=any&order_no=nothing", vec![]),
    ] {
        let seen = browser.get(&format!("/tasks?{query}")).await;
        assert_eq!(seen.status, StatusCode::OK, "{query}");
        assert_eq!(seen.task_ids(), expected, "{query}");
    }
    let seen = browser.get("/tasks?status=manual&type=stock").await;
    seen.says("Status: manual");
    seen.says("<option value=\"stock\" selected>");
    for bad in ["status=done", "type=gold", "kind=x", "older_than_s=-1", "order_no=%00"] {
        assert_eq!(browser.get(&format!("/tasks?{bad}")).await.status, StatusCode::BAD_REQUEST, "{bad}");
    }
}

async fn a_task_is_retried_by_form(db: TestDb) {
    let site = Site::open(&db).await;
    let id = broken_orders(&site, &db, 1).await[0];
    let mut browser = site.signed_in(Role::Operator).await;
    let page = browser.get(&format!("/tasks/{id}")).await;
    page.says("is not back; it waits for a person.");
    page.says("Try 1 failed: locked insufficient");
    let act = format!("/tasks/{id}/retries");
    let refused = browser.post(&act, &[("reason", "  ")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.says("Say why, in 1 to 500 characters");
    let seen = browser.post_and_see(&act, &[("reason", "caller waits")]).await;
    seen.says("it failed: locked insufficient");
    browser.get(&format!("/tasks/{id}")).await.does_not_say("it failed: locked insufficient");
    db.execute("UPDATE ledger SET available = available - 1, locked = locked + 1 WHERE biz_key = 'gone'")
        .await
        .unwrap();
    let seen = browser.post_and_see(&act, &[("reason", "counted again")]).await;
    seen.says(&format!("Done: task {id} succeeded."));
    seen.says("There is nothing left to do".to_lowercase().as_str());
    browser.post_and_see(&act, &[("reason", "again")]).await.says("had already succeeded");
    let audits = "SELECT COUNT(*) FROM audit_log WHERE action = 'task.retry' AND actor = 'operator:operator'";
    assert_eq!(db.count(audits).await, 2);
}

async fn a_task_is_force_closed_by_form(db: TestDb) {
    let site = Site::open(&db).await;
    let id = broken_orders(&site, &db, 1).await[0];
    let mut browser = site.signed_in(Role::Operator).await;
    let version = browser.get(&format!("/tasks/{id}")).await.field("expected_version").to_owned();
    let act = format!("/tasks/{id}/closures");
    let no_reason = browser.post(&act, &[("reason", ""), ("expected_version", &version)]).await;
    assert_eq!(no_reason.status, StatusCode::UNPROCESSABLE_ENTITY);
    let bad = browser.post(&act, &[("reason", "x"), ("expected_version", "soon")]).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    let fields = [("reason", "counted by hand"), ("expected_version", version.as_str())];
    let seen = browser.post_and_see(&act, &fields).await;
    seen.says(&format!("Task {id} is force-closed. Nothing was moved."));
    seen.says("a person ended the trying");
    browser.post_and_see(&act, &fields).await.says("had already been force-closed");
    let retry = browser.post_and_see(&format!("/tasks/{id}/retries"), &[("reason", "x")]).await;
    retry.says(&format!("Not retried: task {id} is force-closed"));
    assert_eq!(site.shop.task("B0").await.status, TaskStatus::ForceClosed);
}

async fn a_closure_of_what_has_changed_meanwhile_says_so(db: TestDb) {
    let site = Site::open(&db).await;
    let id = broken_orders(&site, &db, 1).await[0];
    let mut browser = site.signed_in(Role::Operator).await;
    let version = browser.get(&format!("/tasks/{id}")).await.field("expected_version").to_owned();
    site.shop.retry("somebody", id).await;
    let fields = [("reason", "counted by hand"), ("expected_version", version.as_str())];
    let seen = browser.post(&format!("/tasks/{id}/closures"), &fields).await;
    assert_eq!(seen.status, StatusCode::CONFLICT);
    seen.says("changed while you were looking");
    seen.says("counted by hand");
    assert_ne!(seen.field("expected_version"), version, "what is decided next is decided on what is seen now");
    assert_eq!(site.shop.task("B0").await.status, TaskStatus::Manual);
}

async fn a_closure_asks_for_the_password_when_sign_in_is_old(db: TestDb) {
    let site = Site::open(&db).await;
    let id = broken_orders(&site, &db, 1).await[0];
    let mut browser = site.signed_in(Role::Operator).await;
    let path = format!("/tasks/{id}");
    browser.get(&path).await.does_not_say("name=\"password\"");
    site.shop.later(Duration::from_secs(15 * 60 + 1));
    let seen = browser.get(&path).await;
    seen.says("name=\"password\"");
    seen.says("You signed in 15 min 1 s ago");
    let version = seen.field("expected_version").to_owned();
    let fields = |password| [("reason", "by hand"), ("expected_version", version.as_str()), ("password", password)];
    let act = format!("/tasks/{id}/closures");
    for password in ["", "wrong password"] {
        let refused = browser.post(&act, &fields(password)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        refused.says("That is not your password");
        refused.says("by hand");
    }
    browser.post_and_see(&act, &fields(PASSWORD)).await.says("is force-closed");
    browser.get(&path).await.does_not_say("name=\"password\"");
}

async fn a_viewer_sees_a_task_and_no_forms(db: TestDb) {
    let site = Site::open(&db).await;
    let id = broken_orders(&site, &db, 1).await[0];
    let mut browser = site.signed_in(Role::Viewer).await;
    let seen = browser.get(&format!("/tasks/{id}")).await;
    seen.says("Your role may look, not act");
    seen.does_not_say("expected_version");
    let seen = browser.post(&format!("/tasks/{id}/retries"), &[("reason", "x")]).await;
    assert_eq!(seen.status, StatusCode::FORBIDDEN);
    seen.says("Your role may not do this");
    seen.says("viewer");
}

async fn a_part_is_answered_with_a_part(db: TestDb) {
    let site = Site::open(&db).await;
    let id = broken_orders(&site, &db, 1).await[0];
    let browser = site.signed_in(Role::Operator).await;
    let whole = browser.clone().get(&format!("/tasks/{id}")).await;
    assert!(whole.body.starts_with("<!doctype html>") && whole.header("vary").contains("HX-Request"));
    let content = browser.clone().asking_for("main#main").get(&format!("/tasks/{id}")).await;
    assert!(!content.body.contains("<html") && content.body.contains("expected_version"));
    let live = browser.clone().asking_for("div#task-live").get(&format!("/tasks/{id}")).await;
    assert!(live.body.contains("data-task-id") && !live.body.contains("expected_version"));
    // An act by htmx: the redirect is followed with the same headers, and only the content comes back.
    let mut htmx = browser.clone().asking_for("main#main");
    let seen = htmx.post_and_see(&format!("/tasks/{id}/retries"), &[("reason", "x")]).await;
    assert!(!seen.body.contains("<html"));
    seen.says("it failed");
}

async fn what_is_not_there_is_said_so(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.signed_in(Role::Operator).await;
    for path in ["/tasks/77", "/tasks/x", "/tasks/99999999999999999999"] {
        let seen = browser.get(path).await;
        assert_eq!(seen.status, StatusCode::NOT_FOUND, "{path}");
        seen.says("There is no such task.");
        seen.says("operator");
    }
    assert_eq!(browser.post("/tasks/77/retries", &[("reason", "x")]).await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.get("/nowhere").await.status, StatusCode::NOT_FOUND);
    for odd in ["/orders/%00", "/orders/a%0Ab", "/orders/."] {
        assert_eq!(browser.get(odd).await.status, StatusCode::NOT_FOUND, "{odd}");
    }
    assert_eq!(browser.post("/account/sessions/end", &[("session", "\0")]).await.status, StatusCode::BAD_REQUEST);
    let strange = site.browser().post("/login", &[("username", "\0"), ("password", "\0")]).await;
    assert_eq!(strange.status, StatusCode::UNAUTHORIZED);
    browser.get("/tasks").await.says("Nothing is waiting.");
}
