//! A form that proved where it comes from. The browser says it in `Origin` or `Sec-Fetch-Site`; where it
//! says neither, the form has to carry the session's token. Nothing is read from a form that did not.

use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;
use subtle::ConstantTimeEq as _;

use super::Ask;
use crate::config::PublicUrl;
use crate::web::desk::Desk;
use crate::web::trouble::Oops;
use crate::web::view::error::Trouble;

/// A form of the console is a few fields of text.
const LARGEST: usize = 64 * 1024;

/// The tokens that would do for this request; put there by whoever found out who makes it.
#[derive(Clone, Debug)]
pub(super) struct Tokens(pub Vec<String>);

pub struct Checked<T>(pub T);

#[derive(Debug, PartialEq, Eq)]
enum Provenance {
    Ours,
    Foreign,
    /// The browser says nothing: the token decides.
    Silent,
}

impl<T: DeserializeOwned> FromRequest<Desk> for Checked<T> {
    type Rejection = axum::response::Response;

    async fn from_request(request: Request, desk: &Desk) -> Result<Self, Self::Rejection> {
        Self::read(request, desk).await.map_err(Into::into)
    }
}

impl<T: DeserializeOwned> Checked<T> {
    async fn read(request: Request, desk: &Desk) -> Result<Self, Oops> {
        let (parts, body) = request.into_parts();
        let ask = parts.extensions.get::<Ask>().cloned().unwrap_or_else(|| Ask::read(&parts));
        let tokens = parts.extensions.get::<Tokens>().cloned().unwrap_or(Tokens(Vec::new()));
        let provenance = provenance(&ask, &desk.app.public_url);
        if provenance == Provenance::Foreign {
            return Err(Oops::from(Trouble::Unverified));
        }
        let is_form = parts.headers.get("content-type").is_some_and(|t| t.as_bytes().starts_with(FORM));
        let bytes = to_bytes(body, LARGEST).await.map_err(|_| Oops::from(Trouble::BadRequest))?;
        let pairs: Vec<(String, String)> = match is_form {
            true => serde_urlencoded(&bytes).ok_or(Oops::from(Trouble::BadRequest))?,
            false => Vec::new(),
        };
        let given = pairs.iter().find(|(name, _)| name == "csrf").map_or("", |(_, value)| value.as_str());
        if provenance == Provenance::Silent && !tokens.has(given) {
            return Err(Oops::from(Trouble::Unverified));
        }
        let object = pairs.into_iter().map(|(name, value)| (name, serde_json::Value::String(value))).collect();
        let form = serde_json::from_value(serde_json::Value::Object(object));
        form.map(Checked).map_err(|_| Oops::from(Trouble::BadRequest))
    }
}

const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// The pairs of a form, as axum's own extractor reads them.
fn serde_urlencoded(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let uri = format!("/?{}", std::str::from_utf8(bytes).ok()?).parse().ok()?;
    axum::extract::Query::try_from_uri(&uri).ok().map(|query| query.0)
}

impl Tokens {
    fn has(&self, given: &str) -> bool {
        !given.is_empty() && self.0.iter().any(|token| bool::from(token.as_bytes().ct_eq(given.as_bytes())))
    }
}

fn provenance(ask: &Ask, url: &PublicUrl) -> Provenance {
    let own_origin = ask.origin.as_deref().map(|origin| is_own(url, origin, ask.host.as_deref()));
    let own_site = ask.fetch_site.as_deref().map(|site| site == "same-origin");
    match (own_origin, own_site) {
        (Some(false), _) | (_, Some(false)) => Provenance::Foreign,
        (None, None) => Provenance::Silent,
        _ => Provenance::Ours,
    }
}

/// Our own address; on this machine `localhost` and `127.0.0.1` are one, as long as the port is ours.
fn is_own(url: &PublicUrl, origin: &str, host: Option<&str>) -> bool {
    url.is_own_origin(origin, host)
        || on_this_machine(origin).is_some_and(|port| Some(port) == on_this_machine(&url.to_string()))
}

/// The port of an http address of this machine.
fn on_this_machine(origin: &str) -> Option<&str> {
    let rest = origin.strip_prefix("http://")?;
    let (host, port) = rest.rsplit_once(':').unwrap_or((rest, "80"));
    matches!(host, "localhost" | "127.0.0.1" | "[::1]").then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> PublicUrl {
        PublicUrl::parse(text, false).unwrap()
    }

    #[test]
    fn only_our_own_origin_is_ours() {
        let https = url("https://handback.example");
        assert!(is_own(&https, "https://handback.example", None));
        for foreign in ["https://evil.example", "http://handback.example", "null", "https://handback.example.evil", ""]
        {
            assert!(!is_own(&https, foreign, Some("handback.example")), "{foreign}");
        }
    }

    #[test]
    fn localhost_and_its_address_are_one_on_the_same_port() {
        let local = url("http://127.0.0.1:8080");
        assert!(is_own(&local, "http://localhost:8080", None));
        assert!(!is_own(&local, "http://localhost:8081", None));
        assert!(!is_own(&local, "https://localhost:8080", None));
        assert!(!is_own(&url("https://handback.example"), "http://localhost:8080", None));
    }

    #[test]
    fn pairs_are_decoded_and_nonsense_is_refused() {
        let pairs = serde_urlencoded("reason=a%20b%26+%E5%88%B8&x=".as_bytes()).unwrap();
        assert_eq!(pairs, [("reason".into(), "a b& 券".into()), ("x".into(), String::new())]);
        assert!(serde_urlencoded(&[0xff]).is_none());
    }
}
