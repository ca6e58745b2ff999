//! What a service's answer means for the task that was sent, and whether it has to be asked before a task is
//! sent again (A13). Pure: the transactions are in `core::release::remote`.

use crate::core::ports::{Answer, Told};
use crate::core::words::{AttemptOutcome, FailureKind};

/// What is recorded of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Succeed(AttemptOutcome),
    Fail {
        kind: FailureKind,
        error: String,
        /// Whether the effect may exist all the same.
        is_in_doubt: bool,
        /// Not tried again earlier than so many milliseconds from now.
        not_before_ms: i64,
        /// A person decides, whatever the kind.
        is_for_a_person: bool,
    },
    /// Nothing was sent: the task stands as before the claim.
    HandBack {
        after_ms: i64,
        error: String,
    },
}

/// What an answer to a try means. A certain answer ends every doubt but one: "not now" says nothing of earlier
/// tries, so a task that was in doubt stays so.
pub fn verdict(answer: Answer, was_in_doubt: bool) -> Verdict {
    let fail = |kind, error, is_in_doubt, not_before_ms| Verdict::Fail {
        kind,
        error,
        is_in_doubt,
        not_before_ms,
        is_for_a_person: false,
    };
    match answer {
        Answer::Applied => Verdict::Succeed(AttemptOutcome::Succeeded),
        Answer::AlreadyApplied => Verdict::Succeed(AttemptOutcome::Duplicate),
        Answer::Refused { kind, error } => fail(kind, error, false, 0),
        Answer::Busy { after_ms, error } => fail(FailureKind::RemoteBusy, error, was_in_doubt, after_ms.unwrap_or(0)),
        Answer::Held { after_ms, error } => Verdict::HandBack { after_ms, error },
        Answer::Unknown { kind, error } => fail(kind, error, true, 0),
    }
}

/// What is known about a task that is about to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Sent before, without a certain answer.
    pub is_in_doubt: bool,
    /// Its order waits for the answer, to be PAID or refunded.
    pub is_restoring: bool,
    /// The service may have forgotten the key since it was first sent.
    pub is_past_lifetime: bool,
    pub is_by_a_person: bool,
    pub has_status: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// The same key is simply sent (again).
    Send,
    /// The service is asked whether the effect exists.
    Ask,
    /// It can't be asked, and sending again could make the effect twice: a person decides.
    LeaveToAPerson,
}

/// What comes before a task is sent.
pub const fn first(standing: Standing) -> First {
    let Standing { is_in_doubt, is_restoring, is_past_lifetime, is_by_a_person, has_status } = standing;
    if !is_in_doubt || !(is_restoring || is_past_lifetime || is_by_a_person) {
        return First::Send;
    }
    match (has_status, is_past_lifetime, is_restoring) {
        (true, ..) => First::Ask,
        // The same release is sent again until it is answered.
        (false, false, true) => First::Send,
        (false, ..) => First::LeaveToAPerson,
    }
}

/// What is recorded of what a service told; `None` when it says that the effect doesn't exist.
pub fn told(told: Told, standing: Standing) -> Option<Verdict> {
    match told {
        Told::Done => Some(Verdict::Succeed(AttemptOutcome::Duplicate)),
        Told::NotDone => None,
        Told::Unknown => Some(Verdict::Fail {
            kind: FailureKind::RemoteError,
            error: "the service was asked and doesn't know whether the effect exists".into(),
            is_in_doubt: true,
            not_before_ms: 0,
            is_for_a_person: standing.is_past_lifetime || standing.is_by_a_person,
        }),
    }
}

/// What is recorded where nobody can be asked.
pub fn cannot_ask() -> Verdict {
    Verdict::Fail {
        kind: FailureKind::RemoteError,
        error: "sent before without a certain answer, and the service can't be asked: look there, then close this \
                task by force as done outside, or leave it owed"
            .into(),
        is_in_doubt: true,
        not_before_ms: 0,
        is_for_a_person: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubt_after(answer: Answer, before: bool) -> Option<bool> {
        match verdict(answer, before) {
            Verdict::Fail { is_in_doubt, .. } => Some(is_in_doubt),
            _ => None,
        }
    }

    #[test]
    fn only_a_certain_answer_ends_a_doubt() {
        let refused = || Answer::Refused { kind: FailureKind::StateMismatch, error: "x".into() };
        let busy = || Answer::Busy { after_ms: None, error: "x".into() };
        let unknown = || Answer::Unknown { kind: FailureKind::RemoteTimeout, error: "x".into() };
        for before in [false, true] {
            assert_eq!(doubt_after(refused(), before), Some(false));
            assert_eq!(doubt_after(busy(), before), Some(before));
            assert_eq!(doubt_after(unknown(), before), Some(true));
        }
    }

    #[test]
    fn a_second_success_counts_as_a_duplicate() {
        assert_eq!(verdict(Answer::Applied, true), Verdict::Succeed(AttemptOutcome::Succeeded));
        assert_eq!(verdict(Answer::AlreadyApplied, false), Verdict::Succeed(AttemptOutcome::Duplicate));
    }

    #[test]
    fn without_doubt_nobody_is_asked() {
        for bits in 0..16 {
            let standing = standing_of(bits, false);
            assert_eq!(first(standing), First::Send, "{standing:?}");
        }
    }

    #[test]
    fn a_doubt_within_the_keys_lifetime_is_simply_sent_again_by_a_worker() {
        assert_eq!(
            first(Standing { is_in_doubt: true, has_status: true, ..Standing::default() }),
            First::Send,
            "the contract makes it harmless"
        );
    }

    #[test]
    fn past_the_lifetime_nothing_is_sent_without_asking() {
        for bits in 0..16 {
            let standing = Standing { is_past_lifetime: true, ..standing_of(bits, true) };
            let expected = if standing.has_status { First::Ask } else { First::LeaveToAPerson };
            assert_eq!(first(standing), expected, "{standing:?}");
        }
    }

    #[test]
    fn a_restoring_order_without_a_status_call_sends_the_same_again() {
        let standing = Standing { is_in_doubt: true, is_restoring: true, ..Standing::default() };
        assert_eq!(first(standing), First::Send);
        assert_eq!(first(Standing { is_restoring: false, is_by_a_person: true, ..standing }), First::LeaveToAPerson);
    }

    #[test]
    fn an_unknown_status_goes_to_a_person_who_asked_and_after_the_lifetime() {
        let left = |standing| match told(Told::Unknown, standing) {
            Some(Verdict::Fail { is_for_a_person, is_in_doubt: true, .. }) => is_for_a_person,
            other => panic!("{other:?}"),
        };
        let restoring = Standing { is_in_doubt: true, is_restoring: true, has_status: true, ..Standing::default() };
        assert!(!left(restoring));
        assert!(left(Standing { is_past_lifetime: true, ..restoring }));
        assert!(left(Standing { is_by_a_person: true, ..restoring }));
        assert_eq!(told(Told::NotDone, restoring), None);
    }

    fn standing_of(bits: u8, is_in_doubt: bool) -> Standing {
        Standing {
            is_in_doubt,
            is_restoring: bits & 1 != 0,
            is_past_lifetime: bits & 2 != 0,
            is_by_a_person: bits & 4 != 0,
            has_status: bits & 8 != 0,
        }
    }
}
