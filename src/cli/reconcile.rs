//! `handback reconcile`: compares now and prints what nothing explains; exit 1 only for that.

use super::outcome::{Failure, Outcome};
use super::{actor, start};
use crate::config::Config;
use crate::core::reconcile;
use crate::core::words::{ResourceType, RunStatus};
use crate::store::reconcile_run::{Diff, Run};
use crate::web::api::run_shown;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only this type: stock, coupon, funds, quota, slot
    #[arg(long = "type", value_name = "TYPE", value_parser = resource)]
    kind: Option<ResourceType>,
    /// Print the run as JSON
    #[arg(long)]
    json: bool,
}

fn resource(word: &str) -> Result<ResourceType, String> {
    let known = ResourceType::from_word(word).filter(|resource| *resource != ResourceType::Payment);
    known.ok_or_else(|| "must be stock, coupon, funds, quota or slot".to_owned())
}

pub(super) async fn run(args: &Args, config: &Config) -> Result<Outcome, Failure> {
    let core = start::core(config, 3).await?;
    let (run, diffs) = reconcile::run_now(&core, &actor(), args.kind).await?;
    core.db.close().await;
    if args.json {
        println!("{}", run_shown(&run, &diffs));
    } else {
        print(&run, &diffs);
    }
    if run.status == RunStatus::Failed {
        return Err(Failure::Broken(run.error.unwrap_or_else(|| "the reconciliation failed".to_owned())));
    }
    Ok(if diffs.iter().any(reconcile::is_unexplained) { Outcome::No } else { Outcome::Done })
}

fn print(run: &Run, diffs: &[Diff]) {
    println!("run {}: {}, {} keys compared, {} not explained", run.id, run.status, run.checked, diffs.len());
    for total in &run.totals {
        let word = ResourceType::from_code(total.resource).map_or("", ResourceType::word);
        println!(
            "{word:<7} {:>12} locked = {:>12} held by open orders + {:>12} in unfinished tasks, unexplained +{} -{}",
            total.in_ledger, total.expected, total.explained, total.over, total.under
        );
    }
    for diff in diffs {
        let tasks: Vec<String> = diff.tasks.iter().map(i64::to_string).collect();
        println!(
            "{} {} {}: {:+} (locked {}, held {}, in tasks {}); orders {}; tasks {}",
            diff.class,
            diff.resource,
            diff.key,
            diff.unexplained,
            diff.in_ledger,
            diff.expected,
            diff.explained,
            or_none(&diff.orders),
            or_none(&tasks)
        );
    }
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
