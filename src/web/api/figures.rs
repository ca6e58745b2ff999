//! `GET /stats` and `GET /idle`: figures over everything. What is not measured is null, never 0.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::{Caller, ToRead};
use super::fields::{Fields, FromFields};
use super::request::Asked;
use super::{Answered, ok};
use crate::core::counters::{self, quantile};
use crate::core::instant::{moment, opt_moment};
use crate::core::reconcile::{Known, Unexplained};
use crate::store::stats::{self, Cases, Counted, Counters, Waiting};
use crate::store::{self, Db, reconcile_run, worker};
use crate::web::state::App;

/// Figures over everything
#[utoipa::path(get, path = "/stats", tag = "figures", responses((status = 200, body = Stats)))]
pub(super) async fn stats(State(app): State<App>, _: Caller<ToRead>) -> Answered {
    let now = app.core.now();
    let read = read(&app.core.db, now).await?;
    ok(&Stats::of(&read, now))
}

/// What the figures are made of, at one snapshot.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub backlog: Vec<Waiting>,
    pub oldest: Option<i64>,
    pub oldest_manual: Option<i64>,
    pub counters: Counters,
    pub unmatched_payments: i64,
    pub cases: Cases,
    /// What the last reconciliations found.
    pub reconciled: Known,
    pub overdue_orders: i64,
    /// Name and last sign of life.
    pub workers: Vec<(String, i64)>,
}

pub(super) async fn read(db: &Db, now: i64) -> store::Result<Read> {
    let mut conn = db.snapshot().await?;
    let backlog = stats::backlog(&mut conn).await?;
    let (oldest, oldest_manual) = stats::oldest(&mut conn).await?;
    let counters = stats::counters(&mut conn, now).await?;
    let unmatched_payments = stats::unmatched_payments(&mut conn).await?;
    let cases = stats::cases(&mut conn).await?;
    let reconciled = Known::of(&reconcile_run::latest_done(&mut conn).await?);
    let overdue_orders = stats::remaining(&mut conn, now).await?.overdue_orders;
    let workers = worker::alive(&mut conn).await?;
    conn.done().await?;
    Ok(Read {
        backlog,
        oldest,
        oldest_manual,
        counters,
        unmatched_payments,
        cases,
        reconciled,
        overdue_orders,
        workers,
    })
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Stats {
    backlog: Vec<BacklogShown>,
    /// Of tasks waiting, retrying or running; null when there is none
    oldest_age_s: Option<f64>,
    oldest_manual_age_s: Option<f64>,
    /// Failed tries of the last hour and day
    failures: Vec<Failures>,
    /// Share of tries that succeeded
    success_rate: Rates,
    duplicates: Duplicates,
    reconcile: Reconciled,
    closing: Closing,
    compensation: Compensation,
    needs_person: NeedsPerson,
    workers: Vec<WorkerShown>,
}

#[derive(Debug, Serialize, ToSchema)]
struct BacklogShown {
    /// `waiting`, `retrying` or `manual`
    status: &'static str,
    r#type: &'static str,
    count: i64,
}

#[derive(Debug, Serialize, ToSchema)]
struct Failures {
    r#type: String,
    kind: String,
    hour: i64,
    day: i64,
}

/// Null where nothing was tried.
#[derive(Debug, Serialize, ToSchema)]
struct Rates {
    hour: Option<f64>,
    day: Option<f64>,
}

/// Tasks that found their flow, and repeated closes of a closed order.
#[derive(Debug, Serialize, ToSchema)]
struct Duplicates {
    hour: i64,
    day: i64,
    total: i64,
}

#[derive(Debug, Serialize, ToSchema)]
struct Reconciled {
    run: Option<i64>,
    finished_at: Option<String>,
    /// Per type, as of the last run that looked at it
    unexplained: Option<Vec<UnexplainedShown>>,
}

#[derive(Debug, Serialize, ToSchema)]
struct UnexplainedShown {
    r#type: &'static str,
    keys: i64,
    /// Too much and too little together
    amount: i64,
}

/// How long after their deadline orders were closed, in the last day.
#[derive(Debug, Serialize, ToSchema)]
struct Closing {
    p50_ms: Option<i64>,
    p99_ms: Option<i64>,
    max_ms: Option<i64>,
    by_trigger: Vec<ClosingBy>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ClosingBy {
    trigger: String,
    /// Orders closed
    count: i64,
    p50_ms: Option<i64>,
    p99_ms: Option<i64>,
}

/// Tasks that failed and then succeeded, in the last day.
#[derive(Debug, Serialize, ToSchema)]
struct Compensation {
    /// From the first failure to success
    delay_p50_ms: Option<i64>,
    delay_p99_ms: Option<i64>,
    /// Failed tries that succeeded tasks had had
    retries: Vec<Retries>,
    by_hand_share: Option<f64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Retries {
    retry: i64,
    count: i64,
}

/// What waits for a person.
#[derive(Debug, Serialize, ToSchema)]
struct NeedsPerson {
    tasks: i64,
    orders: i64,
    payments: i64,
    findings: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct WorkerShown {
    name: String,
    seen_at: String,
}

impl Stats {
    fn of(read: &Read, now: i64) -> Self {
        let counters = &read.counters;
        let age = |written: Option<i64>| written.map(|at| (now - at).max(0) as f64 / 1000.0);
        let manual = read.backlog.iter().filter(|waiting| !is_moved_by_worker(waiting));
        Self {
            backlog: read.backlog.iter().map(BacklogShown::of).collect(),
            oldest_age_s: age(read.oldest),
            oldest_manual_age_s: age(read.oldest_manual),
            failures: counters.of(counters::FAILED).filter_map(Failures::of).collect(),
            success_rate: Rates::of(&counters.sum(counters::SUCCEEDED), &counters.sum(counters::FAILED)),
            duplicates: Duplicates::of(counters),
            reconcile: Reconciled::of(&read.reconciled),
            closing: Closing::of(counters),
            compensation: Compensation::of(counters),
            needs_person: NeedsPerson {
                tasks: manual.map(|waiting| waiting.count).sum(),
                orders: read.cases.orders,
                payments: read.cases.payments,
                findings: read.reconciled.findings(),
            },
            workers: read.workers.iter().map(WorkerShown::of).collect(),
        }
    }
}

fn is_moved_by_worker(waiting: &Waiting) -> bool {
    waiting.status != crate::core::words::TaskStatus::Manual
}

impl BacklogShown {
    fn of(waiting: &Waiting) -> Self {
        Self { status: waiting.status.word(), r#type: waiting.resource.word(), count: waiting.count }
    }
}

impl Failures {
    fn of((label, counted): (&str, &Counted)) -> Option<Self> {
        let (kind, by) = label.split_once('/')?;
        let failures = Self { r#type: kind.to_owned(), kind: by.to_owned(), hour: counted.hour, day: counted.day };
        (counted.day > 0).then_some(failures)
    }
}

impl Rates {
    fn of(succeeded: &Counted, failed: &Counted) -> Self {
        Self { hour: share(succeeded.hour, failed.hour), day: share(succeeded.day, failed.day) }
    }
}

/// The share of `part` in both together; unknown of nothing.
fn share(part: i64, rest: i64) -> Option<f64> {
    let all = part + rest;
    (all > 0).then(|| part as f64 / all as f64)
}

impl Duplicates {
    fn of(counters: &Counters) -> Self {
        let (found, repeated) = (counters.sum(counters::DUPLICATE), counters.sum(counters::CLOSE_REPEATED));
        Self { hour: found.hour + repeated.hour, day: found.day + repeated.day, total: found.total + repeated.total }
    }
}

impl Reconciled {
    fn of(known: &Known) -> Self {
        let shown = |found: &Unexplained| UnexplainedShown {
            r#type: found.resource.word(),
            keys: found.keys,
            amount: found.amount,
        };
        Self {
            run: known.run,
            finished_at: opt_moment(known.finished_at),
            unexplained: known.unexplained().map(|found| found.iter().map(shown).collect()),
        }
    }
}

impl Closing {
    fn of(counters: &Counters) -> Self {
        let mut histograms: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
        for (label, counted) in counters.of(counters::LATE) {
            if let Some((trigger, bucket)) = bucketed(label).filter(|_| counted.day > 0) {
                histograms.entry(trigger).or_default().push((bucket, counted.day));
            }
        }
        let all: Vec<(i64, i64)> = histograms.values().flatten().copied().collect();
        let by_trigger =
            counters.of(counters::CLOSED).filter(|(_, counted)| counted.day > 0).map(|(trigger, counted)| {
                let histogram = histograms.get(trigger).map_or(&[][..], Vec::as_slice);
                let (p50_ms, p99_ms) = (quantile(histogram, 0.5), quantile(histogram, 0.99));
                ClosingBy { trigger: trigger.to_owned(), count: counted.day, p50_ms, p99_ms }
            });
        Self {
            p50_ms: quantile(&all, 0.5),
            p99_ms: quantile(&all, 0.99),
            max_ms: quantile(&all, 1.0),
            by_trigger: by_trigger.collect(),
        }
    }
}

/// A label `what/bucket`.
pub(super) fn bucketed(label: &str) -> Option<(&str, i64)> {
    let (what, bucket) = label.rsplit_once('/')?;
    Some((what, bucket.parse().ok()?))
}

impl Compensation {
    fn of(counters: &Counters) -> Self {
        let of_day = |name| counters.of(name).filter(|(_, counted)| counted.day > 0);
        let numbered = |name| of_day(name).filter_map(|(label, counted)| Some((label.parse().ok()?, counted.day)));
        let delays: Vec<(i64, i64)> = numbered(counters::DELAY).collect();
        let mut retries: Vec<(i64, i64)> = numbered(counters::RETRIES).collect();
        retries.sort_unstable();
        let by = |who: &str| of_day(counters::COMPENSATED).filter(|(label, _)| *label == who).map(|(_, c)| c.day).sum();
        Self {
            delay_p50_ms: quantile(&delays, 0.5),
            delay_p99_ms: quantile(&delays, 0.99),
            retries: retries.into_iter().map(|(retry, count)| Retries { retry, count }).collect(),
            by_hand_share: share(by("hand"), by("worker")),
        }
    }
}

impl WorkerShown {
    fn of((name, seen_at): &(String, i64)) -> Self {
        Self { name: name.clone(), seen_at: moment(*seen_at) }
    }
}

const LONGEST_WAIT_S: i64 = 30;
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Wait {
    wait_s: i64,
}

impl FromFields for Wait {
    fn read(f: &mut Fields) -> Option<Self> {
        Some(Self { wait_s: f.opt_whole("wait_s", 0, LONGEST_WAIT_S).unwrap_or(0) })
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Idle {
    idle: bool,
    /// Tasks whose time has come
    due: i64,
    /// Tasks that a remote service is being asked about
    running: i64,
    overdue_orders: i64,
    /// Waiting for a later try; doesn't count
    retrying: i64,
    /// Left to a person; doesn't count
    manual: i64,
}

/// Wait until nothing is left to do
///
/// Answers as soon as no task is claimed or due and no open order is past its deadline, else after `wait_s` seconds.
#[utoipa::path(get, path = "/idle", tag = "figures", params(("wait_s" = Option<i64>, Query, maximum = 30)),
    responses((status = 200, body = Idle)))]
pub(super) async fn idle(State(app): State<App>, _: Caller<ToRead>, Asked(wait): Asked<Wait>) -> Answered {
    let until = tokio::time::Instant::now() + Duration::from_secs(wait.wait_s.unsigned_abs());
    loop {
        let left = stats::remaining(&mut app.core.db.read().await?, app.core.now()).await?;
        let is_over = tokio::time::Instant::now() >= until || app.stopping.is_cancelled();
        if left.is_idle() || is_over {
            let stats::Remaining { due, running, overdue_orders, retrying, manual } = left;
            return ok(&Idle { idle: left.is_idle(), due, running, overdue_orders, retrying, manual });
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = app.stopping.cancelled() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_nothing_is_unknown() {
        assert_eq!(share(0, 0), None);
        assert_eq!(share(3, 1), Some(0.75));
    }

    #[test]
    fn figures_of_an_empty_system_are_unknown_not_zero() {
        let read = Read::default();
        let stats = serde_json::to_value(Stats::of(&read, 0)).expect("JSON");
        for pointer in ["/oldest_age_s", "/success_rate/hour", "/closing/p50_ms", "/closing/max_ms"] {
            assert!(stats.pointer(pointer).expect(pointer).is_null(), "{pointer}");
        }
        for pointer in ["/compensation/by_hand_share", "/reconcile/run", "/needs_person/findings"] {
            assert!(stats.pointer(pointer).expect(pointer).is_null(), "{pointer}");
        }
        assert_eq!(stats.pointer("/duplicates/total"), Some(&0.into()));
    }
}
