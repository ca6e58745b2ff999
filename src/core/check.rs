//! Verifies on a live database every rule of the model that a query can verify, at one snapshot. It changes
//! nothing and may be run at any time.

use crate::core::{Core, Result};
use crate::store::rules;

/// One rule: how many rows were looked at, how many break it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub name: &'static str,
    pub checked: i64,
    pub broken: i64,
}

/// Checks every rule.
pub async fn run(core: &Core) -> Result<Vec<Rule>> {
    let mut conn = core.db.snapshot().await?;
    let mut found = Vec::new();
    for query in rules::QUERIES {
        let (checked, broken) = rules::run(&mut conn, query).await?;
        found.push(Rule { name: query.rule, checked, broken });
    }
    conn.done().await?;
    Ok(found)
}
