//! Orders and their holds. Every change of status is a conditional update (B1).

use serde::Serialize;
use sqlx::any::AnyRow;

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::dialect::{Cell, Cells};
use super::error::{Class, Error};
use super::ledger::json;
use crate::core::words::{OrderStatus, ResourceType, Trigger};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub id: i64,
    pub order_no: String,
    pub buyer: String,
    /// Minor units.
    pub amount: i64,
    pub currency: String,
    pub status: OrderStatus,
    pub round: i64,
    /// A digest of what was placed, to tell a repeat from another order of the same number.
    pub content: String,
    pub pay_within_s: i64,
    pub placed_at: i64,
    pub pay_deadline: i64,
    /// When the scan looks at it: the deadline, or later when postponed; `None` once it isn't PENDING.
    pub due_at: Option<i64>,
    pub paid_at: Option<i64>,
    pub closed_at: Option<i64>,
    pub close_reason: Option<String>,
    pub closed_by: Option<String>,
    pub close_trigger: Option<Trigger>,
    pub payment_seen: bool,
    /// A close that came before its order; kept until then.
    pub tombstone_until: Option<i64>,
    /// What was ordered, for display: a JSON list.
    pub lines: Option<String>,
    /// Its payment has started: the channel is asked before a timeout closes it.
    pub asking: bool,
    /// How often the channel was asked.
    pub asked: i64,
    /// The payment it is RESTORING for.
    pub late_payment: Option<i64>,
    pub version: i64,
}

impl Order {
    pub fn is_tombstone(&self) -> bool {
        self.tombstone_until.is_some()
    }
}

const COLUMNS: &str = "id, order_no, buyer, amount, currency, status, round, content, pay_within_s, placed_at, pay_deadline, due_at, paid_at, \
     closed_at, close_reason, closed_by, close_trigger, payment_seen, tombstone_until, line_items, asking, asked, late_payment, version";

fn read(row: &AnyRow) -> Result<Order> {
    Ok(Order {
        id: row.int(0)?,
        order_no: row.text(1)?,
        buyer: row.text(2)?,
        amount: row.int(3)?,
        currency: row.text(4)?,
        status: OrderStatus::from_code(row.int(5)?).ok_or_else(|| Error::broken("an order has an unknown status"))?,
        round: row.int(6)?,
        content: row.text(7)?,
        pay_within_s: row.int(8)?,
        placed_at: row.int(9)?,
        pay_deadline: row.int(10)?,
        due_at: row.opt_int(11)?,
        paid_at: row.opt_int(12)?,
        closed_at: row.opt_int(13)?,
        close_reason: row.opt_text(14)?,
        closed_by: row.opt_text(15)?,
        close_trigger: row.opt_int(16)?.and_then(Trigger::from_code),
        payment_seen: row.int(17)? != 0,
        tombstone_until: row.opt_int(18)?,
        lines: row.opt_text(19)?,
        asking: row.int(20)? != 0,
        asked: row.int(21)?,
        late_payment: row.opt_int(22)?,
        version: row.int(23)?,
    })
}

pub async fn find(conn: &mut Conn, order_no: &str) -> Result<Option<Order>> {
    let sql = format!("SELECT {COLUMNS} FROM orders WHERE order_no = $1");
    conn.built(sql).bind(order_no).row().await?.as_ref().map(read).transpose()
}

pub async fn lock(conn: &mut Conn, order_no: &str) -> Result<Option<Order>> {
    let sql = format!("SELECT {COLUMNS} FROM orders WHERE order_no = $1{}", conn.dialect.for_update());
    conn.built(sql).bind(order_no).row().await?.as_ref().map(read).transpose()
}

/// Status of those of these orders that exist (no lock): (number, status, is a tombstone).
pub async fn statuses(conn: &mut Conn, numbers: &[String]) -> Result<Vec<(String, OrderStatus, bool)>> {
    let list: Vec<No<'_>> = numbers.iter().map(|o| No { o }).collect();
    let from = conn.dialect.rows_join(1, NO, "orders", "t.order_no = v.o");
    let sql = format!("SELECT t.order_no, t.status, t.tombstone_until FROM {from}");
    let rows = conn.built(sql).bind(json(&list)?).rows().await?;
    rows.iter()
        .map(|row| {
            let status =
                OrderStatus::from_code(row.int(1)?).ok_or_else(|| Error::broken("an order has an unknown status"))?;
            Ok((row.text(0)?, status, row.opt_int(2)?.is_some()))
        })
        .collect()
}

#[derive(Serialize)]
struct No<'a> {
    o: &'a str,
}
const NO: Cells = &[("o", Cell::Text)];

/// Writes a new order; `false` when the number is taken (by an order or a tombstone).
pub async fn insert(conn: &mut Conn, order: &Order) -> Result<bool> {
    let sql = format!(
        "INSERT INTO orders (order_no, buyer, amount, currency, status, round, content, pay_within_s, placed_at, pay_deadline, due_at, \
         closed_at, close_reason, closed_by, close_trigger, tombstone_until, line_items) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17){}",
        conn.dialect.or_nothing()
    );
    let inserted = conn
        .built(sql)
        .bind(&order.order_no)
        .bind(&order.buyer)
        .bind(order.amount)
        .bind(&order.currency)
        .bind(order.status.code())
        .bind(order.round)
        .bind(&order.content)
        .bind(order.pay_within_s)
        .bind(order.placed_at)
        .bind(order.pay_deadline)
        .bind(order.due_at)
        .bind(order.closed_at)
        .bind(order.close_reason.clone())
        .bind(order.closed_by.clone())
        .bind(order.close_trigger.map(Trigger::code))
        .bind(order.tombstone_until)
        .bind(order.lines.clone())
        .run()
        .await;
    match inserted {
        Ok(count) => Ok(count == 1),
        Err(error) if error.is(Class::Unique) => Ok(false),
        Err(error) => Err(error),
    }
}

/// PENDING → PAID. Zero rows: something else won.
pub async fn mark_paid(conn: &mut Conn, id: i64, now: i64) -> Result<u64> {
    conn.stmt(
        "UPDATE orders SET status = 1, payment_seen = 1, paid_at = $2, due_at = NULL, version = version + 1 WHERE id = $1 AND status = 0",
    )
    .bind(id)
    .bind(now)
    .run()
    .await
}

/// One status to another, nothing else. Zero rows: it isn't in `from` any more.
pub async fn move_on(conn: &mut Conn, id: i64, from: OrderStatus, to: OrderStatus) -> Result<u64> {
    conn.stmt("UPDATE orders SET status = $3, version = version + 1 WHERE id = $1 AND status = $2")
        .bind(id)
        .bind(from.code())
        .bind(to.code())
        .run()
        .await
}

/// CLOSED → RESTORING for a payment that came late. Zero rows: it isn't CLOSED any more.
pub async fn mark_restoring(conn: &mut Conn, id: i64, payment_id: i64) -> Result<u64> {
    conn.stmt("UPDATE orders SET status = 4, late_payment = $2, version = version + 1 WHERE id = $1 AND status = 3")
        .bind(id)
        .bind(payment_id)
        .run()
        .await
}

/// RESTORING → PAID, in the round that holds what came back. Zero rows: it isn't RESTORING any more.
pub async fn mark_restored(conn: &mut Conn, id: i64, round: i64, now: i64) -> Result<u64> {
    conn.stmt(
        "UPDATE orders SET status = 1, payment_seen = 1, paid_at = $3, round = $2, version = version + 1 WHERE id = $1 AND status = 4",
    )
    .bind(id)
    .bind(round)
    .bind(now)
    .run()
    .await
}

/// Why and by whom an order is closed.
#[derive(Clone, Debug)]
pub struct Closing<'a> {
    pub reason: &'a str,
    pub by: &'a str,
    pub trigger: Trigger,
    pub now: i64,
    /// The channel was asked and the order isn't paid.
    pub was_asked: bool,
}

/// PENDING → CLOSED for these orders, conditional on no payment seen (R7); how many were hit.
pub async fn mark_closed(conn: &mut Conn, ids: &[i64], closing: &Closing<'_>) -> Result<u64> {
    let list: Vec<Id> = ids.iter().map(|i| Id { i: *i }).collect();
    let sql = conn.dialect.update_from(
        "orders",
        &[
            ("status", "3"),
            ("due_at", "NULL"),
            ("closed_at", "$2"),
            ("close_reason", "$3"),
            ("closed_by", "$4"),
            ("close_trigger", "$5"),
            ("version", "t.version + 1"),
        ],
        1,
        ID,
        "t.id = v.i AND t.status = 0 AND t.payment_seen = 0",
    );
    let stmt = conn.built(sql).bind(json(&list)?).bind(closing.now).bind(closing.reason);
    stmt.bind(closing.by).bind(closing.trigger.code()).run().await
}

#[derive(Serialize)]
struct Id {
    i: i64,
}
const ID: Cells = &[("i", Cell::Int)];

/// An order the scan found due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueOrder {
    pub id: i64,
    pub order_no: String,
    pub pay_deadline: i64,
}

/// The look for orders that are due at `$1`, `$2` of them. It must read no order that has ended (B7).
pub const DUE_LOOK: &str =
    "SELECT id, order_no, pay_deadline FROM orders WHERE asking = 0 AND due_at <= $1 ORDER BY due_at LIMIT $2";

/// Claims due orders in the order they fell due, skipping those somebody else has.
pub async fn claim_due(conn: &mut Conn, now: i64, limit: i64) -> Result<Vec<DueOrder>> {
    let sql = DUE_LOOK.to_owned() + conn.dialect.for_update_skip();
    let rows = conn.built(sql).bind(now).bind(limit).rows().await?;
    rows.iter().map(read_due).collect()
}

/// The same look without locks, for closing one by one after a batch failed.
pub async fn find_due(conn: &mut Conn, now: i64, limit: i64) -> Result<Vec<DueOrder>> {
    let rows = conn.stmt(DUE_LOOK).bind(now).bind(limit).rows().await?;
    rows.iter().map(read_due).collect()
}

pub(super) fn read_due(row: &AnyRow) -> Result<DueOrder> {
    Ok(DueOrder { id: row.int(0)?, order_no: row.text(1)?, pay_deadline: row.int(2)? })
}

/// Postpones an order that could not be closed now, so that it never holds up the others (R14).
pub async fn postpone(conn: &mut Conn, id: i64, until: i64) -> Result<u64> {
    conn.stmt("UPDATE orders SET due_at = $2, postponed = postponed + 1 WHERE id = $1 AND status = 0")
        .bind(id)
        .bind(until)
        .run()
        .await
}

/// What is to be paid from now on.
pub async fn set_amount(conn: &mut Conn, id: i64, amount: i64) -> Result<u64> {
    conn.stmt("UPDATE orders SET amount = $2, version = version + 1 WHERE id = $1 AND status = 0")
        .bind(id)
        .bind(amount)
        .run()
        .await
}

/// Which of these orders need a close of their own: a task or a payment of theirs exists already.
pub async fn with_history(conn: &mut Conn, numbers: &[String]) -> Result<Vec<String>> {
    let list: Vec<No<'_>> = numbers.iter().map(|o| No { o }).collect();
    let list = json(&list)?;
    let d = conn.dialect;
    let mut found = Vec::new();
    for (table, column) in [("order_release_task", "t.ref_no"), ("payment", "t.order_no")] {
        let from = d.rows_join(1, NO, table, &format!("{column} = v.o"));
        let sql = format!("SELECT DISTINCT {column} FROM {from}");
        for row in conn.built(sql).bind(list.clone()).rows().await? {
            found.push(row.text(0)?);
        }
    }
    Ok(found)
}

/// What an order locked of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hold {
    #[serde(rename = "o")]
    pub order_no: String,
    #[serde(rename = "r")]
    pub round: i64,
    #[serde(rename = "t", serialize_with = "code")]
    pub resource: ResourceType,
    #[serde(rename = "k")]
    pub key: String,
    /// The row that was locked; `None` for what isn't ours.
    #[serde(rename = "g", serialize_with = "super::flow::ours")]
    pub ledger_id: Option<i64>,
    #[serde(rename = "q")]
    pub locked: i64,
}

fn code<S: serde::Serializer>(resource: &ResourceType, s: S) -> std::result::Result<S::Ok, S::Error> {
    s.serialize_i64(resource.code())
}

const HOLD: Cells =
    &[("o", Cell::Text), ("r", Cell::Int), ("t", Cell::Int), ("k", Cell::Text), ("g", Cell::Int), ("q", Cell::Int)];

pub async fn insert_holds(conn: &mut Conn, holds: &[Hold]) -> Result<()> {
    if holds.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "INSERT INTO hold (order_no, round, resource_type, biz_key, ledger_id, locked) SELECT v.o, v.r, v.t, v.k, v.g, v.q FROM {}",
        conn.dialect.rows(1, HOLD)
    );
    conn.built(sql).bind(json(holds)?).run().await?;
    Ok(())
}

/// The holds of an order, of every round.
pub async fn holds(conn: &mut Conn, order_no: &str) -> Result<Vec<Hold>> {
    let rows = conn
        .stmt("SELECT order_no, round, resource_type, biz_key, ledger_id, locked FROM hold WHERE order_no = $1 ORDER BY round, resource_type, biz_key")
        .bind(order_no)
        .rows()
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Hold {
                order_no: row.text(0)?,
                round: row.int(1)?,
                resource: ResourceType::from_code(row.int(2)?)
                    .ok_or_else(|| Error::broken("a hold has an unknown type"))?,
                key: row.text(3)?,
                ledger_id: row.opt_int(4)?,
                locked: row.int(5)?,
            })
        })
        .collect()
}

/// One release task per hold of these PENDING orders, none of which has a task yet. A row that appeared
/// meanwhile is an error of class `Unique`: roll back and close them one by one.
pub async fn write_release_tasks(conn: &mut Conn, numbers: &[&str], remote: &[ResourceType], now: i64) -> Result<u64> {
    let list: Vec<No<'_>> = numbers.iter().map(|o| No { o }).collect();
    let from = conn.dialect.rows_join(1, NO, "hold", "t.order_no = v.o AND t.round = 1");
    // The lane of a remote type is its own number.
    let codes = remote.iter().map(|resource| resource.code().to_string()).collect::<Vec<_>>().join(", ");
    let lane = match remote {
        [] => "0".to_owned(),
        _ => format!("CASE WHEN t.resource_type IN ({codes}) THEN t.resource_type ELSE 0 END"),
    };
    let sql = format!(
        "INSERT INTO order_release_task (order_no, round, resource_type, biz_key, qty, ledger_id, lane, adopted, next_at, created_at) \
         SELECT t.order_no, t.round, t.resource_type, t.biz_key, t.locked, t.ledger_id, {lane}, 1, $2, $2 FROM {from}"
    );
    conn.built(sql).bind(json(&list)?).bind(now).run().await
}

/// Takes one tombstone away, so that its order may be placed. Zero rows: it is none any more.
pub async fn lift_tombstone(conn: &mut Conn, id: i64) -> Result<u64> {
    conn.stmt("DELETE FROM orders WHERE id = $1 AND tombstone_until IS NOT NULL").bind(id).run().await
}

/// Removes tombstones that ran out (R15).
pub async fn expire_tombstones(conn: &mut Conn, now: i64) -> Result<u64> {
    conn.stmt("DELETE FROM orders WHERE tombstone_until IS NOT NULL AND tombstone_until <= $1").bind(now).run().await
}
