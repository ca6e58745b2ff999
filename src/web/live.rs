//! The figures that renew themselves: one read per tick for everyone who looks, none while nobody does.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::core::{Core, Result, counters};
use crate::store::overview::Snapshot;

/// Between two reads. Pages call figures stale after two and a half of these.
pub const TICK: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct Live {
    sender: watch::Sender<Option<Arc<Snapshot>>>,
}

impl Live {
    /// Begins to tick; ends with `stopping`.
    pub fn new(core: Core, stopping: CancellationToken) -> Live {
        let (sender, _) = watch::channel(None);
        tokio::spawn(tick(core, sender.clone(), stopping));
        Live { sender }
    }

    /// From now on every new reading; the one before it, if any, is not new.
    pub fn watch(&self) -> watch::Receiver<Option<Arc<Snapshot>>> {
        let mut receiver = self.sender.subscribe();
        receiver.mark_unchanged();
        receiver
    }
}

async fn tick(core: Core, sender: watch::Sender<Option<Arc<Snapshot>>>, stopping: CancellationToken) {
    let mut every = tokio::time::interval(TICK);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            _ = every.tick() => {}
        }
        if sender.receiver_count() == 0 {
            continue;
        }
        match read(&core).await {
            Ok(snapshot) => sender.send_modify(|kept| *kept = Some(Arc::new(snapshot))),
            // Readers keep what they have and see its age.
            Err(error) => tracing::warn!(error = %error, "the live figures could not be read"),
        }
    }
}

/// The figures of this moment.
pub async fn read(core: &Core) -> Result<Snapshot> {
    let mut conn = core.db.snapshot().await?;
    let snapshot = Snapshot::read(&mut conn, counters::FAILED, counters::SUCCEEDED, counters::LATE, core.now()).await?;
    conn.done().await?;
    Ok(snapshot)
}
