//! The API as a caller meets it: the whole router over a real database and a clock that the test
//! moves, without a socket in between.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request};
use handback::config::{Config, Inputs};
use handback::core::Core;
use handback::core::clock::Clock;
use handback::core::policy::Policy;
use handback::core::release::run_due;
use handback::core::words::{Actor, Trigger};
use handback::store::token::{self, Scope};
use handback::store::{Db, Decision};
use handback::web::routes;
use handback::web::state::App;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::support::database::TestDb;

/// Where the clock starts: 2026-11-30 10:00 UTC.
pub const START_MS: i64 = 1_796_032_800_000;

pub struct Door {
    pub core: Core,
    pub clock: Clock,
    router: Router,
    /// One token per scope.
    tokens: Vec<(Scope, String)>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    /// The body of an answer that must have this status.
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:#}", self.body);
        self.body
    }

    /// A problem document with this status and code.
    pub fn problem(self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.body["code"].as_str()), (status, Some(code)), "{:#}", self.body);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.body["status"], status);
        assert!(self.body["title"].is_string() && self.body["detail"].is_string() && self.body["type"].is_string());
        self.body
    }

    /// The fields that a 422 or a `bad_query` names, in order.
    pub fn fields(self, status: u16) -> Vec<String> {
        let code = if status == 400 { "bad_query" } else { "invalid" };
        let body = self.problem(status, code);
        let errors = body["errors"].as_array().unwrap_or_else(|| panic!("{body:#}"));
        assert!(errors.iter().all(|error| error["message"].is_string()));
        errors.iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect()
    }
}

impl Door {
    pub async fn open(db: &TestDb) -> Self {
        Self::with(db, "").await
    }

    /// With a configuration file of this text.
    pub async fn with(db: &TestDb, config: &str) -> Self {
        Self::over(Db::open(&db.url, true, 8).await.unwrap(), config).await
    }

    /// Over a store that is tied to the tables of a shop, too.
    pub async fn over(store: Db, config: &str) -> Self {
        let config = Config::load(Inputs::default().with_file("handback.toml", config)).unwrap();
        let clock = Clock::test(START_MS);
        let core = Core::new(store, clock.clone(), Policy::default());
        let url = config.public_url(config.server.listen).unwrap();
        let mut tokens = Vec::new();
        for (word, scope) in Scope::ALL {
            tokens.push((*scope, new_token(&core, word, *scope).await));
        }
        let app = App::new(core.clone(), config, url, CancellationToken::new());
        Self { core, clock, router: routes::router(app), tokens }
    }

    pub fn token(&self, scope: Scope) -> &str {
        &self.tokens.iter().find(|(known, _)| *known == scope).unwrap().1
    }

    /// As an administrator, who may do everything.
    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, Scope::Admin, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, Scope::Admin, Some(body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.call("PUT", path, Scope::Admin, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, Scope::Admin, None).await
    }

    /// `path` below `/api/v1`.
    pub async fn call(&self, method: &str, path: &str, scope: Scope, body: Option<Value>) -> Answer {
        let mut request = Request::builder().method(method.parse::<Method>().unwrap()).uri(format!("/api/v1{path}"));
        request = request.header("authorization", format!("Bearer {}", self.token(scope)));
        let body = match body {
            Some(body) => {
                request = request.header("content-type", "application/json");
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        self.send(request.body(body).unwrap()).await
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = answer.into_parts();
        let text = to_bytes(body, usize::MAX).await.unwrap();
        let body = serde_json::from_slice(&text)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&text).into_owned()));
        Answer { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// Runs everything that is due at this moment: orders past their deadline, then tasks.
    pub async fn work(&self) {
        handback::core::order::close::close_due(&self.core, Trigger::Scan, 500).await.unwrap();
        while run_due(&self.core, &Actor::Worker("w1".into()), 500).await.unwrap().claimed > 0 {}
    }

    pub async fn stock(&self, key: &str, available: i64) {
        self.put(&format!("/ledger/stock/{key}"), serde_json::json!({"available": available})).await.expect(200);
    }

    /// Available, locked, sold.
    pub async fn figures(&self, path: &str) -> [i64; 3] {
        let row = self.get(&format!("/ledger/{path}")).await.expect(200);
        ["available", "locked", "sold"].map(|name| row[name].as_i64().unwrap())
    }
}

async fn new_token(core: &Core, name: &'static str, scope: Scope) -> String {
    let text = token::generate();
    let (made, now) = (text.clone(), core.now());
    let created = core.db.write(move |conn| {
        let made = made.clone();
        Box::pin(async move { Ok(Decision::Commit(token::create(conn, name, scope, &made, now).await?)) })
    });
    assert!(created.await.unwrap());
    text
}
