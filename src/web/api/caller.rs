//! Who calls: a bearer token and what it may do. The scope stands in a handler's signature, so a
//! handler without a check doesn't compile into one with a caller.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use crate::core::words::Actor;
use crate::store::token::{self, Scope, Token};
use crate::web::error::Problem;
use crate::web::state::App;

/// How stale "last used" may be, in milliseconds: noting each call would be a write per read.
const TOUCH_EVERY_MS: i64 = 60_000;

/// A scope as a type.
pub(super) trait Needs: Send + Sync {
    const SCOPE: Scope;
}

pub(super) struct ToRead;
pub(super) struct ToShop;
pub(super) struct ToOperate;

impl Needs for ToRead {
    const SCOPE: Scope = Scope::Read;
}
impl Needs for ToShop {
    const SCOPE: Scope = Scope::Shop;
}
impl Needs for ToOperate {
    const SCOPE: Scope = Scope::Operate;
}

/// A caller whose token covers what the handler needs.
pub(super) struct Caller<N> {
    pub token: Token,
    needs: PhantomData<N>,
}

impl<N> Caller<N> {
    pub fn actor(&self) -> Actor {
        Actor::Token(self.token.name.clone())
    }

    /// For the one field that needs more than its route.
    pub fn require(&self, scope: Scope) -> Result<(), Problem> {
        require(&self.token, scope)
    }
}

impl<N: Needs> FromRequestParts<App> for Caller<N> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let token = authenticate(&parts.headers, app).await?;
        require(&token, N::SCOPE)?;
        Ok(Self { token, needs: PhantomData })
    }
}

fn require(token: &Token, scope: Scope) -> Result<(), Problem> {
    if token.scope.covers(scope) {
        return Ok(());
    }
    let (own, needed) = (token.scope.word(), scope.word());
    Err(Problem::forbidden(format!("this token has the scope {own}; {needed} is needed")))
}

/// The token of a request. Unknown, revoked and malformed ones are told apart to nobody.
pub(super) async fn authenticate(headers: &HeaderMap, app: &App) -> Result<Token, Problem> {
    let refused = || Problem::unauthenticated("a valid bearer token is needed");
    let text = bearer(headers).ok_or_else(refused)?;
    let token = token::find(&mut app.core.db.read().await?, text).await?.ok_or_else(refused)?;
    let now = app.core.now();
    if token.used_at.is_none_or(|used| used + TOUCH_EVERY_MS < now) {
        note_use(app, token.id, now);
    }
    Ok(token)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim()).filter(|token| !token.is_empty())
}

/// In the background: nobody waits for it, and it isn't missed when it fails.
fn note_use(app: &App, id: i64, now: i64) {
    let db = app.core.db.clone();
    tokio::spawn(async move {
        let noted = db.write(move |conn| {
            Box::pin(async move { Ok(crate::store::Decision::Commit(token::touch(conn, id, now).await?)) })
        });
        if let Err(error) = noted.await {
            tracing::debug!(error = %error, token.id = id, "the use of a token was not noted");
        }
    });
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn of(value: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
        bearer(&headers).map(str::to_owned)
    }

    #[test]
    fn only_a_bearer_token_counts() {
        assert_eq!(of("Bearer hb_x").as_deref(), Some("hb_x"));
        assert_eq!(of("bearer  hb_x").as_deref(), Some("hb_x"));
        for other in ["Basic aGI6eA==", "Bearer", "Bearer ", "hb_x", ""] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
