//! The wall: a screen is registered, opened once by its code, sees its six figures and nothing else, and is revoked.

use axum::http::StatusCode;
use handback::core::words::{ResourceType, Role};

use super::Site;
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering as _, an_order};

on_every_engine!(a_screen_is_registered_opened_once_and_revoked);

async fn a_screen_is_registered_opened_once_and_revoked(db: TestDb) {
    let site = Site::open(&db).await;
    site.shop.stock("sku-secret", 10).await;
    site.shop.placed(an_order("HB-SECRET").holding(ResourceType::Stock, "sku-secret", 1)).await;
    site.shop.close("HB-SECRET", "buyer").await;
    let mut admin = site.signed_in(Role::Admin).await;
    let registered = admin.post("/admin/screens", &[("name", "hall-2")]).await;
    assert_eq!(registered.status, StatusCode::OK);
    let code = registered.body.split("data-code>").nth(1).unwrap().split('<').next().unwrap().to_owned();
    admin.get("/admin/screens").await.does_not_say(&code);
    let taken = admin.post("/admin/screens", &[("name", "hall-2")]).await;
    assert_eq!(taken.status, StatusCode::CONFLICT);
    assert_eq!(admin.post("/admin/screens", &[("name", "  ")]).await.status, StatusCode::UNPROCESSABLE_ENTITY);

    let mut screen = site.browser();
    assert_eq!(screen.get("/wall/1").await.location(), "/wall");
    assert_eq!(screen.get("/wall/1/tiles").await.status, StatusCode::UNAUTHORIZED);
    screen.get("/wall").await.says("name=\"code\"");
    let wrong = screen.post("/wall", &[("code", "NONSENSE")]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    // However it is typed.
    let typed = format!(" {}-{} ", code[..5].to_lowercase(), &code[5..]);
    let opened = screen.post("/wall", &[("code", &typed)]).await;
    assert_eq!((opened.status, opened.location()), (StatusCode::SEE_OTHER, "/wall/1"), "{}", opened.body);
    assert!(opened.set_cookie("hb_screen").unwrap().contains("HttpOnly"));
    let wall = screen.get("/wall/1").await;
    assert_eq!(wall.stat("backlog.total"), "1");
    assert_eq!(wall.stat("reconcile.unexplained"), "–", "never a false zero");
    for private in ["HB-SECRET", "sku-secret", "href=\"/", "<a "] {
        let body = wall.body.split("<body>").nth(1).unwrap();
        assert!(!body.contains(private), "{private}");
    }
    let tiles: serde_json::Value = serde_json::from_str(&screen.get("/wall/1/tiles").await.body).unwrap();
    assert_eq!(tiles["tiles"].as_array().unwrap().len(), 6);
    assert_eq!(tiles["tiles"][1]["value"], "1");
    // Its cookie opens nothing else, and a code is used up.
    assert_eq!(screen.get("/").await.location(), "/login");
    let mut second = site.browser();
    assert_eq!(second.post("/wall", &[("code", &code)]).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(second.get("/wall/1").await.location(), "/wall");

    // A session of weeks, without a sign-in that ends.
    site.shop.later(std::time::Duration::from_secs(40 * 86_400));
    assert_eq!(screen.get("/wall/1").await.status, StatusCode::OK);
    admin = site.sign_in("admin").await;
    admin.get("/admin/screens").await.says("hall-2");
    admin.post_and_see("/admin/screens/1/revocations", &[]).await.says("That screen shows nothing any more.");
    assert_eq!(screen.get("/wall/1").await.location(), "/wall");
    assert_eq!(screen.get("/wall/1/tiles").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(db.count("SELECT COUNT(*) FROM audit_log WHERE action LIKE 'screen.%'").await, 2);
    // A code runs out.
    let body = admin.post("/admin/screens", &[("name", "hall-3")]).await.body;
    let code = body.split("data-code>").nth(1).unwrap().split('<').next().unwrap().to_owned();
    site.shop.later(std::time::Duration::from_secs(31 * 60));
    assert_eq!(site.browser().post("/wall", &[("code", &code)]).await.status, StatusCode::UNPROCESSABLE_ENTITY);
}
