//! Works off what other services keep: claim → call → record (A13, R10, R11, R12). The claim is one transaction
//! that takes a lease and counts the try; the call happens with no transaction open; the record is one
//! transaction under the claim's fence. A crash in between leaves the lease to run out, and the same key is sent
//! again.

pub(super) mod record;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;

use crate::core::policy::CHANNEL;
use crate::core::ports::{Answer, PaymentChannel, RefundCall, RemoteCall, RemoteService, Room, Told};
use crate::core::task::answer::{self, First, Standing};
use crate::core::words::{Action, Actor, FailureKind, OrderStatus, ResourceType, TaskStatus};
use crate::core::{Core, Result};
use crate::store::payment::Payment;
use crate::store::task::Task;
use crate::store::{self, Conn, Decision, claim as claims, order as order_rows, payment, return_order};

use super::Ran;
pub use record::Recorded;

/// How long a payment channel is taken to remember a refund's key: a day.
const CHANNEL_KEY_LIFETIME_MS: i64 = 86_400_000;
/// Refunds side by side.
const CHANNEL_SIDE_BY_SIDE: usize = 8;

/// Who works a lane off.
#[derive(Clone)]
pub enum Service {
    Remote(Arc<dyn RemoteService>),
    Channel(Arc<dyn PaymentChannel>),
}

/// The lanes that have a service, in order.
pub fn lanes(core: &Core) -> Vec<i64> {
    let mut lanes: Vec<i64> = core.services.remote.keys().map(|resource| resource.code()).collect();
    lanes.extend(core.services.channel.is_some().then_some(CHANNEL));
    lanes.sort_unstable();
    lanes
}

/// `None`: no service is configured for this lane; its tasks wait.
pub fn service_of(core: &Core, lane: i64) -> Option<Service> {
    if lane == CHANNEL {
        return core.services.channel.clone().map(Service::Channel);
    }
    let resource = ResourceType::from_code(lane)?;
    core.services.remote.get(&resource).cloned().map(Service::Remote)
}

impl Service {
    pub fn room(&self) -> Room {
        match self {
            Self::Remote(service) => service.room(),
            Self::Channel(channel) => channel.room(),
        }
    }

    /// Calls side by side at most.
    pub fn side_by_side(&self) -> usize {
        match self {
            Self::Remote(service) => service.max_concurrency(),
            Self::Channel(_) => CHANNEL_SIDE_BY_SIDE,
        }
    }

    pub(super) fn lease_ms(&self) -> i64 {
        match self {
            Self::Remote(service) => service.lease_ms(),
            Self::Channel(channel) => channel.lease_ms(),
        }
    }

    fn key_lifetime_ms(&self) -> i64 {
        match self {
            Self::Remote(service) => service.key_lifetime_ms(),
            Self::Channel(_) => CHANNEL_KEY_LIFETIME_MS,
        }
    }

    fn has_status(&self) -> bool {
        match self {
            Self::Remote(service) => service.has_status(),
            Self::Channel(_) => false,
        }
    }

    async fn ask(&self, call: &RemoteCall) -> Told {
        match self {
            Self::Remote(service) => service.status(call).await,
            Self::Channel(_) => Told::Unknown,
        }
    }

    async fn send(&self, call: RemoteCall, paid: Option<&Payment>) -> Answer {
        match (self, paid) {
            (Self::Remote(service), _) if !service.supports(call.action) => Answer::Refused {
                kind: FailureKind::Rejected,
                error: format!("the service that keeps {} doesn't offer {}", call.resource, call.action),
            },
            (Self::Remote(service), _) => service.send(&call).await,
            (Self::Channel(channel), Some(paid)) => channel.refund(&refund_of(call, paid)).await,
            (Self::Channel(_), None) => Answer::Refused {
                kind: FailureKind::ResourceMissing,
                error: format!("there is no payment {}", call.key),
            },
        }
    }
}

fn refund_of(effect: RemoteCall, paid: &Payment) -> RefundCall {
    RefundCall {
        order_no: paid.order_no.clone(),
        channel: paid.channel.clone(),
        channel_txn: paid.channel_txn.clone(),
        amount: paid.amount,
        currency: paid.currency.clone(),
        effect,
    }
}

/// Who asked for a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum By {
    Worker,
    /// With the reason that goes on the audit log.
    Person(String),
}

/// A task under a claim of ours.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// As it stood before the claim.
    pub(super) before: Task,
    pub(super) fence: i64,
    /// When the lease is over: from then on the task is somebody else's to send.
    until: i64,
    is_restoring: bool,
    /// The payment that a refund gives back.
    paid: Option<Payment>,
    pub(super) by: By,
}

/// What one claim found.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    pub tasks: Vec<Claimed>,
    /// Due tasks that were looked at, claimed or not.
    pub seen: usize,
}

/// Claims up to `limit` due tasks of one lane. Nothing is sent yet.
pub async fn claim(core: &Core, worker: &Actor, lane: i64, limit: i64) -> Result<Claims> {
    let Some(service) = service_of(core, lane) else { return Ok(Claims::default()) };
    let (now, actor, max_failures) = (core.now(), worker.to_string(), core.policy.retry.max_failures);
    let until = now + service.lease_ms();
    let claimed = core.db.write(move |conn| {
        let actor = actor.clone();
        Box::pin(async move {
            let due = claims::due(conn, lane, now, limit).await?;
            if due.is_empty() {
                return Ok(Decision::Rollback(Claims::default()));
            }
            let seen = due.len();
            let early = return_order::unsettled(conn, &ids(&due)).await?;
            return_order::set_aside(conn, &early).await?;
            let (used_up, tasks): (Vec<Task>, Vec<Task>) = due
                .into_iter()
                .filter(|task| !early.contains(&task.id))
                .partition(|task| is_used_up(task, max_failures));
            claims::leave_to_a_person(conn, &ids(&used_up), now).await?;
            if !tasks.is_empty() {
                claims::take(conn, &ids(&tasks), until, now, &actor).await?;
            }
            Ok(Decision::Commit(Claims { tasks: with_orders(conn, tasks, &By::Worker, until).await?, seen }))
        })
    });
    Ok(claimed.await?)
}

/// A claim ran out without a word, and it was a person's, or the last one that the task had.
fn is_used_up(task: &Task, max_failures: i64) -> bool {
    task.status == TaskStatus::Manual || (task.claimed_by.is_some() && task.retry >= max_failures)
}

fn ids(tasks: &[Task]) -> Vec<i64> {
    tasks.iter().map(|task| task.id).collect()
}

/// What else has to be known of claimed tasks before they are sent.
pub(super) async fn with_orders(conn: &mut Conn, tasks: Vec<Task>, by: &By, until: i64) -> store::Result<Vec<Claimed>> {
    let mut numbers: Vec<String> = tasks.iter().map(|task| task.order_no.clone()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let known = order_rows::statuses(conn, &numbers).await?;
    let known: HashMap<String, OrderStatus> = known.into_iter().map(|(no, status, _)| (no, status)).collect();
    let mut claimed = Vec::with_capacity(tasks.len());
    for before in tasks {
        let paid = match (before.action, before.key.parse()) {
            (Action::Refund, Ok(id)) => payment::find(conn, id).await?,
            _ => None,
        };
        let is_restoring = known.get(&before.order_no) == Some(&OrderStatus::Restoring);
        claimed.push(Claimed { fence: before.fence + 1, before, until, is_restoring, paid, by: by.clone() });
    }
    Ok(claimed)
}

/// Sends one claimed task, or asks after it first, and records what came of it.
pub async fn run(core: &Core, actor: &Actor, mut claimed: Claimed) -> Result<Recorded> {
    let Some(service) = service_of(core, claimed.before.lane) else { return Ok(Recorded::Lost) };
    let call = call_of(&claimed.before);
    let standing = standing(&claimed, &service, core.now());
    match answer::first(standing) {
        First::Send => {}
        First::LeaveToAPerson => return record::record(core, actor, claimed, answer::cannot_ask()).await,
        First::Ask => match answer::told(service.ask(&call).await, standing) {
            Some(verdict) => return record::record(core, actor, claimed, verdict).await,
            None => {
                let until = core.now() + service.lease_ms();
                let recorded = record::not_done(core, actor, claimed.clone(), until).await?;
                if recorded != Recorded::GoesOn {
                    return Ok(recorded);
                }
                claimed.before.is_in_doubt = false;
                claimed.until = until;
            }
        },
    }
    if core.now() >= claimed.until {
        // A process that was paused wakes up: another may have been told "not done" and acted on it (R10).
        return Ok(Recorded::Lost);
    }
    let answer = service.send(call, claimed.paid.as_ref()).await;
    die_here_if_told_to();
    let verdict = answer::verdict(answer, claimed.before.is_in_doubt);
    record::record(core, actor, claimed, verdict).await
}

fn standing(claimed: &Claimed, service: &Service, now: i64) -> Standing {
    let before = &claimed.before;
    Standing {
        is_in_doubt: before.is_in_doubt,
        is_restoring: claimed.is_restoring,
        is_past_lifetime: before.sent_at.is_some_and(|at| now - at >= service.key_lifetime_ms()),
        is_by_a_person: claimed.by != By::Worker,
        has_status: service.has_status(),
    }
}

fn call_of(task: &Task) -> RemoteCall {
    RemoteCall {
        order_no: task.order_no.clone(),
        ref_no: task.ref_no.clone(),
        source: task.source.clone(),
        round: task.round,
        action: task.action,
        resource: task.resource,
        key: task.key.clone(),
        qty: task.qty,
        attempt: task.retry + 1,
    }
}

/// Claims up to `limit` due tasks of a lane and runs them side by side to their end.
pub async fn run_due(core: &Core, worker: &Actor, lane: i64, limit: i64) -> Result<Ran> {
    let claims = claim(core, worker, lane, limit).await?;
    let mut ran = Ran { claimed: claims.seen, ..Ran::default() };
    let runs = claims.tasks.into_iter().map(|claimed| run(core, worker, claimed));
    for recorded in join_all(runs).await {
        match recorded? {
            Recorded::Succeeded => ran.succeeded += 1,
            Recorded::Failed => ran.failed += 1,
            Recorded::HandedBack | Recorded::Superseded | Recorded::GoesOn | Recorded::Lost => {}
        }
    }
    Ok(ran)
}

/// Between the call and its record is where a crash would cost most. Tests end the process there: its N-th
/// call is its last. In a released binary this is nothing.
#[cfg(debug_assertions)]
fn die_here_if_told_to() {
    use std::sync::atomic::{AtomicI64, Ordering};
    static CALLS: AtomicI64 = AtomicI64::new(0);
    let last = std::env::var("FAILPOINT_DIES_AFTER_CALL").ok().and_then(|n| n.parse::<i64>().ok());
    if last.is_some_and(|last| CALLS.fetch_add(1, Ordering::SeqCst) + 1 >= last) {
        std::process::abort();
    }
}

#[cfg(not(debug_assertions))]
const fn die_here_if_told_to() {}
