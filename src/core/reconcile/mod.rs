//! The reconciliation: compares what ledgers have locked with what open orders and unfinished tasks explain, at
//! one snapshot and in both directions (R22). It changes nothing but its own records. One runs at a time; a run
//! whose process died is given up after a minute without a sign of life, so that it blocks nobody.

pub mod diff;
mod shop;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use diff::{Behind, Found, by_key};

use crate::core::words::{Actor, DiffClass, ResourceType, RunStatus};
use crate::core::{Core, Error, Result};
use crate::store::reconcile::{self, Figures};
use crate::store::reconcile_run::{self as runs, Diff, Run, Total};
use crate::store::{Conn, Decision};

/// A run that was silent for so long is given up, in milliseconds.
pub const SILENT_MS: i64 = 60_000;
const BEAT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Keys that are looked at closely, and written, at once.
const PAGE: i64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    Started(i64),
    /// One is going on already.
    Running(i64),
}

/// Begins a run in the background, over one type or all.
///
/// # Errors
/// `Invalid` for a type that isn't compared.
pub async fn start(core: &Core, actor: &Actor, resource: Option<ResourceType>) -> Result<Started> {
    let started = begin(core, actor, resource).await?;
    if let Started::Started(run) = started {
        let core = core.clone();
        tokio::spawn(async move { carry_out(&core, run, resource).await });
    }
    Ok(started)
}

/// Runs now, or waits for the run that is going on; answers with it and what it found.
///
/// # Errors
/// `Invalid` for a type that isn't compared.
pub async fn run_now(core: &Core, actor: &Actor, resource: Option<ResourceType>) -> Result<(Run, Vec<Diff>)> {
    let run = match begin(core, actor, resource).await? {
        Started::Started(run) => {
            carry_out(core, run, resource).await;
            run
        }
        Started::Running(run) => run,
    };
    loop {
        if let Some(found) = show(core, run).await?.filter(|(run, _)| run.status != RunStatus::Running) {
            return Ok(found);
        }
        give_up_silent(core).await?;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A run and what it found.
pub async fn show(core: &Core, run: i64) -> Result<Option<(Run, Vec<Diff>)>> {
    let mut conn = core.db.snapshot().await?;
    let found = match runs::find(&mut conn, run).await? {
        Some(run) => {
            let diffs = runs::diffs_of(&mut conn, run.id, None, i64::MAX).await?;
            Some((run, diffs))
        }
        None => None,
    };
    conn.done().await?;
    Ok(found)
}

/// Takes the place of the run that is going on, if there is one.
async fn begin(core: &Core, actor: &Actor, resource: Option<ResourceType>) -> Result<Started> {
    if resource.is_some_and(|resource| !is_compared(core, resource)) {
        return Err(Error::invalid("type", "is kept by another service, or is no ledger: it isn't compared"));
    }
    give_up_silent(core).await?;
    loop {
        let (actor, now) = (actor.to_string(), core.now());
        let begun = core.db.write(move |conn| {
            let actor = actor.clone();
            Box::pin(async move { Ok(Decision::Commit(runs::begin(conn, resource, &actor, now).await?)) })
        });
        if let Some(run) = begun.await? {
            return Ok(Started::Started(run));
        }
        if let Some(run) = runs::running(&mut core.db.read().await?).await? {
            return Ok(Started::Running(run.id));
        }
        // It ended between the two looks.
    }
}

/// Gives up a run whose process died.
pub async fn give_up_silent(core: &Core) -> Result<u64> {
    let now = core.now();
    let given_up = core.db.write(move |conn| {
        Box::pin(async move { Ok(Decision::Commit(runs::give_up_silent(conn, now - SILENT_MS, now).await?)) })
    });
    Ok(given_up.await?)
}

/// Does the work of a run and records how it ended.
async fn carry_out(core: &Core, run: i64, resource: Option<ResourceType>) {
    let compared = tokio::select! {
        compared = compare(core, run, resource) => compared,
        () = beat(core, run) => return,
    };
    let ended = match compared {
        Ok((snapshot_at, totals)) => finish(core, run, snapshot_at, totals).await,
        Err(error) => {
            tracing::error!(reconcile.run = run, error = %error, "a reconciliation failed");
            fail(core, run, &error).await
        }
    };
    match ended {
        Ok(1) => {}
        Ok(_) => tracing::warn!(reconcile.run = run, "a reconciliation was given up before it ended"),
        Err(error) => {
            tracing::error!(reconcile.run = run, error = %error, "the end of a reconciliation wasn't recorded")
        }
    }
}

/// Gives signs of life for as long as it is waited on; ends when the run was given up.
async fn beat(core: &Core, run: i64) {
    loop {
        tokio::time::sleep(BEAT).await;
        let now = core.now();
        let beaten =
            core.db.write(move |conn| Box::pin(async move { Ok(Decision::Commit(runs::beat(conn, run, now).await?)) }));
        if matches!(beaten.await, Ok(0)) {
            tracing::warn!(reconcile.run = run, "a reconciliation was given up while it ran");
            return;
        }
    }
}

async fn finish(core: &Core, run: i64, snapshot_at: i64, totals: Vec<Total>) -> Result<u64> {
    let (totals, now) = (Arc::new(totals), core.now());
    let finished = core.db.write(move |conn| {
        let totals = totals.clone();
        Box::pin(async move { Ok(Decision::Commit(runs::finish(conn, run, snapshot_at, &totals, now).await?)) })
    });
    Ok(finished.await?)
}

async fn fail(core: &Core, run: i64, error: &Error) -> Result<u64> {
    let (error, now) = (error.to_string(), core.now());
    let failed = core.db.write(move |conn| {
        let error = error.clone();
        Box::pin(async move { Ok(Decision::Commit(runs::fail(conn, run, &error, now).await?)) })
    });
    Ok(failed.await?)
}

/// Types whose ledger is here to be looked at: ours, and tables of the shop that keep what is locked. What other
/// services keep is left out.
fn is_compared(core: &Core, resource: ResourceType) -> bool {
    let table = core.db.mapped.of(resource);
    core.policy.homes.is_owned(resource) || table.is_some_and(|table| table.keeps_locked())
}

/// Compares every type at one snapshot; findings are written page by page.
async fn compare(core: &Core, run: i64, only: Option<ResourceType>) -> Result<(i64, Vec<Total>)> {
    let mut conn = core.db.snapshot().await?;
    let snapshot_at = core.now();
    let mut totals = Vec::new();
    for resource in ResourceType::LEDGERS {
        if is_compared(core, resource) && only.is_none_or(|only| only == resource) {
            let mut found = Found::default();
            let before = runs::before(&mut conn, run, resource).await?;
            let this = This { core, run, resource, snapshot_at, before };
            if core.policy.homes.is_mapped(resource) {
                let (sums, figures) = shop::figures(core, &mut conn, resource).await?;
                let differing: Vec<Figures> = figures.into_iter().filter(|f| diff::unexplained(f) != 0).collect();
                for page in differing.chunks(PAGE as usize) {
                    this.look_closely(&mut conn, page, false, &mut found).await?;
                }
                totals.push(diff::total(resource, sums, &found));
                continue;
            }
            let sums = reconcile::sums(&mut conn, resource).await?;
            let strangers = this.strangers(&mut conn, &mut found).await?;
            this.differing(&mut conn, &strangers, &mut found).await?;
            totals.push(diff::total(resource, sums, &found));
        }
    }
    conn.done().await?;
    Ok((snapshot_at, totals))
}

/// One type of one run.
struct This<'a> {
    core: &'a Core,
    run: i64,
    resource: ResourceType,
    snapshot_at: i64,
    /// The run before that looked at this type.
    before: Option<i64>,
}

impl This<'_> {
    /// Coupons and slots that are locked by an order that has no hold on them; their sums may even agree.
    async fn strangers(&self, conn: &mut Conn, found: &mut Found) -> Result<HashSet<String>> {
        let mut all = HashSet::new();
        if !self.resource.is_single() {
            return Ok(all);
        }
        let mut after = String::new();
        loop {
            let keys = reconcile::strangers(conn, self.resource, &after, PAGE).await?;
            let Some(last) = keys.last() else { return Ok(all) };
            after.clone_from(last);
            let figures = reconcile::figures_of(conn, self.resource, &keys).await?;
            self.look_closely(conn, &figures, true, found).await?;
            all.extend(keys);
        }
    }

    async fn differing(&self, conn: &mut Conn, but: &HashSet<String>, found: &mut Found) -> Result<()> {
        let mut after = String::new();
        loop {
            let mut figures = reconcile::differing(conn, self.resource, &after, PAGE).await?;
            let Some(last) = figures.last() else { return Ok(()) };
            after.clone_from(&last.key);
            figures.retain(|figures| !but.contains(&figures.key));
            self.look_closely(conn, &figures, false, found).await?;
        }
    }

    /// Who is behind each of these keys; writes the findings.
    async fn look_closely(
        &self,
        conn: &mut Conn,
        figures: &[Figures],
        is_strangers: bool,
        found: &mut Found,
    ) -> Result<()> {
        let keys: Vec<String> = figures.iter().map(|figures| figures.key.clone()).collect();
        let mut open = by_key(reconcile::open_orders(conn, self.resource, &keys).await?);
        let tasks = reconcile::open_tasks(conn, self.resource, &keys).await?;
        let mut tasks = by_key(tasks.into_iter().map(|(key, id, order)| (key, (id, order))).collect());
        let unsettled = reconcile::unsettled_orders(conn, self.resource, &keys).await?;
        let mut unsettled = by_key(unsettled.into_iter().map(|(key, order, _)| (key, order)).collect());
        let mut diffs = Vec::with_capacity(figures.len());
        for figures in figures {
            let behind = Behind {
                open: open.remove(&figures.key).unwrap_or_default(),
                unsettled: unsettled.remove(&figures.key).unwrap_or_default(),
                tasks: tasks.remove(&figures.key).unwrap_or_default(),
                is_strangers,
            };
            let since = match self.before {
                Some(before) => runs::seen_since(conn, before, self.resource, &figures.key).await?,
                None => None,
            };
            let diff = diff::finding(self.resource, figures, &behind, since.unwrap_or(self.snapshot_at));
            found.add(&diff);
            diffs.push(diff);
        }
        let (run, diffs) = (self.run, Arc::new(diffs));
        let written = self.core.db.write(move |conn| {
            let diffs = diffs.clone();
            Box::pin(async move { Ok(Decision::Commit(runs::insert_diffs(conn, run, &diffs).await?)) })
        });
        Ok(written.await?)
    }
}

/// What is not explained of one type, as of the last run that looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexplained {
    pub resource: ResourceType,
    pub keys: i64,
    /// Too much and too little together.
    pub amount: i64,
}

/// What is known of differences: the newest run, and per type what the last one that looked at it found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub run: Option<i64>,
    pub finished_at: Option<i64>,
    pub snapshot_at: Option<i64>,
    pub latest: Vec<Latest>,
}

/// The sums of one type, and the run they are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest {
    pub run: i64,
    pub total: Total,
}

impl Known {
    /// From the runs of [`runs::latest_done`], oldest first.
    pub fn of(runs: &[Run]) -> Self {
        let mut latest: Vec<Latest> = Vec::new();
        for (run, total) in runs.iter().flat_map(|run| run.totals.iter().map(|total| (run.id, total))) {
            latest.retain(|known| known.total.resource != total.resource);
            latest.push(Latest { run, total: total.clone() });
        }
        latest.sort_by_key(|known| known.total.resource);
        let last = runs.last();
        Self {
            run: last.map(|run| run.id),
            finished_at: last.and_then(|run| run.finished_at),
            snapshot_at: last.and_then(|run| run.snapshot_at),
            latest,
        }
    }

    /// Only the types that something was found in; `None` until anything was compared.
    pub fn unexplained(&self) -> Option<Vec<Unexplained>> {
        self.run?;
        let found = self.latest.iter().map(|known| &known.total).filter(|total| total.findings > 0);
        Some(
            found
                .filter_map(|total| {
                    let resource = ResourceType::from_code(total.resource)?;
                    Some(Unexplained { resource, keys: total.findings, amount: total.over + total.under })
                })
                .collect(),
        )
    }

    /// Keys with a finding; `None` until anything was compared.
    pub fn findings(&self) -> Option<i64> {
        self.run.map(|_| self.latest.iter().map(|known| known.total.findings).sum())
    }
}

/// Whether a run found something that nothing explains.
pub fn is_unexplained(diff: &Diff) -> bool {
    diff.unexplained != 0 || diff.class == DiffClass::HolderGone
}
