//! The payment channel over HTTP: asked whether an order is paid (B5), told to give money back.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::contract::{self, REFUNDED};
use super::gate::{Gate, Shut};
use super::http::{Http, NoReply, Reply, Request};
use super::remote::{in_ms, is_answer, lease_ms};
use crate::core::clock::Clock;
use crate::core::instant;
use crate::core::ports::{Answer, Asked, PaymentChannel, RefundCall, Room};

/// Calls side by side.
const SIDE_BY_SIDE: usize = 8;

#[derive(Clone, Debug)]
pub struct ChannelSettings {
    pub base_url: String,
    pub secret: Option<String>,
    pub timeout: Duration,
}

#[derive(Debug)]
pub struct Channel {
    http: Http,
    /// Questions and refunds don't hold each other up.
    questions: Gate,
    refunds: Gate,
    clock: Clock,
    timeout_ms: i64,
}

impl Channel {
    /// # Errors
    /// An address that can't be called, in words.
    pub fn new(settings: &ChannelSettings, clock: Clock) -> Result<Self, String> {
        let gate = |name| Gate::new(name, clock.clone(), SIDE_BY_SIDE, None, settings.timeout);
        Ok(Self {
            http: Http::new(&settings.base_url, settings.secret.as_deref(), settings.timeout, clock.clone())?,
            questions: gate("channel"),
            refunds: gate("channel refunds"),
            timeout_ms: in_ms(settings.timeout),
            clock,
        })
    }

    async fn ask_here(&self, order_no: &str) -> Asked {
        let ticket = match self.questions.enter_to_ask().await {
            Ok(ticket) => ticket,
            Err(Shut { why, .. }) => return Asked::Unknown(why.into()),
        };
        let query = [("order_no", order_no)];
        let request = Request { method: Method::GET, path: "/payment", query: &query, key: None, body: Vec::new() };
        let reply = self.http.call(request).await;
        if is_answer(&reply) {
            ticket.answered()
        } else {
            ticket.failed()
        }
        asked(reply)
    }

    async fn refund_here(&self, refund: &RefundCall) -> Answer {
        let ticket = match self.refunds.enter().await {
            Ok(ticket) => ticket,
            Err(Shut { wait_ms, why }) => return Answer::Held { after_ms: wait_ms, error: why.into() },
        };
        let key = contract::idempotency_key(&refund.effect);
        let body = json!({
            "order_no": refund.order_no,
            "channel": refund.channel,
            "channel_txn": refund.channel_txn,
            "amount": refund.amount,
            "currency": refund.currency,
        });
        let body = body.to_string().into_bytes();
        let request = Request { method: Method::POST, path: "/refund", query: &[], key: Some(&key), body };
        let answer = contract::answer(self.http.call(request).await, REFUNDED, self.clock.now_ms());
        match &answer {
            Answer::Unknown { .. } => ticket.failed(),
            _ => ticket.answered(),
        }
        answer
    }
}

#[derive(Deserialize)]
struct Payment {
    state: String,
    channel: Option<String>,
    channel_txn: Option<String>,
    amount: Option<i64>,
    currency: Option<String>,
    occurred_at: Option<String>,
}

/// What the channel's answer says. "Paid" counts only with everything that makes it a payment.
fn asked(reply: Result<Reply, NoReply>) -> Asked {
    let reply = match reply {
        Ok(reply) => reply,
        Err(NoReply { error, .. }) => return Asked::Unknown(error),
    };
    let said = serde_json::from_slice::<Payment>(&reply.body).ok().filter(|_| reply.status == 200);
    match said {
        Some(said) if said.state == "not_paid" => Asked::NotPaid,
        Some(said) if said.state == "paid" => paid(said).unwrap_or_else(|| Asked::Unknown(reply.shown())),
        _ => Asked::Unknown(reply.shown()),
    }
}

fn paid(said: Payment) -> Option<Asked> {
    Some(Asked::Paid {
        channel: said.channel?,
        channel_txn: said.channel_txn?,
        amount: said.amount?,
        currency: said.currency?,
        occurred_at: instant::parse_moment(&said.occurred_at?)?,
    })
}

impl PaymentChannel for Channel {
    fn lease_ms(&self) -> i64 {
        lease_ms(self.timeout_ms)
    }

    fn room(&self) -> Room {
        self.refunds.room()
    }

    fn ask<'a>(&'a self, order_no: &'a str) -> BoxFuture<'a, Asked> {
        self.ask_here(order_no).boxed()
    }

    fn refund<'a>(&'a self, refund: &'a RefundCall) -> BoxFuture<'a, Answer> {
        self.refund_here(refund).boxed()
    }
}
