//! Problem documents (RFC 9457): what the API answers when it can't do what was asked.
//!
//! `code` is the stable part that programs act on; `detail` is for the person who reads the log of
//! the calling side. What broke inside is logged here and never told (R24).

use axum::Json;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::core::text::FieldError;
use crate::{core, store};

/// How long a caller waits before asking again while the database is away, in seconds.
const RETRY_AFTER_S: &str = "2";

#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    /// Members beside the standard ones: `errors`, `lacking`.
    more: Map<String, Value>,
    header: Option<(&'static str, &'static str)>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), more: Map::new(), header: None }
    }

    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    pub fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    pub fn bad_json(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_json", detail)
    }

    pub fn bad_query(errors: &[FieldError]) -> Self {
        let detail = "the query can't be taken as it is";
        Self::new(StatusCode::BAD_REQUEST, "bad_query", detail).with("errors", field_errors(errors))
    }

    /// Input that was understood and can't be taken: every field at fault is named.
    pub fn invalid(errors: &[FieldError]) -> Self {
        let detail = "some fields can't be taken as they are";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail).with("errors", field_errors(errors))
    }

    pub fn unauthenticated(detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail);
        problem.header = Some(("www-authenticate", "Bearer"));
        problem
    }

    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }

    pub fn database_away() -> Self {
        let detail = "the database can't be reached; nothing was decided, ask again";
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "database_away", detail);
        problem.header = Some(("retry-after", RETRY_AFTER_S));
        problem
    }

    /// A fault of ours. What it was stands in the log only.
    pub fn internal() -> Self {
        let detail = "something broke on our side; it is in the log";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.more.insert(name.to_owned(), value);
        self
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }
}

fn field_errors(errors: &[FieldError]) -> Value {
    errors.iter().map(|error| json!({"field": error.field, "message": error.message})).collect()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = Map::new();
        body.insert("type".into(), "about:blank".into());
        body.insert("title".into(), self.status.canonical_reason().unwrap_or("Error").into());
        body.insert("status".into(), self.status.as_u16().into());
        body.insert("code".into(), self.code.into());
        body.insert("detail".into(), self.detail.into());
        body.extend(self.more);
        let mut response = (self.status, Json(Value::Object(body))).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some((name, value)) = self.header {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        if error.is(store::Class::Away) {
            tracing::warn!(error = %error, "the database can't be reached");
            return Self::database_away();
        }
        tracing::error!(error = %error, "a request failed");
        Self::internal()
    }
}

impl From<core::Error> for Problem {
    fn from(error: core::Error) -> Self {
        match error {
            core::Error::Invalid(errors) => Self::invalid(&errors),
            core::Error::Store(error) => error.into(),
        }
    }
}
