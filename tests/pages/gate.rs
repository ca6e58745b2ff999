//! The first run, signing in and out, and how long a session lasts.

use std::time::Duration;

use axum::http::StatusCode;
use handback::core::account;
use handback::core::words::Role;

use super::{PASSWORD, Site};
use crate::support::database::{TestDb, on_every_engine};

on_every_engine!(
    the_first_account_is_made_by_code_once,
    a_set_up_code_runs_out,
    an_unknown_name_and_a_wrong_password_look_the_same,
    wrong_tries_slow_down_strangers_not_a_known_browser,
    a_session_is_renewed_at_sign_in_and_ends_at_sign_out,
    a_session_that_is_merely_open_ends,
    a_session_has_a_longest_time,
    a_disabled_account_is_out_at_once,
    one_can_end_ones_other_sessions,
    settings_are_kept_with_the_account,
);

async fn the_first_account_is_made_by_code_once(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.browser();
    assert_eq!(browser.get("/").await.location(), "/setup");
    assert_eq!(browser.get("/login").await.location(), "/setup");
    let code = account::new_setup_code(&site.shop.core).await.unwrap().unwrap();
    let name = ("username", "root");
    let wrong = browser.post("/setup", &[("code", "nonsense"), name, ("password", PASSWORD)]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    wrong.says("This code is wrong");
    let short = browser.post("/setup", &[("code", &code), name, ("password", "short")]).await;
    short.says("At least 12 characters");
    short.says(&format!("value=\"{code}\""));
    let seen = browser.post_and_see("/setup", &[("code", &code), name, ("password", PASSWORD)]).await;
    assert_eq!(seen.status, StatusCode::OK);
    seen.says("first admin");
    let again = [("code", code.as_str()), ("username", "mallory"), ("password", PASSWORD)];
    assert_eq!(site.browser().post("/setup", &again).await.status, StatusCode::CONFLICT);
    assert_eq!(account::new_setup_code(&site.shop.core).await.unwrap(), None, "there is an account");
}

async fn a_set_up_code_runs_out(db: TestDb) {
    let site = Site::open(&db).await;
    let old = account::new_setup_code(&site.shop.core).await.unwrap().unwrap();
    site.shop.later(Duration::from_secs(30 * 60));
    let fields = |code| [("code", code), ("username", "root"), ("password", PASSWORD)];
    site.browser().post("/setup", &fields(&old)).await.says("older than 30 minutes");
    let first = account::new_setup_code(&site.shop.core).await.unwrap().unwrap();
    let second = account::new_setup_code(&site.shop.core).await.unwrap().unwrap();
    site.browser().post("/setup", &fields(&first)).await.says("This code is wrong");
    assert_eq!(site.browser().post("/setup", &fields(&second)).await.status, StatusCode::SEE_OTHER);
}

async fn an_unknown_name_and_a_wrong_password_look_the_same(db: TestDb) {
    let site = Site::open(&db).await;
    site.user("ops", Role::Operator).await;
    let mut answers = Vec::new();
    for name in ["ops", "nobody"] {
        let seen = site.browser().post("/login", &[("username", name), ("password", "wrong password")]).await;
        assert_eq!(seen.status, StatusCode::UNAUTHORIZED);
        assert!(seen.set_cookie("hb").is_none());
        let said = seen.body.split("role=\"alert\"").nth(1).unwrap().split("</div>").next().unwrap().to_owned();
        answers.push(said);
        seen.says(&format!("value=\"{name}\""));
    }
    assert_eq!(answers[0], answers[1]);
}

async fn wrong_tries_slow_down_strangers_not_a_known_browser(db: TestDb) {
    let site = Site::open(&db).await;
    site.user("ops", Role::Operator).await;
    let mut known = site.sign_in("ops").await;
    let wrong = [("username", "ops"), ("password", "wrong password")];
    for _ in 0..5 {
        assert_eq!(site.browser().post("/login", &wrong).await.status, StatusCode::UNAUTHORIZED);
    }
    let right = [("username", "ops"), ("password", PASSWORD)];
    let held = site.browser().post("/login", &right).await;
    assert_eq!(held.status, StatusCode::TOO_MANY_REQUESTS, "even the right password waits");
    assert!(!held.header("retry-after").is_empty());
    assert_eq!(known.post("/login", &right).await.status, StatusCode::SEE_OTHER, "the true user does not");
    site.shop.later(Duration::from_secs(2));
    assert_eq!(site.browser().post("/login", &right).await.status, StatusCode::SEE_OTHER);
}

async fn a_session_is_renewed_at_sign_in_and_ends_at_sign_out(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    let first = browser.cookies["hb"].clone();
    let seen = browser.post("/login", &[("username", "viewer"), ("password", PASSWORD)]).await;
    let cookie = seen.set_cookie("hb").unwrap();
    for flag in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(flag), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "plain http on this machine: {cookie}");
    assert_ne!(browser.cookies["hb"], first);
    let mut old = site.browser();
    old.cookies.insert("hb".into(), first);
    assert!(old.get("/").await.location().starts_with("/login"), "the old session is over");
    assert_eq!(db.count("SELECT COUNT(*) FROM session WHERE id_hash = 'x'").await, 0);
    let second = browser.cookies["hb"].clone();
    browser.post_and_see("/logout", &[]).await.says("You are signed out");
    let mut kept = site.browser();
    kept.cookies.insert("hb".into(), second);
    assert!(kept.get("/").await.location().starts_with("/login"));
}

async fn a_session_that_is_merely_open_ends(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    let hour = Duration::from_secs(3_600);
    for _ in 0..2 {
        site.shop.later(hour * 4);
        assert_eq!(browser.get("/tasks").await.status, StatusCode::OK, "used, so it stays");
    }
    let mut renewing = browser.clone().asking_for("div#live-part");
    for _ in 0..7 {
        site.shop.later(hour);
        assert_eq!(renewing.get("/").await.status, StatusCode::OK);
    }
    site.shop.later(hour);
    let seen = renewing.get("/").await;
    assert_eq!(
        (seen.status, seen.header("hx-redirect")),
        (StatusCode::UNAUTHORIZED, "/login"),
        "a part moves the window"
    );
    let seen = browser.get("/tasks?status=manual").await;
    assert_eq!(seen.location(), "/login?back=%2Ftasks%3Fstatus%3Dmanual");
    browser.get("/login").await.says("Your session has ended");
}

async fn a_session_has_a_longest_time(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    for _ in 0..5 {
        site.shop.later(Duration::from_secs(4 * 3_600));
        assert_eq!(browser.get("/tasks").await.status, StatusCode::OK);
    }
    site.shop.later(Duration::from_secs(4 * 3_600));
    assert_eq!(browser.get("/tasks").await.status, StatusCode::SEE_OTHER);
}

async fn a_disabled_account_is_out_at_once(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    assert!(account::set_enabled(&site.shop.core, "test", "viewer", false).await.unwrap());
    assert!(browser.get("/").await.location().starts_with("/login"));
    let right = [("username", "viewer"), ("password", PASSWORD)];
    assert_eq!(browser.post("/login", &right).await.status, StatusCode::UNAUTHORIZED);
    assert!(account::set_enabled(&site.shop.core, "test", "viewer", true).await.unwrap());
    let mut browser = site.sign_in("viewer").await;
    assert!(account::set_password(&site.shop.core, "test", "viewer", "another long password").await.unwrap());
    assert!(browser.get("/").await.location().starts_with("/login"), "a new password ends all sessions");
}

async fn one_can_end_ones_other_sessions(db: TestDb) {
    let site = Site::open(&db).await;
    site.user("other", Role::Viewer).await;
    let mut here = site.signed_in(Role::Viewer).await;
    let mut there = site.sign_in("viewer").await;
    let mut stranger = site.sign_in("other").await;
    let handle = here.get("/account").await.field("session").to_owned();
    stranger.post("/account/sessions/end", &[("session", &handle)]).await;
    assert_eq!(there.get("/").await.status, StatusCode::OK, "not for others to end");
    here.post_and_see("/account/sessions/end", &[("session", &handle)]).await.says("That session is ended");
    assert!(there.get("/").await.location().starts_with("/login"));
    assert_eq!(here.get("/").await.status, StatusCode::OK);
}

async fn settings_are_kept_with_the_account(db: TestDb) {
    let site = Site::open(&db).await;
    let mut browser = site.signed_in(Role::Viewer).await;
    let fields = [("language", "zh-CN"), ("zone", "America/New_York"), ("theme", "dark")];
    let seen = browser.post_and_see("/account", &fields).await;
    seen.says("已保存");
    seen.says("<html lang=\"zh-CN\" data-theme=\"dark\">");
    seen.says("UTC−5 New York");
    let mut elsewhere = site.sign_in("viewer").await;
    elsewhere.get("/").await.says("总览");
    let bad = browser.post("/account", &[("zone", "Mars/Olympus")]).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    let seen = browser.post_and_see("/account/language", &[("lang", "en"), ("back", "//evil.example")]).await;
    seen.says("Overview");
    site.browser().get("/login?lang=zh-CN").await.says("登录");
}

on_every_engine!(over_https_the_cookies_are_bound_to_the_host);

async fn over_https_the_cookies_are_bound_to_the_host(db: TestDb) {
    let site = Site::at(&db, "https://handback.example").await;
    site.user("ops", Role::Operator).await;
    let mut browser = site.browser();
    let seen = browser.post("/login", &[("username", "ops"), ("password", PASSWORD)]).await;
    let cookie = seen.set_cookie("__Host-hb").unwrap();
    assert!(cookie.contains("Secure") && cookie.contains("HttpOnly") && !cookie.contains("Domain"), "{cookie}");
    assert!(seen.header("strict-transport-security").contains("max-age"));
    assert_eq!(browser.get("/").await.status, StatusCode::OK);
}
