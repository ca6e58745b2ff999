//! Reconciliation of a type that a table of the shop keeps (E2): what the shop's rows have locked against
//! Handback's own open orders, the shop's open orders that Handback doesn't know, and unfinished tasks.

use std::collections::{BTreeMap, HashSet};

use super::PAGE;
use crate::core::words::ResourceType;
use crate::core::{Core, Result};
use crate::store::reconcile::{self, Figures, Sums};
use crate::store::{Conn, mapped, order};

/// Every key of the type that is locked or that something expects to be, and the sums over all keys. Call it on
/// the run's snapshot: the shop's tables are read at the same moment as ours (R22).
pub(super) async fn figures(core: &Core, conn: &mut Conn, resource: ResourceType) -> Result<(Sums, Vec<Figures>)> {
    let tables = core.db.mapped.clone();
    let Some(table) = tables.of(resource) else { return Ok((Sums::default(), Vec::new())) };
    let mut sums = Sums::default();
    let mut all: BTreeMap<String, Figures> = BTreeMap::new();
    let mut after: Option<String> = None;
    loop {
        let page = mapped::figures(conn, &table, after.as_deref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.ledger.key.clone());
        sums.keys += page.len() as i64;
        for row in page.into_iter().filter(|row| row.ledger.locked > 0) {
            of(&mut all, &row.ledger.key).in_ledger = row.ledger.locked;
        }
    }
    for ours in reconcile::all_expected(conn, resource).await? {
        let figures = of(&mut all, &ours.key);
        figures.expected = ours.expected;
        figures.explained = ours.explained;
    }
    for (key, qty) in shops_open_orders(core, conn, resource).await? {
        of(&mut all, &key).expected += qty;
    }
    for figures in all.values() {
        sums.in_ledger += figures.in_ledger;
        sums.expected += figures.expected;
        sums.explained += figures.explained;
    }
    Ok((sums, all.into_values().collect()))
}

fn of<'a>(all: &'a mut BTreeMap<String, Figures>, key: &str) -> &'a mut Figures {
    let new = || Figures { key: key.to_owned(), in_ledger: 0, expected: 0, explained: 0 };
    all.entry(key.to_owned()).or_insert_with(new)
}

/// What the shop's open orders hold, but for those Handback knows itself: they would count twice. Lines of an
/// order are goods, so they are about stock.
async fn shops_open_orders(core: &Core, conn: &mut Conn, resource: ResourceType) -> Result<BTreeMap<String, i64>> {
    let mut sums = BTreeMap::new();
    let tables = core.db.mapped.clone();
    let (Some(orders), ResourceType::Stock) = (&tables.orders, resource) else { return Ok(sums) };
    let lines = mapped::documents::lines(conn, orders).await?;
    let numbers: HashSet<String> = lines.iter().map(|line| line.no.clone()).collect();
    let numbers: Vec<String> = numbers.into_iter().collect();
    let mut known = HashSet::new();
    for page in numbers.chunks(PAGE as usize) {
        known.extend(order::statuses(conn, page).await?.into_iter().map(|(no, ..)| no));
    }
    for line in lines.into_iter().filter(|line| !known.contains(&line.no)) {
        *sums.entry(line.key).or_default() += line.qty;
    }
    Ok(sums)
}
