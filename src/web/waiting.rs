//! What is answered while the database has not been reached yet: the process is up, it isn't ready, and every
//! page and call says so. Nothing is lost by asking again.

use axum::Router;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use super::error::Problem;

const PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
<title>Handback</title><h1>The database can't be reached</h1>\
<p>Nothing is lost: orders and tasks are where they were. This page works again by itself as soon as the database answers.</p>\
<p lang=\"zh-CN\">暂时连接不上数据库。订单与任务都没有丢失，数据库恢复后本页自动可用。</p></html>";

pub fn router() -> Router {
    Router::new()
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(|| async { (StatusCode::SERVICE_UNAVAILABLE, "the database can't be reached\n") }))
        .fallback(away)
}

async fn away(uri: Uri) -> Response {
    if uri.path().starts_with("/api/") {
        return Problem::database_away().into_response();
    }
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (RETRY_AFTER, "2")];
    (StatusCode::SERVICE_UNAVAILABLE, headers, PAGE).into_response()
}
