//! `handback demo`: a throwaway shop on SQLite in a temporary folder, with the console open. Never touches an
//! existing database: it doesn't read the configured one.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::watch;

use super::outcome::{Failure, Outcome};
use super::{serve, signals, start};
use crate::config::{Config, Inputs};
use crate::core::words::Role;
use crate::core::{Core, account, check};
use crate::demo;
use crate::web::state::App;
use crate::web::{routes, server};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Address to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: String,
    /// How many of the shop's seconds pass in one of ours
    #[arg(long, default_value_t = 720.0)]
    speed: f64,
    /// The same seed makes the same buyers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// End after so many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
}

const ROLES: [(&str, Role); 5] = [
    ("vera", Role::Viewer),
    ("otto", Role::Operator),
    ("lea", Role::Lead),
    ("ada", Role::Admin),
    ("sam", Role::Service),
];

pub(super) async fn run(args: &Args) -> Result<Outcome, Failure> {
    if !(args.speed.is_finite() && (1.0..=100_000.0).contains(&args.speed)) {
        return Err(Failure::Usage("--speed must be from 1 to 100000".into()));
    }
    let stopping = signals::stopping();
    let folder = tempfile::Builder::new().prefix("handback-demo-").tempdir();
    let folder = folder.map_err(|error| Failure::Broken(format!("no temporary folder: {error}")))?;
    let plan = demo::Plan { speed: args.speed, seed: args.seed };
    let seats = demo::seats::open(args.seed, stopping.clone()).await;
    let seats = seats.map_err(|error| Failure::Broken(format!("the service of the simulated shop: {error}")))?;
    let config = config(&folder.path().join("demo.db").display().to_string(), plan, &args.listen, seats)?;
    let core = start::core(&config, start::CONNECTIONS).await?;
    let listener = serve::listen(config.server.listen).await?;
    let address = listener.local_addr().map_err(|error| Failure::Broken(error.to_string()))?;
    let public_url = config.public_url(address)?;
    let accounts = accounts(&core).await?;
    println!("listening on http://{address}");
    println!("sign in with one of these; the passwords are of this run only");
    for (name, role, password) in accounts {
        println!("  {role:<9} {name:<5} {password}");
    }
    let app = App::new(core.clone(), config.clone(), public_url, stopping.clone());
    let (_change, router) = watch::channel(routes::router(app));
    let serving = tokio::spawn(server::serve(listener, router, stopping.clone()));
    let working = tokio::spawn(serve::worker(&core, &config, stopping.clone()).run());
    let shop = tokio::spawn(demo::run(core.clone(), plan, stopping.clone()));
    if let Some(seconds) = args.seconds {
        let stop = stopping.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            stop.cancel();
        });
    }
    let ended = shop.await.map_err(|error| Failure::Broken(format!("the simulated shop broke: {error}")))?;
    stopping.cancel();
    let _ = working.await;
    let _ = serving.await;
    ended?;
    finish(&core).await
}

/// Says at the end whether every rule held.
async fn finish(core: &Core) -> Result<Outcome, Failure> {
    let rules = check::run(core).await?;
    let broken: Vec<&str> = rules.iter().filter(|rule| rule.broken > 0).map(|rule| rule.name).collect();
    core.db.close().await;
    if broken.is_empty() {
        println!("every rule held");
        return Ok(Outcome::Done);
    }
    println!("broken rules: {}", broken.join(", "));
    Ok(Outcome::No)
}

fn config(path: &str, plan: demo::Plan, listen: &str, seats: SocketAddr) -> Result<Config, Failure> {
    let seats = format!("http://{seats}");
    let inputs = Inputs::default()
        .with_variable("HANDBACK_DATABASE__URL", &format!("sqlite://{path}"))
        .with_variable("HANDBACK_ORDER__PAY_WITHIN_S", &plan.pay_within_s().to_string())
        .with_variable("HANDBACK_SCAN__INTERVAL_MS", "200")
        .with_variable("HANDBACK_REMOTE__SLOT__BASE_URL", &seats)
        .with_variable("HANDBACK_REMOTE__SLOT__SUPPORTS", "settle,release,take_back,return_in,status")
        .with_variable("HANDBACK_REMOTE__SLOT__TIMEOUT_MS", "1000")
        .with_variable("HANDBACK_CHANNEL__BASE_URL", &seats)
        .with_variable("HANDBACK_CHANNEL__ASK_EVERY_MS", "2000")
        .with_listen(Some(listen.to_owned()));
    Ok(Config::load(inputs)?)
}

/// One account per role, with fresh random passwords.
async fn accounts(core: &Core) -> Result<Vec<(&'static str, Role, String)>, Failure> {
    let mut accounts = Vec::new();
    for (name, role) in ROLES {
        let password = account::secret().chars().filter(char::is_ascii_alphanumeric).take(16).collect::<String>();
        account::add(core, "demo", name, role, &password).await?;
        accounts.push((name, role, password));
    }
    Ok(accounts)
}
