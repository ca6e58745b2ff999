//! Parts of an open order that were given back early: (order, reference) counts once.

use super::conn::{Conn, RowExt as _};
use super::db::Result;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    pub reference: String,
    /// What was to be paid from then on.
    pub amount: i64,
    /// What it was about, as JSON.
    pub body: String,
    pub at: i64,
}

pub async fn is_known(conn: &mut Conn, order_no: &str, reference: &str) -> Result<bool> {
    let stmt = conn.stmt("SELECT COUNT(*) FROM reduction WHERE order_no = $1 AND ref = $2");
    Ok(stmt.bind(order_no).bind(reference).int().await? > 0)
}

pub async fn insert(conn: &mut Conn, order_no: &str, reduction: &Reduction) -> Result<()> {
    conn.stmt("INSERT INTO reduction (order_no, ref, amount, body, at) VALUES ($1, $2, $3, $4, $5)")
        .bind(order_no)
        .bind(&reduction.reference)
        .bind(reduction.amount)
        .bind(&reduction.body)
        .bind(reduction.at)
        .run()
        .await?;
    Ok(())
}

/// What an order was reduced by, oldest first.
pub async fn of_order(conn: &mut Conn, order_no: &str) -> Result<Vec<Reduction>> {
    let rows = conn
        .stmt("SELECT ref, amount, body, at FROM reduction WHERE order_no = $1 ORDER BY at, ref")
        .bind(order_no)
        .rows()
        .await?;
    rows.iter()
        .map(|row| Ok(Reduction { reference: row.text(0)?, amount: row.int(1)?, body: row.text(2)?, at: row.int(3)? }))
        .collect()
}
