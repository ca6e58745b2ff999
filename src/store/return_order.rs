//! Returns and their lines. Other programs may write these rows too: a received one that nobody has written
//! the tasks of is found by its `tasked` mark, whatever its age (C2).

use serde::Serialize;
use sqlx::any::AnyRow;

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::dialect::{Cell, Cells};
use super::error::Class;
use super::ledger::json;
use super::task::WAITS;

/// A return as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
    pub id: i64,
    pub return_no: String,
    /// `None`: the goods were sold elsewhere.
    pub order_no: Option<String>,
    pub is_received: bool,
    /// Its tasks are written.
    pub is_tasked: bool,
    /// What its caller sent, as it came.
    pub raw: Option<String>,
    /// The table it was found in, when nobody told of it.
    pub origin: Option<String>,
    pub accepted_at: Option<i64>,
    pub received_at: Option<i64>,
}

/// One line of a return.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// From 1, as the caller counted them.
    #[serde(rename = "l")]
    pub line: i64,
    #[serde(rename = "k")]
    pub key: String,
    #[serde(rename = "q")]
    pub qty: i64,
    #[serde(rename = "s", serialize_with = "flag")]
    pub restock: bool,
}

fn flag<S: serde::Serializer>(is: &bool, s: S) -> std::result::Result<S::Ok, S::Error> {
    s.serialize_i64(i64::from(*is))
}

/// A return about to be written.
#[derive(Clone, Debug)]
pub struct NewReturn<'a> {
    pub return_no: &'a str,
    pub order_no: Option<&'a str>,
    pub raw: Option<&'a str>,
    pub origin: Option<&'a str>,
    pub accepted_at: i64,
}

const COLUMNS: &str =
    "r.id, r.return_no, r.order_no, r.status, r.tasked, r.raw, r.origin, r.accepted_at, r.received_at";

fn read(row: &AnyRow) -> Result<Return> {
    Ok(Return {
        id: row.int(0)?,
        return_no: row.text(1)?,
        order_no: row.opt_text(2)?.filter(|no| !no.is_empty()),
        is_received: row.int(3)? != 0,
        is_tasked: row.int(4)? != 0,
        raw: row.opt_text(5)?,
        origin: row.opt_text(6)?,
        accepted_at: row.opt_int(7)?,
        received_at: row.opt_int(8)?,
    })
}

/// Writes a new return, accepted; `false` when the number is taken.
pub async fn insert(conn: &mut Conn, new: &NewReturn<'_>) -> Result<bool> {
    let sql = format!(
        "INSERT INTO return_order (return_no, order_no, raw, origin, accepted_at) VALUES ($1, $2, $3, $4, $5){}",
        conn.dialect.or_nothing()
    );
    let stmt = conn.built(sql).bind(new.return_no).bind(new.order_no).bind(new.raw).bind(new.origin);
    match stmt.bind(new.accepted_at).run().await {
        Ok(count) => Ok(count == 1),
        Err(error) if error.is(Class::Unique) => Ok(false),
        Err(error) => Err(error),
    }
}

const ITEM: Cells = &[("l", Cell::Int), ("k", Cell::Text), ("q", Cell::Int), ("s", Cell::Int)];

pub async fn insert_items(conn: &mut Conn, return_no: &str, items: &[Item]) -> Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "INSERT INTO return_item (return_no, line, biz_key, qty, restock) SELECT $2, v.l, v.k, v.q, v.s FROM {}",
        conn.dialect.rows(1, ITEM)
    );
    conn.built(sql).bind(json(items)?).bind(return_no).run().await?;
    Ok(())
}

pub async fn find(conn: &mut Conn, return_no: &str) -> Result<Option<Return>> {
    let sql = format!("SELECT {COLUMNS} FROM return_order r WHERE r.return_no = $1");
    conn.built(sql).bind(return_no).row().await?.as_ref().map(read).transpose()
}

pub async fn lock(conn: &mut Conn, return_no: &str) -> Result<Option<Return>> {
    let sql = format!("SELECT {COLUMNS} FROM return_order r WHERE r.return_no = $1{}", conn.dialect.for_update());
    conn.built(sql).bind(return_no).row().await?.as_ref().map(read).transpose()
}

/// The lines of a return, in order.
pub async fn items(conn: &mut Conn, return_no: &str) -> Result<Vec<Item>> {
    let rows = conn
        .stmt("SELECT line, biz_key, qty, restock FROM return_item WHERE return_no = $1 ORDER BY line")
        .bind(return_no)
        .rows()
        .await?;
    let read =
        |row: &AnyRow| Ok(Item { line: row.int(0)?, key: row.text(1)?, qty: row.int(2)?, restock: row.int(3)? != 0 });
    rows.iter().map(read).collect()
}

/// The returns of an order, oldest first.
pub async fn of_order(conn: &mut Conn, order_no: &str) -> Result<Vec<Return>> {
    let sql = format!("SELECT {COLUMNS} FROM return_order r WHERE r.order_no = $1 ORDER BY r.id");
    conn.built(sql).bind(order_no).rows().await?.iter().map(read).collect()
}

/// How much of each key the order's returns before this one speak for, received or not, restocked or not. One
/// whose tasks are written already counts as before.
pub async fn returned_before(conn: &mut Conn, order_no: &str, id: i64) -> Result<Vec<(String, i64)>> {
    let sql = format!(
        "SELECT i.biz_key, {} FROM return_order r JOIN return_item i ON i.return_no = r.return_no \
         WHERE r.order_no = $1 AND r.id <> $2 AND (r.id < $3 OR r.tasked = 1) GROUP BY i.biz_key",
        conn.dialect.sum("i.qty")
    );
    let rows = conn.built(sql).bind(order_no).bind(id).bind(id).rows().await?;
    rows.iter().map(|row| Ok((row.text(0)?, row.int(1)?))).collect()
}

/// The goods are here and the tasks are written. Zero rows: somebody did both before.
pub async fn mark_received(conn: &mut Conn, id: i64, now: i64) -> Result<u64> {
    conn.stmt(
        "UPDATE return_order SET status = 1, tasked = 1, received_at = COALESCE(received_at, $2) WHERE id = $1 AND tasked = 0",
    )
    .bind(id)
    .bind(now)
    .run()
    .await
}

/// Received returns without tasks, by id: what other programs wrote. Those whose lines aren't there yet are
/// left alone until they are.
pub async fn untasked(conn: &mut Conn, after: i64, limit: i64) -> Result<Vec<(i64, String)>> {
    let rows = conn
        .stmt(
            "SELECT r.id, r.return_no FROM return_order r WHERE r.tasked = 0 AND r.status = 1 AND r.id > $1 AND r.return_no <> '' \
             AND EXISTS (SELECT 1 FROM return_item i WHERE i.return_no = r.return_no) ORDER BY r.id LIMIT $2",
        )
        .bind(after)
        .bind(limit)
        .rows()
        .await?;
    rows.iter().map(|row| Ok((row.int(0)?, row.text(1)?))).collect()
}

#[derive(Serialize)]
struct No<'a> {
    n: &'a str,
}
const NO: Cells = &[("n", Cell::Text)];

/// Which of these numbers need nothing more: their tasks are written.
pub async fn tasked_of(conn: &mut Conn, numbers: &[String]) -> Result<Vec<String>> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let list: Vec<No<'_>> = numbers.iter().map(|n| No { n }).collect();
    let from = conn.dialect.rows_join(1, NO, "return_order", "t.return_no = v.n");
    let sql = format!("SELECT t.return_no FROM {from} WHERE t.tasked = 1");
    conn.built(sql).bind(json(&list)?).rows().await?.iter().map(|row| row.text(0)).collect()
}

/// A `return_in` and the settle that its hold still waits for.
const UNSETTLED: &str = "s.ref_no = t.order_no AND s.action = 2 AND s.resource_type = t.resource_type AND s.biz_key = t.biz_key \
     AND s.status IN (0, 2, 3)";

/// Which of these tasks are a `return_in` whose hold isn't settled: waiting, retrying or manual.
pub async fn unsettled(conn: &mut Conn, task_ids: &[i64]) -> Result<Vec<i64>> {
    let sql = format!(
        "SELECT DISTINCT t.id FROM order_release_task t JOIN order_release_task s ON {UNSETTLED} \
         WHERE t.id {} AND t.action = 4 AND t.order_no <> ''",
        conn.dialect.in_ids(1)
    );
    conn.built(sql).bind(json(task_ids)?).rows().await?.iter().map(|row| row.int(0)).collect()
}

/// Sets these tasks aside until their settle ends, and says so. No failure is counted.
pub async fn set_aside(conn: &mut Conn, task_ids: &[i64]) -> Result<()> {
    if task_ids.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "UPDATE order_release_task SET next_at = {WAITS}, error = $2, version = version + 1 WHERE id {} AND status IN (0, 2)",
        conn.dialect.in_ids(1)
    );
    conn.built(sql).bind(json(task_ids)?).bind(WAITING).run().await?;
    Ok(())
}

/// What a task that was set aside says.
const WAITING: &str = "waits for the settle of the same goods";

/// Wakes what was set aside and whose settle has ended; how many. Cheap while there is nothing: one look at the index.
pub async fn wake(conn: &mut Conn, now: i64) -> Result<u64> {
    let sql = format!(
        "SELECT t.id FROM order_release_task t WHERE t.open_lane IN (0, 1, 2, 3, 4, 5, 6) AND t.next_at = {WAITS} \
         AND NOT EXISTS (SELECT 1 FROM order_release_task s WHERE {UNSETTLED}) ORDER BY t.id LIMIT 1000"
    );
    let rows = conn.built(sql).rows().await?;
    let ids = rows.iter().map(|row| row.int(0)).collect::<Result<Vec<i64>>>()?;
    if ids.is_empty() {
        return Ok(0);
    }
    let sql = format!(
        "UPDATE order_release_task SET next_at = $2, error = NULL, version = version + 1 WHERE id {} AND next_at = {WAITS}",
        conn.dialect.in_ids(1)
    );
    conn.built(sql).bind(json(&ids)?).bind(now).run().await
}

/// Is anything set aside?
pub async fn any_set_aside(conn: &mut Conn) -> Result<bool> {
    let sql = format!(
        "SELECT COUNT(*) FROM order_release_task t WHERE t.open_lane IN (0, 1, 2, 3, 4, 5, 6) AND t.next_at = {WAITS}"
    );
    Ok(conn.built(sql).int().await? > 0)
}

/// What a list of returns shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Accepted,
    /// Received, and something of it is still owed to stock.
    Owed,
    Completed,
}

/// One row of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub row: Return,
    pub pieces: i64,
    /// Pieces whose task isn't done.
    pub owed: i64,
    /// Tasks that wait for a person.
    pub manual: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub rows: Vec<Listed>,
    /// Where the next page begins.
    pub next: Option<i64>,
}

/// A task of a return that isn't done: unfinished, or force-closed and still owed.
const OWED: &str = "w.ref_no = r.return_no AND w.action = 4 AND w.next_at IS NOT NULL";

/// Returns, newest first, page by page by id.
pub async fn list(conn: &mut Conn, state: Option<State>, before: Option<i64>, limit: usize) -> Result<Listing> {
    let d = conn.dialect;
    let filter = match state {
        None => String::new(),
        Some(State::Accepted) => " AND r.status = 0".to_owned(),
        Some(State::Owed) => {
            format!(" AND r.status = 1 AND (r.tasked = 0 OR EXISTS (SELECT 1 FROM order_release_task w WHERE {OWED}))")
        }
        Some(State::Completed) => {
            format!(
                " AND r.status = 1 AND r.tasked = 1 AND NOT EXISTS (SELECT 1 FROM order_release_task w WHERE {OWED})"
            )
        }
    };
    let sql = format!(
        "SELECT {COLUMNS}, (SELECT {} FROM return_item i WHERE i.return_no = r.return_no), \
         (SELECT {} FROM order_release_task w WHERE {OWED}), \
         (SELECT COUNT(*) FROM order_release_task w WHERE {OWED} AND w.status = 3) \
         FROM return_order r WHERE r.id < $1{filter} ORDER BY r.id DESC LIMIT $2",
        d.sum("i.qty"),
        d.sum("w.qty"),
    );
    let rows = conn.built(sql).bind(before.unwrap_or(i64::MAX)).bind(limit as i64 + 1).rows().await?;
    let read_row =
        |row: &AnyRow| Ok(Listed { row: read(row)?, pieces: row.int(9)?, owed: row.int(10)?, manual: row.int(11)? });
    let mut rows = rows.iter().map(read_row).collect::<Result<Vec<_>>>()?;
    let next = (rows.len() > limit).then(|| {
        rows.truncate(limit);
        rows.last().map_or(0, |last| last.row.id)
    });
    Ok(Listing { rows, next })
}
