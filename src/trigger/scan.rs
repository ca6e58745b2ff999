//! The indexed scan over open orders: the safety net, always on (B2). Its index holds open orders only, so it
//! stays fast however many finished orders there are (B7).

use crate::core::order::{close, pay};
use crate::core::words::Trigger;
use crate::core::{Core, Result};
use crate::store::payment;

/// Due orders closed in one transaction.
pub const BATCH: i64 = 500;

/// One look: closes what is due, then matches payments whose order has appeared. Answers whether there may be more.
pub async fn run_once(core: &Core) -> Result<bool> {
    let swept = close::close_due(core, Trigger::Scan, BATCH).await?;
    if swept.found > 0 {
        tracing::debug!(scan.found = swept.found, scan.closed = swept.closed, scan.postponed = swept.postponed, "scan");
    }
    let waiting = payment::matchable(&mut core.db.read().await?, 100).await?;
    for order_no in &waiting {
        pay::match_payments(core, order_no).await?;
    }
    // A batch in which nothing could be closed is not read again at once.
    Ok(swept.found as i64 == BATCH && swept.closed > 0)
}
