//! Ledger rows: the figures of one resource. They change only together with their flow row (R2);
//! locks are taken by type, then key, everywhere (R19).

use std::collections::HashMap;

use serde::Serialize;

use super::conn::{Conn, RowExt};
use super::db::Result;
use super::dialect::{Cell, Cells};
use super::error::{Class, Error};
use super::mapped;
use crate::core::words::{FundsKind, ResourceType};

/// One row. A coupon or slot is a row whose three figures add up to 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    pub id: i64,
    pub resource: ResourceType,
    pub key: String,
    pub available: i64,
    pub locked: i64,
    pub sold: i64,
    /// Funds only: money or points.
    pub kind: Option<FundsKind>,
    /// Coupons: the only buyer who may use it.
    pub owner: Option<String>,
    /// Coupons: who bears its cost.
    pub issuer: Option<String>,
    /// Coupons and slots: the order and round that hold or used it.
    pub holder_no: Option<String>,
    pub holder_round: Option<i64>,
    /// Coupons and points: the end, in milliseconds; kept apart from the original one once extended.
    pub expires_at: Option<i64>,
    pub original_expires_at: Option<i64>,
    /// The order whose release extended it last.
    pub extended_by: Option<String>,
    pub retired_at: Option<i64>,
}

impl Ledger {
    /// Past its end at `now`. Only coupons and points run out.
    pub fn has_run_out(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

const COLUMNS: &str = "t.id, t.resource_type, t.biz_key, t.available, t.locked, t.sold, t.kind, t.owner, t.issuer, t.holder_no, \
     t.holder_round, t.expires_at, t.original_expires_at, t.extended_by, t.retired_at";
const COLUMN_COUNT: usize = 15;

fn read(row: &dyn RowExt) -> Result<Ledger> {
    let resource =
        ResourceType::from_code(row.int(1)?).ok_or_else(|| Error::broken("a ledger row has an unknown type"))?;
    Ok(Ledger {
        id: row.int(0)?,
        resource,
        key: row.text(2)?,
        available: row.int(3)?,
        locked: row.int(4)?,
        sold: row.int(5)?,
        kind: row.opt_int(6)?.and_then(FundsKind::from_code),
        owner: row.opt_text(7)?,
        issuer: row.opt_text(8)?,
        holder_no: row.opt_text(9)?,
        holder_round: row.opt_int(10)?,
        expires_at: row.opt_int(11)?,
        original_expires_at: row.opt_int(12)?,
        extended_by: row.opt_text(13)?,
        retired_at: row.opt_int(14)?,
    })
}

/// A resource by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Key {
    #[serde(rename = "t", serialize_with = "code")]
    pub resource: ResourceType,
    #[serde(rename = "k")]
    pub key: String,
}

fn code<S: serde::Serializer>(resource: &ResourceType, s: S) -> std::result::Result<S::Ok, S::Error> {
    s.serialize_i64(resource.code())
}

const KEY: Cells = &[("t", Cell::Int), ("k", Cell::Text)];
const ID: Cells = &[("i", Cell::Int)];

/// A JSON list for one bind.
pub(super) fn json<T: Serialize + ?Sized>(list: &T) -> Result<String> {
    serde_json::to_string(list).map_err(|error| Error::broken(format!("a list can't be written: {error}")))
}

#[derive(Serialize)]
struct Id {
    i: i64,
}

/// Locks the live rows of these keys in key order; keys without one are simply not in the answer.
pub async fn lock_keys(conn: &mut Conn, keys: &[Key]) -> Result<Vec<Ledger>> {
    let mut sorted: Vec<&Key> = keys.iter().collect();
    sorted.sort();
    sorted.dedup();
    let d = conn.dialect;
    let from = d.rows_join(1, KEY, "ledger", "t.resource_type = v.t AND t.biz_key = v.k AND t.generation = 0");
    let sql = format!("SELECT {COLUMNS} FROM {from} ORDER BY t.resource_type, t.biz_key{}", d.for_update_of_t());
    conn.built(sql).bind(json(&sorted)?).many(COLUMN_COUNT).await?.read(read)
}

/// Locks these rows, live or retired. `rows` must be sorted by type, key and id; it is the lock order.
pub async fn lock_ids(conn: &mut Conn, rows: &[i64]) -> Result<Vec<Ledger>> {
    let ids: Vec<Id> = rows.iter().map(|i| Id { i: *i }).collect();
    let d = conn.dialect;
    let from = d.rows_join(1, ID, "ledger", "t.id = v.i");
    let sql = format!("SELECT {COLUMNS} FROM {from} ORDER BY t.resource_type, t.biz_key, t.id{}", d.for_update_of_t());
    conn.built(sql).bind(json(&ids)?).many(COLUMN_COUNT).await?.read(read)
}

/// Ids of the rows these keys mean for an order nobody knows: the live row, else the last retired one.
pub async fn find_ids(conn: &mut Conn, keys: &[Key]) -> Result<HashMap<Key, i64>> {
    let d = conn.dialect;
    let from = d.rows_join(1, KEY, "ledger", "t.resource_type = v.t AND t.biz_key = v.k");
    let sql = format!(
        "SELECT t.resource_type, t.biz_key, t.id FROM {from} ORDER BY CASE WHEN t.generation = 0 THEN 0 ELSE 1 END, t.generation DESC"
    );
    let mut found = HashMap::new();
    for row in conn.built(sql).bind(json(keys)?).rows().await? {
        let Some(resource) = ResourceType::from_code(row.int(0)?) else { continue };
        let key = Key { resource, key: row.text(1)? };
        // Sorted: the live row first, then the one retired last.
        found.entry(key).or_insert(row.int(2)?);
    }
    Ok(found)
}

/// The row of this name: the live one, else the one retired last; or the shop's own.
pub async fn find(conn: &mut Conn, resource: ResourceType, key: &str) -> Result<Option<Ledger>> {
    if let Some(table) = conn.mapped.of(resource) {
        return Ok(mapped::find(conn, &table, key).await?.map(|row| row.ledger));
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM ledger t WHERE t.resource_type = $1 AND t.biz_key = $2 ORDER BY CASE WHEN t.generation = 0 THEN 0 ELSE 1 END, t.generation DESC LIMIT 1"
    );
    conn.built(sql).bind(resource.code()).bind(key).row().await?.map(|row| read(&row)).transpose()
}

/// Locks the live row of this name.
pub async fn lock(conn: &mut Conn, resource: ResourceType, key: &str) -> Result<Option<Ledger>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM ledger t WHERE t.resource_type = $1 AND t.biz_key = $2 AND t.generation = 0{}",
        conn.dialect.for_update()
    );
    conn.built(sql).bind(resource.code()).bind(key).row().await?.map(|row| read(&row)).transpose()
}

/// What is needed to open a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLedger {
    pub resource: ResourceType,
    pub key: String,
    pub available: i64,
    pub kind: Option<FundsKind>,
    pub owner: Option<String>,
    pub issuer: Option<String>,
    pub expires_at: Option<i64>,
}

/// Opens a row and answers its id; `None` when a live row of the name exists.
pub async fn insert(conn: &mut Conn, new: &NewLedger, now: i64) -> Result<Option<i64>> {
    let sql = format!(
        "INSERT INTO ledger (resource_type, biz_key, available, kind, owner, issuer, expires_at, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8){}",
        conn.dialect.or_nothing()
    );
    let inserted = conn
        .built(sql)
        .bind(new.resource.code())
        .bind(&new.key)
        .bind(new.available)
        .bind(new.kind.map(FundsKind::code))
        .bind(new.owner.clone())
        .bind(new.issuer.clone())
        .bind(new.expires_at)
        .bind(now)
        .run()
        .await;
    match inserted {
        Ok(1) => Ok(Some(conn.stmt(conn.dialect.last_id()).int().await?)),
        Ok(_) => Ok(None),
        Err(error) if error.is(Class::Unique) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Retires the live row of this name; zero rows means there is none.
pub async fn retire(conn: &mut Conn, id: i64, now: i64) -> Result<u64> {
    conn.stmt("UPDATE ledger SET generation = id, retired_at = $2 WHERE id = $1 AND generation = 0")
        .bind(id)
        .bind(now)
        .run()
        .await
}

/// How one row's figures move. All figures of a row move in one update, however many tasks are behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    #[serde(rename = "i")]
    pub id: i64,
    #[serde(rename = "a")]
    pub available: i64,
    #[serde(rename = "l")]
    pub locked: i64,
    #[serde(rename = "s")]
    pub sold: i64,
}

const CHANGE: Cells = &[("i", Cell::Int), ("a", Cell::Int), ("l", Cell::Int), ("s", Cell::Int)];

/// Applies the changes in one statement. A row that was not hit means the plan no longer fits: an error, so
/// that the transaction rolls back. A figure that would fall below zero is refused by the schema (R1).
pub async fn apply(conn: &mut Conn, changes: &[Change]) -> Result<()> {
    let sql = conn.dialect.update_from(
        "ledger",
        &[("available", "t.available + v.a"), ("locked", "t.locked + v.l"), ("sold", "t.sold + v.s")],
        1,
        CHANGE,
        "t.id = v.i",
    );
    let hit = conn.built(sql).bind(json(changes)?).run().await?;
    if hit != changes.len() as u64 {
        return Err(Error::broken(format!("{hit} of {} ledger rows could be changed", changes.len())));
    }
    Ok(())
}

/// Who holds a coupon or slot from now on, and what end a coupon or points account has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Terms {
    #[serde(rename = "i")]
    pub id: i64,
    #[serde(rename = "h")]
    pub holder_no: Option<String>,
    #[serde(rename = "r")]
    pub holder_round: Option<i64>,
    #[serde(rename = "e")]
    pub expires_at: Option<i64>,
    #[serde(rename = "o")]
    pub original_expires_at: Option<i64>,
    #[serde(rename = "x")]
    pub extended_by: Option<String>,
}

impl Terms {
    pub fn of(ledger: &Ledger) -> Self {
        Self {
            id: ledger.id,
            holder_no: ledger.holder_no.clone(),
            holder_round: ledger.holder_round,
            expires_at: ledger.expires_at,
            original_expires_at: ledger.original_expires_at,
            extended_by: ledger.extended_by.clone(),
        }
    }
}

const TERMS: Cells =
    &[("i", Cell::Int), ("h", Cell::Text), ("r", Cell::Int), ("e", Cell::Int), ("o", Cell::Int), ("x", Cell::Text)];

/// Writes holders and ends in one statement.
pub async fn set_terms(conn: &mut Conn, terms: &[Terms]) -> Result<()> {
    if terms.is_empty() {
        return Ok(());
    }
    let sql = conn.dialect.update_from(
        "ledger",
        &[
            ("holder_no", "v.h"),
            ("holder_round", "v.r"),
            ("expires_at", "v.e"),
            ("original_expires_at", "v.o"),
            ("extended_by", "v.x"),
        ],
        1,
        TERMS,
        "t.id = v.i",
    );
    let hit = conn.built(sql).bind(json(terms)?).run().await?;
    if hit != terms.len() as u64 {
        return Err(Error::broken(format!("{hit} of {} ledger rows could take their terms", terms.len())));
    }
    Ok(())
}
