//! `handback worker`: worker and triggers alone; any number of them on PostgreSQL and MySQL.

use super::outcome::{Failure, Outcome};
use super::{serve, signals};
use crate::config::Config;

pub(super) async fn run(config: &Config) -> Result<Outcome, Failure> {
    let stopping = signals::stopping();
    let Some(core) = serve::connect(config, &stopping).await? else { return Ok(Outcome::Done) };
    tracing::info!(db.engine = core.db.facts.engine, "worker runs");
    serve::worker(&core, config, stopping).run().await;
    core.db.close().await;
    Ok(Outcome::Done)
}
