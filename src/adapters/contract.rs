//! The remote contract in code: the key of an effect, the body that is sent, and what each answer means. The
//! table of answers is in `docs/remote.md`.

use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::http::{NoReply, Reply};
use crate::core::ports::{Answer, RemoteCall, Told};
use crate::core::words::FailureKind;

/// Nobody is waited for longer than this, whatever Retry-After says.
const LONGEST_WAIT_MS: i64 = 30 * 60_000;

/// The key of an effect: the same for each try, restart and operator. `hb1-` and the SHA-256 of the compact JSON
/// array of what makes it unique.
pub fn idempotency_key(call: &RemoteCall) -> String {
    let parts =
        json!([call.action.word(), call.ref_no, call.source, call.round, call.resource.word(), call.key]).to_string();
    format!("hb1-{}", hex::encode(Sha256::digest(parts.as_bytes())))
}

/// The body of `/settle`, `/release`, `/take-back` and `/return-in`.
pub fn body(call: &RemoteCall) -> Vec<u8> {
    json!({
        "order_no": call.order_no,
        "ref_no": call.ref_no,
        "source": call.source,
        "round": call.round,
        "type": call.resource.word(),
        "key": call.key,
        "qty": call.qty,
        "action": call.action.word(),
        "attempt": call.attempt,
    })
    .to_string()
    .into_bytes()
}

/// The words of success: of a resource, or of a refund.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    pub done: &'static str,
    pub already: &'static str,
}

pub const APPLIED: Words = Words { done: "applied", already: "already_applied" };
pub const REFUNDED: Words = Words { done: "refunded", already: "already_refunded" };

#[derive(Deserialize)]
struct Said {
    result: Option<String>,
    reason: Option<String>,
}

/// What an answer to a call means; `now` is for a Retry-After that names a date.
pub fn answer(reply: Result<Reply, NoReply>, words: Words, now: i64) -> Answer {
    let reply = match reply {
        Ok(reply) => reply,
        Err(NoReply { kind, error }) => return Answer::Unknown { kind, error },
    };
    let said = serde_json::from_slice::<Said>(&reply.body).ok();
    let unknown = || Answer::Unknown { kind: FailureKind::RemoteError, error: reply.shown() };
    match reply.status {
        200 => match said.and_then(|said| said.result) {
            Some(result) if result == words.done => Answer::Applied,
            Some(result) if result == words.already => Answer::AlreadyApplied,
            _ => unknown(),
        },
        409 | 422 => match said.and_then(|said| said.reason) {
            Some(reason) => Answer::Refused { kind: refusal(&reason), error: reply.shown() },
            None => unknown(),
        },
        429 | 503 => Answer::Busy { after_ms: retry_after_ms(&reply.headers, now), error: reply.shown() },
        _ => unknown(),
    }
}

fn refusal(reason: &str) -> FailureKind {
    [FailureKind::LockedInsufficient, FailureKind::StateMismatch, FailureKind::ResourceMissing]
        .into_iter()
        .find(|kind| kind.word() == reason)
        .unwrap_or(FailureKind::Rejected)
}

/// Seconds, or an HTTP date; at most half an hour.
fn retry_after_ms(headers: &HeaderMap, now: i64) -> Option<i64> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let ms = match value.parse::<u64>() {
        Ok(seconds) => i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000),
        Err(_) => http_date_ms(value)? - now,
    };
    Some(ms.clamp(0, LONGEST_WAIT_MS))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that is still written.
fn http_date_ms(text: &str) -> Option<i64> {
    let form = time::macros::format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let at = time::PrimitiveDateTime::parse(text, &form).ok()?.assume_utc();
    Some(at.unix_timestamp() * 1000)
}

#[derive(Deserialize)]
struct State {
    state: String,
}

/// What a status call says. Anything but a clear word is unknown.
pub fn told(reply: Result<Reply, NoReply>) -> Told {
    let Ok(reply) = reply else { return Told::Unknown };
    if reply.status != 200 {
        return Told::Unknown;
    }
    match serde_json::from_slice::<State>(&reply.body).map(|said| said.state).as_deref() {
        Ok("done") => Told::Done,
        Ok("not_done") => Told::NotDone,
        _ => Told::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::words::{Action, ResourceType};
    use reqwest::header::HeaderValue;

    fn call() -> RemoteCall {
        RemoteCall {
            order_no: "A-1001".into(),
            ref_no: "A-1001".into(),
            source: "close".into(),
            round: 1,
            action: Action::Release,
            resource: ResourceType::Coupon,
            key: "券/7".into(),
            qty: 1,
            attempt: 1,
        }
    }

    #[test]
    fn the_key_is_the_documented_digest_whatever_the_try() {
        // printf '["release","A-1001","close",1,"coupon","券/7"]' | sha256sum
        let key = idempotency_key(&call());
        assert_eq!(key, KEY);
        assert_eq!(idempotency_key(&RemoteCall { attempt: 7, qty: 3, ..call() }), key);
        assert_ne!(idempotency_key(&RemoteCall { round: 2, ..call() }), key);
    }

    const KEY: &str = "hb1-68995e6a1e744203ce6067304d0079907972ff3455b1c19d801a2ad74267cec6";

    fn reply(status: u16, body: &str) -> Result<Reply, NoReply> {
        Ok(Reply { status, headers: HeaderMap::new(), body: body.as_bytes().to_vec() })
    }

    #[test]
    fn only_what_the_contract_names_is_certain() {
        let means = |status, body| match answer(reply(status, body), APPLIED, 0) {
            Answer::Applied => "applied",
            Answer::AlreadyApplied => "already_applied",
            Answer::Refused { kind, .. } => kind.word(),
            Answer::Busy { .. } => "busy",
            Answer::Held { .. } => "held",
            Answer::Unknown { kind, .. } => kind.word(),
        };
        for (status, body, meaning) in [
            (200, r#"{"result": "applied"}"#, "applied"),
            (200, r#"{"result": "already_applied", "more": 1}"#, "already_applied"),
            (200, r#"{"result": "refunded"}"#, "remote_error"),
            (200, "{", "remote_error"),
            (200, "", "remote_error"),
            (201, r#"{"result": "applied"}"#, "remote_error"),
            (302, "", "remote_error"),
            (404, r#"{"reason": "resource_missing"}"#, "remote_error"),
            (409, r#"{"reason": "locked_insufficient"}"#, "locked_insufficient"),
            (422, r#"{"reason": "state_mismatch"}"#, "state_mismatch"),
            (409, r#"{"reason": "resource_missing"}"#, "resource_missing"),
            (422, r#"{"reason": "we don't like it"}"#, "rejected"),
            (409, "<html>", "remote_error"),
            (429, "", "busy"),
            (503, "<html>", "busy"),
            (500, r#"{"result": "applied"}"#, "remote_error"),
        ] {
            assert_eq!(means(status, body), meaning, "{status} {body}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_at_most_half_an_hour() {
        // 1994-11-06 08:49:00 UTC.
        let now = 784_111_740_000;
        for (value, ms) in [
            ("7", Some(7000)),
            ("86400", Some(LONGEST_WAIT_MS)),
            ("99999999999999999999", None),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(37_000)),
            ("Sun, 06 Nov 1994 08:48:37 GMT", Some(0)),
            ("soon", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(value));
            assert_eq!(retry_after_ms(&headers, now), ms, "{value}");
        }
    }

    #[test]
    fn a_status_is_one_of_two_words_or_unknown() {
        assert_eq!(told(reply(200, r#"{"state": "done"}"#)), Told::Done);
        assert_eq!(told(reply(200, r#"{"state": "not_done"}"#)), Told::NotDone);
        for (status, body) in [(200, r#"{"state": "unknown"}"#), (404, r#"{"state": "not_done"}"#), (200, "[]")] {
            assert_eq!(told(reply(status, body)), Told::Unknown);
        }
    }
}
