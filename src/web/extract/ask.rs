//! How a request wants to be answered. Read once, by the frame around all pages.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum_extra::extract::CookieJar;

use crate::config::PublicUrl;
use crate::core::account::{self, Origin};
use crate::web::cookies::{self, Kind};
use crate::web::i18n::Lang;

/// Which part of a page is wanted. Page and fragment come from one template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Whole,
    /// What stands in `main`.
    Content,
    /// What renews itself.
    Live,
}

#[derive(Clone, Debug)]
pub struct Ask {
    pub part: Part,
    /// This answer's nonce.
    pub nonce: String,
    /// Path and query of the page, to come back to.
    pub here: String,
    pub cookies: CookieJar,
    /// `?lang=`, which is also kept.
    pub language: Option<Lang>,
    pub accept_language: Option<String>,
    pub address: String,
    pub agent: String,
    pub origin: Option<String>,
    pub fetch_site: Option<String>,
    pub host: Option<String>,
    /// Made by htmx: a redirect to the sign-in page must move the whole page.
    pub is_htmx: bool,
}

impl Ask {
    pub fn read(parts: &Parts) -> Ask {
        let text = |name: &str| parts.headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let here = match parts.method == Method::GET {
            true => parts.uri.path_and_query().map_or("/", |p| p.as_str()).to_owned(),
            false => page_of(parts.uri.path()),
        };
        let language = parts.uri.query().and_then(|query| {
            let mut pairs = query.split('&').filter_map(|pair| pair.strip_prefix("lang="));
            pairs.next().and_then(Lang::from_tag)
        });
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ask {
            part: part(&parts.headers),
            nonce: account::secret(),
            here,
            cookies: CookieJar::from_headers(&parts.headers),
            language,
            accept_language: text("accept-language"),
            address: peer.map(|info| info.0.ip().to_canonical().to_string()).unwrap_or_default(),
            agent: text("user-agent").unwrap_or_default(),
            origin: text("origin"),
            fetch_site: text("sec-fetch-site"),
            host: text("host"),
            is_htmx: parts.headers.contains_key("hx-request"),
        }
    }

    pub fn cookie(&self, url: &PublicUrl, kind: Kind) -> Option<&str> {
        self.cookies.get(cookies::name(url, kind)).map(|cookie| cookie.value()).filter(|value| !value.is_empty())
    }

    /// The language: this link's, else the user's, else the browser's cookie, else the configured one,
    /// else what the browser asks for.
    pub fn lang(&self, url: &PublicUrl, of_user: Option<&str>, configured: Option<&str>) -> Lang {
        let wishes = [self.language.map(Lang::tag), of_user, self.cookie(url, Kind::Language), configured];
        Lang::choose(&wishes, self.accept_language.as_deref())
    }

    pub fn from(&self, url: &PublicUrl) -> Origin {
        Origin {
            address: self.address.clone(),
            agent: self.agent.clone(),
            device: self.cookie(url, Kind::Device).map(str::to_owned),
        }
    }
}

/// The page whose act this is: an act can't be opened.
fn page_of(act: &str) -> String {
    for group in ["tasks", "orders"] {
        let one = act.strip_prefix(&format!("/{group}/")).and_then(|rest| rest.split_once('/'));
        if let Some((id, _)) = one {
            return format!("/{group}/{id}");
        }
    }
    match act {
        "/wall" | "/admin/screens" => act.to_owned(),
        "/reconcile/runs" => "/reconcile".to_owned(),
        _ => "/".to_owned(),
    }
}

fn part(headers: &HeaderMap) -> Part {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|v| v.as_bytes() == value.as_bytes());
    if !is("hx-request", "true") || headers.contains_key("hx-history-restore-request") {
        return Part::Whole;
    }
    match headers.get("hx-target").and_then(|v| v.to_str().ok()) {
        Some("div#task-live" | "div#live-part") => Part::Live,
        Some("main#main") => Part::Content,
        _ => Part::Whole,
    }
}
