//! Every move there is: the money comes, a worker claims, calls, records or dies, the operator acts.

use handback::core::ports::{Answer, Told};
use handback::core::task::answer::{self, First, Standing, Verdict};
use handback::core::words::{Action, AttemptOutcome, FailureKind, OrderStatus, TaskStatus};

use super::{Hand, Home, Known, MAX_TRIES, State, UNDO};

impl State {
    /// Every state that can come next.
    pub(super) fn next(&self) -> Vec<State> {
        let mut all = Vec::new();
        if !self.is_told {
            all.push(self.with(State::money_comes));
        }
        for (at, job) in self.jobs.iter().enumerate() {
            if job.action == Action::Settle || job.source == UNDO {
                continue;
            }
            let is_due = matches!(job.status, TaskStatus::Waiting | TaskStatus::Retrying) && !job.is_claimed;
            if is_due && !self.things[job.thing].is_remote() {
                all.push(self.with(|s| {
                    s.jobs[at].is_applied = true;
                    s.succeed(at, AttemptOutcome::Succeeded);
                }));
            } else if is_due && let Some(free) = self.hands[..2].iter().position(|hand| *hand == Hand::Idle) {
                all.push(self.with(|s| s.claim(at, free, false)));
            }
            all.extend(self.operator_acts(at));
        }
        for hand in 0..self.hands.len() {
            all.extend(self.hand_moves(hand));
        }
        all
    }

    pub(super) fn with(&self, change: impl FnOnce(&mut State)) -> State {
        let mut next = self.clone();
        change(&mut next);
        next
    }

    pub(super) fn claim(&mut self, at: usize, hand: usize, is_by_a_person: bool) {
        let is_restoring = self.order == OrderStatus::Restoring;
        let job = &mut self.jobs[at];
        job.fence += 1;
        job.tries += i64::from(!is_by_a_person);
        let was_in_doubt = job.is_in_doubt;
        (job.is_in_doubt, job.is_claimed) = (true, true);
        self.hands[hand] = Hand::Holds { job: at, fence: job.fence, was_in_doubt, is_by_a_person, is_restoring };
    }

    pub(super) fn operator_acts(&self, at: usize) -> Vec<State> {
        let job = &self.jobs[at];
        let mut acts = Vec::new();
        if !self.operator_may_act || !job.status.is_unfinished() || !self.things[job.thing].is_remote() {
            return acts;
        }
        if !job.is_claimed && !job.is_in_doubt {
            acts.push(self.with(|s| s.force_close(at, true)));
        }
        if !job.is_claimed && !job.is_applied {
            acts.push(self.with(|s| {
                s.jobs[at].is_applied = true;
                s.force_close(at, false);
            }));
        }
        if job.status == TaskStatus::Manual && !job.is_claimed {
            acts.push(self.with(|s| {
                s.operator_may_act = false;
                s.claim(at, 2, true);
            }));
        }
        acts
    }

    pub(super) fn force_close(&mut self, at: usize, is_owed: bool) {
        self.operator_may_act = false;
        let job = &mut self.jobs[at];
        (job.status, job.is_owed, job.is_in_doubt) = (TaskStatus::ForceClosed, is_owed, false);
        job.fence += 1;
        self.go_on();
    }

    pub(super) fn hand_moves(&self, hand: usize) -> Vec<State> {
        match self.hands[hand].clone() {
            Hand::Idle => Vec::new(),
            Hand::Holds { job, fence, was_in_doubt, is_by_a_person, is_restoring } => {
                let standing = Standing {
                    is_in_doubt: was_in_doubt,
                    is_restoring,
                    is_past_lifetime: false,
                    is_by_a_person,
                    has_status: self.things[self.jobs[job].thing] == Home::Asked,
                };
                let mut all = self.calls(hand, job, fence, standing);
                all.extend(self.crash(hand, job));
                all
            }
            Hand::ToldNotDone { job, fence, is_by_a_person, is_restoring } => {
                vec![self.with(|s| s.record_not_done(hand, job, fence, is_by_a_person, is_restoring))]
            }
            Hand::Knows { job, fence, outcome } => {
                let mut all = vec![self.with(|s| s.record(hand, job, fence, outcome))];
                all.extend(self.crash(hand, job));
                all
            }
        }
    }

    /// The process dies: its claim is free again when the lease is over. One that only seemed dead records later.
    pub(super) fn crash(&self, hand: usize, job: usize) -> Vec<State> {
        if self.crashes_left == 0 {
            return Vec::new();
        }
        let dead = self.with(|s| {
            s.crashes_left -= 1;
            s.jobs[job].is_claimed = false;
            s.hands[hand] = Hand::Idle;
        });
        let mut all = vec![dead];
        if matches!(self.hands[hand], Hand::Knows { .. }) {
            all.push(self.with(|s| {
                s.crashes_left -= 1;
                s.jobs[job].is_claimed = false;
            }));
        }
        all
    }

    pub(super) fn calls(&self, hand: usize, job: usize, fence: i64, standing: Standing) -> Vec<State> {
        let knows =
            |s: &mut State, verdict: Verdict| s.hands[hand] = Hand::Knows { job, fence, outcome: known(verdict) };
        let is_applied = self.jobs[job].is_applied;
        match answer::first(standing) {
            First::LeaveToAPerson => vec![self.with(|s| knows(s, answer::cannot_ask()))],
            First::Ask => {
                let truth = if is_applied { Told::Done } else { Told::NotDone };
                [truth, Told::Unknown]
                    .into_iter()
                    .map(|told| {
                        self.with(|s| match answer::told(told, standing) {
                            Some(verdict) => knows(s, verdict),
                            None => {
                                let Standing { is_by_a_person, is_restoring, .. } = standing;
                                s.hands[hand] = Hand::ToldNotDone { job, fence, is_by_a_person, is_restoring };
                            }
                        })
                    })
                    .collect()
            }
            First::Send => answers(is_applied)
                .into_iter()
                .map(|(answer, is_applied)| {
                    self.with(|s| {
                        s.jobs[job].is_applied = is_applied;
                        knows(s, answer::verdict(answer, standing.is_in_doubt));
                    })
                })
                .collect(),
        }
    }

    pub(super) fn has(&self, job: usize, fence: i64) -> bool {
        self.jobs[job].fence == fence && self.jobs[job].status.is_unfinished()
    }

    pub(super) fn record_not_done(
        &mut self,
        hand: usize,
        job: usize,
        fence: i64,
        is_by_a_person: bool,
        is_restoring: bool,
    ) {
        self.hands[hand] = Hand::Idle;
        if !self.has(job, fence) {
            return;
        }
        if self.order == OrderStatus::Restoring {
            // What isn't done is superseded by the step, or sent next time.
            let task = &mut self.jobs[job];
            (task.is_in_doubt, task.is_claimed) = (false, false);
            task.status = TaskStatus::Retrying;
            task.fence += 1;
            self.go_on();
            return;
        }
        self.hands[hand] = Hand::Holds { job, fence, was_in_doubt: false, is_by_a_person, is_restoring };
    }

    pub(super) fn record(&mut self, hand: usize, job: usize, fence: i64, outcome: Known) {
        self.hands[hand] = Hand::Idle;
        if !self.has(job, fence) {
            return;
        }
        match outcome {
            Known::Succeeded(how) => self.succeed(job, how),
            Known::Failed { kind, is_in_doubt, is_for_a_person } => {
                let task = &mut self.jobs[job];
                let is_manual = is_for_a_person || kind.is_refusal() || task.tries >= MAX_TRIES;
                task.status = if is_manual { TaskStatus::Manual } else { TaskStatus::Retrying };
                (task.kind, task.is_in_doubt, task.is_claimed) = (Some(kind), is_in_doubt, false);
                task.fence += 1;
            }
        }
        self.go_on();
    }
}

fn known(verdict: Verdict) -> Known {
    match verdict {
        Verdict::Succeed(how) => Known::Succeeded(how),
        Verdict::Fail { kind, is_in_doubt, is_for_a_person, .. } => {
            Known::Failed { kind, is_in_doubt, is_for_a_person }
        }
        Verdict::HandBack { .. } => unreachable!("every call of the model is sent"),
    }
}

/// Every answer a service may give, and whether the effect exists afterwards.
fn answers(is_applied: bool) -> Vec<(Answer, bool)> {
    let lost = || Answer::Unknown { kind: FailureKind::RemoteTimeout, error: String::new() };
    if is_applied {
        return vec![(Answer::AlreadyApplied, true), (lost(), true)];
    }
    vec![
        (Answer::Applied, true),
        (lost(), true),
        (lost(), false),
        (Answer::Refused { kind: FailureKind::StateMismatch, error: String::new() }, false),
        (Answer::Busy { after_ms: None, error: String::new() }, false),
    ]
}
