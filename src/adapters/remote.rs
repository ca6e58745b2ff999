//! A resource type that another service keeps (A13), over HTTP.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::Method;

use super::contract::{self, APPLIED};
use super::gate::{Gate, Shut};
use super::http::{Http, NoReply, Reply, Request};
use crate::core::clock::Clock;
use crate::core::ports::{Answer, RemoteCall, RemoteService, Room, Told};
use crate::core::words::{Action, ResourceType};

/// More than a call's own limit, for what comes before and after it on a busy machine.
const SLACK_MS: i64 = 5000;

#[derive(Clone, Debug)]
pub struct RemoteSettings {
    pub resource: ResourceType,
    pub base_url: String,
    /// Signs the calls.
    pub secret: Option<String>,
    pub timeout: Duration,
    pub max_concurrency: usize,
    pub rate_per_s: Option<i64>,
    pub key_lifetime: Duration,
    /// What it can be told to do.
    pub actions: Vec<Action>,
    pub has_status: bool,
}

#[derive(Debug)]
pub struct Remote {
    http: Http,
    gate: Gate,
    clock: Clock,
    timeout_ms: i64,
    max_concurrency: usize,
    key_lifetime_ms: i64,
    actions: Vec<Action>,
    has_status: bool,
}

impl Remote {
    /// # Errors
    /// An address that can't be called, in words.
    pub fn new(settings: RemoteSettings, clock: Clock) -> Result<Self, String> {
        let RemoteSettings { resource, base_url, secret, timeout, max_concurrency, rate_per_s, .. } = settings;
        Ok(Self {
            http: Http::new(&base_url, secret.as_deref(), timeout, clock.clone())?,
            gate: Gate::new(resource.word(), clock.clone(), max_concurrency, rate_per_s, timeout),
            clock,
            timeout_ms: in_ms(timeout),
            max_concurrency,
            key_lifetime_ms: in_ms(settings.key_lifetime),
            actions: settings.actions,
            has_status: settings.has_status,
        })
    }

    async fn post(&self, call: &RemoteCall) -> Answer {
        let ticket = match self.gate.enter().await {
            Ok(ticket) => ticket,
            Err(Shut { wait_ms, why }) => return Answer::Held { after_ms: wait_ms, error: why.into() },
        };
        let key = contract::idempotency_key(call);
        let path = path_of(call.action);
        let request = Request { method: Method::POST, path, query: &[], key: Some(&key), body: contract::body(call) };
        let answer = contract::answer(self.http.call(request).await, APPLIED, self.clock.now_ms());
        match &answer {
            Answer::Unknown { .. } => ticket.failed(),
            _ => ticket.answered(),
        }
        answer
    }

    async fn ask(&self, call: &RemoteCall) -> Told {
        let Ok(ticket) = self.gate.enter_to_ask().await else { return Told::Unknown };
        let key = contract::idempotency_key(call);
        let query = [("idempotency_key", key.as_str())];
        let request = Request { method: Method::GET, path: "/status", query: &query, key: None, body: Vec::new() };
        let reply = self.http.call(request).await;
        if is_answer(&reply) {
            ticket.answered()
        } else {
            ticket.failed()
        }
        contract::told(reply)
    }
}

/// A question was answered at all, if only with "not found" or "not now".
pub(super) fn is_answer(reply: &Result<Reply, NoReply>) -> bool {
    reply.as_ref().is_ok_and(|reply| reply.status < 500 || reply.status == 503)
}

fn path_of(action: Action) -> &'static str {
    match action {
        Action::Settle => "/settle",
        Action::TakeBack => "/take-back",
        Action::ReturnIn => "/return-in",
        _ => "/release",
    }
}

pub(super) fn in_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A call waits for its turn as long as it may take, then takes that long.
pub(super) fn lease_ms(timeout_ms: i64) -> i64 {
    2 * timeout_ms + SLACK_MS
}

impl RemoteService for Remote {
    fn supports(&self, action: Action) -> bool {
        self.actions.contains(&action)
    }

    fn has_status(&self) -> bool {
        self.has_status
    }

    fn key_lifetime_ms(&self) -> i64 {
        self.key_lifetime_ms
    }

    fn max_concurrency(&self) -> usize {
        self.max_concurrency
    }

    fn room(&self) -> Room {
        self.gate.room()
    }

    fn lease_ms(&self) -> i64 {
        lease_ms(self.timeout_ms)
    }

    fn send<'a>(&'a self, call: &'a RemoteCall) -> BoxFuture<'a, Answer> {
        self.post(call).boxed()
    }

    fn status<'a>(&'a self, call: &'a RemoteCall) -> BoxFuture<'a, Told> {
        self.ask(call).boxed()
    }
}
