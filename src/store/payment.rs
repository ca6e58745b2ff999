//! Payments, recorded before anything is decided (R9). (channel, channel_txn) is unique: each counts once.

use sqlx::any::AnyRow;

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::error::{Class, Error};
use crate::core::words::PaymentStatus;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    pub id: i64,
    pub channel: String,
    pub channel_txn: String,
    pub order_no: String,
    pub status: PaymentStatus,
    /// Minor units.
    pub amount: i64,
    pub currency: String,
    pub occurred_at: i64,
    pub recorded_at: i64,
    /// What an order that was paid late could not have back: a JSON list.
    pub lacking: Option<String>,
}

pub(super) const COLUMNS: &str =
    "id, channel, channel_txn, order_no, status, amount, currency, occurred_at, recorded_at, lacking";

pub(super) fn read(row: &AnyRow) -> Result<Payment> {
    Ok(Payment {
        id: row.int(0)?,
        channel: row.text(1)?,
        channel_txn: row.text(2)?,
        order_no: row.text(3)?,
        status: PaymentStatus::from_code(row.int(4)?)
            .ok_or_else(|| Error::broken("a payment has an unknown status"))?,
        amount: row.int(5)?,
        currency: row.text(6)?,
        occurred_at: row.int(7)?,
        recorded_at: row.int(8)?,
        lacking: row.opt_text(9)?,
    })
}

pub async fn find(conn: &mut Conn, id: i64) -> Result<Option<Payment>> {
    let sql = format!("SELECT {COLUMNS} FROM payment WHERE id = $1");
    conn.built(sql).bind(id).row().await?.as_ref().map(read).transpose()
}

/// Locks the payment of this transaction, if it is known.
pub async fn lock(conn: &mut Conn, channel: &str, channel_txn: &str) -> Result<Option<Payment>> {
    let sql =
        format!("SELECT {COLUMNS} FROM payment WHERE channel = $1 AND channel_txn = $2{}", conn.dialect.for_update());
    conn.built(sql).bind(channel).bind(channel_txn).row().await?.as_ref().map(read).transpose()
}

/// All payments that name an order, in the order they were recorded.
pub async fn of_order(conn: &mut Conn, order_no: &str) -> Result<Vec<Payment>> {
    let sql = format!("SELECT {COLUMNS} FROM payment WHERE order_no = $1 ORDER BY id");
    conn.built(sql).bind(order_no).rows().await?.iter().map(read).collect()
}

/// The same, locked.
pub async fn lock_of_order(conn: &mut Conn, order_no: &str) -> Result<Vec<Payment>> {
    let sql = format!("SELECT {COLUMNS} FROM payment WHERE order_no = $1 ORDER BY id{}", conn.dialect.for_update());
    conn.built(sql).bind(order_no).rows().await?.iter().map(read).collect()
}

/// Records a payment; `false` when its transaction is known already.
pub async fn insert(conn: &mut Conn, payment: &Payment) -> Result<bool> {
    let sql = format!(
        "INSERT INTO payment (channel, channel_txn, order_no, status, amount, currency, occurred_at, recorded_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8){}",
        conn.dialect.or_nothing()
    );
    let inserted = conn
        .built(sql)
        .bind(&payment.channel)
        .bind(&payment.channel_txn)
        .bind(&payment.order_no)
        .bind(payment.status.code())
        .bind(payment.amount)
        .bind(&payment.currency)
        .bind(payment.occurred_at)
        .bind(payment.recorded_at)
        .run()
        .await;
    match inserted {
        Ok(count) => Ok(count == 1),
        Err(error) if error.is(Class::Unique) => Ok(false),
        Err(error) => Err(error),
    }
}

/// One status to another. Zero rows: it isn't in `from` any more.
pub async fn move_on(conn: &mut Conn, id: i64, from: PaymentStatus, to: PaymentStatus, now: i64) -> Result<u64> {
    conn.stmt("UPDATE payment SET status = $3, decided_at = $4 WHERE id = $1 AND status = $2")
        .bind(id)
        .bind(from.code())
        .bind(to.code())
        .bind(now)
        .run()
        .await
}

/// Keeps what an order that was paid late could not have back.
pub async fn set_lacking(conn: &mut Conn, id: i64, list: &str) -> Result<u64> {
    conn.stmt("UPDATE payment SET lacking = $2 WHERE id = $1").bind(id).bind(list).run().await
}

/// Order numbers of unmatched payments whose order has appeared meanwhile.
pub async fn matchable(conn: &mut Conn, limit: i64) -> Result<Vec<String>> {
    let rows = conn
        .stmt("SELECT DISTINCT p.order_no FROM payment p JOIN orders o ON o.order_no = p.order_no WHERE p.status = 6 LIMIT $1")
        .bind(limit)
        .rows()
        .await?;
    rows.iter().map(|row| row.text(0)).collect()
}

/// Payments whose money goes back, longest known first.
pub async fn refund_due(conn: &mut Conn, limit: i64) -> Result<Vec<Payment>> {
    let sql = format!("SELECT {COLUMNS} FROM payment WHERE status = 4 ORDER BY id LIMIT $1");
    conn.built(sql).bind(limit).rows().await?.iter().map(read).collect()
}
