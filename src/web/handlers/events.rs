//! The live stream of a page. One read per tick serves everyone; each stream writes it in its reader's
//! words. A heartbeat checks session and role again, and renews nothing: a page that is merely open does
//! not stay signed in.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::store::overview::Snapshot;
use crate::web::cookies::Kind;
use crate::web::desk::Desk;
use crate::web::extract::{As, Part, Viewer, Visit};
use crate::web::render::{Answer, Page as _};
use crate::web::view::overview::OverviewPage;
use crate::web::view::{Eye, Section};

const HEARTBEAT: Duration = Duration::from_secs(15);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// The page that wants its part renewed; nothing when only the clock is live.
    view: String,
}

pub async fn stream(State(desk): State<Desk>, As(visit, ..): As<Viewer>, Query(asked): Query<Asked>) -> Answer {
    let (sender, receiver) = mpsc::channel::<Bytes>(4);
    tokio::spawn(run(desk, visit, asked.view == "overview", sender));
    answer(receiver)
}

/// A stream of events, each written whole by its sender.
pub(super) fn answer(mut receiver: mpsc::Receiver<Bytes>) -> Answer {
    let events =
        futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx).map(|item| item.map(Ok::<_, Infallible>)));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ("x-accel-buffering".parse().unwrap_or(CACHE_CONTROL), HeaderValue::from_static("no")),
    ];
    Ok((headers, Body::from_stream(events)).into_response()) as Result<Response, _>
}

/// Until the reader goes away, the session ends, or the process stops.
async fn run(desk: Desk, mut visit: Visit, overview: bool, sender: mpsc::Sender<Bytes>) {
    let mut live = desk.live.watch();
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.tick().await;
    // The page is as fresh as the stream: say at once that the server is there.
    let mut next = Some(clock(&visit.eye));
    loop {
        if let Some(text) = next.take()
            && sender.send(Bytes::from(text)).await.is_err()
        {
            return;
        }
        tokio::select! {
            () = desk.app.stopping.cancelled() => return,
            () = sender.closed() => return,
            _ = heartbeat.tick() => match still_there(&desk, &visit).await {
                Some(true) => next = Some(": still here\n\n".to_owned()),
                Some(false) => {
                    let _ = sender.send(Bytes::from_static(b"event: gone\ndata: {}\n\n")).await;
                    return;
                }
                // The database is away: what can't be checked is not shown.
                None => return,
            },
            changed = live.changed() => {
                if changed.is_err() {
                    return;
                }
                let snapshot = live.borrow_and_update().clone();
                visit.eye.now = desk.app.core.now();
                next = snapshot.map(|snapshot| tick(&visit, overview, &snapshot));
            }
        }
    }
}

/// Whether the session is live and its role the same.
async fn still_there(desk: &Desk, visit: &Visit) -> Option<bool> {
    let secret = visit.ask.cookie(&desk.app.public_url, Kind::Session)?;
    match desk.accounts.session(secret).await {
        Ok(found) => Some(found.is_some_and(|(user, _)| user.role == visit.user.role)),
        Err(error) => {
            tracing::warn!(error = %error, "a stream's session could not be checked");
            None
        }
    }
}

fn tick(visit: &Visit, overview: bool, snapshot: &Snapshot) -> String {
    let mut text = clock(&visit.eye);
    if overview {
        let page = OverviewPage::new(visit.shell(Section::Overview), &visit.eye, snapshot);
        if let Ok(html) = page.part(Part::Live) {
            for line in html.lines() {
                text.push_str("data: ");
                text.push_str(line);
                text.push('\n');
            }
            text.push('\n');
        }
    }
    text
}

fn clock(eye: &Eye) -> String {
    let now = eye.stamp(eye.now);
    let data = serde_json::json!({"time": now.time, "iso": now.iso, "full": now.full});
    format!("event: tick\ndata: {data}\n\n")
}
