//! What the product's transactions write, retold: the first look at the money, and going on after each change.

use handback::core::order::late_plan::{Came, Verdict as Next, came, step};
use handback::core::words::{Action, AttemptOutcome, OrderStatus, TaskStatus, source};

use super::{Home, LATE, PAYMENT, State, UNDO, job};

impl State {
    pub(super) fn supersede(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        (job.status, job.is_owed, job.is_claimed) = (TaskStatus::Superseded, false, false);
        job.fence += 1;
    }

    pub(super) fn succeed(&mut self, at: usize, outcome: AttemptOutcome) {
        let job = &mut self.jobs[at];
        (job.status, job.outcome) = (TaskStatus::Succeeded, Some(outcome));
        (job.is_in_doubt, job.is_claimed) = (false, false);
        job.fence += 1;
    }

    /// What `late::decide` does in its one transaction.
    pub(super) fn money_comes(&mut self) {
        self.is_told = true;
        let done_here =
            |s: &Self, at: usize| !s.things[s.jobs[at].thing].is_remote() && came(&s.task(at)) == Came::Done;
        let releases: Vec<usize> = (0..self.jobs.len()).collect();
        if releases.iter().any(|at| done_here(self, *at) && self.things[self.jobs[*at].thing] == Home::HereAndGone) {
            self.order = OrderStatus::RefundDue;
            return;
        }
        for at in releases {
            let thing = self.jobs[at].thing;
            if done_here(self, at) {
                let mut back = job(Action::TakeBack, thing, 2, LATE);
                (back.status, back.outcome) = (TaskStatus::Succeeded, Some(AttemptOutcome::Succeeded));
                back.is_applied = true;
                self.jobs.push(back);
            } else if came(&self.task(at)) == Came::NotDone {
                self.supersede(at);
            }
        }
        self.order = OrderStatus::Restoring;
        self.go_on();
    }

    /// What `late::advance` does.
    pub(super) fn go_on(&mut self) {
        if self.order != OrderStatus::Restoring {
            return;
        }
        let next = step(1, PAYMENT, &self.tasks());
        for id in next.supersede {
            self.supersede(id as usize);
        }
        for id in next.take_back {
            let thing = self.jobs[id as usize].thing;
            self.jobs.push(job(Action::TakeBack, thing, 2, LATE));
        }
        let (action, cause, order) = match next.verdict {
            Next::Wait => return,
            Next::AllBack => (Action::Settle, source::PAY, OrderStatus::Paid),
            Next::Lacking(lacking) => {
                assert!(!lacking.is_empty(), "a refund without a reason");
                (Action::Release, UNDO, OrderStatus::RefundDue)
            }
        };
        for (thing, round) in self.left() {
            self.jobs.push(job(action, thing, round, cause));
        }
        self.order = order;
    }

    /// Holds that have something left (R4): of round 1, and of round 2 for each take-back done.
    pub(super) fn left(&self) -> Vec<(usize, i64)> {
        let mut left = Vec::new();
        for thing in 0..self.things.len() {
            for round in [1, 2] {
                let of = |action| {
                    self.jobs
                        .iter()
                        .enumerate()
                        .filter(move |(_, j)| j.thing == thing && j.round == round && j.action == action)
                };
                let is_held = round == 1 || of(Action::TakeBack).any(|(at, _)| came(&self.task(at)) == Came::Done);
                let is_spoken_for = [Action::Release, Action::Settle]
                    .into_iter()
                    .any(|action| of(action).any(|(_, j)| j.status != TaskStatus::Superseded));
                if is_held && !is_spoken_for {
                    left.push((thing, round));
                }
            }
        }
        left
    }
}
