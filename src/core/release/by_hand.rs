//! A person's retry of a task that a service works off: claim → ask or call → record, with the audit row in the
//! transaction that records it. The claim takes a new fence, so a worker's running try loses, not the person;
//! when the running try is another person's, the second waits for it and gets its outcome (R10, R20).

use std::sync::Arc;
use std::time::Duration;

use crate::core::words::{Actor, TaskStatus};
use crate::core::{Core, Result};
use crate::store::task::Task;
use crate::store::{self, Conn, Decision, claim as claims, return_order, task};

use super::act::Retried;
use super::remote::{self, By, Claimed};

/// The longest wait between two looks at another person's try; the bell usually rings first.
const LOOK: Duration = Duration::from_millis(200);

/// Tries it now. Goes on to its end although the caller goes away: what was sent has to be recorded.
pub(super) async fn retry(core: &Core, actor: &Actor, seen: Task, reason: &str) -> Result<Retried> {
    let (core, actor, by) = (core.clone(), actor.clone(), By::Person(reason.to_owned()));
    let running = tokio::spawn(async move { retry_here(&core, &actor, seen, by).await });
    running.await.unwrap_or_else(|error| Err(store::Error::broken(format!("a retry broke: {error}")).into()))
}

/// A row that a shop wrote for an order nobody knows goes to its service first.
pub(super) async fn retry_foreign(core: &Core, actor: &Actor, seen: Task, reason: &str) -> Result<Retried> {
    let (id, lane) = (seen.id, core.policy.homes.lane(seen.resource));
    let moved = core.db.write(move |conn| {
        Box::pin(async move {
            task::lock(conn, id).await?;
            claims::into_lane(conn, id, lane).await?;
            Ok(Decision::Commit(task::find(conn, id).await?))
        })
    });
    match moved.await? {
        Some(moved) => retry(core, actor, moved, reason).await,
        None => Ok(Retried::Unknown),
    }
}

enum Taken {
    Mine(Box<Claimed>),
    /// Another person is trying it at this moment.
    Waits,
    Ended(Box<Retried>),
}

async fn retry_here(core: &Core, actor: &Actor, seen: Task, by: By) -> Result<Retried> {
    let Some(service) = remote::service_of(core, seen.lane) else { return Ok(Retried::NotRetryable(seen)) };
    let mut bell = core.lanes.subscribe();
    loop {
        bell.mark_unchanged();
        match take(core, actor, &seen, &by, service.lease_ms()).await? {
            Taken::Ended(retried) => return Ok(*retried),
            Taken::Waits => drop(tokio::time::timeout(LOOK, bell.changed()).await),
            Taken::Mine(claimed) => {
                remote::run(core, actor, *claimed).await?;
                let after = task::find(&mut core.db.read().await?, seen.id).await?;
                return Ok(match after {
                    Some(after) if after.status == TaskStatus::Succeeded => Retried::Succeeded(after),
                    Some(after) => Retried::Failed(after),
                    None => Retried::Unknown,
                });
            }
        }
    }
}

async fn take(core: &Core, actor: &Actor, seen: &Task, by: &By, lease_ms: i64) -> Result<Taken> {
    let now = core.now();
    let work = Arc::new((actor.to_string(), seen.clone(), by.clone()));
    let taken = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { take_one(conn, &work.0, &work.1, &work.2, now, lease_ms).await })
    });
    Ok(taken.await?)
}

async fn take_one(
    conn: &mut Conn,
    actor: &str,
    seen: &Task,
    by: &By,
    now: i64,
    lease_ms: i64,
) -> store::Result<Decision<Taken>> {
    let Some(current) = task::lock(conn, seen.id).await? else {
        return ended(Retried::Unknown);
    };
    match current.status {
        TaskStatus::Succeeded => return ended(Retried::AlreadyDone(current)),
        TaskStatus::ForceClosed | TaskStatus::Superseded => {
            return ended(Retried::NotRetryable(current));
        }
        _ if is_in_a_persons_hands(&current, now) => return Ok(Decision::Rollback(Taken::Waits)),
        // Somebody's try ended meanwhile: its outcome is the answer.
        _ if current.fence != seen.fence && current.claimed_by.is_none() => {
            return ended(Retried::Failed(current));
        }
        _ => {}
    }
    if !return_order::unsettled(conn, &[current.id]).await?.is_empty() {
        return ended(Retried::NotRetryable(current));
    }
    claims::take(conn, &[current.id], now + lease_ms, now, actor).await?;
    let mut claimed = remote::with_orders(conn, vec![current], by, now + lease_ms).await?;
    match claimed.pop() {
        Some(claimed) => Ok(Decision::Commit(Taken::Mine(Box::new(claimed)))),
        None => ended(Retried::Unknown),
    }
}

fn ended(how: Retried) -> store::Result<Decision<Taken>> {
    Ok(Decision::Rollback(Taken::Ended(Box::new(how))))
}

fn is_in_a_persons_hands(task: &Task, now: i64) -> bool {
    let by = task.claimed_by.as_deref().unwrap_or_default();
    let is_person = by.starts_with("operator:") || by.starts_with("token:");
    is_person && task.next_at.is_some_and(|until| until > now)
}
