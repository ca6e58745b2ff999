//! The log: standard error, so that standard output stays what a command answers with.
//!
//! Field names are dotted and the same everywhere (`order.no`, `task.id`, `db.try`); an event is
//! logged once, where it is handled. No secret, token, password or address with one gets here
//! (R24): the types of `config::secret` don't print.

use std::io::IsTerminal as _;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

const USUAL: &str = "info,sqlx=warn";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

/// Begins logging. `RUST_LOG` decides what is told, `info` where it isn't set.
///
/// # Errors
/// What is wrong with `RUST_LOG`, in words.
pub fn start(format: Format) -> Result<(), String> {
    let directives = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = EnvFilter::builder()
        .parse(directives.as_deref().unwrap_or(USUAL))
        .map_err(|error| format!("RUST_LOG can't be understood: {error}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        Format::Text => builder.with_ansi(std::io::stderr().is_terminal()).init(),
        Format::Json => builder.json().flatten_event(true).with_current_span(false).init(),
    }
    Ok(())
}
