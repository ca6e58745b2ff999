//! `Idempotency-Key`: the same call again gets the same answer, for 24 hours and per token. The
//! same key with another call is a mistake of the caller and says so.
//!
//! The act and the keeping of its answer run in a task of their own: a caller who hangs up must
//! find the answer when it asks again.

use std::time::Duration;

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

use super::fields::FromFields;
use super::request::{Body, LARGEST_BODY};
use crate::core::text::FieldError;
use crate::store::idempotency::{self, KEPT_MS, Known};
use crate::store::token::Token;
use crate::store::{self, Db, Decision};
use crate::web::error::Problem;
use crate::web::state::App;

const HEADER: &str = "idempotency-key";
const LONGEST_KEY: usize = 255;
/// A key without an answer after this long belongs to a process that died.
const ABANDONED_MS: i64 = 30_000;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A body, and whether its call may be answered from what was kept.
pub(super) struct Once<T> {
    value: T,
    key: Option<String>,
    fingerprint: String,
}

impl<T: FromFields> FromRequest<App> for Once<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let key = key_of(&request)?;
        let call = format!("{} {}\n", request.method(), request.uri().path());
        let body = Body::<T>::from_request(request, app).await?;
        let fingerprint = hex::encode(Sha256::new().chain_update(call).chain_update(&body.raw).finalize());
        Ok(Self { value: body.value, key, fingerprint })
    }
}

fn key_of(request: &Request) -> Result<Option<String>, Problem> {
    let Some(value) = request.headers().get(HEADER) else { return Ok(None) };
    let fits = |key: &&str| (1..=LONGEST_KEY).contains(&key.len());
    let key = value.to_str().ok().filter(fits);
    let wrong = || FieldError::new("Idempotency-Key", format!("must be 1 to {LONGEST_KEY} visible ASCII characters"));
    key.map(|key| Some(key.to_owned())).ok_or_else(|| Problem::invalid(&[wrong()]))
}

impl<T: FromFields> Once<T> {
    /// Runs the act, or answers as the first call with this key was answered.
    pub async fn run<A, F>(self, app: &App, token: &Token, act: A) -> Result<Response, Problem>
    where
        A: FnOnce(T) -> F + Send + 'static,
        F: Future<Output = Result<Response, Problem>> + Send,
    {
        let Some(key) = self.key else { return act(self.value).await };
        let slot = Slot { db: app.core.db.clone(), token_id: token.id, key, fingerprint: self.fingerprint };
        if let Some(kept) = slot.begin(app).await? {
            return kept;
        }
        let value = self.value;
        let ran = tokio::spawn(async move {
            let answer = act(value).await.unwrap_or_else(IntoResponse::into_response);
            slot.end(answer).await
        });
        ran.await.map_err(|_| Problem::internal())
    }
}

/// One key of one token.
struct Slot {
    db: Db,
    token_id: i64,
    key: String,
    fingerprint: String,
}

impl Slot {
    /// Takes the key, or answers from it. A twin that is running is waited for.
    async fn begin(&self, app: &App) -> Result<Option<Result<Response, Problem>>, Problem> {
        loop {
            let now = app.core.now();
            if self.take(now).await? {
                return Ok(None);
            }
            let Some(known) = idempotency::find(&mut self.db.read().await?, self.token_id, &self.key).await? else {
                continue;
            };
            if known.created_at < now - KEPT_MS || (known.answer.is_none() && known.created_at < now - ABANDONED_MS) {
                self.forget(now - KEPT_MS).await?;
                continue;
            }
            if let Some(answer) = self.answer(known) {
                return Ok(Some(answer));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn answer(&self, known: Known) -> Option<Result<Response, Problem>> {
        if known.fingerprint != self.fingerprint {
            let detail = "this Idempotency-Key was used for another call within the last 24 hours";
            return Some(Err(Problem::conflict("idempotency_key_reused", detail)));
        }
        known.answer.map(|(status, body)| Ok(replayed(status, body)))
    }

    async fn take(&self, now: i64) -> store::Result<bool> {
        let (token_id, key, fingerprint) = (self.token_id, self.key.clone(), self.fingerprint.clone());
        let taken = self.db.write(move |conn| {
            let (key, fingerprint) = (key.clone(), fingerprint.clone());
            Box::pin(
                async move { Ok(Decision::Commit(idempotency::begin(conn, token_id, &key, &fingerprint, now).await?)) },
            )
        });
        taken.await
    }

    async fn forget(&self, before: i64) -> store::Result<u64> {
        let (token_id, key) = (self.token_id, self.key.clone());
        let forgotten = self.db.write(move |conn| {
            let key = key.clone();
            Box::pin(async move { Ok(Decision::Commit(idempotency::forget(conn, token_id, &key, before).await?)) })
        });
        forgotten.await
    }

    /// Keeps the answer, unless it says "ask again". The act is done either way, so its answer goes
    /// out even when it can't be kept.
    async fn end(&self, answer: Response) -> Response {
        let (head, body) = answer.into_parts();
        let body = to_bytes(body, LARGEST_BODY * 16).await.unwrap_or_else(|_| Bytes::new());
        let kept = if head.status.is_server_error() {
            self.forget(0).await
        } else {
            self.keep(i64::from(head.status.as_u16()), String::from_utf8_lossy(&body).into_owned()).await
        };
        if let Err(error) = kept {
            tracing::warn!(error = %error, token.id = self.token_id, "an answer could not be kept for its Idempotency-Key");
        }
        Response::from_parts(head, body.into())
    }

    async fn keep(&self, status: i64, body: String) -> store::Result<u64> {
        let (token_id, key) = (self.token_id, self.key.clone());
        let kept = self.db.write(move |conn| {
            let (key, body) = (key.clone(), body.clone());
            Box::pin(async move { Ok(Decision::Commit(idempotency::keep(conn, token_id, &key, status, &body).await?)) })
        });
        kept.await
    }
}

fn replayed(status: i64, body: String) -> Response {
    let status = u16::try_from(status).ok().and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = if status.is_success() { "application/json" } else { "application/problem+json" };
    (status, [(CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response()
}
