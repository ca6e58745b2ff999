//! The pages of the console through their router, as a browser without script meets them: cookies,
//! forms, redirects. Each test has a site of its own on a database of its own.

mod gate;
mod live;
mod orders;
mod reconcile;
mod returns;
mod roles;
mod safety;
mod shops_orders;
mod tasks;
mod wall;

use std::collections::BTreeMap;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use handback::config::{Config, Inputs, PublicUrl};
use handback::core::account;
use handback::core::words::Role;
use handback::web::handlers;
use handback::web::state::App;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::support::database::TestDb;
use crate::support::shop::Shop;

const PASSWORD: &str = "correct horse battery";

pub struct Site {
    pub shop: Shop,
    pub router: Router,
    pub stopping: CancellationToken,
    origin: String,
}

impl Site {
    pub async fn open(db: &TestDb) -> Site {
        Site::at(db, "http://127.0.0.1:8080").await
    }

    pub async fn at(db: &TestDb, public_url: &str) -> Site {
        Site::of(Shop::open(db).await, public_url)
    }

    /// The console of a shop that is there already.
    pub fn of(shop: Shop, public_url: &str) -> Site {
        let config = Config::load(Inputs::default()).unwrap();
        let url = PublicUrl::parse(public_url, false).unwrap();
        let stopping = CancellationToken::new();
        let app = App::new(shop.core.clone(), config, url, stopping.clone());
        Site { shop, router: handlers::router(app), stopping, origin: public_url.to_owned() }
    }

    pub async fn user(&self, name: &str, role: Role) {
        assert!(account::add(&self.shop.core, "test", name, role, PASSWORD).await.unwrap(), "{name} is new");
    }

    /// A browser nobody has used yet.
    pub fn browser(&self) -> Browser {
        Browser {
            router: self.router.clone(),
            cookies: BTreeMap::new(),
            headers: vec![("accept-language".into(), "en".into())],
            origin: Some(self.origin.clone()),
        }
    }

    /// A browser that somebody of this role is signed in with.
    pub async fn signed_in(&self, role: Role) -> Browser {
        self.user(role.word(), role).await;
        self.sign_in(role.word()).await
    }

    pub async fn sign_in(&self, name: &str) -> Browser {
        let mut browser = self.browser();
        let seen = browser.post("/login", &[("username", name), ("password", PASSWORD)]).await;
        assert_eq!((seen.status, seen.location()), (StatusCode::SEE_OTHER, "/"), "{}", seen.body);
        browser
    }
}

#[derive(Clone)]
pub struct Browser {
    router: Router,
    pub cookies: BTreeMap<String, String>,
    headers: Vec<(String, String)>,
    /// What a browser says of where a form comes from.
    pub origin: Option<String>,
}

pub struct Seen {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Browser {
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Browser {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// As htmx asks for the part of the page that it swaps.
    #[must_use]
    pub fn asking_for(self, target: &str) -> Browser {
        self.with("hx-request", "true").with("hx-target", target)
    }

    pub fn request(&self, method: &str, path: &str) -> axum::http::request::Builder {
        let mut request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:8080");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if cookies.is_empty() { request } else { request.header("cookie", cookies.join("; ")) }
    }

    pub async fn get(&mut self, path: &str) -> Seen {
        let request = self.request("GET", path).body(Body::empty()).unwrap();
        self.send(request).await
    }

    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Seen {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let body: Vec<String> = fields.iter().map(|(n, v)| format!("{}={}", encode(n), encode(v))).collect();
        let mut request = self.request("POST", path).header("content-type", "application/x-www-form-urlencoded");
        if let Some(origin) = &self.origin {
            request = request.header("origin", origin);
        }
        self.send(request.body(Body::from(body.join("&"))).unwrap()).await
    }

    /// Follows the redirect of an act, as a browser does.
    pub async fn post_and_see(&mut self, path: &str, fields: &[(&str, &str)]) -> Seen {
        let seen = self.post(path, fields).await;
        assert_eq!(seen.status, StatusCode::SEE_OTHER, "{}", seen.body);
        let location = seen.location().to_owned();
        self.get(&location).await
    }

    async fn send(&mut self, request: Request<Body>) -> Seen {
        let response = self.router.clone().oneshot(request).await.unwrap();
        for cookie in response.headers().get_all("set-cookie") {
            let (name, rest) = cookie.to_str().unwrap().split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            if rest.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let (parts, body) = response.into_parts();
        let is_stream = parts.headers.get("content-type").is_some_and(|t| t == "text/event-stream");
        let body = if is_stream { Vec::new() } else { to_bytes(body, usize::MAX).await.unwrap().to_vec() };
        Seen { status: parts.status, headers: parts.headers, body: String::from_utf8_lossy(&body).into_owned() }
    }
}

impl Seen {
    pub fn location(&self) -> &str {
        self.headers.get("location").map_or("", |value| value.to_str().unwrap())
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn set_cookie(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap());
        all.find(|cookie| cookie.starts_with(&format!("{name}=")))
    }

    /// The text of a figure.
    pub fn stat(&self, name: &str) -> &str {
        let after = self.body.split(&format!("data-stat=\"{name}\">")).nth(1);
        let after = after.unwrap_or_else(|| panic!("no figure {name} in {}", self.body));
        after
            .trim_start_matches("<svg aria-hidden=\"true\">")
            .split('<')
            .find(|t| !t.contains('>') || t.ends_with(|c: char| c.is_ascii_digit()))
            .unwrap()
            .trim()
    }

    /// The ids of the rows, in their order.
    pub fn task_ids(&self) -> Vec<i64> {
        let rows = self.body.split("data-task-id=\"").skip(1);
        rows.map(|row| row.split('"').next().unwrap().parse().unwrap()).collect()
    }

    /// The value of a hidden field.
    pub fn field(&self, name: &str) -> &str {
        let after = self.body.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap_or_else(|| panic!("no {name}"));
        after.split('"').next().unwrap()
    }

    #[track_caller]
    pub fn says(&self, text: &str) {
        assert!(self.body.contains(text), "{text:?} is not in {} {}", self.status, self.body);
    }

    #[track_caller]
    pub fn does_not_say(&self, text: &str) {
        assert!(!self.body.contains(text), "{text:?} is in {}", self.body);
    }
}
