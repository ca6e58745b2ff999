//! One order as its page shows it.

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::error::Error;
use super::flow::{self, Flow};
use super::order::{self, Order};
use super::payment::{self, Payment};
use super::payment_case::{self, Conflict};
use super::reduction::{self, Reduction};
use super::return_order::{self, Item, Return};
use super::task::Attempt;
use super::task_list::{self, TaskRow};
use crate::core::words::{Action, AttemptOutcome, FailureKind, FundsKind, ResourceType, TaskStatus, source};

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
    pub reductions: Vec<Reduction>,
    pub conflicts: Vec<Conflict>,
    pub returns: Vec<ReturnView>,
}

/// A return with its lines and the tasks that put them back to stock.
#[derive(Clone, Debug)]
pub struct ReturnView {
    pub row: Return,
    pub items: Vec<Item>,
    pub tasks: Vec<TaskRow>,
}

impl OrderView {
    /// The refund task of a payment, and whether it waits for a person.
    pub fn refund_of(&self, payment_id: i64) -> Option<(&TaskRow, bool)> {
        let cause = source::refund(payment_id);
        let task = self.tasks.iter().find(|task| task.action == Action::Refund && task.source == cause)?;
        Some((task, matches!(task.status, TaskStatus::Manual | TaskStatus::ForceClosed)))
    }
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
        reductions: reduction::of_order(conn, order_no).await?,
        conflicts: payment_case::conflicts_of(conn, order_no).await?,
        returns: returns(conn, order_no).await?,
    }))
}

pub(super) async fn returns(conn: &mut Conn, order_no: &str) -> Result<Vec<ReturnView>> {
    let mut views = Vec::new();
    for row in return_order::of_order(conn, order_no).await? {
        let items = return_order::items(conn, &row.return_no).await?;
        let tasks = task_list::of_ref(conn, &row.return_no).await?;
        views.push(ReturnView { row, items, tasks });
    }
    Ok(views)
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
pub(super) async fn failed(conn: &mut Conn, order_no: &str) -> Result<Vec<(i64, Attempt)>> {
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
