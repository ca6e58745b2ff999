//! Ledger rows whoever keeps them: ours, and those of the shop's mapped tables, which go through a plan under
//! ids of their own below zero. One way to lock them and one to write what a plan changed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::conn::Conn;
use super::db::Result;
use super::ledger::{self, Change, Key, Ledger, Terms};
use super::mapped::{self, Row};
use super::task::Due;
use crate::core::words::ResourceType;

/// Rows under lock.
#[derive(Debug, Default)]
pub struct Locked {
    /// Ours first, then the shop's.
    pub rows: Vec<Ledger>,
    mapped: Vec<Row>,
}

/// Locks the live rows of these keys; keys without one are simply not there.
pub async fn lock_keys(conn: &mut Conn, keys: &[Key]) -> Result<Locked> {
    let tables = conn.mapped.clone();
    let (shops, ours): (Vec<Key>, Vec<Key>) = keys.iter().cloned().partition(|key| tables.of(key.resource).is_some());
    let rows = if ours.is_empty() { Vec::new() } else { ledger::lock_keys(conn, &ours).await? };
    let mut locked = Locked { rows, mapped: Vec::new() };
    locked.add_mapped(conn, shops.into_iter().map(|key| (key.resource, key.key))).await?;
    Ok(locked)
}

/// Locks the rows that these tasks move, and says of each which it is.
pub async fn lock_of<'d>(conn: &mut Conn, due: &'d [Due]) -> Result<(Locked, Cow<'d, [Due]>)> {
    let mut ours: Vec<(ResourceType, &str, i64)> =
        due.iter().filter_map(|t| t.ledger_id.map(|id| (t.resource, t.key.as_str(), id))).collect();
    ours.sort_unstable();
    ours.dedup();
    let ids: Vec<i64> = ours.iter().map(|(_, _, id)| *id).collect();
    let rows = if ids.is_empty() { Vec::new() } else { ledger::lock_ids(conn, &ids).await? };
    let mut locked = Locked { rows, mapped: Vec::new() };
    let tables = conn.mapped.clone();
    let is_shops = |task: &Due| task.ledger_id.is_none() && tables.of(task.resource).is_some();
    if !due.iter().any(is_shops) {
        return Ok((locked, Cow::Borrowed(due)));
    }
    locked.add_mapped(conn, due.iter().filter(|t| is_shops(t)).map(|t| (t.resource, t.key.clone()))).await?;
    let mut placed = due.to_vec();
    for task in placed.iter_mut().filter(|task| is_shops(task)) {
        let row = locked.mapped.iter().find(|r| r.ledger.resource == task.resource && r.ledger.key == task.key);
        task.ledger_id = row.map(|row| row.ledger.id);
    }
    Ok((locked, Cow::Owned(placed)))
}

impl Locked {
    async fn add_mapped(&mut self, conn: &mut Conn, keys: impl Iterator<Item = (ResourceType, String)>) -> Result<()> {
        let mut by_type: BTreeMap<ResourceType, Vec<String>> = BTreeMap::new();
        for (resource, key) in keys {
            by_type.entry(resource).or_default().push(key);
        }
        let tables = conn.mapped.clone();
        for (resource, keys) in by_type {
            let Some(table) = tables.of(resource) else { continue };
            let first_id = -1 - self.mapped.len() as i64;
            self.mapped.extend(mapped::lock(conn, &table, &keys, first_id).await?);
        }
        self.rows.extend(self.mapped.iter().map(|row| row.ledger.clone()));
        Ok(())
    }

    /// Writes what a plan over these rows changed. A row that doesn't take it is an error: roll back.
    pub async fn apply(&self, conn: &mut Conn, changes: &[Change], terms: &[Terms], now: i64) -> Result<()> {
        if self.mapped.is_empty() {
            ledger::apply(conn, changes).await?;
            return ledger::set_terms(conn, terms).await;
        }
        let ours: Vec<Change> = changes.iter().filter(|change| change.id > 0).cloned().collect();
        if !ours.is_empty() {
            ledger::apply(conn, &ours).await?;
        }
        let own_terms: Vec<Terms> = terms.iter().filter(|terms| terms.id > 0).cloned().collect();
        ledger::set_terms(conn, &own_terms).await?;
        mapped::apply(conn, &self.mapped, changes, terms, now).await
    }
}
