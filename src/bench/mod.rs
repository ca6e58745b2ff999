//! Measured load on a configured, empty database: release or close a filled queue through the core, check the
//! rules afterwards, and compare with the loop a competent team writes. Ratios of one run count; absolute
//! figures move with the machine.

mod fill;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use serde::Serialize;

use crate::core::order::close;
use crate::core::words::{Actor, Trigger};
use crate::core::{Core, Error, Result, check, release};
use crate::store::{self, load};

pub use fill::Shape;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Release,
    Close,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub what: What,
    pub shape: Shape,
    pub workers: usize,
    pub batch: i64,
    /// Also run the loop to compare with: three interleaved rounds, medians.
    pub with_baseline: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Tasks, or orders, a second.
    pub rate: f64,
    pub unit: &'static str,
    pub seconds: f64,
    pub tasks: i64,
    pub transactions: i64,
    pub baseline_rate: Option<f64>,
    pub ratio: Option<f64>,
    pub rules_ok: bool,
    /// High-water mark of this process, in MiB.
    pub peak_rss_mib: f64,
}

/// One timed run: how many, in how many transactions, how long.
struct Run {
    done: i64,
    transactions: i64,
    seconds: f64,
}

impl Run {
    fn rate(&self) -> f64 {
        self.done as f64 / self.seconds
    }
}

/// Connections of the comparison loop for releasing; closing is compared with one connection.
const LOOP_CONNECTIONS: usize = 8;
/// The loop is slow: it gets this many at most.
const LOOP_TASKS: i64 = 20_000;

/// Runs the plan.
///
/// # Errors
/// `Invalid` when the database is not empty: a measurement never touches data that is there.
pub async fn run(core: &Core, plan: &Plan) -> Result<Report> {
    if !load::is_empty(&core.db).await? {
        return Err(Error::invalid("database.url", "names a database that is not empty; measure on an empty one"));
    }
    let rounds = if plan.with_baseline { 3 } else { 1 };
    let (mut ours, mut theirs, mut rules_ok) = (Vec::new(), Vec::new(), true);
    for _ in 0..rounds {
        fill::fill(core, plan.what, &plan.shape).await?;
        ours.push(match plan.what {
            What::Release => release_all(core, plan).await?,
            What::Close => close_all(core, plan).await?,
        });
        rules_ok &= check::run(core).await?.iter().all(|rule| rule.broken == 0);
        load::clear(&core.db).await?;
        if plan.with_baseline {
            let shape = Shape { tasks: plan.shape.tasks.min(LOOP_TASKS), lacking_percent: 0.0, ..plan.shape.clone() };
            fill::fill(core, plan.what, &shape).await?;
            theirs.push(match plan.what {
                What::Release => loop_release(core).await?,
                What::Close => loop_close(core).await?,
            });
            load::clear(&core.db).await?;
        }
    }
    let rate = median(ours.iter().map(Run::rate).collect());
    let baseline_rate = (!theirs.is_empty()).then(|| median(theirs.iter().map(Run::rate).collect()));
    Ok(Report {
        rate,
        unit: match plan.what {
            What::Release => "tasks/s",
            What::Close => "orders/s",
        },
        seconds: median(ours.iter().map(|run| run.seconds).collect()),
        tasks: ours.last().map_or(0, |run| run.done),
        transactions: ours.last().map_or(0, |run| run.transactions),
        baseline_rate,
        ratio: baseline_rate.map(|baseline| rate / baseline),
        rules_ok,
        peak_rss_mib: peak_rss_mib(),
    })
}

async fn release_all(core: &Core, plan: &Plan) -> Result<Run> {
    let batch = plan.batch;
    drain(core, plan.workers, move |core, n| async move {
        let ran = release::run_due(&core, &Actor::Worker(format!("bench-{n}")), batch).await?;
        Ok(ran.claimed)
    })
    .await
}

async fn close_all(core: &Core, plan: &Plan) -> Result<Run> {
    let batch = plan.batch;
    drain(
        core,
        plan.workers,
        move |core, _| async move { Ok(close::close_due(&core, Trigger::Scan, batch).await?.found) },
    )
    .await
}

/// Repeats a step on so many workers side by side, each until its step finds nothing more.
async fn drain<F>(core: &Core, workers: usize, step: impl Fn(Core, usize) -> F + Clone + Send + 'static) -> Result<Run>
where
    F: Future<Output = Result<usize>> + Send,
{
    let (done, transactions) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let begin = Instant::now();
    let mut running = Vec::new();
    for n in 0..workers {
        let (core, step, done, transactions) = (core.clone(), step.clone(), done.clone(), transactions.clone());
        running.push(tokio::spawn(async move {
            loop {
                let found = step(core.clone(), n).await?;
                if found == 0 {
                    return Ok::<_, Error>(());
                }
                done.fetch_add(i64::try_from(found).unwrap_or(0), Ordering::Relaxed);
                transactions.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    join(running).await?;
    let (done, transactions) = (done.load(Ordering::Relaxed), transactions.load(Ordering::Relaxed));
    Ok(Run { done, transactions, seconds: begin.elapsed().as_secs_f64() })
}

async fn loop_release(core: &Core) -> Result<Run> {
    let connections = if core.db.dialect.has_one_writer() { 1 } else { LOOP_CONNECTIONS };
    drain(core, connections, |core, _| async move { Ok(usize::from(load::release_one(&core.db, core.now()).await?)) })
        .await
}

async fn loop_close(core: &Core) -> Result<Run> {
    let due = load::due_orders(&core.db, core.now()).await?;
    let done = i64::try_from(due.len()).unwrap_or(0);
    let begin = Instant::now();
    for (id, order_no) in due {
        load::close_one(&core.db, id, order_no, core.now()).await?;
    }
    Ok(Run { done, transactions: done, seconds: begin.elapsed().as_secs_f64() })
}

async fn join(workers: Vec<tokio::task::JoinHandle<Result<()>>>) -> Result<()> {
    for worker in workers {
        worker.await.map_err(|error| store::Error::new(store::Class::Panic, error.to_string()))??;
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The most memory this process ever had, as the kernel counts it.
fn peak_rss_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line.and_then(|l| l.trim().trim_end_matches(" kB").trim().parse().ok()).unwrap_or(0.0);
    kib / 1024.0
}
