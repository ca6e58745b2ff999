//! Ledgers that are tables of the shop (E2). The same plan runs over their rows, in the same transaction as the
//! flow and the task; each key is one conditional update. Rows are locked by type, then key (R19), and a key
//! must be exactly the one that is stored (R17), whatever the column's collation thinks.

mod check;
pub mod documents;
mod wall;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use sqlx::any::AnyRow;

use super::conn::{Conn, RowExt as _, Value};
use super::db::Result;
use super::dialect::Kind;
use super::error::Error;
use super::ledger::{Change, Ledger, Terms};
use crate::core::words::ResourceType;

pub use check::{DocumentsSpec, LedgerSpec, Spec, check};
pub use documents::Documents;

/// `sold` or `locked` of a table that keeps no such figure: large enough for everything, and written down nowhere.
pub const UNTOLD: i64 = 1 << 61;

/// Keys in one statement; a text of fixed length stays in the statement cache.
const CHUNK: usize = 32;

/// The shop's tables that Handback works on.
#[derive(Debug, Default)]
pub struct Tables {
    ledgers: BTreeMap<ResourceType, Arc<Table>>,
    pub orders: Option<Documents>,
    pub returns: Option<Documents>,
}

impl Tables {
    pub fn types(&self) -> Vec<ResourceType> {
        self.ledgers.keys().copied().collect()
    }

    pub fn of(&self, resource: ResourceType) -> Option<Arc<Table>> {
        self.ledgers.get(&resource).cloned()
    }
}

/// One mapped ledger; names are quoted.
#[derive(Debug)]
pub struct Table {
    resource: ResourceType,
    name: String,
    key: Column,
    shape: Shape,
    version: Option<String>,
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Shape {
    /// Without `locked` the table keeps one figure only.
    Counted {
        available: String,
        locked: Option<String>,
        sold: Option<String>,
    },
    Single(Single),
}

/// A coupon or a slot: a word for its state, and who holds it.
#[derive(Debug)]
struct Single {
    status: Column,
    holder: Column,
    expires: Option<Column>,
    /// Our word, theirs.
    values: Vec<(String, String)>,
    zone: TimeZone,
}

/// A row of the shop, locked, as a ledger with an id that no ledger of ours has.
#[derive(Clone, Debug)]
pub struct Row {
    pub ledger: Ledger,
    table: Arc<Table>,
    /// The word that stands there.
    status: String,
}

impl Column {
    /// A text of ours as a value of this column; `None` when it can't stand there.
    fn value(&self, text: &str) -> Option<Value> {
        match self.kind {
            // `007` is not 7, and 9007199254740993abc is no number at all (R17).
            Kind::Int => text.parse::<i64>().ok().filter(|n| n.to_string() == text).map(Value::from),
            _ => Some(Value::from(text)),
        }
    }

    fn select(&self, conn: &Conn) -> String {
        conn.dialect.read_foreign(&self.name, self.kind)
    }

    /// What was selected, as text.
    fn text(&self, row: &AnyRow, at: usize) -> Result<Option<String>> {
        match self.kind {
            Kind::Int => Ok(row.opt_int(at)?.map(|n| n.to_string())),
            _ => row.opt_text(at),
        }
    }
}

/// Locks the rows of these keys of one type, in key order; keys without a row are not in the answer. The first
/// gets the id `first_id`, the others count down.
pub async fn lock(conn: &mut Conn, table: &Arc<Table>, keys: &[String], first_id: i64) -> Result<Vec<Row>> {
    let mut wanted: Vec<(&String, Value)> = keys.iter().filter_map(|k| Some((k, table.key.value(k)?))).collect();
    wanted.sort_by(|a, b| a.0.cmp(b.0));
    wanted.dedup_by(|a, b| a.0 == b.0);
    let mut rows: Vec<Row> = Vec::new();
    for chunk in wanted.chunks(CHUNK) {
        let marks = (1..=CHUNK).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "{} WHERE {} IN ({marks}) ORDER BY {}{}",
            table.select(conn),
            table.key.name,
            table.key.name,
            conn.dialect.for_update()
        );
        // Filled up with the last key.
        let values = (0..CHUNK).map(|n| chunk[n.min(chunk.len() - 1)].1.clone());
        for found in conn.built(sql).bind_all(values).rows().await? {
            let id = first_id - rows.len() as i64;
            let row = table.read(&found, id)?;
            // A collation may take two spellings for one key; ours is the exact one.
            if chunk.iter().any(|(key, _)| **key == row.ledger.key) {
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// One row, not locked.
pub async fn find(conn: &mut Conn, table: &Arc<Table>, key: &str) -> Result<Option<Row>> {
    let Some(value) = table.key.value(key) else { return Ok(None) };
    let sql = format!("{} WHERE {} = $1", table.select(conn), table.key.name);
    let found = conn.built(sql).bind_all([value]).row().await?;
    let row = found.map(|found| table.read(&found, -1)).transpose()?;
    Ok(row.filter(|row| row.ledger.key == key))
}

/// The figures of a page of keys after `after`, in the order of the table's key; an empty page is the end.
pub async fn figures(conn: &mut Conn, table: &Arc<Table>, after: Option<&str>, limit: i64) -> Result<Vec<Row>> {
    let select = table.select(conn);
    let key = &table.key.name;
    let sql = match after {
        Some(_) => format!("{select} WHERE {key} > $1 ORDER BY {key} LIMIT $2"),
        None => format!("{select} ORDER BY {key} LIMIT $1"),
    };
    let first: Vec<Value> = after.and_then(|after| table.key.value(after)).into_iter().collect();
    let rows = conn.built(sql).bind_all(first).bind(limit).rows().await?;
    rows.iter().map(|row| table.read(row, -1)).collect()
}

impl Table {
    /// The table's name as statements have it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does the table say how much is locked?
    pub fn keeps_locked(&self) -> bool {
        !matches!(&self.shape, Shape::Counted { locked: None, .. })
    }

    fn select(self: &Arc<Self>, conn: &Conn) -> String {
        let int = |column: &str| conn.dialect.read_foreign(column, Kind::Int);
        let columns = match &self.shape {
            Shape::Counted { available, locked, sold } => {
                // A figure that isn't kept reads 0 here and is untold below.
                let figure = |column: &Option<String>| column.as_deref().map_or_else(|| int("0"), int);
                vec![int(available), figure(locked), figure(sold)]
            }
            Shape::Single(single) => {
                let mut columns = vec![single.status.select(conn), single.holder.select(conn)];
                columns.extend(single.expires.as_ref().map(|column| column.select(conn)));
                columns
            }
        };
        format!("SELECT {}, {} FROM {}", self.key.select(conn), columns.join(", "), self.name)
    }

    fn read(self: &Arc<Self>, row: &AnyRow, id: i64) -> Result<Row> {
        let missing = || Error::broken(format!("a row of {} has no key", self.name));
        let mut ledger = Ledger {
            id,
            resource: self.resource,
            key: self.key.text(row, 0)?.ok_or_else(missing)?,
            available: 0,
            locked: 0,
            sold: 0,
            kind: None,
            owner: None,
            issuer: None,
            holder_no: None,
            holder_round: None,
            expires_at: None,
            original_expires_at: None,
            extended_by: None,
            retired_at: None,
        };
        let mut status = String::new();
        match &self.shape {
            Shape::Counted { locked, sold, .. } => {
                ledger.available = row.opt_int(1)?.unwrap_or(0);
                ledger.locked = if locked.is_some() { row.opt_int(2)?.unwrap_or(0) } else { UNTOLD };
                ledger.sold = if sold.is_some() { row.opt_int(3)?.unwrap_or(0) } else { UNTOLD };
            }
            Shape::Single(single) => {
                status = single.status.text(row, 1)?.unwrap_or_default();
                ledger.holder_no = single.holder.text(row, 2)?.filter(|holder| !holder.is_empty());
                if let Some(column) = &single.expires {
                    ledger.expires_at = match column.kind {
                        Kind::Int => row.opt_int(3)?,
                        kind => row.opt_text(3)?.and_then(|text| wall::to_ms(&text, &single.zone_of(kind))),
                    };
                }
                // The table doesn't say whether it was extended before: once is not to be promised, so it counts as spent.
                ledger.extended_by = Some(String::new());
                single.set_figures(&mut ledger, &status);
            }
        }
        Ok(Row { ledger, table: self.clone(), status })
    }
}

impl Single {
    fn zone_of(&self, kind: Kind) -> TimeZone {
        if kind == Kind::Instant { TimeZone::UTC } else { self.zone.clone() }
    }

    fn theirs(&self, ours: &str) -> Result<&str> {
        let known = self.values.iter().find(|(word, _)| word == ours);
        known.map(|(_, theirs)| theirs.as_str()).ok_or_else(|| Error::broken(format!("values has no {ours}")))
    }

    fn set_figures(&self, ledger: &mut Ledger, status: &str) {
        let ours = self.values.iter().find(|(_, theirs)| theirs == status).map(|(word, _)| word.as_str());
        match ours {
            Some("unused" | "free") => ledger.available = 1,
            // It is there, and nobody can lock it.
            Some("expired") => {
                ledger.available = 1;
                ledger.expires_at = Some(ledger.expires_at.map_or(0, |at| at.min(0)));
            }
            Some("locked" | "held") => ledger.locked = 1,
            // Used, or a word that means nothing to us: neither free nor locked.
            _ => ledger.sold = 1,
        }
    }

    /// The word for what the row is from now on.
    fn word(&self, after: &Ledger, now: i64) -> Result<&str> {
        let is_coupon = after.resource == ResourceType::Coupon;
        self.theirs(match (is_coupon, after.available, after.locked) {
            (true, 1, _) if after.has_run_out(now) => "expired",
            (true, 1, _) => "unused",
            (true, _, 1) => "locked",
            (true, ..) => "used",
            (false, 1, _) => "free",
            (false, _, 1) => "held",
            (false, ..) => "sold",
        })
    }
}

/// Applies what a plan changes of these rows, one conditional update per key. A row that isn't hit means that
/// the plan no longer fits: an error, so that everything rolls back and is planned again.
pub async fn apply(conn: &mut Conn, rows: &[Row], changes: &[Change], terms: &[Terms], now: i64) -> Result<()> {
    for row in rows {
        let Some(change) = changes.iter().find(|change| change.id == row.ledger.id) else { continue };
        let terms = terms.iter().find(|terms| terms.id == row.ledger.id);
        let hit = match &row.table.shape {
            Shape::Counted { available, locked, sold } => {
                let columns = [Some(available), locked.as_ref(), sold.as_ref()];
                count(conn, row, change, columns).await?
            }
            Shape::Single(single) => set_state(conn, row, single, change, terms, now).await?,
        };
        if hit != 1 {
            let (key, table) = (&row.ledger.key, &row.table.name);
            return Err(Error::broken(format!("{hit} rows of {table} took the change of key {key}")));
        }
    }
    Ok(())
}

/// `available + a, locked + l, sold + s`, as far as each has so much.
async fn count(conn: &mut Conn, row: &Row, change: &Change, columns: [Option<&String>; 3]) -> Result<u64> {
    let mut values: Vec<Value> = Vec::new();
    let mut mark = |value: Value| {
        values.push(value);
        format!("${}", values.len())
    };
    let moves: Vec<(&String, i64)> = columns
        .into_iter()
        .zip([change.available, change.locked, change.sold])
        .filter_map(|(column, by)| Some((column?, by)))
        .filter(|(_, by)| *by != 0)
        .collect();
    let mut sets: Vec<String> = moves.iter().map(|(c, by)| format!("{c} = {c} + {}", mark((*by).into()))).collect();
    sets.extend(row.table.version.as_ref().map(|version| format!("{version} = {version} + 1")));
    if moves.is_empty() {
        // All that moved are figures that this table doesn't keep.
        return Ok(1);
    }
    let key = row.table.key.value(&row.ledger.key);
    let key = key.ok_or_else(|| Error::broken("a key that was read can't be written"))?;
    let mut conditions = vec![format!("{} = {}", row.table.key.name, mark(key))];
    let takes = moves.iter().filter(|(_, by)| *by < 0);
    conditions.extend(takes.map(|(c, by)| format!("{c} >= {}", mark((-by).into()))));
    let sql = format!("UPDATE {} SET {} WHERE {}", row.table.name, sets.join(", "), conditions.join(" AND "));
    conn.built(sql).bind_all(values).run().await
}

async fn set_state(
    conn: &mut Conn,
    row: &Row,
    single: &Single,
    change: &Change,
    terms: Option<&Terms>,
    now: i64,
) -> Result<u64> {
    let before = &row.ledger;
    let mut after = Ledger {
        available: before.available + change.available,
        locked: before.locked + change.locked,
        sold: before.sold + change.sold,
        ..before.clone()
    };
    if let Some(terms) = terms {
        after.holder_no = terms.holder_no.clone();
        after.expires_at = terms.expires_at;
    }
    let unfit = |what: &str| Error::broken(format!("{what} can't stand in {}", row.table.name));
    let mut values: Vec<Value> = Vec::new();
    let mut mark = |value: Value| {
        values.push(value);
        values.len()
    };
    let word = single.status.value(single.word(&after, now)?).ok_or_else(|| unfit("the status"))?;
    let mut sets = vec![format!("{} = ${}", single.status.name, mark(word))];
    match &after.holder_no {
        Some(no) => {
            let holder = single.holder.value(no).ok_or_else(|| unfit("the order number"))?;
            sets.push(format!("{} = ${}", single.holder.name, mark(holder)));
        }
        None => sets.push(format!("{} = NULL", single.holder.name)),
    }
    if let (Some(column), Some(end), true) = (&single.expires, after.expires_at, after.expires_at != before.expires_at)
    {
        let value = match column.kind {
            Kind::Int => format!("${}", mark(end.into())),
            kind => {
                let n = mark(wall::of_ms(end, &single.zone_of(kind)).into());
                conn.dialect.write_time(n, kind)
            }
        };
        sets.push(format!("{} = {value}", column.name));
    }
    sets.extend(row.table.version.as_ref().map(|version| format!("{version} = {version} + 1")));
    let key = row.table.key.value(&before.key).ok_or_else(|| unfit("the key"))?;
    let stood = single.status.value(&row.status).ok_or_else(|| unfit("the status"))?;
    let mut conditions =
        vec![format!("{} = ${}", row.table.key.name, mark(key)), format!("{} = ${}", single.status.name, mark(stood))];
    if let (1, Some(no)) = (before.locked, &before.holder_no) {
        let holder = single.holder.value(no).ok_or_else(|| unfit("the order number"))?;
        conditions.push(format!("{} = ${}", single.holder.name, mark(holder)));
    }
    let sql = format!("UPDATE {} SET {} WHERE {}", row.table.name, sets.join(", "), conditions.join(" AND "));
    conn.built(sql).bind_all(values).run().await
}
