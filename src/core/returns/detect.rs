//! The detector (C2): finds returns that are marked as received and whose stock never moved, because another
//! program wrote them straight into the tables, and writes the missing tasks. Never a second one: the mark, the
//! row's lock and the unique key of tasks each stand in the way.

use super::{Received, receive, shop};
use crate::core::{Core, Result};
use crate::store::{Decision, return_order};

/// Rows looked at in one statement.
const PAGE: i64 = 200;

/// What one look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detected {
    /// Returns whose missing tasks were written.
    pub written: usize,
    /// Returns that could not be worked on; they are tried at the next look.
    pub failed: usize,
    /// Tasks that had waited for a settle which has ended.
    pub woken: u64,
}

/// Looks once at everything, of whatever age. A second look right after finds nothing.
pub async fn detect(core: &Core) -> Result<Detected> {
    let mut detected = Detected { woken: wake(core).await?, ..Detected::default() };
    let mut after = 0;
    loop {
        let page = return_order::untasked(&mut core.db.read().await?, after, PAGE).await?;
        let Some((last, _)) = page.last() else { break };
        after = *last;
        for (_, return_no) in page {
            // One that fails never holds up the others (R14).
            match write_missing(core, &return_no).await {
                Ok(true) => detected.written += 1,
                Ok(false) => {}
                Err(error) if error.is_away() => return Err(error),
                Err(error) => {
                    tracing::error!(error = %error, return.no = return_no, "the tasks of a return could not be written");
                    detected.failed += 1;
                }
            }
        }
    }
    let (written, failed) = shop::look(core).await?;
    detected.written += written;
    detected.failed += failed;
    if detected.written > 0 {
        tracing::info!(returns.found = detected.written, "returns that other programs completed got their tasks");
        core.ring();
    }
    Ok(detected)
}

async fn write_missing(core: &Core, return_no: &str) -> Result<bool> {
    let (core_in, no, now) = (core.clone(), return_no.to_owned(), core.now());
    let received = core.db.write(move |conn| {
        let (core, no) = (core_in.clone(), no.clone());
        Box::pin(async move {
            Ok(match receive(conn, &no, now, &core).await? {
                Decision::Commit(_) => Decision::Commit(true),
                Decision::Rollback(Received::AlreadyReceived | Received::Unknown | Received::Received) => {
                    Decision::Rollback(false)
                }
            })
        })
    });
    Ok(received.await?)
}

/// The net under the settles that wake what waits for them themselves.
async fn wake(core: &Core) -> Result<u64> {
    if !return_order::any_set_aside(&mut core.db.read().await?).await? {
        return Ok(0);
    }
    let now = core.now();
    let woken = core.db.write(move |conn| {
        Box::pin(async move {
            Ok(match return_order::wake(conn, now).await? {
                0 => Decision::Rollback(0),
                woken => Decision::Commit(woken),
            })
        })
    });
    let woken = woken.await?;
    if woken > 0 {
        core.ring();
    }
    Ok(woken)
}
