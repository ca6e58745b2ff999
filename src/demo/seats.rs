//! The service beside the simulated shop that keeps the seats and stands for the payment channel. It does what
//! it is told, once per key, and lies about it the way services do: an answer that never comes, an answer nobody
//! can read, "not now", a fault of its own.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Of a thousand answers so many go wrong, each in its own way.
const LOST: u32 = 30;
const BROKEN: u32 = 20;
const BUSY: u32 = 20;
const FAULTY: u32 = 20;

#[derive(Clone)]
struct Service(Arc<Inner>);

struct Inner {
    /// Effects by idempotency key.
    done: Mutex<HashMap<String, ()>>,
    rng: Mutex<StdRng>,
}

/// Listens on a free port of the loopback; answers the address.
pub async fn open(seed: u64, stop: CancellationToken) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let inner = Inner { done: Mutex::default(), rng: Mutex::new(StdRng::seed_from_u64(seed)) };
    let router = Router::new()
        .route("/settle", post(effect))
        .route("/release", post(effect))
        .route("/take-back", post(effect))
        .route("/return-in", post(effect))
        .route("/status", get(status))
        .route("/payment", get(payment))
        .route("/refund", post(refund))
        .with_state(Service(Arc::new(inner)));
    tokio::spawn(async move {
        let _ = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await;
    });
    Ok(address)
}

impl Service {
    fn chance(&self) -> u32 {
        self.0.rng.lock().map_or(1000, |mut rng| rng.random_range(0..1000))
    }

    /// Makes the effect of this key; `false` when it exists already.
    fn make(&self, key: &str) -> bool {
        self.0.done.lock().is_ok_and(|mut done| done.insert(key.to_owned(), ()).is_none())
    }

    fn has(&self, key: &str) -> bool {
        self.0.done.lock().is_ok_and(|done| done.contains_key(key))
    }

    /// Does it, and tells the truth about it most of the time.
    async fn answer(&self, headers: &HeaderMap, new: &str, known: &str) -> Response {
        let key = headers.get("idempotency-key").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let chance = self.chance();
        if chance < BUSY {
            return (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")], "").into_response();
        }
        if chance < BUSY + FAULTY {
            return (StatusCode::INTERNAL_SERVER_ERROR, "the seat map is being rebuilt").into_response();
        }
        let result = if self.make(key) { new } else { known };
        if chance < BUSY + FAULTY + LOST {
            // Done, and the caller never hears of it.
            tokio::time::sleep(Duration::from_secs(5)).await;
        } else if chance < BUSY + FAULTY + LOST + BROKEN {
            return (StatusCode::OK, "<html>OK</html>").into_response();
        }
        Json(json!({ "result": result })).into_response()
    }
}

async fn effect(State(service): State<Service>, headers: HeaderMap) -> Response {
    service.answer(&headers, "applied", "already_applied").await
}

async fn refund(State(service): State<Service>, headers: HeaderMap) -> Response {
    service.answer(&headers, "refunded", "already_refunded").await
}

#[derive(Deserialize)]
struct About {
    idempotency_key: String,
}

async fn status(State(service): State<Service>, Query(about): Query<About>) -> Response {
    let state = if service.has(&about.idempotency_key) { "done" } else { "not_done" };
    Json(json!({ "state": state })).into_response()
}

/// Whoever began to pay here and didn't finish hasn't paid; now and then the channel doesn't know.
async fn payment(State(service): State<Service>) -> Response {
    let state = if service.chance() < 100 { "unknown" } else { "not_paid" };
    Json(json!({ "state": state })).into_response()
}
