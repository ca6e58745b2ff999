//! Rows for measured load: closed or due orders with their holds, lock flows, ledgers and tasks, written in
//! chunks, consistent with every rule that `check` verifies. Also the loop that a competent team would write,
//! to measure against: one task, one transaction.

use serde::Serialize;

use super::conn::{Conn, RowExt as _};
use super::db::{Db, Decision, Result};
use super::dialect::{Cell, Cells};
use super::error::Error;
use super::ledger::json;

/// Tables that measured load fills, children first.
const TABLES: [&str; 8] =
    ["task_attempt", "resource_flow", "order_release_task", "hold", "orders", "ledger", "counter_delta", "counter"];

/// Whether there is nothing that a measurement could harm.
pub async fn is_empty(db: &Db) -> Result<bool> {
    let mut conn = db.read().await?;
    for table in TABLES {
        if conn.built(format!("SELECT 1 FROM {table} LIMIT 1")).row().await?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes what a round wrote. Only ever called on a database that was empty before.
pub async fn clear(db: &Db) -> Result<()> {
    for table in TABLES {
        let sql = db.dialect.truncate(table);
        db.write(move |conn| {
            let sql = sql.clone();
            Box::pin(async move { Ok(Decision::Commit(conn.built(sql).run().await?)) })
        })
        .await?;
    }
    Ok(())
}

/// Brings the planner's figures up to date, as a running server would have done by itself.
pub async fn analyze(db: &Db) -> Result<()> {
    for table in TABLES {
        let mut conn = db.writer_conn().await?;
        conn.built(db.dialect.analyze(table)).rows().await?;
    }
    Ok(())
}

/// One thing an order of the load holds.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub order: i64,
    /// Index of the key.
    pub key: i64,
    /// The ledger has it locked; a line that lacks ends `locked_insufficient`.
    pub is_locked: bool,
}

#[derive(Serialize)]
struct Row {
    i: i64,
    k: i64,
}
const ROW: Cells = &[("i", Cell::Int), ("k", Cell::Int)];

#[derive(Serialize)]
struct KeyRow {
    k: i64,
    q: i64,
}
const KEY: Cells = &[("k", Cell::Int), ("q", Cell::Int)];

/// Opens the keys with their locked sums: (key, locked).
pub async fn ledgers(conn: &mut Conn, keys: &[(i64, i64)], now: i64) -> Result<()> {
    let list: Vec<KeyRow> = keys.iter().map(|(k, q)| KeyRow { k: *k, q: *q }).collect();
    let list = json(&list)?;
    let d = conn.dialect;
    let name = d.concat(&["'sku-'", &d.as_text("v.k")]);
    let sql = format!(
        "INSERT INTO ledger (id, resource_type, biz_key, available, locked, created_at) SELECT v.k, 1, {name}, 0, v.q, $2 FROM {} WHERE 1 = 1",
        d.rows(1, KEY)
    );
    conn.built(sql).bind(list.clone()).bind(now).run().await?;
    let reference = d.concat(&["'open:'", &d.as_text("v.k")]);
    let sql = format!(
        "INSERT INTO resource_flow (ledger_id, resource_type, biz_key, action, qty, ref_no, source, round, at, available_after, locked_after, sold_after) \
         SELECT v.k, 1, {name}, 6, v.q, {reference}, 'open', 1, $2, v.q, 0, 0 FROM {} WHERE 1 = 1",
        d.rows(1, KEY)
    );
    conn.built(sql).bind(list).bind(now).run().await?;
    Ok(())
}

/// Orders `from..to` with status and due time.
pub async fn orders(conn: &mut Conn, from: i64, to: i64, is_closed: bool, now: i64) -> Result<()> {
    let list: Vec<Row> = (from..to).map(|i| Row { i, k: 0 }).collect();
    let d = conn.dialect;
    let number = d.concat(&["'L'", &d.as_text("v.i")]);
    let (status, due, closed) = if is_closed { ("3", "NULL", "$2") } else { ("0", "$2", "NULL") };
    let sql = format!(
        "INSERT INTO orders (order_no, buyer, amount, currency, status, content, pay_within_s, placed_at, pay_deadline, due_at, closed_at) \
         SELECT {number}, 'load', 100, 'CNY', {status}, '', 900, $3, $2, {due}, {closed} FROM {} WHERE 1 = 1",
        d.rows(1, ROW)
    );
    conn.built(sql).bind(json(&list)?).bind(now - 1000).bind(now - 900_000).run().await?;
    Ok(())
}

/// Holds and lock flows of these lines, and their release tasks where the orders are closed.
pub async fn lines(conn: &mut Conn, lines: &[Line], with_tasks: bool, now: i64) -> Result<()> {
    let row = |line: &Line| Row { i: line.order, k: line.key };
    let all = json(&lines.iter().map(row).collect::<Vec<_>>())?;
    let locked = json(&lines.iter().filter(|l| l.is_locked).map(row).collect::<Vec<_>>())?;
    let d = conn.dialect;
    let (number, name) = (d.concat(&["'L'", &d.as_text("v.i")]), d.concat(&["'sku-'", &d.as_text("v.k")]));
    let rows = d.rows(1, ROW);
    let sql = format!(
        "INSERT INTO hold (order_no, round, resource_type, biz_key, ledger_id, locked) SELECT {number}, 1, 1, {name}, v.k, 1 FROM {rows} WHERE 1 = 1"
    );
    conn.built(sql).bind(all.clone()).run().await?;
    let sql = format!(
        "INSERT INTO resource_flow (ledger_id, resource_type, biz_key, action, qty, ref_no, source, round, at, available_after, locked_after, sold_after) \
         SELECT v.k, 1, {name}, 0, 1, {number}, 'place', 1, $2, 0, 0, 0 FROM {rows} WHERE 1 = 1"
    );
    conn.built(sql).bind(locked).bind(now).run().await?;
    if with_tasks {
        let sql = format!(
            "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, ledger_id, adopted, next_at, created_at) \
             SELECT {number}, 1, {name}, 1, v.k, 1, $2, $2 FROM {rows} WHERE 1 = 1"
        );
        conn.built(sql).bind(all).bind(now - 1000).run().await?;
    }
    Ok(())
}

/// Finished tasks of long ago, `from..to`, that only make the tables large.
pub async fn finished(conn: &mut Conn, from: i64, to: i64, now: i64) -> Result<()> {
    let list: Vec<Row> = (from..to).map(|i| Row { i, k: i % 1000 }).collect();
    let list = json(&list)?;
    let d = conn.dialect;
    let (number, name) = (d.concat(&["'F'", &d.as_text("v.i")]), d.concat(&["'old-'", &d.as_text("v.k")]));
    let sql = format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, status, outcome, next_at, created_at, finished_at, ended_by) \
         SELECT {number}, 1, {name}, 1, 1, 3, NULL, $2, $2, 'worker:load' FROM {} WHERE 1 = 1",
        d.rows(1, ROW)
    );
    conn.built(sql).bind(list).bind(now).run().await?;
    Ok(())
}

/// The baseline: claims one task, moves its ledger row, writes its flow row, marks it, all in one transaction.
/// `false` when the queue is empty.
pub async fn release_one(db: &Db, now: i64) -> Result<bool> {
    db.write(move |conn| Box::pin(async move { one_task(conn, now).await })).await
}

async fn one_task(conn: &mut Conn, now: i64) -> Result<Decision<bool>> {
    let d = conn.dialect;
    let sql = format!(
        "SELECT id, ledger_id, qty FROM order_release_task WHERE open_lane = 0 AND next_at <= $1 ORDER BY next_at LIMIT 1{}",
        d.for_update_skip()
    );
    let Some(row) = conn.built(sql).bind(now).row().await? else { return Ok(Decision::Rollback(false)) };
    let (id, ledger_id, qty) = (row.int(0)?, row.int(1)?, row.int(2)?);
    let hit = conn
        .stmt("UPDATE ledger SET locked = locked - $2, available = available + $2 WHERE id = $1 AND locked >= $2")
        .bind(ledger_id)
        .bind(qty)
        .run()
        .await?;
    if hit != 1 {
        return Err(Error::broken("the load has too little locked"));
    }
    conn.stmt(
        "INSERT INTO resource_flow (ledger_id, resource_type, biz_key, action, qty, ref_no, source, round, task_id, at, available_after, locked_after, sold_after, actor) \
         SELECT l.id, t.resource_type, t.biz_key, t.action, t.qty, t.ref_no, t.source, t.round, t.id, $2, l.available, l.locked, l.sold, 'loop' \
         FROM order_release_task t JOIN ledger l ON l.id = t.ledger_id WHERE t.id = $1",
    )
    .bind(id)
    .bind(now)
    .run()
    .await?;
    conn.stmt(
        "UPDATE order_release_task SET status = 1, next_at = NULL, finished_at = $2, ended_by = 'loop', outcome = 1, fence = fence + 1, version = version + 1 WHERE id = $1",
    )
    .bind(id)
    .bind(now)
    .run()
    .await?;
    Ok(Decision::Commit(true))
}

/// Ids and numbers of the orders that are due, for the closing baseline.
pub async fn due_orders(db: &Db, now: i64) -> Result<Vec<(i64, String)>> {
    let mut conn = db.read().await?;
    let rows = conn
        .stmt("SELECT id, order_no FROM orders WHERE asking = 0 AND due_at <= $1 ORDER BY due_at")
        .bind(now)
        .rows()
        .await?;
    rows.iter().map(|row| Ok((row.int(0)?, row.text(1)?))).collect()
}

/// The closing baseline: one order, one transaction.
pub async fn close_one(db: &Db, id: i64, order_no: String, now: i64) -> Result<()> {
    db.write(move |conn| {
        let order_no = order_no.clone();
        Box::pin(async move {
            let hit = conn
                .stmt(
                    "UPDATE orders SET status = 3, due_at = NULL, closed_at = $2, close_reason = 'timeout', closed_by = 'loop', close_trigger = 1, \
                     version = version + 1 WHERE id = $1 AND status = 0 AND payment_seen = 0",
                )
                .bind(id)
                .bind(now)
                .run()
                .await?;
            if hit == 1 {
                conn.stmt(
                    "INSERT INTO order_release_task (order_no, round, resource_type, biz_key, qty, ledger_id, adopted, next_at, created_at) \
                     SELECT order_no, round, resource_type, biz_key, locked, ledger_id, 1, $2, $2 FROM hold WHERE order_no = $1",
                )
                .bind(order_no)
                .bind(now)
                .run()
                .await?;
            }
            Ok(Decision::Commit(()))
        })
    })
    .await
}
