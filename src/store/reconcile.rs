//! What is locked, and what explains it (R22), key by key and summed in the database: the ledger, what the
//! holds of open orders have left, and unfinished tasks. Call these on a snapshot, so that the three are one
//! moment's. Each statement is about one type; pages go on by key, so that memory stays bounded.

use serde::Serialize;

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::dialect::{Cell, Cells};
use super::ledger::json;
use super::task::OPEN;
use crate::core::words::ResourceType;

/// One key: what the ledger has locked, what holds have left, what unfinished tasks still move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    pub key: String,
    pub in_ledger: i64,
    pub expected: i64,
    pub explained: i64,
}

/// The same over all keys of a type, and how many keys there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub keys: i64,
    pub in_ledger: i64,
    pub expected: i64,
    pub explained: i64,
}

/// A row that a shop wrote and that no close has taken over (R4).
const SHOPS: &str = "t.adopted = 0 AND t.source = 'close' AND t.next_at IS NOT NULL";

/// What explains a locked quantity of type `$1`, as rows (key, in the ledger, held, in tasks).
///
/// Held: locked of the holds of PENDING and RESTORING orders, of every round, less their settle and release
/// tasks that are not superseded. In tasks: unfinished ones and force-closed ones that no flow names; a shop's
/// own row only where its order isn't known, else it is that order's close arriving.
fn open_quantities() -> String {
    format!(
        "SELECT h.biz_key AS k, 0 AS l, h.locked AS e, 0 AS x FROM orders o \
         JOIN hold h ON h.order_no = o.order_no AND h.resource_type = $1 WHERE o.status IN (0, 4) \
         UNION ALL \
         SELECT t.biz_key, 0, -t.qty, 0 FROM orders o \
         JOIN order_release_task t ON t.ref_no = o.order_no AND t.resource_type = $1 \
         JOIN hold h ON h.order_no = t.order_no AND h.round = t.round AND h.resource_type = t.resource_type AND h.biz_key = t.biz_key \
         WHERE o.status IN (0, 4) AND t.action IN (1, 2) AND t.status <> 5 AND NOT ({SHOPS}) \
         UNION ALL \
         SELECT t.biz_key, 0, 0, t.qty FROM order_release_task t LEFT JOIN orders o ON o.order_no = t.order_no \
         WHERE {OPEN} AND t.resource_type = $1 AND t.action IN (1, 2) AND t.status IN (0, 2, 3, 4) \
         AND (o.id IS NULL OR NOT ({SHOPS}))"
    )
}

/// The ledger rows of type `$1`; retired ones of a name add up with the live one.
const LEDGER: &str = "SELECT g.biz_key AS k, g.locked AS l, 0 AS e, 0 AS x FROM ledger g WHERE g.resource_type = $1";

fn by_key(conn: &Conn, only_locked: bool) -> String {
    let d = conn.dialect;
    let locked = if only_locked { " AND g.locked > 0" } else { "" };
    format!(
        "SELECT k, {} AS l, {} AS e, {} AS x FROM ({LEDGER}{locked} UNION ALL {}) every_row GROUP BY k",
        d.sum("l"),
        d.sum("e"),
        d.sum("x"),
        open_quantities()
    )
}

/// The sums of one type.
pub async fn sums(conn: &mut Conn, resource: ResourceType) -> Result<Sums> {
    let d = conn.dialect;
    let sql = format!(
        "SELECT COUNT(*), {}, {}, {} FROM ({}) keys_of_type",
        d.sum("l"),
        d.sum("e"),
        d.sum("x"),
        by_key(conn, false)
    );
    let row = conn.built(sql).bind(resource.code()).row().await?;
    let Some(row) = row else { return Ok(Sums::default()) };
    Ok(Sums { keys: row.int(0)?, in_ledger: row.int(1)?, expected: row.int(2)?, explained: row.int(3)? })
}

/// The keys of one type, after `after`, whose locked quantity is not explained.
pub async fn differing(conn: &mut Conn, resource: ResourceType, after: &str, limit: i64) -> Result<Vec<Figures>> {
    let sql = format!(
        "SELECT k, l, e, x FROM ({}) keys_of_type WHERE l <> e + x AND k > $2 ORDER BY k LIMIT $3",
        by_key(conn, true)
    );
    let rows = conn.built(sql).bind(resource.code()).bind(after).bind(limit).rows().await?;
    rows.iter()
        .map(|row| {
            Ok(Figures { key: row.text(0)?, in_ledger: row.int(1)?, expected: row.int(2)?, explained: row.int(3)? })
        })
        .collect()
}

/// What holds have left and unfinished tasks move, of every key of one type that has either.
pub async fn all_expected(conn: &mut Conn, resource: ResourceType) -> Result<Vec<Figures>> {
    let d = conn.dialect;
    let sql = format!("SELECT k, {}, {} FROM ({}) every_row GROUP BY k", d.sum("e"), d.sum("x"), open_quantities());
    let rows = conn.built(sql).bind(resource.code()).rows().await?;
    let read = |row: &sqlx::any::AnyRow| {
        Ok(Figures { key: row.text(0)?, in_ledger: 0, expected: row.int(1)?, explained: row.int(2)? })
    };
    rows.iter().map(read).collect()
}

/// Keys of a coupon or slot, after `after`, that are locked by an order and round that has no hold on them.
pub async fn strangers(conn: &mut Conn, resource: ResourceType, after: &str, limit: i64) -> Result<Vec<String>> {
    let rows = conn
        .stmt(
            "SELECT DISTINCT g.biz_key FROM ledger g WHERE g.resource_type = $1 AND g.locked = 1 AND g.biz_key > $2 \
             AND g.holder_no IS NOT NULL AND NOT EXISTS (SELECT 1 FROM hold h WHERE h.order_no = g.holder_no \
             AND h.round = g.holder_round AND h.resource_type = g.resource_type AND h.biz_key = g.biz_key) \
             ORDER BY g.biz_key LIMIT $3",
        )
        .bind(resource.code())
        .bind(after)
        .bind(limit)
        .rows()
        .await?;
    rows.iter().map(|row| row.text(0)).collect()
}

/// The figures of these keys, also of those that agree.
pub async fn figures_of(conn: &mut Conn, resource: ResourceType, keys: &[String]) -> Result<Vec<Figures>> {
    let sql = format!("SELECT k, l, e, x FROM ({}) keys_of_type WHERE k IN ({})", by_key(conn, true), keys_in(conn, 2));
    let rows = conn.built(sql).bind(resource.code()).bind(list(keys)?).rows().await?;
    rows.iter()
        .map(|row| {
            Ok(Figures { key: row.text(0)?, in_ledger: row.int(1)?, expected: row.int(2)?, explained: row.int(3)? })
        })
        .collect()
}

#[derive(Serialize)]
struct Key<'a> {
    k: &'a str,
}
const KEY: Cells = &[("k", Cell::Text)];

fn list(keys: &[String]) -> Result<String> {
    json(&keys.iter().map(|k| Key { k }).collect::<Vec<_>>())
}

fn keys_in(conn: &Conn, n: usize) -> String {
    format!("SELECT v.k FROM {}", conn.dialect.rows(n, KEY))
}

/// Names behind keys are cut off at this many each.
pub const NAMED: i64 = 20;

/// Open orders that hold these keys, newest first: (key, order).
pub async fn open_orders(conn: &mut Conn, resource: ResourceType, keys: &[String]) -> Result<Vec<(String, String)>> {
    let sql = format!(
        "SELECT k, no FROM (SELECT h.biz_key AS k, o.order_no AS no, ROW_NUMBER() OVER (PARTITION BY h.biz_key ORDER BY o.id DESC) AS nth \
         FROM orders o JOIN hold h ON h.order_no = o.order_no AND h.resource_type = $1 \
         WHERE o.status IN (0, 4) AND h.biz_key IN ({})) numbered WHERE nth <= {NAMED} ORDER BY k, nth",
        keys_in(conn, 2)
    );
    let rows = conn.built(sql).bind(resource.code()).bind(list(keys)?).rows().await?;
    rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?))).collect()
}

/// Unfinished settle and release tasks of these keys, newest first: (key, task, its order).
pub async fn open_tasks(
    conn: &mut Conn,
    resource: ResourceType,
    keys: &[String],
) -> Result<Vec<(String, i64, String)>> {
    let sql = format!(
        "SELECT k, id, no FROM (SELECT t.biz_key AS k, t.id AS id, t.order_no AS no, \
         ROW_NUMBER() OVER (PARTITION BY t.biz_key ORDER BY t.id DESC) AS nth FROM order_release_task t \
         WHERE {OPEN} AND t.resource_type = $1 AND t.action IN (1, 2) AND t.biz_key IN ({})) numbered \
         WHERE nth <= {NAMED} ORDER BY k, nth",
        keys_in(conn, 2)
    );
    let rows = conn.built(sql).bind(resource.code()).bind(list(keys)?).rows().await?;
    rows.iter().map(|row| Ok((row.text(0)?, row.int(1)?, row.text(2)?))).collect()
}

/// Orders that are neither open nor have an unfinished task for the key, and of whose locks the flow doesn't
/// say that all was settled or released, or says that more was: (key, order, what is locked by the flow).
pub async fn unsettled_orders(
    conn: &mut Conn,
    resource: ResourceType,
    keys: &[String],
) -> Result<Vec<(String, String, i64)>> {
    let net = conn.dialect.sum("CASE WHEN f.action IN (0, 3) THEN f.qty ELSE -f.qty END");
    let sql = format!(
        "SELECT k, no, net FROM (SELECT g.k AS k, g.no AS no, g.net AS net, \
         ROW_NUMBER() OVER (PARTITION BY g.k ORDER BY g.newest DESC) AS nth FROM \
         (SELECT l.biz_key AS k, f.ref_no AS no, {net} AS net, MAX(f.id) AS newest FROM ledger l \
         JOIN resource_flow f ON f.ledger_id = l.id \
         WHERE l.resource_type = $1 AND l.biz_key IN ({}) AND f.action IN (0, 1, 2, 3) GROUP BY l.biz_key, f.ref_no) g \
         WHERE g.net <> 0 \
         AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.order_no = g.no AND o.status IN (0, 4)) \
         AND NOT EXISTS (SELECT 1 FROM order_release_task t WHERE t.ref_no = g.no AND t.resource_type = $1 AND t.biz_key = g.k \
         AND t.action IN (1, 2) AND t.next_at IS NOT NULL)) numbered WHERE nth <= {NAMED} ORDER BY k, nth",
        keys_in(conn, 2)
    );
    let rows = conn.built(sql).bind(resource.code()).bind(list(keys)?).rows().await?;
    rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?, row.int(2)?))).collect()
}
