//! What the core asks of services that others keep: remote resources and the payment channel. Adapters
//! implement these; nothing here knows HTTP. Neither is ever called while a transaction is open (R12).

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::core::words::{Action, FailureKind, ResourceType};

/// One effect that a remote service is to make. The same effect has the same idempotency key for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCall {
    pub order_no: String,
    pub ref_no: String,
    pub source: String,
    pub round: i64,
    pub action: Action,
    pub resource: ResourceType,
    pub key: String,
    pub qty: i64,
    /// Which try this is, from 1. Not part of the key.
    pub attempt: i64,
}

/// How a service answered, or that it didn't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Applied,
    /// It had been applied before: a success, and a duplicate.
    AlreadyApplied,
    /// Refused for certain, with the reason's kind and the raw answer.
    Refused {
        kind: FailureKind,
        error: String,
    },
    /// Not now: 429 or 503. Nothing was done by this call.
    Busy {
        after_ms: Option<i64>,
        error: String,
    },
    /// Not sent at all: the circuit to the service is open, or its rate is used up. No try was made.
    Held {
        after_ms: i64,
        error: String,
    },
    /// Sent, and nobody knows what became of it. `kind` is `remote_timeout` or `remote_error`.
    Unknown {
        kind: FailureKind,
        error: String,
    },
}

/// What a service says when it is asked after an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Done,
    NotDone,
    Unknown,
}

/// How many calls a service takes at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub calls: usize,
    /// When there is none: how long until it is worth looking again.
    pub wait_ms: i64,
}

/// A resource type that another service keeps (A13).
pub trait RemoteService: Send + Sync {
    fn supports(&self, action: Action) -> bool;
    /// Can it be asked whether an effect exists?
    fn has_status(&self) -> bool;
    /// How long it remembers an idempotency key.
    fn key_lifetime_ms(&self) -> i64;
    /// Calls side by side at most.
    fn max_concurrency(&self) -> usize;
    /// Looked at before tasks are claimed, so that none is claimed only to wait.
    fn room(&self) -> Room {
        Room { calls: self.max_concurrency(), wait_ms: 0 }
    }
    /// Longer than any call can take: how long a claim is kept.
    fn lease_ms(&self) -> i64;
    fn send<'a>(&'a self, call: &'a RemoteCall) -> BoxFuture<'a, Answer>;
    fn status<'a>(&'a self, call: &'a RemoteCall) -> BoxFuture<'a, Told>;
}

/// Money to give back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefundCall {
    pub order_no: String,
    pub channel: String,
    pub channel_txn: String,
    /// Minor units.
    pub amount: i64,
    pub currency: String,
    /// What the idempotency key is made of.
    pub effect: RemoteCall,
}

/// What the channel says of an order's payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Paid {
        channel: String,
        channel_txn: String,
        amount: i64,
        currency: String,
        occurred_at: i64,
    },
    NotPaid,
    /// It said so, or didn't answer; the text says which.
    Unknown(String),
}

/// The payment channel (B5, refunds).
pub trait PaymentChannel: Send + Sync {
    /// Longer than any call can take.
    fn lease_ms(&self) -> i64;
    /// How many refunds it takes at this moment.
    fn room(&self) -> Room {
        Room { calls: 8, wait_ms: 0 }
    }
    fn ask<'a>(&'a self, order_no: &'a str) -> BoxFuture<'a, Asked>;
    fn refund<'a>(&'a self, refund: &'a RefundCall) -> BoxFuture<'a, Answer>;
}

/// The services this Handback works with.
#[derive(Clone, Default)]
pub struct Services {
    pub remote: HashMap<ResourceType, Arc<dyn RemoteService>>,
    pub channel: Option<Arc<dyn PaymentChannel>>,
}
