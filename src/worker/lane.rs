//! Works one lane off: claims as many tasks as its service takes at this moment, runs each by itself, and
//! claims again as soon as one is done. Each lane has an executor of its own, so a slow service holds up
//! nobody else.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::duties::LOOK_MS;
use crate::core::release::remote::{self, Service};
use crate::core::words::Actor;
use crate::core::{Core, Result};
use crate::store::claim;

/// How long after an error the lane is looked at again.
const AFTER_ERROR_MS: i64 = 1000;

pub(super) struct Lane {
    core: Core,
    actor: Actor,
    lane: i64,
    service: Service,
    running: JoinSet<()>,
}

impl Lane {
    /// `None` where no service is configured for it.
    pub(super) fn new(core: &Core, actor: &Actor, lane: i64) -> Option<Self> {
        let service = remote::service_of(core, lane)?;
        Some(Self { core: core.clone(), actor: actor.clone(), lane, service, running: JoinSet::new() })
    }

    /// Runs until told to stop; calls that are on their way are recorded.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut bell = self.core.lanes.subscribe();
        let mut failures: u32 = 0;
        while !stop.is_cancelled() {
            bell.mark_unchanged();
            let wait_ms = match self.step().await {
                Ok(wait_ms) => {
                    failures = 0;
                    wait_ms
                }
                Err(error) => {
                    if failures == 0 {
                        tracing::warn!(worker.lane = self.lane, error = %error, "a lane can't be worked off; it is tried again until it can");
                    }
                    failures = failures.saturating_add(1);
                    AFTER_ERROR_MS
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(Duration::from_millis(wait_ms.unsigned_abs())) => {}
                _ = self.running.join_next(), if !self.running.is_empty() => {}
                _ = bell.changed(), if failures == 0 => {}
            }
        }
        while self.running.join_next().await.is_some() {}
    }

    /// Claims what there is room for and sends it off; how long until the next look is worth it.
    async fn step(&mut self) -> Result<i64> {
        // What has ended since the last look.
        while self.running.try_join_next().is_some() {}
        let room = self.service.room();
        // A task that was just sent off may not have taken its place in the room yet.
        let calls = room.calls.min(self.service.side_by_side().saturating_sub(self.running.len()));
        if calls == 0 {
            return Ok(room.wait_ms.clamp(1, LOOK_MS));
        }
        let next = claim::next_due(&mut self.core.db.read().await?, self.lane).await?;
        let wait = next.map_or(LOOK_MS, |at| at - self.core.now());
        if wait > 0 {
            return Ok(wait.min(LOOK_MS));
        }
        let limit = i64::try_from(calls).unwrap_or(1);
        let claims = remote::claim(&self.core, &self.actor, self.lane, limit).await?;
        let claimed = claims.tasks.len();
        for claimed in claims.tasks {
            let (core, actor) = (self.core.clone(), self.actor.clone());
            self.running.spawn(async move {
                if let Err(error) = remote::run(&core, &actor, claimed).await {
                    tracing::error!(error = %error, "a service's answer could not be recorded; the task is tried again when its lease is over");
                }
            });
        }
        // Nothing claimed of what is due: somebody else has it. Else let what was sent take its room first.
        Ok(if claims.seen == 0 || claimed > 0 { 20 } else { 1 })
    }
}
