//! Stands between Handback and its database server. It cuts a connection at a chosen moment, so that a
//! COMMIT is lost for real (before the server saw it, or after it was done and before the answer), or all
//! of them for a while, as when the server or the network is down.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server never gets the COMMIT and rolls back.
    BeforeCommit = 1,
    /// The server commits; nobody is told.
    AfterCommit = 2,
}

pub struct Proxy {
    pub port: u16,
    armed: Arc<AtomicU8>,
    cuts: Arc<AtomicUsize>,
    away: watch::Sender<bool>,
}

impl Proxy {
    pub async fn in_front_of(server_port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let (armed, cuts) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicUsize::new(0)));
        let (away, is_away) = watch::channel(false);
        let proxy = Self { port, armed: armed.clone(), cuts: cuts.clone(), away };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (armed, cuts, mut is_away) = (armed.clone(), cuts.clone(), is_away.clone());
                tokio::spawn(async move {
                    let passed_on = async {
                        if let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await {
                            let _ = relay(client, server, &armed, &cuts).await;
                        }
                    };
                    tokio::select! {
                        _ = is_away.wait_for(|away| *away) => {}
                        () = passed_on => {}
                    }
                });
            }
        });
        proxy
    }

    /// The next COMMIT on any connection is lost, once.
    pub fn lose_the_next_commit(&self, how: Cut) {
        self.armed.store(how as u8, Ordering::SeqCst);
    }

    /// Cuts every connection, also those that are tried from now on.
    pub fn go_away(&self) {
        self.away.send_replace(true);
    }

    pub fn come_back(&self) {
        self.away.send_replace(false);
    }

    /// How many have been lost.
    pub fn lost(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

/// Passes bytes on both ways until a COMMIT is to be lost; then both ends are closed.
async fn relay(
    mut client: TcpStream,
    mut server: TcpStream,
    armed: &AtomicU8,
    cuts: &AtomicUsize,
) -> std::io::Result<()> {
    let (mut from_client, mut from_server) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let bytes = &from_client[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                let is_commit = holds_a_commit(bytes);
                let how = if is_commit { armed.swap(0, Ordering::SeqCst) } else { 0 };
                if how == Cut::BeforeCommit as u8 {
                    cuts.fetch_add(1, Ordering::SeqCst);
                    return Ok(());
                }
                server.write_all(bytes).await?;
                if how == Cut::AfterCommit as u8 {
                    // The answer says that it is done; it goes no further.
                    let answered = server.read(&mut from_server).await?;
                    assert!(answered > 0, "the server answered the COMMIT");
                    cuts.fetch_add(1, Ordering::SeqCst);
                    return Ok(());
                }
            }
            read = server.read(&mut from_server) => {
                let bytes = &from_server[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                client.write_all(bytes).await?;
            }
        }
    }
}

/// The statement, not the isolation level `READ COMMITTED`. Short statements arrive in one piece.
fn holds_a_commit(bytes: &[u8]) -> bool {
    let word = b"COMMIT";
    (0..bytes.len()).any(|at| bytes[at..].starts_with(word) && bytes.get(at + word.len()) != Some(&b'T'))
}
