//! A stand-in for a service that keeps a resource, and for a payment channel: it speaks the contract of
//! `docs/remote.md`, remembers each idempotency key, counts effects, and lies in every way the contract allows.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

/// How it answers one call.
#[derive(Clone, Debug, PartialEq)]
pub enum Does {
    /// Applies the effect once and says so; the second time says that it was there already.
    Apply,
    /// Applies it and never answers.
    ApplyAndHang,
    /// Applies it and cuts the connection in the middle of the answer.
    ApplyAndCut,
    /// Applies it and answers with this status and body.
    ApplyAndSay(u16, String),
    /// Applies nothing and never answers.
    Hang,
    /// Applies nothing and sends an answer that never ends, a byte at a time.
    Drip,
    /// Applies nothing and answers with a body that is far too large.
    Huge,
    /// Applies nothing; status, headers and body as given.
    Say(u16, Vec<(&'static str, String)>, String),
}

impl Does {
    pub fn say(status: u16, body: &str) -> Self {
        Self::Say(status, Vec::new(), body.to_owned())
    }

    pub fn refuse(status: u16, reason: &str) -> Self {
        Self::Say(status, Vec::new(), json!({"reason": reason}).to_string())
    }

    pub fn busy(status: u16, retry_after: &str) -> Self {
        Self::Say(status, vec![("retry-after", retry_after.to_owned())], String::new())
    }
}

/// A call that came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub query: HashMap<String, String>,
    pub key: Option<String>,
    pub headers: HeaderMap,
    pub raw: Vec<u8>,
    pub body: Value,
}

type Hook = Arc<dyn Fn(Seen) -> BoxFuture<'static, ()> + Send + Sync>;

#[derive(Default)]
struct Book {
    /// What comes next for calls to a path, before `always` applies.
    next: HashMap<String, VecDeque<Does>>,
    always: HashMap<String, Does>,
    /// How often each key's effect was made. More than once is the fault that all this is about.
    effects: HashMap<String, u32>,
    /// The body each key came with first.
    bodies: HashMap<String, Value>,
    seen: Vec<Seen>,
    states: HashMap<String, String>,
    payments: HashMap<String, Value>,
    hook: Option<Hook>,
    running: usize,
    most_running: usize,
}

#[derive(Clone)]
pub struct Standin {
    pub url: String,
    book: Arc<Mutex<Book>>,
}

impl Standin {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let standin = Self { url, book: Arc::default() };
        let app = Router::new().fallback(answer).with_state(standin.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        standin
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    /// How the next call to this path (`/release`, …) is answered; several calls line up.
    pub fn next(&self, path: &str, does: Does) {
        self.book().next.entry(path.to_owned()).or_default().push_back(does);
    }

    /// How every other call to this path is answered; `Apply` unless said.
    pub fn always(&self, path: &str, does: Does) {
        self.book().always.insert(path.to_owned(), does);
    }

    /// What `/status` says of a key, instead of the truth.
    pub fn says_of(&self, key: &str, state: &str) {
        self.book().states.insert(key.to_owned(), state.to_owned());
    }

    /// What `/payment` says of an order.
    pub fn pays(&self, order_no: &str, payment: Value) {
        self.book().payments.insert(order_no.to_owned(), payment);
    }

    /// Runs within each call, before it is answered.
    pub fn during_calls(&self, hook: impl Fn(Seen) -> BoxFuture<'static, ()> + Send + Sync + 'static) {
        self.book().hook = Some(Arc::new(hook));
    }

    pub fn seen(&self, path: &str) -> Vec<Seen> {
        self.book().seen.iter().filter(|seen| seen.path == path).cloned().collect()
    }

    /// How many calls to this path came.
    pub fn calls(&self, path: &str) -> usize {
        self.book().seen.iter().filter(|seen| seen.path == path).count()
    }

    pub fn most_running(&self) -> usize {
        self.book().most_running
    }

    pub fn running(&self) -> usize {
        self.book().running
    }

    /// Every effect, as (action, key of the resource, how often it was made).
    pub fn effects(&self) -> Vec<(String, String, u32)> {
        let book = self.book();
        let word = |key: &str, field: &str| book.bodies[key][field].as_str().unwrap_or_default().to_owned();
        let mut effects: Vec<_> =
            book.effects.iter().map(|(key, count)| (word(key, "action"), word(key, "key"), *count)).collect();
        effects.sort();
        effects
    }

    pub fn effect_count(&self) -> usize {
        self.book().effects.len()
    }

    /// No effect was made twice, and no key stands for two effects.
    pub fn each_effect_once(&self) {
        let book = self.book();
        let twice: Vec<_> = book.effects.iter().filter(|(_, count)| **count != 1).collect();
        assert!(twice.is_empty(), "made more than once: {twice:?}");
    }

    fn arrives(&self, seen: &Seen) -> (Does, Option<Hook>) {
        let mut book = self.book();
        book.running += 1;
        book.most_running = book.most_running.max(book.running);
        book.seen.push(seen.clone());
        let next = book.next.get_mut(&seen.path).and_then(VecDeque::pop_front);
        let does = next.or_else(|| book.always.get(&seen.path).cloned()).unwrap_or(Does::Apply);
        (does, book.hook.clone())
    }

    /// Makes the effect unless its key is known; `true` when it was new.
    fn apply(&self, seen: &Seen) -> bool {
        let Some(key) = seen.key.clone() else { return false };
        let mut book = self.book();
        if book.effects.contains_key(&key) {
            return false;
        }
        book.bodies.insert(key.clone(), seen.body.clone());
        book.effects.insert(key, 1);
        true
    }

    fn state_of(&self, key: &str) -> String {
        let book = self.book();
        let truth = if book.effects.contains_key(key) { "done" } else { "not_done" };
        book.states.get(key).cloned().unwrap_or_else(|| truth.to_owned())
    }
}

async fn answer(
    State(standin): State<Standin>,
    method: Method,
    uri: Uri,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    raw: Bytes,
) -> Response {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).map(str::to_owned);
    let body = serde_json::from_slice(&raw).unwrap_or(Value::Null);
    let seen = Seen { path: uri.path().to_owned(), query, key, headers, raw: raw.to_vec(), body };
    let (does, hook) = standin.arrives(&seen);
    let running = Running(standin.clone());
    if let Some(hook) = hook {
        hook(seen.clone()).await;
    }
    let answered = match (method, seen.path.as_str(), &does) {
        (Method::GET, "/status", Does::Apply) => {
            let key = seen.query.get("idempotency_key").cloned().unwrap_or_default();
            reply(200, &[], json!({"state": standin.state_of(&key)}).to_string())
        }
        (Method::GET, "/payment", Does::Apply) => {
            let order_no = seen.query.get("order_no").cloned().unwrap_or_default();
            let payment = standin.book().payments.get(&order_no).cloned();
            reply(200, &[], payment.unwrap_or_else(|| json!({"state": "not_paid"})).to_string())
        }
        _ => act(&standin, &seen, does).await,
    };
    drop(running);
    answered
}

/// Counts a call as running until it is answered, or its client is gone.
struct Running(Standin);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.book().running -= 1;
    }
}

async fn act(standin: &Standin, seen: &Seen, does: Does) -> Response {
    match does {
        Does::Apply => {
            let refund = seen.path == "/refund";
            let word = match (standin.apply(seen), refund) {
                (true, false) => "applied",
                (false, false) => "already_applied",
                (true, true) => "refunded",
                (false, true) => "already_refunded",
            };
            reply(200, &[], json!({"result": word}).to_string())
        }
        Does::ApplyAndHang => {
            standin.apply(seen);
            std::future::pending().await
        }
        Does::Hang => std::future::pending().await,
        Does::ApplyAndCut => {
            standin.apply(seen);
            let pieces = [Ok(Bytes::from_static(b"{\"result\"")), Err(std::io::Error::other("cut"))];
            Response::new(Body::from_stream(stream::iter(pieces)))
        }
        Does::ApplyAndSay(status, body) => {
            standin.apply(seen);
            reply(status, &[], body)
        }
        Does::Drip => {
            let drops = stream::repeat(Ok::<_, Infallible>(Bytes::from_static(b" "))).then(|drop| async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                drop
            });
            Response::new(Body::from_stream(drops))
        }
        Does::Huge => {
            let piece = Bytes::from(vec![b' '; 64 * 1024]);
            Response::new(Body::from_stream(stream::repeat(Ok::<_, Infallible>(piece)).take(1024)))
        }
        Does::Say(status, headers, body) => {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            reply(status, &headers, body)
        }
    }
}

fn reply(status: u16, headers: &[(&str, &str)], body: String) -> Response {
    let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Body::from(body)).unwrap()
}

/// Whether a call carries the signature that its body, its time and this secret make.
pub fn is_signed_with(seen: &Seen, secret: &str) -> bool {
    let header = |name: &str| seen.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(header("handback-timestamp").as_bytes());
    mac.update(b".");
    mac.update(&seen.raw);
    header("handback-signature") == format!("v1={}", hex::encode(mac.finalize().into_bytes()))
}
