//! Late payment, exhaustively: two workers, one payment, one operator, every outcome of every call, in every
//! order. The product's own pure functions decide (`late_plan::step`, `task::answer`); what the transactions
//! around them write is retold here in a few lines. Each reachable state is visited once.
//!
//! Assumed of the world: a service makes an effect at most once per key and tells the truth or "unknown"; no
//! call outlives its lease; a person who closes a task by force as owed has looked that it isn't running and
//! isn't done, and one who says "done outside" has done it.

mod moves;
mod retold;
mod sound;

use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher as _};

use handback::core::order::late_plan::is_closes_release;
use handback::core::words::{Action, AttemptOutcome, FailureKind, OrderStatus, ResourceType, TaskStatus, source};
use handback::store::task::Task;

const PAYMENT: i64 = 1;
const LATE: &str = "late:1";
const UNDO: &str = "undo:1";
/// Tries after which a task is left to a person; eight in the product, two here.
const MAX_TRIES: i64 = 2;

/// One thing the order held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Home {
    /// Worked off here.
    Here,
    /// Here, and by the time the money comes somebody else has it.
    HereAndGone,
    /// A service that can be asked after an effect.
    Asked,
    /// A service that can't.
    Mute,
}

impl Home {
    fn is_remote(self) -> bool {
        matches!(self, Self::Asked | Self::Mute)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Job {
    action: Action,
    thing: usize,
    round: i64,
    source: &'static str,
    status: TaskStatus,
    outcome: Option<AttemptOutcome>,
    kind: Option<FailureKind>,
    is_owed: bool,
    is_in_doubt: bool,
    is_claimed: bool,
    fence: i64,
    tries: i64,
    /// What the world knows: the effect exists.
    is_applied: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Hand {
    Idle,
    /// A claim, before anything is sent.
    Holds {
        job: usize,
        fence: i64,
        was_in_doubt: bool,
        is_by_a_person: bool,
        is_restoring: bool,
    },
    /// The service said that the effect doesn't exist.
    ToldNotDone {
        job: usize,
        fence: i64,
        is_by_a_person: bool,
        is_restoring: bool,
    },
    /// An outcome that isn't recorded yet.
    Knows {
        job: usize,
        fence: i64,
        outcome: Known,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Known {
    Succeeded(AttemptOutcome),
    Failed { kind: FailureKind, is_in_doubt: bool, is_for_a_person: bool },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    order: OrderStatus,
    things: Vec<Home>,
    jobs: Vec<Job>,
    /// Two workers, and the operator's own try.
    hands: [Hand; 3],
    is_told: bool,
    operator_may_act: bool,
    crashes_left: u8,
}

impl State {
    fn start(things: &[Home]) -> Self {
        let jobs = (0..things.len()).map(|thing| job(Action::Release, thing, 1, source::CLOSE)).collect();
        Self {
            order: OrderStatus::Closed,
            things: things.to_vec(),
            jobs,
            hands: [Hand::Idle, Hand::Idle, Hand::Idle],
            is_told: false,
            operator_may_act: true,
            crashes_left: 1,
        }
    }

    fn task(&self, at: usize) -> Task {
        let job = &self.jobs[at];
        Task {
            id: at as i64,
            order_no: "o".into(),
            ref_no: "o".into(),
            return_no: String::new(),
            source: job.source.to_owned(),
            round: job.round,
            action: job.action,
            resource: ResourceType::Stock,
            key: job.thing.to_string(),
            qty: 1,
            status: job.status,
            retry: job.tries,
            next_at: job.status.is_unfinished().then_some(0),
            created_at: 0,
            ledger_id: None,
            is_adopted: true,
            lane: i64::from(self.things[job.thing].is_remote()),
            claimed_by: job.is_claimed.then(|| "w".into()),
            is_in_doubt: job.is_in_doubt,
            sent_at: None,
            fence: job.fence,
            version: 0,
            kind: job.kind,
            error: None,
            outcome: job.outcome,
            first_failed_at: None,
            finished_at: None,
            ended_by: None,
            is_owed: job.is_owed,
        }
    }

    fn tasks(&self) -> Vec<Task> {
        (0..self.jobs.len()).map(|at| self.task(at)).collect()
    }
}

fn job(action: Action, thing: usize, round: i64, cause: &'static str) -> Job {
    Job {
        action,
        thing,
        round,
        source: cause,
        status: TaskStatus::Waiting,
        outcome: None,
        kind: None,
        is_owed: false,
        is_in_doubt: false,
        is_claimed: false,
        fence: 0,
        tries: 0,
        is_applied: false,
    }
}

#[derive(Debug, Default)]
struct Seen {
    states: usize,
    ends: usize,
    paid: usize,
    refund_due: usize,
    waiting_for_a_person: usize,
}

/// A state by its digest: two hashes of 64 bits with keys of their own.
fn digest(state: &State) -> (u64, u64) {
    let of = |salt: u64| {
        let mut hasher = std::hash::DefaultHasher::new();
        (salt, state).hash(&mut hasher);
        hasher.finish()
    };
    (of(1), of(2))
}

fn explore(things: &[Home], crashes: u8, with_operator: bool) -> Seen {
    let mut start = State::start(things);
    (start.crashes_left, start.operator_may_act) = (crashes, with_operator);
    let mut known = HashSet::from([digest(&start)]);
    let mut queue = VecDeque::from([start]);
    let mut seen = Seen::default();
    while let Some(state) = queue.pop_front() {
        seen.states += 1;
        if let Err(why) = state.is_sound() {
            panic!("{things:?}: {why}: {state:#?}");
        }
        let next = state.next();
        if next.is_empty() {
            assert!(state.may_rest(), "{things:?}: stuck: {state:#?}");
            seen.ends += 1;
            seen.paid += usize::from(state.order == OrderStatus::Paid);
            seen.refund_due += usize::from(state.order == OrderStatus::RefundDue);
            seen.waiting_for_a_person += usize::from(state.order == OrderStatus::Restoring);
        }
        for mut state in next {
            // The two workers are alike: which of them holds what makes no other state.
            state.hands[..2].sort();
            if known.insert(digest(&state)) {
                queue.push_back(state);
            }
        }
    }
    seen
}

#[test]
fn r8_every_interleaving_of_a_late_payment_ends_right() {
    use Home::{Asked, Here, HereAndGone, Mute};
    // With two services the crash is left out: it is walked through with each of them alone.
    let scenes: [(&[Home], u8, bool); 8] = [
        (&[Asked], 1, true),
        (&[Mute], 1, true),
        (&[Here, Asked], 1, true),
        (&[Here, Mute], 1, true),
        (&[Asked, HereAndGone], 1, true),
        (&[Mute, HereAndGone], 1, true),
        (&[Asked, Asked], 0, false),
        (&[Asked, Mute], 0, true),
    ];
    let mut states = 0;
    for (things, crashes, with_operator) in scenes {
        let seen = explore(things, crashes, with_operator);
        println!("{things:?}, {crashes} crashes, operator {with_operator}: {seen:?}");
        assert!(seen.paid > 0 && seen.refund_due > 0, "{things:?}: both ends are reached: {seen:?}");
        states += seen.states;
    }
    println!("{states} states in all");
}

#[test]
fn the_model_finds_a_fault_that_is_put_into_it() {
    // A superseded task whose effect exists is what the whole care is about.
    let mut state = State::start(&[Home::Asked]);
    state.jobs[0].is_applied = true;
    state.supersede(0);
    assert!(state.is_sound().is_err());
    assert!(is_closes_release(&state.task(0), 1));
    assert_eq!((source::late(PAYMENT).as_str(), source::undo(PAYMENT).as_str()), (LATE, UNDO));
}
