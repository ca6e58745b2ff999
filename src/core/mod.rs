//! The product without a face: orders, holds, tasks, the release core. It knows no HTTP, no template, no SQL text.
//!
//! Every actor (worker, operator, API, message, repair) calls the same functions here. Expected ends are
//! outcomes (enums), failures of a task have a kind and a verdict, and only what broke is an [`Error`].

pub mod account;
pub mod check;
pub mod clock;
pub mod counters;
pub mod instant;
pub mod ledger;
pub mod order;
pub mod policy;
pub mod ports;
pub mod reconcile;
pub mod release;
pub mod returns;
pub mod screen;
pub mod task;
pub mod text;
pub mod words;

use std::sync::Arc;

use clock::Clock;
use policy::Policy;
use ports::Services;
use text::FieldError;
use tokio::sync::{Notify, watch};

use crate::store::{self, Db};

/// What every operation needs: the database, the time, the policy, and a bell for the worker.
#[derive(Clone)]
pub struct Core(Arc<Inner>);

pub struct Inner {
    pub db: Db,
    pub clock: Clock,
    pub policy: Policy,
    pub services: Services,
    /// Rung after a commit that wrote tasks, so that the worker need not wait for its next look.
    pub work: Notify,
    /// The same for those who wait for tasks that services work off; each hears every ring.
    pub lanes: watch::Sender<()>,
}

impl std::ops::Deref for Core {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Core {
    /// A core that calls nobody.
    pub fn new(db: Db, clock: Clock, policy: Policy) -> Self {
        Self::with_services(db, clock, policy, Services::default())
    }

    /// A core that works with services others keep. The policy's homes follow from them.
    pub fn with_services(db: Db, clock: Clock, mut policy: Policy, services: Services) -> Self {
        policy.homes.remote = services.remote.keys().copied().collect();
        policy.homes.remote.sort_unstable();
        policy.homes.mapped = db.mapped.types();
        policy.homes.has_channel = services.channel.is_some();
        Self(Arc::new(Inner { db, clock, policy, services, work: Notify::new(), lanes: watch::Sender::new(()) }))
    }

    /// Milliseconds since 1970 in UTC.
    pub fn now(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Tells the worker of this process that there is work, and, where the engine can, other processes.
    pub fn ring(&self) {
        self.work.notify_one();
        self.lanes.send_replace(());
        self.db.ring();
    }
}

/// Something that isn't an outcome: bad input, or a database that broke.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Input that can't be taken; every field at fault is named.
    #[error("invalid input: {}", .0.iter().map(|f| format!("{} {}", f.field, f.message)).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<FieldError>),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError::new(field, message)])
    }

    /// The database can't be reached: nothing was decided, try again.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Store(error) if error.is(store::Class::Away))
    }
}

pub type Result<T> = std::result::Result<T, Error>;
