//! One order as its page shows it, and the search that finds it.

use super::task_list::{Attempt, FlowRow, TaskRow};
use crate::core::words::{FundsKind, OrderStatus, PaymentStatus, ResourceType, Trigger};

#[derive(Clone, Debug)]
pub struct OrderRow {
    pub order_no: String,
    pub buyer: String,
    pub amount: i64,
    pub currency: String,
    pub status: OrderStatus,
    pub round: i64,
    pub placed_at: i64,
    pub pay_deadline: i64,
    pub paid_at: Option<i64>,
    pub closed_at: Option<i64>,
    pub close_reason: Option<String>,
    pub closed_by: Option<String>,
    pub trigger: Option<Trigger>,
    pub tombstone: bool,
    /// As the shop sent it: a JSON array of name, qty, price.
    pub lines: Option<String>,
}

#[derive(Clone, Debug)]
pub struct HoldRow {
    pub round: i64,
    pub resource: ResourceType,
    pub key: String,
    pub locked: i64,
    pub funds: Option<FundsKind>,
    pub expires_at: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct PaymentRow {
    pub channel: String,
    pub channel_txn: String,
    pub status: PaymentStatus,
    pub amount: i64,
    pub currency: String,
    pub occurred_at: i64,
    pub recorded_at: i64,
}

/// Everything the page of one order shows.
#[derive(Clone, Debug)]
pub struct OrderView {
    pub order: OrderRow,
    pub holds: Vec<HoldRow>,
    pub tasks: Vec<TaskRow>,
    /// Failed tries, by task.
    pub failed: Vec<(i64, Attempt)>,
    pub flow: Vec<FlowRow>,
    pub payments: Vec<PaymentRow>,
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
