//! `handback check`: verifies the rules on the configured database; exit 1 when one is broken.

use serde::Serialize;

use super::outcome::{Failure, Outcome};
use super::start;
use crate::config::Config;
use crate::core::check;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    ok: bool,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
struct Rule {
    rule: &'static str,
    ok: bool,
    checked: i64,
    broken: i64,
}

pub(super) async fn run(args: &Args, config: &Config) -> Result<Outcome, Failure> {
    let core = start::core(config, 2).await?;
    let rules: Vec<Rule> = check::run(&core)
        .await?
        .into_iter()
        .map(|r| Rule { rule: r.name, ok: r.broken == 0, checked: r.checked, broken: r.broken })
        .collect();
    core.db.close().await;
    let answer = Answer { ok: rules.iter().all(|rule| rule.ok), rules };
    if args.json {
        println!("{}", serde_json::to_string(&answer).map_err(|error| Failure::Broken(error.to_string()))?);
    } else {
        for rule in &answer.rules {
            let word = if rule.ok { "holds" } else { "BROKEN" };
            println!("{:<9} {word:<7} {:>10} checked {:>6} broken", rule.rule, rule.checked, rule.broken);
        }
    }
    Ok(if answer.ok { Outcome::Done } else { Outcome::No })
}
