//! The command line: parse, dispatch, turn what happened into an exit code. One file per command.
//!
//! Exit codes are a promise to scripts: 0 done, 1 the command's own 'no', 2 wrong usage or
//! configuration, 3 the database can't be reached. Standard output holds answers only.

mod bench;
mod check;
mod config;
mod demo;
mod health;
mod import;
mod listing;
mod mapped;
mod migrate;
mod outcome;
mod reconcile;
mod serve;
mod services;
mod setup_code;
mod signals;
mod start;
mod token;
mod user;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{Config, Inputs};
use crate::core::words::Actor;
use crate::log;
use outcome::{Failure, Outcome};

/// Gives back what a closed order held, exactly once.
#[derive(Debug, Parser)]
#[command(name = "handback", version, arg_required_else_help = true)]
struct Cli {
    /// Configuration file (default: handback.toml where there is one)
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How the log on standard error is written
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    log_format: log::Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Console, API, worker and triggers in one process
    Serve(serve::Args),
    /// Worker and triggers alone
    Worker,
    /// A throwaway shop on SQLite with the console open
    Demo(demo::Args),
    /// Bring the schema up to date
    Migrate,
    /// Users of the console
    #[command(subcommand)]
    User(user::Command),
    /// Tokens of the API
    #[command(subcommand)]
    Token(token::Command),
    /// A new code for the first run
    SetupCode,
    /// Load ledger rows from a CSV file, all or none
    Import(import::Args),
    /// Ask a running server whether it is ready
    Health(health::Args),
    /// Verify on the configured database every rule that a query can verify
    Check(check::Args),
    /// Compare ledgers with orders and tasks, now; exit 1 when something is not explained
    Reconcile(reconcile::Args),
    /// Measure on the configured, empty database
    Bench(bench::Args),
    /// Look at the configuration
    #[command(subcommand)]
    Config(config::Command),
}

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = log::start(cli.log_format).map_err(Failure::Usage).and_then(|()| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Broken(error.to_string()))?;
        runtime.block_on(cli.run())
    });
    outcome::exit_code(result)
}

impl Cli {
    async fn run(self) -> Result<Outcome, Failure> {
        let Self { config, command, .. } = self;
        let inputs = || Inputs::gather(config.as_deref());
        let load = || Ok::<_, Failure>(Config::load(inputs()?)?);
        match command {
            Command::Serve(args) => {
                let inputs = inputs()?.with_listen(args.listen.clone());
                serve::run(&args, Config::load(inputs)?).await
            }
            Command::Worker => worker::run(&load()?).await,
            // The demo never looks at the configured database.
            Command::Demo(args) => demo::run(&args).await,
            Command::Migrate => migrate::run(&load()?).await,
            Command::User(command) => user::run(&command, &load()?).await,
            Command::Token(command) => token::run(&command, &load()?).await,
            Command::SetupCode => setup_code::run(&load()?).await,
            Command::Import(args) => import::run(&args, &load()?).await,
            Command::Health(args) => health::run(args, inputs()?).await,
            Command::Check(args) => check::run(&args, &load()?).await,
            Command::Reconcile(args) => reconcile::run(&args, &load()?).await,
            Command::Bench(args) => bench::run(&args, &load()?).await,
            Command::Config(command) => config::run(&command, inputs()?).await,
        }
    }
}

/// Whoever runs a command has the database's password: more than any name would say.
fn actor() -> Actor {
    Actor::Operator("command line".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_fit_together() {
        Cli::command().debug_assert();
    }
}
