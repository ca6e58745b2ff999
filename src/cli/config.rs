//! `handback config check`: what applies and where it came from, or everything that is wrong.

use clap::Subcommand;

use super::mapped;
use super::outcome::{Failure, Outcome};
use crate::config::{Config, Inputs};
use crate::store::Db;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Print the effective configuration with secrets masked, or every error in it
    Check,
}

pub(super) async fn run(command: &Command, inputs: Inputs) -> Result<Outcome, Failure> {
    match command {
        Command::Check => check(inputs).await,
    }
}

async fn check(inputs: Inputs) -> Result<Outcome, Failure> {
    let config = Config::load(inputs)?;
    config.public_url(config.server.listen)?;
    print!("{}", listing(&config));
    if !config.mapped.is_empty() {
        // The tables are in the database: only there can they be looked at.
        let mut db = Db::open(config.database.url.expose(), false, 1).await?;
        let checked = mapped::connect(&mut db, &config).await;
        db.close().await;
        checked?;
    }
    Ok(Outcome::Done)
}

/// One key a line, as the file would have it, with its origin behind; keys that aren't set and
/// have no default are there as comments.
fn listing(config: &Config) -> String {
    let mut text = String::new();
    for entry in config.entries() {
        let line = match &entry.value {
            Some(value) => format!("{} = {value}", entry.key),
            None => format!("# {} is not set", entry.key),
        };
        text += &format!("{line:<56} # {}\n", entry.origin);
    }
    for note in config.not_in_effect() {
        text += &format!("# {note}\n");
    }
    text
}
