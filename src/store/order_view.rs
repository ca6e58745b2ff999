//! One order as its page shows it, and the search that finds it.

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::error::Error;
use super::flow::{self, Flow};
use super::order::{self, Order};
use super::payment::{self, Payment};
use super::task::Attempt;
use super::task_list::{self, TaskRow};
use crate::core::words::{AttemptOutcome, FailureKind, FundsKind, OrderStatus, ResourceType};

/// A hold, and beside it what saying it needs.
#[derive(Clone, Debug)]
pub struct HoldRow {
    pub round: i64,
    pub resource: ResourceType,
    pub key: String,
    pub locked: i64,
    pub funds: Option<FundsKind>,
    pub expires_at: Option<i64>,
}

/// Everything the page of one order shows.
#[derive(Clone, Debug)]
pub struct OrderView {
    pub order: Order,
    pub holds: Vec<HoldRow>,
    pub tasks: Vec<TaskRow>,
    /// Failed tries, by task.
    pub failed: Vec<(i64, Attempt)>,
    pub flow: Vec<Flow>,
    pub payments: Vec<Payment>,
}

/// One hit of a search.
#[derive(Clone, Debug)]
pub struct Hit {
    pub order_no: String,
    pub status: OrderStatus,
    pub placed_at: i64,
    pub amount: i64,
    pub currency: String,
}

/// Everything about one order, or nothing when its number is unknown.
pub async fn view(conn: &mut Conn, order_no: &str) -> Result<Option<OrderView>> {
    let Some(order) = order::find(conn, order_no).await? else { return Ok(None) };
    Ok(Some(OrderView {
        order,
        holds: holds(conn, order_no).await?,
        tasks: task_list::of_ref(conn, order_no).await?,
        failed: failed(conn, order_no).await?,
        flow: flow::of_ref(conn, order_no).await?,
        payments: payment::of_order(conn, order_no).await?,
    }))
}

async fn holds(conn: &mut Conn, order_no: &str) -> Result<Vec<HoldRow>> {
    let rows = conn
        .stmt(
            "SELECT h.round, h.resource_type, h.biz_key, h.locked, l.kind, l.expires_at FROM hold h \
             LEFT JOIN ledger l ON l.id = h.ledger_id WHERE h.order_no = $1 ORDER BY h.round, h.resource_type, h.biz_key",
        )
        .bind(order_no)
        .rows()
        .await?;
    let unknown = || Error::broken("a hold has an unknown type");
    rows.iter()
        .map(|row| {
            Ok(HoldRow {
                round: row.int(0)?,
                resource: ResourceType::from_code(row.int(1)?).ok_or_else(unknown)?,
                key: row.text(2)?,
                locked: row.int(3)?,
                funds: row.opt_int(4)?.and_then(FundsKind::from_code),
                expires_at: row.opt_int(5)?,
            })
        })
        .collect()
}

/// The failed tries at all tasks of an order, oldest first.
async fn failed(conn: &mut Conn, order_no: &str) -> Result<Vec<(i64, Attempt)>> {
    let rows = conn
        .stmt(
            "SELECT a.task_id, a.n, a.fence, a.started_at, a.ended_at, a.outcome, a.kind, a.error, a.actor \
             FROM order_release_task t JOIN task_attempt a ON a.task_id = t.id \
             WHERE t.ref_no = $1 ORDER BY a.task_id, a.n LIMIT 1000",
        )
        .bind(order_no)
        .rows()
        .await?;
    rows.iter()
        .map(|row| {
            let attempt = Attempt {
                n: row.int(1)?,
                fence: row.int(2)?,
                started_at: row.int(3)?,
                ended_at: row.opt_int(4)?,
                outcome: row.opt_int(5)?.and_then(AttemptOutcome::from_code),
                kind: row.opt_int(6)?.and_then(FailureKind::from_code),
                error: row.opt_text(7)?,
                actor: row.text(8)?,
            };
            Ok((row.int(0)?, attempt))
        })
        .collect()
}

const HIT: &str = "SELECT order_no, status, placed_at, amount, currency FROM orders";
/// A part of a number is looked for among this many newest orders.
const LOOK_AT: i64 = 500_000;

/// Orders for what was typed: the very number first, then those that contain it in any case, newest
/// first. Nothing typed: the newest orders.
pub async fn search(conn: &mut Conn, typed: &str, limit: usize) -> Result<Vec<Hit>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    if typed.is_empty() {
        let sql = format!("{HIT} WHERE tombstone_until IS NULL ORDER BY id DESC LIMIT $1");
        return conn.built(sql).bind(limit).rows().await?.iter().map(read_hit).collect();
    }
    if let Some(row) = conn.built(format!("{HIT} WHERE order_no = $1")).bind(typed).row().await? {
        return Ok(vec![read_hit(&row)?]);
    }
    let newest = conn.stmt("SELECT COALESCE(MAX(id), 0) FROM orders").int().await?;
    let sql = format!("{HIT} WHERE id > $2 AND {} ORDER BY id DESC LIMIT $3", conn.dialect.like("order_no", 1));
    let stmt = conn.built(sql).bind(task_list::like(typed)).bind(newest - LOOK_AT).bind(limit);
    stmt.rows().await?.iter().map(read_hit).collect()
}

fn read_hit(row: &sqlx::any::AnyRow) -> Result<Hit> {
    let unknown = || Error::broken("an order has an unknown status");
    Ok(Hit {
        order_no: row.text(0)?,
        status: OrderStatus::from_code(row.int(1)?).ok_or_else(unknown)?,
        placed_at: row.int(2)?,
        amount: row.int(3)?,
        currency: row.text(4)?,
    })
}
