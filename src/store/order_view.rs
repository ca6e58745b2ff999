//! One order as its page shows it, and the search that finds it.

use super::flow::Flow;
use super::order::Order;
use super::payment::Payment;
use super::task::Attempt;
use super::task_list::TaskRow;
use crate::core::words::{FundsKind, OrderStatus, ResourceType};

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
