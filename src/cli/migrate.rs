//! `handback migrate`: brings the schema up to date and ends. For installations that set
//! `database.migrate = false` because only one account may change tables.

use super::outcome::{Failure, Outcome};
use crate::config::Config;
use crate::store::Db;

pub(super) async fn run(config: &Config) -> Result<Outcome, Failure> {
    let db = Db::open(config.database.url.expose(), true, 1).await?;
    println!("{} {}: the schema is up to date", db.facts.engine, db.facts.version);
    db.close().await;
    Ok(Outcome::Done)
}
