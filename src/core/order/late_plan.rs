//! Late payment, decided: pure functions of an order's tasks. What became of each release the close caused,
//! and what follows from it while the order is RESTORING. The transactions are in `late`; a model test walks
//! through every interleaving with these same functions.

use crate::core::policy::LOCAL;
use crate::core::words::{Action, AttemptOutcome, FailureKind, ResourceType, TaskStatus, source};
use crate::store::task::Task;

/// What the close's release of one hold came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// Never sent, or refused for certain: it may be superseded.
    NotDone,
    /// Its effect exists: it is to be taken back.
    Done,
    /// Sent without a certain answer, or being sent at this moment.
    Unknown,
    /// It has no effect and never will: superseded, or nothing was locked.
    Nothing,
}

pub fn came(task: &Task) -> Came {
    match task.status {
        TaskStatus::Superseded => Came::Nothing,
        TaskStatus::Succeeded if task.outcome == Some(AttemptOutcome::NothingLocked) => Came::Nothing,
        TaskStatus::Succeeded => Came::Done,
        // Owed: no flow row names it. Named: a person saw to it elsewhere, or adjusted the ledger (R21).
        TaskStatus::ForceClosed if task.is_owed => Came::NotDone,
        TaskStatus::ForceClosed => Came::Done,
        _ if task.lane != LOCAL && (task.is_in_doubt || task.claimed_by.is_some()) => Came::Unknown,
        _ => Came::NotDone,
    }
}

/// A release that the close caused, or a repair of it, in this round. Those of `reduce` run on.
pub fn is_closes_release(task: &Task, round: i64) -> bool {
    task.action == Action::Release
        && task.round == round
        && (task.source == source::CLOSE || task.source.starts_with(source::REPAIR))
}

/// A take-back that has been refused for certain, or that a person ended.
fn cannot_be_done(task: &Task) -> bool {
    match task.status {
        TaskStatus::ForceClosed => true,
        TaskStatus::Manual => !task.is_in_doubt && task.kind.is_some_and(FailureKind::is_refusal),
        _ => false,
    }
}

/// Something an order needs back and can't have.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Lacks {
    #[serde(rename = "type")]
    pub resource: String,
    pub key: String,
    pub qty: i64,
}

impl Lacks {
    pub fn of(resource: ResourceType, key: &str, qty: i64) -> Self {
        Self { resource: resource.word().to_owned(), key: key.to_owned(), qty }
    }
}

/// What a RESTORING order does next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Tasks that are superseded now, by id.
    pub supersede: Vec<i64>,
    /// Releases whose effect exists and for which a take-back is written now, by id.
    pub take_back: Vec<i64>,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Something is still on its way.
    #[default]
    Wait,
    /// Everything is back: the order becomes PAID.
    AllBack,
    /// Something can't be taken back: the order becomes REFUND_DUE, and what came back is released again.
    Lacking(Vec<Lacks>),
}

/// Looks at all tasks of a RESTORING order whose close was of `round`, for the payment with this id.
/// Looking again changes nothing more.
pub fn step(round: i64, payment_id: i64, tasks: &[Task]) -> Step {
    let cause = source::late(payment_id);
    let backs: Vec<&Task> = tasks.iter().filter(|t| t.action == Action::TakeBack && t.source == cause).collect();
    let releases: Vec<&Task> = tasks.iter().filter(|t| is_closes_release(t, round)).collect();
    let mut step = Step::default();
    if backs.iter().any(|task| cannot_be_done(task)) {
        give_up(&backs, &mut step);
        return step;
    }
    let mut waits = false;
    for release in releases {
        match came(release) {
            Came::NotDone => step.supersede.push(release.id),
            Came::Unknown => waits = true,
            Came::Nothing => {}
            Came::Done if backs.iter().any(|b| b.resource == release.resource && b.key == release.key) => {}
            Came::Done => step.take_back.push(release.id),
        }
    }
    waits |= !step.take_back.is_empty() || backs.iter().any(|back| back.status.is_unfinished());
    step.verdict = if waits { Verdict::Wait } else { Verdict::AllBack };
    step
}

/// Take-backs not sent are superseded; those in doubt are settled first. Releases run on.
fn give_up(backs: &[&Task], step: &mut Step) {
    let open = || backs.iter().filter(|task| task.status.is_unfinished() && !cannot_be_done(task));
    step.supersede = open().filter(|task| came(task) == Came::NotDone).map(|task| task.id).collect();
    if open().any(|task| came(task) == Came::Unknown) {
        return;
    }
    let lacking: Vec<&Task> = backs.iter().copied().filter(|task| cannot_be_done(task)).collect();
    // A refused take-back that stayed in the manual queue could be retried after all has been released again.
    step.supersede.extend(lacking.iter().filter(|task| task.status.is_unfinished()).map(|task| task.id));
    step.verdict = Verdict::Lacking(lacking.iter().map(|task| Lacks::of(task.resource, &task.key, task.qty)).collect());
}
