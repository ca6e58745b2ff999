//! What a request carries beside its token: path segments, query names, a JSON body. Each is read
//! whole or answered with a problem document that names what is wrong.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

use super::fields::{FromFields, read_all};
use super::node::Node;
use crate::core::text::{FieldError, KEY_MAX, NUMBER_MAX, check_text};
use crate::core::words::ResourceType;
use crate::web::error::Problem;
use crate::web::state::App;

pub(super) const LARGEST_BODY: usize = 1024 * 1024;

/// An order number in the path.
pub(super) struct OrderNo(pub String);

/// A return number in the path.
pub(super) struct ReturnNo(pub String);

/// A task's id in the path.
pub(super) struct TaskId(pub i64);

/// A reconciliation run's number in the path.
pub(super) struct RunId(pub i64);

/// A resource in the path.
pub(super) struct Resource {
    pub kind: ResourceType,
    pub key: String,
}

impl FromRequestParts<App> for OrderNo {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let path = segments(parts, app).await?;
        Ok(Self(checked(&path, "no", "order_no", NUMBER_MAX)?))
    }
}

impl FromRequestParts<App> for ReturnNo {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let path = segments(parts, app).await?;
        Ok(Self(checked(&path, "no", "return_no", NUMBER_MAX)?))
    }
}

impl FromRequestParts<App> for TaskId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let path = segments(parts, app).await?;
        let id = path.first().and_then(|(_, id)| id.parse().ok());
        id.map(Self).ok_or_else(|| Problem::not_found("there is no such task"))
    }
}

impl FromRequestParts<App> for RunId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let path = segments(parts, app).await?;
        let id = path.first().and_then(|(_, id)| id.parse().ok());
        id.map(Self).ok_or_else(|| Problem::not_found("there is no such run"))
    }
}

impl FromRequestParts<App> for Resource {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let path = segments(parts, app).await?;
        let word = path.iter().find(|(name, _)| name == "type").map_or("", |(_, word)| word);
        let kind = ResourceType::from_word(word).filter(|kind| ResourceType::LEDGERS.contains(kind));
        let unknown = || Problem::not_found("there is no such type; types are stock, coupon, funds, quota and slot");
        Ok(Self { kind: kind.ok_or_else(unknown)?, key: checked(&path, "key", "key", KEY_MAX)? })
    }
}

/// The path's variable segments, decoded one by one: a `%2F` is part of its segment.
async fn segments(parts: &mut Parts, app: &App) -> Result<Vec<(String, String)>, Problem> {
    let raw = RawPathParams::from_request_parts(parts, app).await;
    let raw = raw.map_err(|_| Problem::invalid(&[FieldError::new("path", "must be percent-encoded UTF-8")]))?;
    Ok(raw.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// A segment that must be a text of ours; a complaint calls it `field`.
fn checked(path: &[(String, String)], name: &str, field: &str, max: usize) -> Result<String, Problem> {
    let value = path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value);
    check_text(value, max).map_err(|message| Problem::invalid(&[FieldError::new(field, message)]))?;
    Ok(value.to_owned())
}

/// The query, read like a body. Names nobody knows are refused.
pub(super) struct Asked<T>(pub T);

impl<T: FromFields> FromRequestParts<App> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let entries = query_entries(parts.uri.query().unwrap_or_default());
        let value = entries.and_then(read_all);
        value.map(Self).map_err(|errors| Problem::bad_query(&errors))
    }
}

fn query_entries(query: &str) -> Result<Vec<(String, Node)>, Vec<FieldError>> {
    let mut entries = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(value)) = (decoded(name), decoded(value)) else {
            return Err(vec![FieldError::new("query", "must be percent-encoded UTF-8")]);
        };
        // An empty value is what a form leaves for a filter that isn't set.
        let node = if value.is_empty() { Node::Null } else { Node::Typed(value) };
        entries.push((name, node));
    }
    Ok(entries)
}

fn decoded(text: &str) -> Option<String> {
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8().ok().map(|text| text.into_owned())
}

/// A JSON body, read whole; `raw` is how it came, for telling a repeat from another.
pub(super) struct Body<T> {
    pub value: T,
    pub raw: Bytes,
}

impl<T: FromFields> FromRequest<App> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let is_json = is_json(&request);
        let raw = Bytes::from_request(request, app).await.map_err(unreadable)?;
        if !is_json && !raw.is_empty() {
            let detail = "the body must be JSON, with Content-Type: application/json";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail));
        }
        let entries = if raw.is_empty() { Vec::new() } else { object(&raw)? };
        let value = read_all(entries).map_err(|errors| Problem::invalid(&errors))?;
        Ok(Self { value, raw })
    }
}

fn is_json(request: &Request) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

fn object(raw: &[u8]) -> Result<Vec<(String, Node)>, Problem> {
    match serde_json::from_slice(raw) {
        Ok(Node::Object(entries)) => Ok(entries),
        Ok(other) => Err(Problem::bad_json(format!("the body must be a JSON object, is {}", other.name()))),
        Err(error) => Err(Problem::bad_json(format!("the body is not JSON: {error}"))),
    }
}

fn unreadable(rejection: BytesRejection) -> Problem {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(),
        _ => Problem::bad_json("the body ended before it was complete"),
    }
}

pub(super) fn too_large() -> Problem {
    Problem::too_large(format!("the body must not be larger than {LARGEST_BODY} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded_once() {
        let entries = query_entries("a=1%2F2&b=x+y&c=&d").expect("fine");
        let text = |text: &str| Node::Typed(text.to_owned());
        let expected = [("a", text("1/2")), ("b", text("x y")), ("c", Node::Null), ("d", Node::Null)];
        assert_eq!(entries, expected.map(|(name, node)| (name.to_owned(), node)));
        assert!(query_entries("a=%FF").is_err());
    }

    #[test]
    fn only_an_object_is_a_body() {
        for wrong in ["[]", "7", "\"x\"", "null", "{", "{} {}", "{'a': 1}", "\u{feff}{}"] {
            assert!(object(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert_eq!(object(b" {} ").map(|entries| entries.len()).ok(), Some(0));
    }
}
