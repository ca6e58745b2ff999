//! What a worker does again and again. Each duty is one function that does one step and says when to come back.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::core::policy::LOCAL;
use crate::core::words::Actor;
use crate::core::{Core, Result, order as core_order, reconcile, release, returns};
use crate::store::{Decision, asking, claim, counter, idempotency, order, worker};
use crate::trigger::scan;

/// The longest wait between two looks at the queue: rows that a shop wrote by plain SQL ring no bell.
pub const LOOK_MS: i64 = 500;

/// How long the figures of single minutes are kept; sums since the beginning stay.
const COUNTED_MS: i64 = 35 * 24 * 3_600_000;

/// When a duty wants to run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    AtOnce,
    After(Duration),
}

/// The size of the next batch. After an unclean end it starts at one and doubles with each batch that went
/// well, so that a task that kills the process is found alone (R11).
#[derive(Debug)]
pub struct BatchSize {
    size: AtomicI64,
    most: i64,
}

impl BatchSize {
    /// `most` is the largest batch that suits the engine.
    pub fn new(most: i64, after_unclean_end: bool) -> Self {
        Self { size: AtomicI64::new(if after_unclean_end { 1 } else { most }), most }
    }

    pub fn now(&self) -> i64 {
        self.size.load(Ordering::Relaxed)
    }

    fn went_well(&self) {
        let size = self.now();
        if size < self.most {
            self.size.store((size * 2).min(self.most), Ordering::Relaxed);
        }
    }
}

/// Runs one batch of due tasks; comes back at once while there may be more, else when the next is due.
pub async fn release_once(core: &Core, actor: &Actor, size: &BatchSize) -> Result<Next> {
    // A look by a reader costs nobody a lock; the writer is asked only when something is due.
    let next = claim::next_due(&mut core.db.read().await?, LOCAL).await?;
    let wait = next.map_or(LOOK_MS, |at| at - core.now());
    if wait > 0 {
        return Ok(Next::After(Duration::from_millis(wait.min(LOOK_MS).unsigned_abs())));
    }
    let ran = release::run_due(core, actor, size.now()).await?;
    if ran.claimed == 0 {
        // Somebody else has what is due.
        return Ok(Next::After(Duration::from_millis(20)));
    }
    size.went_well();
    Ok(Next::AtOnce)
}

/// Closes due orders.
pub async fn scan_once(core: &Core, interval: Duration) -> Result<Next> {
    Ok(if scan::run_once(core).await? { Next::AtOnce } else { Next::After(interval) })
}

/// Finds returns that other programs completed straight in the tables.
pub async fn detect_once(core: &Core) -> Result<Next> {
    returns::detect::detect(core).await?;
    Ok(Next::After(Duration::from_millis(LOOK_MS.unsigned_abs())))
}

/// Asks the payment channel about orders whose time has come (B5).
pub async fn ask_once(core: &Core) -> Result<Next> {
    let next = asking::next(&mut core.db.read().await?).await?;
    let wait = next.map_or(LOOK_MS, |at| at - core.now());
    if wait > 0 {
        return Ok(Next::After(Duration::from_millis(wait.min(LOOK_MS).unsigned_abs())));
    }
    let asked = core_order::ask::ask_due(core).await?;
    Ok(if asked > 0 { Next::AtOnce } else { Next::After(Duration::from_millis(LOOK_MS.unsigned_abs())) })
}

/// Folds counter deltas into minutes.
pub async fn fold_once(core: &Core) -> Result<Next> {
    const LIMIT: i64 = 500;
    if !counter::any_delta(&mut core.db.read().await?).await? {
        return Ok(Next::After(Duration::from_secs(1)));
    }
    let folded = core.db.write(|conn| Box::pin(async move { Ok(Decision::Commit(counter::fold(conn, LIMIT).await?)) }));
    let more = folded.await? as i64 == LIMIT;
    Ok(if more { Next::AtOnce } else { Next::After(Duration::from_secs(1)) })
}

/// Reads the database's time and says that this worker is alive.
pub async fn beat_once(core: &Core, name: &str) -> Result<Next> {
    core.clock.follow(core.db.now_ms().await?);
    let (name, now) = (name.to_owned(), core.now());
    let beat = core.db.write(move |conn| {
        let name = name.clone();
        Box::pin(async move { Ok(Decision::Commit(worker::beat(conn, &name, now).await?)) })
    });
    beat.await?;
    if reconcile::give_up_silent(core).await? > 0 {
        tracing::warn!("a reconciliation whose process died was given up");
    }
    Ok(Next::After(Duration::from_secs(5)))
}

/// Removes what has run out: tombstones, kept answers, the figures of single minutes.
pub async fn tidy_once(core: &Core) -> Result<Next> {
    let now = core.now();
    let gone = core.db.write(move |conn| {
        Box::pin(async move {
            idempotency::purge(conn, now).await?;
            counter::forget(conn, now - COUNTED_MS).await?;
            Ok(Decision::Commit(order::expire_tombstones(conn, now).await?))
        })
    });
    let gone = gone.await?;
    if gone > 0 {
        tracing::info!(tombstones.expired = gone, "tombstones ran out");
    }
    Ok(Next::After(Duration::from_secs(600)))
}
