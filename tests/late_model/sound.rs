//! What must be true in every state, and in those where nothing moves any more.

use handback::core::words::{Action, OrderStatus, TaskStatus};

use super::{Job, State, UNDO};

impl State {
    /// What must be true in every state.
    pub(super) fn is_sound(&self) -> Result<(), String> {
        for (at, job) in self.jobs.iter().enumerate() {
            if job.status == TaskStatus::Superseded && job.is_applied {
                return Err(format!("task {at} is superseded and its effect exists"));
            }
            if job.status == TaskStatus::Succeeded && !job.is_applied {
                return Err(format!("task {at} succeeded without its effect"));
            }
            if job.action == Action::Settle && self.order != OrderStatus::Paid {
                return Err("a settle task before the order is PAID".into());
            }
        }
        for thing in 0..self.things.len() {
            self.is_thing_sound(thing)?;
        }
        Ok(())
    }

    pub(super) fn is_thing_sound(&self, thing: usize) -> Result<(), String> {
        let of = |action: Action| self.jobs.iter().filter(move |j| j.thing == thing && j.action == action);
        let live = |job: &&Job| job.status != TaskStatus::Superseded;
        let backs = of(Action::TakeBack).filter(|j| j.is_applied).count();
        let released =
            self.jobs.iter().filter(|j| j.thing == thing && j.action == Action::Release && j.is_applied).count();
        match self.order {
            OrderStatus::Paid => {
                if of(Action::Settle).count() != 1 {
                    return Err(format!("thing {thing} is settled {} times", of(Action::Settle).count()));
                }
                // Locked for the order: whatever was given back is back.
                if released != backs {
                    return Err(format!(
                        "thing {thing} of a PAID order was released {released} times and taken back {backs} times"
                    ));
                }
                let unfinished = of(Action::Release).filter(live).any(|j| j.status.is_unfinished());
                if unfinished { Err(format!("thing {thing} of a PAID order may still be released")) } else { Ok(()) }
            }
            OrderStatus::RefundDue => {
                let undone = self.jobs.iter().filter(|j| j.thing == thing && j.source == UNDO).count();
                let owed = of(Action::Release).filter(live).filter(|j| !j.is_applied).count() - undone;
                // Given back exactly once in the end: done, still owed, or undone, less what was taken back.
                if released + owed + undone == 1 + backs {
                    Ok(())
                } else {
                    Err(format!(
                        "thing {thing} to be refunded: released {released}, owed {owed}, undone {undone}, taken back {backs}"
                    ))
                }
            }
            _ => Ok(()),
        }
    }

    /// Nothing moves any more: that is right only when it is over, or when a person is needed.
    pub(super) fn may_rest(&self) -> bool {
        let needs_a_person = self.jobs.iter().any(|job| job.status == TaskStatus::Manual);
        self.order != OrderStatus::Restoring || needs_a_person
    }
}
