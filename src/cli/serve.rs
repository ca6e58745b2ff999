//! `handback serve`: console, API, worker and triggers in one process.
//!
//! It listens before the database is there: a database that is down at start is a state people can see
//! (`/readyz`, the page), not a crash loop. What can't get better by waiting (wrong password, too old a version,
//! a failed migration) ends it.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::outcome::{Failure, Outcome};
use super::{signals, start};
use crate::config::Config;
use crate::core::{Core, account};
use crate::web::state::App;
use crate::web::{routes, server, waiting};
use crate::worker::{Settings, Worker};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Address to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR")]
    pub(super) listen: Option<String>,
    /// Serve only; other processes run the tasks
    #[arg(long)]
    no_worker: bool,
}

/// How long the line that says "listening" waits for the database. It usually answers at once, and then
/// whoever reads the line finds everything there.
const SOON: Duration = Duration::from_secs(3);

pub(super) async fn run(args: &Args, config: Config) -> Result<Outcome, Failure> {
    let stopping = signals::stopping();
    let listener = listen(config.server.listen).await?;
    let address = listener.local_addr().map_err(|error| Failure::Broken(error.to_string()))?;
    let public_url = config.public_url(address)?;
    let mut connecting = tokio::spawn({
        let (config, stopping) = (config.clone(), stopping.clone());
        async move { connect(&config, &stopping).await }
    });
    let soon = match tokio::time::timeout(SOON, &mut connecting).await {
        // What waiting can't mend ends the command before it has said that it listens.
        Ok(connected) => Some(ended(connected)?),
        Err(_) => None,
    };
    let router =
        |core: &Core| routes::router(App::new(core.clone(), config.clone(), public_url.clone(), stopping.clone()));
    let (change, routers) = watch::channel(soon.iter().flatten().next().map_or_else(waiting::router, router));
    println!("listening on http://{address}");
    let serving = tokio::spawn(server::serve(listener, routers, stopping.clone()));
    let core = match soon {
        Some(core) => core,
        None => {
            let late = ended(connecting.await)?;
            late.inspect(|core| drop(change.send(router(core))))
        }
    };
    let Some(core) = core else {
        let _ = serving.await;
        return Ok(Outcome::Done);
    };
    if let Some(code) = account::new_setup_code(&core).await? {
        println!("set up at {public_url}/setup#{code}");
    }
    if args.no_worker {
        stopping.cancelled().await;
    } else {
        worker(&core, &config, stopping.clone()).run().await;
    }
    let _ = serving.await;
    core.db.close().await;
    Ok(Outcome::Done)
}

fn ended(connecting: Result<Result<Option<Core>, Failure>, tokio::task::JoinError>) -> Result<Option<Core>, Failure> {
    connecting.unwrap_or_else(|error| Err(Failure::Broken(format!("connecting broke: {error}"))))
}

/// The worker of this process.
pub(super) fn worker(core: &Core, config: &Config, stopping: CancellationToken) -> Worker {
    let settings = Settings {
        name: Settings::new_name(),
        scan_interval: config.scan.interval,
        database_url: config.database.url.expose().to_owned(),
    };
    Worker::new(core.clone(), settings, stopping)
}

pub(super) async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| Failure::Usage(format!("server.listen: {address} can't be listened on: {error}")))
}

/// Connects, waiting for a database that is away; `None` when told to stop before that.
pub(super) async fn connect(config: &Config, stopping: &CancellationToken) -> Result<Option<Core>, Failure> {
    for note in config.not_in_effect() {
        tracing::warn!("{note}");
    }
    let mut is_said = false;
    loop {
        match start::core(config, start::CONNECTIONS).await {
            Ok(core) => return Ok(Some(core)),
            Err(Failure::DatabaseAway(message)) => {
                if !is_said {
                    tracing::warn!(error = message, "the database can't be reached; trying until it can");
                    is_said = true;
                }
            }
            Err(failure) => return Err(failure),
        }
        tokio::select! {
            () = stopping.cancelled() => return Ok(None),
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}
