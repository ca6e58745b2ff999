//! THE release core. Worker, operator and API enter here and nowhere else (D6).
//!
//! A batch is one transaction: claim due tasks (locks that skip locked rows), lock their ledger rows in key
//! order, plan, insert the flows in one statement, apply one update per ledger row, mark the tasks, append one
//! counter delta. A count that is off rolls everything back and the batch is taken apart until the bad row
//! stands alone (R14). A flow row that exists already makes its task succeed as a duplicate (R5).

pub mod act;
mod by_hand;
pub mod plan;
pub mod remote;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use crate::core::order::close::{self, CloseOrder};
use crate::core::words::{Action, Actor, AttemptOutcome, FailureKind, Trigger};
use crate::core::{Core, Result, counters, order, task as core_task};
use crate::store::counter::Counts;
use crate::store::ledger::Key;
use crate::store::rows::{self, Locked};
use crate::store::task::{Due, Failed};
use crate::store::{
    self, Class, Conn, Decision, claim, counter, flow, ledger, order as order_rows, return_order, task,
};

/// What one pass over the queue did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    pub claimed: usize,
    pub succeeded: usize,
    pub failed: usize,
}

impl std::ops::AddAssign for Ran {
    fn add_assign(&mut self, other: Self) {
        self.claimed += other.claimed;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
    }
}

/// Runs up to `limit` due tasks. Safe beside any number of other workers; a second call goes on where the
/// first ended.
pub async fn run_due(core: &Core, worker: &Actor, limit: i64) -> Result<Ran> {
    // What the last run of the transaction's body had claimed, to take the batch apart if it fails.
    let claimed = Arc::new(Mutex::new(Vec::new()));
    let (seen, core_in, actor) = (claimed.clone(), core.clone(), worker.to_string());
    let now = core.now();
    let batch = core.db.write(move |conn| {
        let (seen, core, actor) = (seen.clone(), core_in.clone(), actor.clone());
        Box::pin(async move {
            let due = task::claim(conn, now, limit).await?;
            remember(&seen, &due);
            if due.is_empty() {
                return Ok(Decision::Rollback(Batch::default()));
            }
            Ok(Decision::Commit(run_batch(conn, due, Care::Plain, now, &actor, &core).await?))
        })
    });
    match batch.await {
        Ok(batch) => finish(core, worker, batch).await,
        Err(error) if error.is(Class::Away) => Err(error.into()),
        Err(error) => {
            let ids = claimed.lock().map(|ids| ids.clone()).unwrap_or_default();
            tracing::debug!(error = %error, batch = ids.len(), "a batch rolled back; it is taken apart");
            take_apart(core, worker, ids, error).await
        }
    }
}

fn remember(seen: &Mutex<Vec<i64>>, due: &[Due]) {
    if let Ok(mut ids) = seen.lock() {
        *ids = due.iter().map(|task| task.id).collect();
    }
}

/// Runs exactly these tasks, as far as they are due, looking first for flow rows that exist.
async fn run_ids(core: &Core, worker: &Actor, ids: Vec<i64>) -> std::result::Result<Batch, store::Error> {
    let (core_in, actor, now) = (core.clone(), worker.to_string(), core.now());
    let ids = Arc::new(ids);
    let batch = core.db.write(move |conn| {
        let (ids, core, actor) = (ids.clone(), core_in.clone(), actor.clone());
        Box::pin(async move {
            let due = task::claim_ids(conn, &ids, now).await?;
            if due.is_empty() {
                return Ok(Decision::Rollback(Batch::default()));
            }
            Ok(Decision::Commit(run_batch(conn, due, Care::ForFlows, now, &actor, &core).await?))
        })
    });
    batch.await
}

/// First the whole batch again with care for flows that exist, then halves of what fails, until a bad row
/// stands alone and goes to a person as `poisoned`.
async fn take_apart(core: &Core, worker: &Actor, ids: Vec<i64>, first: store::Error) -> Result<Ran> {
    let mut ran = Ran::default();
    let mut error = first;
    let mut pieces = vec![ids];
    while let Some(piece) = pieces.pop() {
        if piece.is_empty() {
            continue;
        }
        match run_ids(core, worker, piece.clone()).await {
            Ok(batch) => ran += finish(core, worker, batch).await?,
            Err(away) if away.is(Class::Away) => return Err(away.into()),
            Err(failed) if piece.len() == 1 => {
                error = failed;
                ran += isolate(core, worker, piece[0], kind_of(&error), error.to_string()).await?;
            }
            Err(failed) => {
                error = failed;
                let (left, right) = piece.split_at(piece.len() / 2);
                pieces.push(right.to_vec());
                pieces.push(left.to_vec());
            }
        }
    }
    tracing::debug!(error = %error, ran.succeeded, ran.failed, "a batch was taken apart");
    Ok(ran)
}

/// What a transaction that broke means for the one task in it: lock trouble passes, anything else doesn't.
fn kind_of(error: &store::Error) -> FailureKind {
    if error.is(Class::Transient) { FailureKind::Database } else { FailureKind::Poisoned }
}

/// Puts one row that breaks its transaction out of the way, with the raw error. One that is finished by now
/// stays as it is.
async fn isolate(core: &Core, actor: &Actor, id: i64, kind: FailureKind, error: String) -> Result<Ran> {
    tracing::error!(task.id = id, error = %error, task.kind = kind.word(), "a task broke its transaction");
    let (core_in, actor, now) = (core.clone(), actor.to_string(), core.now());
    let failed = core.db.write(move |conn| {
        let (core, actor, error) = (core_in.clone(), actor.clone(), error.clone());
        Box::pin(async move {
            let Some(task) = task::lock(conn, id).await?.filter(|task| task.status.is_unfinished()) else {
                return Ok(Decision::Rollback(0));
            };
            let mut counts = Counts::default();
            counts.add(counters::FAILED, format!("{}/{kind}", task.resource), 1);
            let failed = core_task::failed(&Due::of(&task), kind, error, now, &core.policy);
            task::fail(conn, &[failed], now, &actor).await?;
            counter::append(conn, &counts, now).await?;
            Ok(Decision::Commit(1))
        })
    });
    let failed = failed.await?;
    Ok(Ran { claimed: failed, succeeded: 0, failed })
}

/// What a batch's transaction did, and what it left for others.
#[derive(Clone, Debug, Default)]
struct Batch {
    ran: Ran,
    /// Rows that a shop wrote for orders Handback knows, by order: the order's close comes first.
    adopt: BTreeMap<String, Vec<i64>>,
}

async fn finish(core: &Core, worker: &Actor, batch: Batch) -> Result<Ran> {
    let mut ran = batch.ran;
    for (order_no, ids) in batch.adopt {
        match adopt(core, worker, &order_no).await {
            Ok(adopted) => ran += adopted,
            Err(error) if error.is_away() => return Err(error),
            // An order whose close fails must not hold up the rows of the others (R14).
            Err(error) => {
                for id in ids {
                    ran.failed += isolate(core, worker, id, FailureKind::Poisoned, error.to_string()).await?.failed;
                }
            }
        }
    }
    Ok(ran)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// The unique key and the row locks make looking for existing flows needless.
    Plain,
    ForFlows,
}

/// The body of a batch's transaction, over claimed tasks.
async fn run_batch(
    conn: &mut Conn,
    mut due: Vec<Due>,
    care: Care,
    now: i64,
    actor: &str,
    core: &Core,
) -> store::Result<Batch> {
    let mut counts = Counts::default();
    let mut batch = Batch { ran: Ran { claimed: due.len(), ..Ran::default() }, adopt: BTreeMap::new() };
    if care == Care::ForFlows {
        let known = flow::tasks_with_flow(conn, &due.iter().map(|t| t.id).collect::<Vec<_>>()).await?;
        let known: HashSet<i64> = known.into_iter().collect();
        let (duplicates, rest) = due.into_iter().partition(|task| known.contains(&task.id));
        due = rest;
        succeed(conn, &duplicates, AttemptOutcome::Duplicate, now, actor, &mut counts).await?;
        batch.ran.succeeded += duplicates.len();
    }
    if due.iter().any(is_foreign) {
        let foreign = resolve_foreign(conn, &mut due, core).await?;
        succeed(conn, &foreign.nothing, AttemptOutcome::NothingLocked, now, actor, &mut counts).await?;
        batch.ran.succeeded += foreign.nothing.len();
        batch.adopt = foreign.adopt;
    }
    if due.iter().any(|task| task.action == Action::ReturnIn) {
        set_aside_unsettled(conn, &mut due).await?;
    }
    let (done, failed) = move_ledgers(conn, due, now, actor, core).await?;
    succeed(conn, &done, AttemptOutcome::Succeeded, now, actor, &mut counts).await?;
    for (failure, task) in &failed {
        let kind = FailureKind::from_code(failure.kind).map_or("unknown", FailureKind::word);
        counts.add(counters::FAILED, format!("{}/{kind}", task.resource), 1);
    }
    let failures: Vec<Failed> = failed.into_iter().map(|(failure, _)| failure).collect();
    task::fail(conn, &failures, now, actor).await?;
    batch.ran.succeeded += done.len();
    batch.ran.failed += failures.len();
    counter::append(conn, &counts, now).await?;
    Ok(batch)
}

/// Runs these tasks inside a transaction that somebody else opened; how many succeeded.
pub(super) async fn run_here(
    conn: &mut Conn,
    due: Vec<Due>,
    now: i64,
    actor: &str,
    core: &Core,
) -> store::Result<usize> {
    Ok(run_batch(conn, due, Care::Plain, now, actor, core).await?.ran.succeeded)
}

/// Locks the ledger rows of these tasks, ours and the shop's, and says what running them would do, with the rows.
pub(super) async fn plan_under_lock(
    conn: &mut Conn,
    due: &[Due],
    now: i64,
    core: &Core,
) -> store::Result<(plan::Plan, Locked)> {
    let (locked, due) = rows::lock_of(conn, due).await?;
    Ok((plan::plan(&due, &locked.rows, now, &core.policy), locked))
}

/// Locks the ledger rows of these tasks, plans, and writes flows and figures. Answers who is done and who failed.
async fn move_ledgers(
    conn: &mut Conn,
    due: Vec<Due>,
    now: i64,
    actor: &str,
    core: &Core,
) -> store::Result<(Vec<Due>, Vec<(Failed, Due)>)> {
    if due.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let (plan, locked) = plan_under_lock(conn, &due, now, core).await?;
    if !plan.flows.is_empty() {
        if !flow::insert_of_tasks(conn, &plan.flows, now, actor).await? {
            return Err(store::Error::new(Class::Unique, "a flow row of this batch exists already"));
        }
        locked.apply(conn, &plan.changes, &plan.terms, now).await?;
    }
    let done: HashSet<i64> = plan.flows.iter().map(|f| f.task_id).collect();
    let done = due.into_iter().filter(|task| done.contains(&task.id)).collect();
    let failed = plan
        .failures
        .into_iter()
        .map(|f| (core_task::failed(&f.task, f.kind, f.error, now, &core.policy), f.task))
        .collect();
    Ok((done, failed))
}

/// A `return_in` isn't due while the settle of its hold isn't done. One that never knew its ledger row, of goods
/// sold elsewhere, gets the row of its key.
async fn set_aside_unsettled(conn: &mut Conn, due: &mut Vec<Due>) -> store::Result<()> {
    let ids: Vec<i64> = due.iter().filter(|task| task.action == Action::ReturnIn).map(|task| task.id).collect();
    let unsettled = return_order::unsettled(conn, &ids).await?;
    return_order::set_aside(conn, &unsettled).await?;
    due.retain(|task| !unsettled.contains(&task.id));
    let is_unplaced = |task: &Due| task.action == Action::ReturnIn && task.ledger_id.is_none();
    let key_of = |task: &Due| Key { resource: task.resource, key: task.key.clone() };
    let keys: Vec<Key> = due.iter().filter(|task| is_unplaced(task)).map(key_of).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let found = ledger::find_ids(conn, &keys).await?;
    for task in due.iter_mut().filter(|task| is_unplaced(task)) {
        task.ledger_id = found.get(&key_of(task)).copied();
    }
    Ok(())
}

/// Marks tasks succeeded and counts them.
async fn succeed(
    conn: &mut Conn,
    tasks: &[Due],
    how: AttemptOutcome,
    now: i64,
    actor: &str,
    counts: &mut Counts,
) -> store::Result<()> {
    task::succeed(conn, &tasks.iter().map(|t| t.id).collect::<Vec<_>>(), how, now, actor).await?;
    if tasks.iter().any(|task| task.action == Action::Settle) {
        return_order::wake(conn, now).await?;
    }
    let by = if actor.starts_with("worker:") { "worker" } else { "hand" };
    for task in tasks {
        counts.add(counters::SUCCEEDED, task.resource.word(), 1);
        counts.add(counters::RETRIES, task.retry.to_string(), 1);
        if how == AttemptOutcome::Duplicate {
            counts.add(counters::DUPLICATE, task.resource.word(), 1);
        }
        if let Some(first) = task.first_failed_at {
            counts.add(counters::DELAY, counters::bucket(now - first).to_string(), 1);
            counts.add(counters::COMPENSATED, by, 1);
        }
    }
    Ok(())
}

/// Rows that a shop wrote by plain SQL, sorted out.
#[derive(Default)]
struct Foreign {
    /// Of a tombstone: nothing was locked.
    nothing: Vec<Due>,
    /// Of orders that Handback knows: the row is their close arriving by another way.
    adopt: BTreeMap<String, Vec<i64>>,
}

/// Finds what rows without a ledger row mean. Those of an order nobody knows get the ledger row of their key
/// and stay in `due`, or go to the service that keeps it; those of a known order leave it: the close comes
/// first (R4).
async fn resolve_foreign(conn: &mut Conn, due: &mut Vec<Due>, core: &Core) -> store::Result<Foreign> {
    let numbers: HashSet<String> = due.iter().filter(|t| is_foreign(t)).map(|t| t.order_no.clone()).collect();
    let mut sorted: Vec<String> = numbers.into_iter().collect();
    sorted.sort_unstable();
    let known: HashMap<String, bool> = order_rows::statuses(conn, &sorted)
        .await?
        .into_iter()
        .map(|(no, _, is_tombstone)| (no, is_tombstone))
        .collect();
    let mut foreign = Foreign::default();
    let mut rest = Vec::with_capacity(due.len());
    let mut keys = Vec::new();
    for task in due.drain(..) {
        if !is_foreign(&task) {
            rest.push(task);
            continue;
        }
        match known.get(&task.order_no) {
            Some(true) => foreign.nothing.push(task),
            Some(false) => foreign.adopt.entry(task.order_no).or_default().push(task.id),
            None if core.policy.homes.is_remote(task.resource) => {
                claim::into_lane(conn, task.id, core.policy.homes.lane(task.resource)).await?;
            }
            None => {
                keys.push(Key { resource: task.resource, key: task.key.clone() });
                rest.push(task);
            }
        }
    }
    let found = ledger::find_ids(conn, &keys).await?;
    for task in rest.iter_mut().filter(|t| is_foreign(t)) {
        task.ledger_id = found.get(&Key { resource: task.resource, key: task.key.clone() }).copied();
    }
    *due = rest;
    Ok(foreign)
}

fn is_foreign(task: &Due) -> bool {
    !task.is_adopted && task.action == Action::Release
}

/// A row that a shop wrote for an order Handback knows: its close is called first (reason `shop`, trigger
/// `outbox`) and takes the row over.
async fn adopt(core: &Core, worker: &Actor, order_no: &str) -> Result<Ran> {
    let close = CloseOrder { order_no: order_no.to_owned(), reason: close::SHOP.into(), trigger: Trigger::Outbox };
    close::close_order(core, &Actor::Trigger(Trigger::Outbox), close).await?;
    let (core_in, actor, now, no) = (core.clone(), worker.to_string(), core.now(), order_no.to_owned());
    let ran = core.db.write(move |conn| {
        let (core, actor, order_no) = (core_in.clone(), actor.clone(), no.clone());
        Box::pin(async move {
            Ok(Decision::Commit(finish_unadopted(conn, &order_no, Unadopted::All, now, &actor, &core).await?))
        })
    });
    Ok(ran.await?)
}

/// Which of the rows that a close didn't take over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unadopted {
    All,
    One(i64),
}

/// Ends rows that a shop wrote and no close took over: of an order that is closed they were not locked; of a
/// paid one they are a mismatch. Locks the order, then its tasks (R19).
async fn finish_unadopted(
    conn: &mut Conn,
    order_no: &str,
    which: Unadopted,
    now: i64,
    actor: &str,
    core: &Core,
) -> store::Result<Ran> {
    let Some(order_row) = order_rows::lock(conn, order_no).await? else { return Ok(Ran::default()) };
    let tasks = task::lock_of_ref(conn, order_no).await?;
    let is_meant = |task: &&task::Task| match which {
        Unadopted::All => order::is_unadopted(task),
        Unadopted::One(id) => task.id == id && order::is_unadopted(task),
    };
    let left: Vec<Due> = tasks.iter().filter(is_meant).map(Due::of).collect();
    let mut counts = Counts::default();
    // They were counted as claimed when the batch set them aside.
    let mut ran = Ran::default();
    if order_row.closed_at.is_some() {
        succeed(conn, &left, AttemptOutcome::NothingLocked, now, actor, &mut counts).await?;
        ran.succeeded = left.len();
    } else {
        let mut failures = Vec::new();
        for task in &left {
            let kind = FailureKind::StateMismatch;
            let error = format!("order {order_no} is {}; a shop asked to release {}", order_row.status, task.key);
            counts.add(counters::FAILED, format!("{}/{kind}", task.resource), 1);
            failures.push(core_task::failed(task, kind, error, now, &core.policy));
        }
        task::fail(conn, &failures, now, actor).await?;
        ran.failed = failures.len();
    }
    counter::append(conn, &counts, now).await?;
    Ok(ran)
}
