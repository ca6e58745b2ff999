//! The files of the console. Their names change with their content, so a browser keeps them for good.

use axum::extract::Path;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;

use crate::web::assets::Asset;
use crate::web::render::Answer;
use crate::web::view::error::Trouble;

pub async fn show(Path(file): Path<String>) -> Answer {
    let asset = Asset::find(&format!("/static/{file}")).ok_or(Trouble::NotFound)?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(asset.mime)),
        (CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    Ok((headers, asset.body).into_response())
}
