//! Runs the duties side by side until told to stop: waits, wakes at the bell, stops between two steps, and
//! survives errors with growing pauses, said once when they begin and once when they end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rand::distr::{Alphanumeric, SampleString as _};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::duties::{self, BatchSize, Next};
use super::lane::Lane;
use crate::core::policy::CHANNEL;
use crate::core::release::remote;
use crate::core::words::{Actor, ResourceType};
use crate::core::{Core, Result};
use crate::store::{Decision, claim, wake, worker};

#[derive(Clone, Debug)]
pub struct Settings {
    /// Name in attempts and on the page; unique among running workers.
    pub name: String,
    pub scan_interval: Duration,
    /// For notifications between processes.
    pub database_url: String,
}

impl Settings {
    /// A name that no other running worker has.
    pub fn new_name() -> String {
        format!("w-{}", Alphanumeric.sample_string(&mut rand::rng(), 6).to_lowercase())
    }
}

/// How long a worker may be silent before it counts as dead, in milliseconds.
pub const SILENT_MS: i64 = 15_000;

pub struct Worker {
    core: Core,
    settings: Settings,
    stop: CancellationToken,
}

impl Worker {
    pub fn new(core: Core, settings: Settings, stop: CancellationToken) -> Self {
        Self { core, settings, stop }
    }

    /// Runs until told to stop; what runs is finished.
    pub async fn run(self) {
        let unclean = self.bury_the_silent().await;
        let me = Arc::new(self);
        let size = Arc::new(BatchSize::new(me.core.db.dialect.batch(), unclean));
        let tracker = TaskTracker::new();
        let executors = if me.core.db.dialect.has_one_writer() { 1 } else { 2 };
        for _ in 0..executors {
            let (me, size) = (me.clone(), size.clone());
            tracker.spawn(async move {
                let actor = Actor::Worker(me.settings.name.clone());
                me.repeat("release", true, || duties::release_once(&me.core, &actor, &size)).await;
            });
        }
        me.say_who_waits_in_vain().await;
        for lane in remote::lanes(&me.core) {
            let actor = Actor::Worker(me.settings.name.clone());
            if let Some(lane) = Lane::new(&me.core, &actor, lane) {
                tracker.spawn(lane.run(me.stop.clone()));
            }
        }
        let others = me.clone();
        tracker.spawn(async move {
            let me = others;
            tokio::join!(
                me.repeat("scan", false, || duties::scan_once(&me.core, me.settings.scan_interval)),
                me.repeat("returns", false, || duties::detect_once(&me.core)),
                me.repeat("counters", false, || duties::fold_once(&me.core)),
                me.repeat("heartbeat", false, || duties::beat_once(&me.core, &me.settings.name)),
                me.repeat("ask", false, || duties::ask_once(&me.core)),
                me.repeat("tidy", false, || duties::tidy_once(&me.core)),
                me.hear(),
            );
        });
        tracker.close();
        tracker.wait().await;
        me.leave().await;
    }

    /// Repeats one duty. Only the release duty listens to the bell.
    async fn repeat<F>(&self, duty: &'static str, hears: bool, mut step: impl FnMut() -> F)
    where
        F: Future<Output = Result<Next>>,
    {
        let mut failures: u32 = 0;
        while !self.stop.is_cancelled() {
            let next = match step().await {
                Ok(next) => {
                    if failures > 0 {
                        tracing::info!(worker.duty = duty, worker.failures = failures, "duty works again");
                    }
                    failures = 0;
                    next
                }
                Err(error) => {
                    if failures == 0 {
                        tracing::warn!(worker.duty = duty, error = %error, "duty failed; it is tried again until it works");
                    }
                    failures = failures.saturating_add(1);
                    Next::After(Duration::from_millis(200 << failures.min(5)))
                }
            };
            let Next::After(wait) = next else { continue };
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
                () = self.core.work.notified(), if hears && failures == 0 => {}
            }
        }
    }

    /// Passes on the notifications of other processes, where the engine has them.
    async fn hear(&self) {
        while !self.stop.is_cancelled() {
            let bell = tokio::select! {
                () = self.stop.cancelled() => return,
                bell = wake::listen(&self.core.db, &self.settings.database_url) => bell,
            };
            match bell {
                Ok(None) => return,
                Ok(Some(mut bell)) => loop {
                    tokio::select! {
                        () = self.stop.cancelled() => return,
                        rung = bell.rung() => if rung.is_err() { break },
                    }
                    self.core.work.notify_waiters();
                    self.core.lanes.send_replace(());
                },
                Err(error) => tracing::debug!(error = %error, "notifications can't be heard; polling goes on"),
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(Duration::from_secs(5)) => {}
            }
        }
    }

    /// Tasks of a service that isn't configured any more stay where they are until it is, or a person acts.
    async fn say_who_waits_in_vain(&self) {
        let waiting = async { claim::waiting_by_lane(&mut self.core.db.read().await?).await };
        let served = remote::lanes(&self.core);
        for (lane, tasks) in waiting.await.unwrap_or_default() {
            if served.contains(&lane) {
                continue;
            }
            let setting = match ResourceType::from_code(lane).filter(|_| lane != CHANNEL) {
                Some(resource) => format!("remote.{resource}"),
                None => "channel.base_url".to_owned(),
            };
            tracing::warn!(tasks.waiting = tasks, "tasks wait for a service, but {setting} isn't configured");
        }
    }

    /// Whether a worker went silent without a word since the last start (R11).
    async fn bury_the_silent(&self) -> bool {
        let before = self.core.now() - SILENT_MS;
        let one_writer = self.core.db.dialect.has_one_writer();
        let buried = self.core.db.write(move |conn| {
            Box::pin(async move {
                // On SQLite there is one process: whoever is still on the list didn't say goodbye.
                let before = if one_writer { i64::MAX } else { before };
                Ok(Decision::Commit(worker::bury_silent(conn, before).await?))
            })
        });
        let buried = buried.await.unwrap_or(0);
        if buried > 0 {
            tracing::warn!(workers.silent = buried, "a worker ended uncleanly; batches start small");
        }
        buried > 0
    }

    async fn leave(&self) {
        let name = self.settings.name.clone();
        let left = self.core.db.write(move |conn| {
            let name = name.clone();
            Box::pin(async move { Ok(Decision::Commit(worker::leave(conn, &name).await?)) })
        });
        if let Err(error) = left.await {
            tracing::debug!(error = %error, "the worker could not say goodbye");
        }
    }
}
