//! The indexed scan over open orders: the safety net, always on (B2). Its index holds open orders only, so it
//! stays fast however many finished orders there are (B7).

use crate::core::order::close::Swept;
use crate::core::order::{close, pay};
use crate::core::words::Trigger;
use crate::core::{Core, Result};
use crate::store::{order, payment};

/// Due orders closed in one transaction.
pub const BATCH: i64 = 1000;

/// One look: closes what is due, then matches payments whose order has appeared. Answers whether there may be more.
pub async fn run_once(core: &Core) -> Result<bool> {
    // A look by a reader costs nobody a lock.
    let mut conn = core.db.read().await?;
    let is_due = !order::find_due(&mut conn, core.now(), 1).await?.is_empty();
    let waiting = payment::matchable(&mut conn, 100).await?;
    drop(conn);
    let swept = if is_due { close::close_due(core, Trigger::Scan, BATCH).await? } else { Swept::default() };
    if swept.found > 0 {
        tracing::debug!(scan.found = swept.found, scan.closed = swept.closed, scan.postponed = swept.postponed, "scan");
    }
    for order_no in &waiting {
        pay::match_payments(core, order_no).await?;
    }
    // A batch in which nothing could be closed is not read again at once.
    Ok(swept.found as i64 == BATCH && swept.closed > 0)
}
