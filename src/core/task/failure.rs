//! Kind of failure → verdict, one table (A10, model "How a task fails").

use crate::core::words::FailureKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Tried again after a wait, until the failures run out.
    Retry,
    /// The data is already wrong, or the other side refused: trying again can't help. A person decides.
    Manual,
}

/// What to do about a failure. A duplicate is no failure: it succeeds.
pub const fn verdict(kind: FailureKind) -> Verdict {
    match kind {
        FailureKind::RemoteTimeout | FailureKind::RemoteError | FailureKind::RemoteBusy | FailureKind::Database => {
            Verdict::Retry
        }
        FailureKind::LockedInsufficient
        | FailureKind::StateMismatch
        | FailureKind::ResourceMissing
        | FailureKind::Rejected
        | FailureKind::Poisoned => Verdict::Manual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_by_itself_is_retried() {
        let retried: Vec<&str> =
            FailureKind::ALL.iter().filter(|k| verdict(**k) == Verdict::Retry).map(|k| k.word()).collect();
        assert_eq!(retried, ["remote_timeout", "remote_error", "remote_busy", "database"]);
    }
}
