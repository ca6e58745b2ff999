//! The page of the reconciliation: run now, what it found, and the figure on the overview.

use axum::http::StatusCode;
use handback::core::reconcile;
use handback::core::words::{ResourceType, Role};

use super::Site;
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering as _, an_order, operator};

on_every_engine!(a_difference_is_shown_with_its_order_and_task);

async fn a_difference_is_shown_with_its_order_and_task(db: TestDb) {
    let site = Site::open(&db).await;
    let mut viewer = site.signed_in(Role::Viewer).await;
    let empty = viewer.get("/reconcile").await;
    empty.says("Nothing has been compared yet.");
    empty.does_not_say("/reconcile/runs");
    assert_eq!(viewer.get("/").await.stat("reconcile.unexplained"), "–", "not known is not 0");
    site.shop.stock("sku-1", 10).await;
    site.shop.stock("sku-2", 10).await;
    site.shop.placed(an_order("A/1").holding(ResourceType::Stock, "sku-1", 2)).await;
    site.shop.placed(an_order("B").holding(ResourceType::Stock, "sku-1", 1)).await;
    site.shop.close("B", "buyer").await;
    db.execute("UPDATE ledger SET locked = locked - 1 WHERE biz_key = 'sku-1'").await.unwrap();
    let mut otto = site.signed_in(Role::Operator).await;
    let begun = otto.post_and_see("/reconcile/runs", &[("type", "stock")]).await;
    begun.says("Run 1 has begun.");
    assert_eq!(otto.post("/reconcile/runs", &[("type", "nonsense")]).await.status, StatusCode::BAD_REQUEST);
    while db.count("SELECT COUNT(*) FROM reconcile_run WHERE status = 0").await > 0 {
        tokio::task::yield_now().await;
    }
    let seen = viewer.get("/reconcile").await;
    seen.says("1 key cannot be explained. The other 1 agree.");
    seen.says("double release");
    seen.says("missing 1");
    seen.says("href=\"/orders/A%2F1\"");
    seen.says(&format!("href=\"/tasks/{}\"", site.shop.task("B").await.id));
    seen.says("data-value=\"1\" data-stat=\"reconcile.unexplained.stock\"");
    viewer.get("/reconcile/1").await.says("missing 1");
    assert_eq!(viewer.get("/reconcile/7").await.status, StatusCode::NOT_FOUND);
    let overview = viewer.get("/").await;
    overview.says("data-value=\"1\" data-stat=\"reconcile.unexplained\"");
    let chinese = viewer.clone().with("accept-language", "zh-CN").get("/reconcile").await;
    chinese.says("1 个键无法解释");
    // While one is going on, the page says so and looks again.
    db.execute("UPDATE reconcile_run SET status = 0, running = 1").await.unwrap();
    let running = otto.get("/reconcile").await;
    running.says("Run 1 has been going on since");
    running.does_not_say("<button class=\"btn main\" type=\"submit\">Run now");
    assert_eq!(running.header("refresh"), "2");
    db.execute("UPDATE reconcile_run SET status = 1, running = NULL").await.unwrap();
    db.execute("UPDATE ledger SET locked = locked + 1 WHERE biz_key = 'sku-1'").await.unwrap();
    reconcile::run_now(&site.shop.core, &operator("otto"), None).await.unwrap();
    viewer.get("/reconcile").await.says("All 2 keys agree.");
}
