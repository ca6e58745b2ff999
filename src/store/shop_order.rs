//! An order that a shop keeps itself (E2) and Handback has no row of: its row in the shop's own table, read only,
//! and what the release rows of its number did here. Each is told as far as it is known; neither is guessed from
//! the other.

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::error::Class;
use super::flow::{self, Flow};
use super::mapped::documents::{self, Document};
use super::order_view::{self, ReturnView};
use super::payment::{self, Payment};
use super::payment_case::{self, Conflict};
use super::task::Attempt;
use super::task_list::{self, TaskRow};

/// What the shop's own table says of a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    There(Document),
    /// It has no such number, or no table is mapped.
    Nowhere,
    /// A table is mapped that can't be read at this moment: nobody knows.
    Unreadable,
}

/// Everything the page of a shop's order shows.
#[derive(Clone, Debug)]
pub struct ShopOrder {
    pub order_no: String,
    pub kept: Kept,
    /// The mapped table, as the configuration names it.
    pub table: Option<String>,
    pub tasks: Vec<TaskRow>,
    /// Failed tries, by task.
    pub failed: Vec<(i64, Attempt)>,
    pub flow: Vec<Flow>,
    pub payments: Vec<Payment>,
    pub conflicts: Vec<Conflict>,
    pub returns: Vec<ReturnView>,
}

/// What is known of a number that our own orders don't have; nothing when neither tasks nor the shop's table
/// name it.
pub async fn view(conn: &mut Conn, order_no: &str) -> Result<Option<ShopOrder>> {
    let mut tasks = task_list::of_ref(conn, order_no).await?;
    // A return may have the same number as an order.
    tasks.retain(|task| task.return_no.is_empty());
    let kept = kept(conn, order_no).await?;
    if tasks.is_empty() && kept == Kept::Nowhere {
        return Ok(None);
    }
    let mut flow = flow::of_ref(conn, order_no).await?;
    flow.retain(|row| row.task_id.is_none_or(|id| tasks.iter().any(|task| task.id == id)));
    Ok(Some(ShopOrder {
        order_no: order_no.to_owned(),
        kept,
        table: conn.mapped.orders.as_ref().map(|orders| orders.origin().to_owned()),
        tasks,
        failed: order_view::failed(conn, order_no).await?,
        flow,
        payments: payment::of_order(conn, order_no).await?,
        conflicts: payment_case::conflicts_of(conn, order_no).await?,
        returns: order_view::returns(conn, order_no).await?,
    }))
}

/// Whether a number is an order of the shop's: tasks name it, or its own table has it.
pub async fn is_there(conn: &mut Conn, order_no: &str) -> Result<bool> {
    let named = conn
        .stmt("SELECT id FROM order_release_task WHERE ref_no = $1 AND return_no = '' LIMIT 1")
        .bind(order_no)
        .row()
        .await?;
    Ok(named.is_some() || matches!(kept(conn, order_no).await?, Kept::There(_)))
}

/// Numbers that contain this and that only rows of a shop name, the newest first, among the newest `look_at` rows.
pub async fn containing(conn: &mut Conn, part: &str, look_at: i64, limit: i64) -> Result<Vec<String>> {
    let newest = conn.stmt("SELECT COALESCE(MAX(id), 0) FROM order_release_task").int().await?;
    let sql = format!(
        "SELECT t.order_no, MAX(t.id) AS newest FROM order_release_task t WHERE t.id > $2 AND t.adopted = 0 AND t.return_no = '' \
         AND {} AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.order_no = t.order_no) \
         GROUP BY t.order_no ORDER BY newest DESC LIMIT $3",
        conn.dialect.like("t.order_no", 1)
    );
    let stmt = conn.built(sql).bind(task_list::like(part)).bind(newest - look_at).bind(limit);
    stmt.rows().await?.iter().map(|row| row.text(0)).collect()
}

async fn kept(conn: &mut Conn, order_no: &str) -> Result<Kept> {
    let tables = conn.mapped.clone();
    let Some(orders) = &tables.orders else { return Ok(Kept::Nowhere) };
    match documents::find(conn, orders, order_no).await {
        Ok(found) => Ok(found.map_or(Kept::Nowhere, Kept::There)),
        // The whole database is away: then nothing can be shown at all.
        Err(error) if error.is(Class::Away) || error.is(Class::Transient) => Err(error),
        Err(error) => {
            tracing::warn!(error = %error, table = orders.origin(), "the shop's own orders can't be read");
            Ok(Kept::Unreadable)
        }
    }
}
