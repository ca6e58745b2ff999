//! One bounded call: no redirects, no proxy from the environment, limits on connecting, on the whole call and on
//! the size of the answer. Whatever goes wrong has a kind and a text without the address, which may hold a
//! password (R24).

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, Method, Url};

use super::sign::Signer;
use super::tls;
use crate::core::clock::Clock;
use crate::core::words::FailureKind;

/// No answer of the contract is longer.
const LONGEST_ANSWER: usize = 64 * 1024;
/// How much of an answer is kept for a person to read.
const SHOWN: usize = 500;

#[derive(Debug)]
pub struct Http {
    client: Client,
    base: Url,
    signer: Option<Signer>,
    clock: Clock,
    timeout: Duration,
}

/// An answer that came whole and in time.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// No such answer: what was sent may have been done all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoReply {
    pub kind: FailureKind,
    pub error: String,
}

/// What is sent.
pub struct Request<'r> {
    pub method: Method,
    pub path: &'r str,
    pub query: &'r [(&'r str, &'r str)],
    pub key: Option<&'r str>,
    /// Empty for GET.
    pub body: Vec<u8>,
}

impl Http {
    /// # Errors
    /// An address that can't be called, in words.
    pub fn new(base_url: &str, secret: Option<&str>, timeout: Duration, clock: Clock) -> Result<Self, String> {
        let base = Url::parse(base_url).map_err(|error| format!("isn't an address: {error}"))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err("must begin with http:// or https://".into());
        }
        if base.host_str().is_none() {
            return Err("names no host".into());
        }
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .tls_backend_preconfigured(tls::config(base.scheme())?)
            .connect_timeout(timeout)
            .timeout(timeout)
            .user_agent(concat!("handback/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| error.without_url().to_string())?;
        Ok(Self { client, base, signer: secret.map(Signer::new), clock, timeout })
    }

    /// Makes the call. The limit holds over all of it, also against an answer that drips.
    pub async fn call(&self, request: Request<'_>) -> Result<Reply, NoReply> {
        match tokio::time::timeout(self.timeout, self.call_here(request)).await {
            Ok(done) => done,
            Err(_) => Err(NoReply {
                kind: FailureKind::RemoteTimeout,
                error: format!("no whole answer within {} ms", self.timeout.as_millis()),
            }),
        }
    }

    async fn call_here(&self, request: Request<'_>) -> Result<Reply, NoReply> {
        let mut sent = self.client.request(request.method, self.address(request.path, request.query));
        if let Some(key) = request.key {
            sent = sent.header("Idempotency-Key", key);
        }
        if let Some(signer) = &self.signer {
            let timestamp = self.clock.now_ms() / 1000;
            let signature = signer.signature(timestamp, &request.body).and_then(|s| HeaderValue::from_str(&s).ok());
            sent = sent.header("Handback-Timestamp", timestamp);
            if let Some(signature) = signature {
                sent = sent.header("Handback-Signature", signature);
            }
        }
        if !request.body.is_empty() {
            sent = sent.header("Content-Type", "application/json").body(request.body);
        }
        let mut answer = sent.send().await.map_err(no_reply)?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(no_reply)? {
            if body.len() + chunk.len() > LONGEST_ANSWER {
                let error = format!("{status} with more than {LONGEST_ANSWER} bytes");
                return Err(NoReply { kind: FailureKind::RemoteError, error });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Reply { status, headers, body })
    }

    fn address(&self, path: &str, query: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }
}

impl Reply {
    /// Status and the beginning of the body, for a person to read.
    pub fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect();
        format!("{} {}", self.status, text.trim()).trim_end().to_owned()
    }
}

fn no_reply(error: reqwest::Error) -> NoReply {
    let error = error.without_url();
    let is_cut = error.is_timeout() || error.is_connect() || error.is_body() || error.is_decode() || error.is_request();
    let kind = if is_cut { FailureKind::RemoteTimeout } else { FailureKind::RemoteError };
    // What reqwest says itself is only that it failed; why is in the causes.
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    NoReply { kind, error: text.chars().take(SHOWN).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(base: &str) -> Http {
        Http::new(base, None, Duration::from_secs(1), Clock::test(0)).unwrap()
    }

    #[test]
    fn paths_go_below_the_base_and_values_are_encoded() {
        let query = [("order_no", "A/1 &ü+%")];
        assert_eq!(
            http("http://h:1/api/").address("/payment", &query).as_str(),
            "http://h:1/api/payment?order_no=A%2F1+%26%C3%BC%2B%25"
        );
        assert_eq!(http("http://h?token=x").address("/settle", &[]).as_str(), "http://h/settle?token=x");
    }

    #[test]
    fn an_address_that_cannot_be_called_is_said_at_start() {
        for bad in ["ftp://h", "http://", "nothing"] {
            assert!(Http::new(bad, None, Duration::from_secs(1), Clock::test(0)).is_err(), "{bad}");
        }
    }
}
