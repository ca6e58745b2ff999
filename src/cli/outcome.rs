//! What a command came to, and its exit code.

use std::process::ExitCode;

use crate::config::Problems;
use crate::core;
use crate::store;

/// How a command that did its work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// It worked and the answer is no: a broken rule, a wrong row, a name that is taken.
    No,
}

/// Why a command couldn't do its work.
#[derive(Debug)]
pub(super) enum Failure {
    Usage(String),
    DatabaseAway(String),
    Broken(String),
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::Usage(problems.to_string())
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        if error.is(store::Class::Away) {
            Self::DatabaseAway(error.to_string())
        } else {
            Self::Broken(error.to_string())
        }
    }
}

impl From<core::Error> for Failure {
    fn from(error: core::Error) -> Self {
        match error {
            core::Error::Invalid(_) => Self::Usage(error.to_string()),
            core::Error::Store(error) => error.into(),
        }
    }
}

/// Says what went wrong, on standard error.
pub(super) fn exit_code(result: Result<Outcome, Failure>) -> ExitCode {
    let (code, message) = match result {
        Ok(Outcome::Done) => return ExitCode::SUCCESS,
        Ok(Outcome::No) => return ExitCode::from(1),
        Err(Failure::Broken(message)) => (1, message),
        Err(Failure::Usage(message)) => (2, message),
        Err(Failure::DatabaseAway(message)) => (3, format!("the database can't be reached: {message}")),
    };
    eprintln!("handback: {message}");
    ExitCode::from(code)
}
