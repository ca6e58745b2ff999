//! `handback bench release|close`: measured load on the configured, empty database.

use super::outcome::{Failure, Outcome};
use super::start;
use crate::bench::{self, Plan, Report, Shape, What};
use crate::config::Config;
use crate::trigger::scan;

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// Drain a queue of release tasks
    Release,
    /// Close orders that are due, with three holds each
    Close,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    kind: Kind,
    /// Tasks to release, or orders to close
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    tasks: i64,
    /// Distinct keys
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(i64).range(6..=1_000_000))]
    keys: i64,
    /// 80 % of the tasks on 5 keys
    #[arg(long)]
    hot: bool,
    /// Workers side by side
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
    /// Tasks, or orders, in one transaction; as many as `serve` takes when not given
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..=10_000))]
    batch: Option<i64>,
    /// Compare with the loop of one task a transaction: three interleaved rounds, medians
    #[arg(long)]
    baseline: bool,
    /// Share of tasks, in per cent, whose ledger lacks what they give back
    #[arg(long, default_value_t = 0.0)]
    lacking: f64,
    /// Finished tasks that lie in the table already
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..=100_000_000))]
    finished: i64,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &Args, config: &Config) -> Result<Outcome, Failure> {
    let core = start::core(config, start::CONNECTIONS).await?;
    let plan = Plan {
        what: match args.kind {
            Kind::Release => What::Release,
            Kind::Close => What::Close,
        },
        shape: Shape {
            tasks: args.tasks,
            keys: args.keys,
            is_hot: args.hot,
            lacking_percent: args.lacking.clamp(0.0, 100.0),
            finished: args.finished,
        },
        workers: usize::from(args.workers),
        batch: args.batch.unwrap_or(match args.kind {
            Kind::Release => core.db.dialect.batch(),
            Kind::Close => scan::BATCH,
        }),
        with_baseline: args.baseline,
    };
    let report = bench::run(&core, &plan).await?;
    core.db.close().await;
    if args.json {
        println!("{}", serde_json::to_string(&report).map_err(|error| Failure::Broken(error.to_string()))?);
    } else {
        print_words(&report);
    }
    Ok(if report.rules_ok { Outcome::Done } else { Outcome::No })
}

fn print_words(report: &Report) {
    println!(
        "{:.0} {} ({} in {:.2} s, {} transactions, peak {:.1} MiB)",
        report.rate, report.unit, report.tasks, report.seconds, report.transactions, report.peak_rss_mib
    );
    if let (Some(baseline), Some(ratio)) = (report.baseline_rate, report.ratio) {
        println!("{baseline:.0} {} by the loop of one a transaction; {ratio:.1} times as fast", report.unit);
    }
    println!("rules {}", if report.rules_ok { "hold" } else { "are BROKEN" });
}
