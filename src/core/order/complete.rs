//! PAID → COMPLETED: the shop says that the order is done with.

use crate::core::words::OrderStatus;
use crate::core::{Core, Result};
use crate::store::{Decision, order};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    Completed,
    AlreadyCompleted,
    NotPaid,
    UnknownOrder,
}

/// Completes a paid order. The second time says so and changes nothing.
pub async fn complete_order(core: &Core, order_no: &str) -> Result<Completed> {
    let order_no = order_no.to_owned();
    let done = core.db.write(move |conn| {
        let order_no = order_no.clone();
        Box::pin(async move {
            let Some(order) = order::lock(conn, &order_no).await? else {
                return Ok(Decision::Rollback(Completed::UnknownOrder));
            };
            Ok(match order.status {
                OrderStatus::Completed => Decision::Rollback(Completed::AlreadyCompleted),
                OrderStatus::Paid => {
                    order::move_on(conn, order.id, OrderStatus::Paid, OrderStatus::Completed).await?;
                    Decision::Commit(Completed::Completed)
                }
                _ => Decision::Rollback(Completed::NotPaid),
            })
        })
    });
    Ok(done.await?)
}
