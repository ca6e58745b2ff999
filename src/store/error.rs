//! One error for everything the database can answer, sorted by what has to be done about it.

use std::fmt;

/// What an error means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A unique key holds the row already.
    Unique,
    /// Deadlock, busy, lock wait, serialization: the whole transaction may simply be run again.
    Transient,
    /// A check of the schema refused the figure or the time.
    Check,
    /// The database can't be reached, or the connection broke: nothing is known of a running commit.
    Away,
    /// The body of a transaction panicked; nothing was committed.
    Panic,
    /// Anything else: a fault of ours or of the schema.
    Broken,
}

#[derive(Debug)]
pub struct Error {
    pub class: Class,
    message: String,
}

impl Error {
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }

    /// A count of affected rows was not what the plan said: somebody else got there, or the plan is wrong.
    pub fn broken(message: impl Into<String>) -> Self {
        Self::new(Class::Broken, message)
    }

    pub fn is(&self, class: Class) -> bool {
        self.class == class
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let class = match &error {
            sqlx::Error::Database(db) => super::dialect::classify(db.as_ref()),
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Class::Away,
            sqlx::Error::Protocol(_) => Class::Away,
            _ => Class::Broken,
        };
        // Texts of drivers name tables and keys, never the connection string (R24).
        Self::new(class, error.to_string())
    }
}
