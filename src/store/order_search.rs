//! Finding an order by what a caller can read out: its number or a part of it, the buyer, a coupon or slot, a
//! return, a payment. An order that the shop keeps itself is found by its number, whole or in part. Whatever has no
//! index is looked for among the newest rows only, so that a search answers.

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::error::Error;
use super::{shop_order, task_list};
use crate::core::text;
use crate::core::words::OrderStatus;

/// One hit of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub order_no: String,
    /// Nothing where the shop keeps the order itself.
    pub own: Option<Own>,
}

/// What Handback's own row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    pub status: OrderStatus,
    pub placed_at: i64,
    pub amount: i64,
    pub currency: String,
}

const HIT: &str = "SELECT o.order_no, o.status, o.placed_at, o.amount, o.currency FROM orders o";
/// What has no index is looked for among this many newest rows.
const LOOK_AT: i64 = 500_000;

/// The newest orders.
pub async fn newest(conn: &mut Conn, limit: usize) -> Result<Vec<Hit>> {
    let sql = format!("{HIT} WHERE o.tombstone_until IS NULL ORDER BY o.id DESC LIMIT $1");
    conn.built(sql).bind(as_limit(limit)).rows().await?.iter().map(read).collect()
}

/// Orders for what was typed: the very number alone; else those whose number contains it, in any case and
/// whatever spaces slipped in, and those that it names in another way. Newest first within each. Buyers are
/// looked at only for those who may know them.
pub async fn search(conn: &mut Conn, typed: &str, limit: usize, by_buyer: bool) -> Result<Vec<Hit>> {
    let squeezed: String = typed.split_whitespace().collect();
    for exact in [typed, squeezed.as_str()] {
        if let Some(row) = conn.built(format!("{HIT} WHERE o.order_no = $1")).bind(exact).row().await? {
            return Ok(vec![read(&row)?]);
        }
    }
    for exact in [typed, squeezed.as_str()] {
        if text::check_text(exact, text::NUMBER_MAX).is_ok() && shop_order::is_there(conn, exact).await? {
            return Ok(vec![of_shop(exact.to_owned())]);
        }
    }
    let mut hits = Vec::new();
    for part in if squeezed == typed { vec![typed] } else { vec![typed, squeezed.as_str()] } {
        add(&mut hits, containing(conn, part, limit).await?);
        let shops = shop_order::containing(conn, part, LOOK_AT, as_limit(limit)).await?;
        add(&mut hits, shops.into_iter().map(of_shop).collect());
    }
    add(&mut hits, by_return(conn, typed).await?);
    add(&mut hits, by_piece(conn, typed, limit).await?);
    add(&mut hits, by_payment(conn, typed, limit).await?);
    if by_buyer {
        add(&mut hits, of_buyer(conn, typed, limit).await?);
    }
    hits.truncate(limit);
    Ok(hits)
}

fn add(hits: &mut Vec<Hit>, more: Vec<Hit>) {
    for hit in more {
        if hits.iter().all(|known| known.order_no != hit.order_no) {
            hits.push(hit);
        }
    }
}

async fn containing(conn: &mut Conn, part: &str, limit: usize) -> Result<Vec<Hit>> {
    let newest = conn.stmt("SELECT COALESCE(MAX(id), 0) FROM orders").int().await?;
    let sql = format!("{HIT} WHERE o.id > $2 AND {} ORDER BY o.id DESC LIMIT $3", conn.dialect.like("o.order_no", 1));
    let stmt = conn.built(sql).bind(task_list::like(part)).bind(newest - LOOK_AT).bind(as_limit(limit));
    stmt.rows().await?.iter().map(read).collect()
}

async fn by_return(conn: &mut Conn, return_no: &str) -> Result<Vec<Hit>> {
    let sql = format!("{HIT} JOIN return_order r ON r.order_no = o.order_no WHERE r.return_no = $1");
    conn.built(sql).bind(return_no).rows().await?.iter().map(read).collect()
}

/// Orders that ever locked this coupon or slot.
async fn by_piece(conn: &mut Conn, key: &str, limit: usize) -> Result<Vec<Hit>> {
    let sql = format!(
        "{HIT} JOIN (SELECT f.ref_no AS no, MAX(f.id) AS newest FROM ledger l JOIN resource_flow f ON f.ledger_id = l.id \
         WHERE l.resource_type IN (2, 5) AND l.biz_key = $1 AND f.action IN (0, 3) GROUP BY f.ref_no) found ON found.no = o.order_no \
         ORDER BY found.newest DESC LIMIT $2"
    );
    conn.built(sql).bind(key).bind(as_limit(limit)).rows().await?.iter().map(read).collect()
}

async fn by_payment(conn: &mut Conn, txn: &str, limit: usize) -> Result<Vec<Hit>> {
    let newest = conn.stmt("SELECT COALESCE(MAX(id), 0) FROM payment").int().await?;
    let sql = format!(
        "{HIT} JOIN (SELECT order_no AS no, MAX(id) AS newest FROM payment WHERE id > $2 AND channel_txn = $1 GROUP BY order_no) found \
         ON found.no = o.order_no ORDER BY found.newest DESC LIMIT $3"
    );
    let stmt = conn.built(sql).bind(txn).bind(newest - LOOK_AT).bind(as_limit(limit));
    stmt.rows().await?.iter().map(read).collect()
}

async fn of_buyer(conn: &mut Conn, buyer: &str, limit: usize) -> Result<Vec<Hit>> {
    let newest = conn.stmt("SELECT COALESCE(MAX(id), 0) FROM orders").int().await?;
    let sql = format!("{HIT} WHERE o.id > $2 AND o.buyer = $1 ORDER BY o.id DESC LIMIT $3");
    let stmt = conn.built(sql).bind(buyer).bind(newest - LOOK_AT).bind(as_limit(limit));
    stmt.rows().await?.iter().map(read).collect()
}

fn of_shop(order_no: String) -> Hit {
    Hit { order_no, own: None }
}

fn as_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn read(row: &sqlx::any::AnyRow) -> Result<Hit> {
    let unknown = || Error::broken("an order has an unknown status");
    Ok(Hit {
        order_no: row.text(0)?,
        own: Some(Own {
            status: OrderStatus::from_code(row.int(1)?).ok_or_else(unknown)?,
            placed_at: row.int(2)?,
            amount: row.int(3)?,
            currency: row.text(4)?,
        }),
    })
}
