//! Every address as every role: what the table says and what the handler checks are the same.

use axum::http::StatusCode;
use handback::core::words::{ResourceType, Role};
use handback::web::handlers::{ROUTES, Route, Who};

use super::{Browser, Site};
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering as _, an_order};

on_every_engine!(the_table_of_routes_holds_for_every_role);

async fn the_table_of_routes_holds_for_every_role(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.stock("sku", 10).await;
    site.shop.placed(an_order("A1").holding(ResourceType::Stock, "sku", 1)).await;
    site.shop.close("A1", "buyer").await;
    let task = site.shop.task("A1").await.id;
    let mut nobody = site.browser();
    let mut browsers = Vec::new();
    for role in Role::ALL {
        browsers.push((*role, site.signed_in(*role).await));
    }
    for route in ROUTES {
        let path = address(route, task);
        let seen = knock(&mut nobody, route, &path).await;
        match route.who {
            Who::Anyone => assert_ne!(seen, Door::SignIn, "{} {path} is open", route.method),
            Who::From(_) => assert_eq!(seen, Door::SignIn, "{} {path} needs a session", route.method),
        }
        for (role, browser) in &mut browsers {
            let expected = match route.who {
                Who::From(needed) if !role.includes(needed) => Door::Forbidden,
                _ => Door::Open,
            };
            assert_eq!(knock(browser, route, &path).await, expected, "{} {path} as {role}", route.method);
            if route.path == "/logout" {
                *browser = site.sign_in(role.word()).await;
            }
        }
    }
}

/// What a role that may act is the last to see: the acts of this test move nothing they are not meant to.
fn address(route: &Route, task: i64) -> String {
    route
        .path
        .replace("{id}", &task.to_string())
        .replace("{no}", "A1")
        .replace("{file}", "app.js")
        .replace("{run}", "1")
        .replace("{screen}", "1")
}

#[derive(Debug, PartialEq, Eq)]
enum Door {
    Open,
    Forbidden,
    SignIn,
}

async fn knock(browser: &mut Browser, route: &Route, path: &str) -> Door {
    let seen = match route.method {
        "GET" => browser.get(path).await,
        _ => browser.post(path, &[("lang", "en"), ("expected_version", "0")]).await,
    };
    match seen.status {
        StatusCode::FORBIDDEN => Door::Forbidden,
        StatusCode::SEE_OTHER if seen.location().starts_with("/login") && route.path != "/logout" => Door::SignIn,
        // Signing out leads to the sign-in as well; it says so.
        StatusCode::SEE_OTHER if seen.location() == "/login" && seen.set_cookie("hb_notice").is_none() => Door::SignIn,
        status => {
            assert!(!status.is_server_error(), "{} {path}: {status} {}", route.method, seen.body);
            Door::Open
        }
    }
}

on_every_engine!(a_role_that_is_taken_away_ends_at_once);

async fn a_role_that_is_taken_away_ends_at_once(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.signed_in(Role::Operator).await;
    assert_ne!(browser.post("/tasks/1/retries", &[("reason", "x")]).await.status, StatusCode::FORBIDDEN);
    db.execute("UPDATE app_user SET role = 'viewer'").await.unwrap();
    assert_eq!(browser.post("/tasks/1/retries", &[("reason", "x")]).await.status, StatusCode::FORBIDDEN);
}
