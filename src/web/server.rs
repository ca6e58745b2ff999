//! Accepts connections: limits on headers and time, a bound on how many at once, and an end without cutting
//! anyone off. What answers may change while it runs: until the database is there, a router that says so.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Connections at once; further ones wait to be accepted.
const CONNECTIONS: usize = 1024;
/// How long a client may take to send its header.
const HEADER_TIME: Duration = Duration::from_secs(15);
/// How long running requests may take once the process was told to stop.
const FAREWELL: Duration = Duration::from_secs(10);

/// Serves until `stopping`, then ends idle connections and lets running requests finish, within a bound.
pub async fn serve(listener: TcpListener, router: watch::Receiver<Router>, stopping: CancellationToken) {
    let graceful = GracefulShutdown::new();
    let places = std::sync::Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { break };
        let accepted = tokio::select! {
            () = stopping.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file handles, or a client that went away at once: neither ends the server.
                tracing::debug!(error = %error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        let connection = graceful.watch(connection(stream, peer, router.clone()));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = %error, "a connection broke");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(FAREWELL, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were still running when the server ended");
    }
}

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: watch::Receiver<Router>,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> {
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let router = router.borrow().clone();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        async move { router.oneshot(request).await.map_err(|never: Infallible| never) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).max_buf_size(64 * 1024).keep_alive(true);
    http.serve_connection(TokioIo::new(stream), service)
}
