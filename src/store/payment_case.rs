//! Money that fits nothing, and therefore waits for a person (R9): payments of the wrong amount for an open
//! order, payments of orders nobody knows, and transactions that were told again with other content.

use sqlx::any::AnyRow;

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::payment::{self, Payment};

/// A transaction that was told again with another order, amount or currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub id: i64,
    pub payment_id: i64,
    /// What it was told of the second time.
    pub order_no: String,
    pub amount: i64,
    pub currency: String,
    pub told_at: i64,
    pub settled_at: Option<i64>,
    pub settled_by: Option<String>,
}

impl Conflict {
    pub fn is_settled(&self) -> bool {
        self.settled_at.is_some()
    }
}

const CONFLICT: &str = "c.id, c.payment_id, c.order_no, c.amount, c.currency, c.told_at, c.settled_at, c.settled_by";

fn read(row: &AnyRow) -> Result<Conflict> {
    Ok(Conflict {
        id: row.int(0)?,
        payment_id: row.int(1)?,
        order_no: row.text(2)?,
        amount: row.int(3)?,
        currency: row.text(4)?,
        told_at: row.int(5)?,
        settled_at: row.opt_int(6)?,
        settled_by: row.opt_text(7)?,
    })
}

/// Records that a transaction was told again with other content; the same telling again is the same case.
pub async fn insert_conflict(
    conn: &mut Conn,
    payment_id: i64,
    order_no: &str,
    amount: i64,
    currency: &str,
    now: i64,
) -> Result<()> {
    let known = conn
        .stmt("SELECT COUNT(*) FROM payment_conflict WHERE payment_id = $1 AND order_no = $2 AND amount = $3 AND currency = $4")
        .bind(payment_id)
        .bind(order_no)
        .bind(amount)
        .bind(currency)
        .int()
        .await?;
    if known == 0 {
        conn.stmt("INSERT INTO payment_conflict (payment_id, order_no, amount, currency, told_at) VALUES ($1, $2, $3, $4, $5)")
            .bind(payment_id)
            .bind(order_no)
            .bind(amount)
            .bind(currency)
            .bind(now)
            .run()
            .await?;
    }
    Ok(())
}

pub async fn find_conflict(conn: &mut Conn, id: i64) -> Result<Option<Conflict>> {
    let sql = format!("SELECT {CONFLICT} FROM payment_conflict c WHERE c.id = $1");
    conn.built(sql).bind(id).row().await?.as_ref().map(read).transpose()
}

/// The conflicts of an order's payments, and those whose second telling named it; settled ones too.
pub async fn conflicts_of(conn: &mut Conn, order_no: &str) -> Result<Vec<Conflict>> {
    let sql = format!(
        "SELECT {CONFLICT} FROM payment p JOIN payment_conflict c ON c.payment_id = p.id WHERE p.order_no = $1 \
         UNION SELECT {CONFLICT} FROM payment_conflict c WHERE c.order_no = $1 ORDER BY 1"
    );
    conn.built(sql).bind(order_no).rows().await?.iter().map(read).collect()
}

/// Ends a conflict; 0 rows when it was ended before.
pub async fn settle_conflict(conn: &mut Conn, id: i64, actor: &str, now: i64) -> Result<u64> {
    conn.stmt("UPDATE payment_conflict SET settled_at = $2, settled_by = $3 WHERE id = $1 AND settled_at IS NULL")
        .bind(id)
        .bind(now)
        .bind(actor)
        .run()
        .await
}

/// A payment that waits for a person, and what its open order asks for; nothing when there is no order.
#[derive(Clone, Debug)]
pub struct Misfit {
    pub payment: Payment,
    pub asked: Option<(i64, String)>,
}

/// Payments without an order and payments that don't fit their open one, longest known first.
pub async fn misfits(conn: &mut Conn, limit: i64) -> Result<Vec<Misfit>> {
    let columns: Vec<String> = payment::COLUMNS.split(", ").map(|column| format!("p.{column}")).collect();
    let sql = format!(
        "SELECT {}, o.amount, o.currency FROM payment p LEFT JOIN orders o ON o.order_no = p.order_no WHERE p.status = 6 \
         OR (p.status = 2 AND o.status = 0 AND (p.amount <> o.amount OR p.currency <> o.currency)) ORDER BY p.id LIMIT $1",
        columns.join(", ")
    );
    let rows = conn.built(sql).bind(limit).rows().await?;
    let (amount, currency) = (columns.len(), columns.len() + 1);
    rows.iter()
        .map(|row| {
            let asked = match row.opt_int(amount)? {
                Some(asked) => Some((asked, row.text(currency)?)),
                None => None,
            };
            Ok(Misfit { payment: payment::read(row)?, asked })
        })
        .collect()
}

/// Conflicts nobody has settled, each with the payment as it was recorded, longest known first.
pub async fn open_conflicts(conn: &mut Conn, limit: i64) -> Result<Vec<(Conflict, Payment)>> {
    let sql = format!("SELECT {CONFLICT} FROM payment_conflict c WHERE c.settled_at IS NULL ORDER BY c.id LIMIT $1");
    let rows = conn.built(sql).bind(limit).rows().await?;
    let mut open = Vec::with_capacity(rows.len());
    for row in &rows {
        let conflict = read(row)?;
        if let Some(payment) = payment::find(conn, conflict.payment_id).await? {
            open.push((conflict, payment));
        }
    }
    Ok(open)
}
