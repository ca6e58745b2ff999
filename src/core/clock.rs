//! The one source of "now" (R18). At run time it is the database's time, read at connect and with
//! each heartbeat and carried on by the monotonic clock, so that all instances agree; tests move it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// First and last instant the tables take, in milliseconds since 1970 UTC (2020-01-01, 2100-01-01).
pub const EARLIEST_MS: i64 = 1_577_836_800_000;
pub const LATEST_MS: i64 = 4_102_444_800_000;

#[derive(Clone, Debug)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
enum Inner {
    /// `offset` is what to add to the monotonic time since `start` to get the database's time.
    Database {
        start: Instant,
        offset: AtomicI64,
        drift: AtomicI64,
    },
    Test(AtomicI64),
}

impl Clock {
    /// A clock that follows the database, whose time was `database_ms` just now.
    pub fn database(database_ms: i64) -> Self {
        let clock = Self(Arc::new(Inner::Database {
            start: Instant::now(),
            offset: AtomicI64::new(0),
            drift: AtomicI64::new(0),
        }));
        clock.set(database_ms);
        clock
    }

    /// A clock that stands still until a test moves it.
    pub fn test(start_ms: i64) -> Self {
        Self(Arc::new(Inner::Test(AtomicI64::new(start_ms))))
    }

    /// Milliseconds since 1970 in UTC.
    pub fn now_ms(&self) -> i64 {
        match &*self.0 {
            Inner::Database { start, offset, .. } => offset.load(Ordering::Relaxed) + elapsed_ms(*start),
            Inner::Test(now) => now.load(Ordering::Relaxed),
        }
    }

    /// Takes the database's time as read just now; on a test clock, moves it there.
    pub fn set(&self, now_ms: i64) {
        match &*self.0 {
            Inner::Database { start, offset, drift } => {
                offset.store(now_ms - elapsed_ms(*start), Ordering::Relaxed);
                drift.store(now_ms - machine_ms(), Ordering::Relaxed);
            }
            Inner::Test(now) => now.store(now_ms, Ordering::Relaxed),
        }
    }

    /// Takes the database's time at a heartbeat; a test clock stays where the test put it.
    pub fn follow(&self, database_ms: i64) {
        if matches!(&*self.0, Inner::Database { .. }) {
            self.set(database_ms);
        }
    }

    /// Moves a test clock on. A clock that follows the database can't be moved.
    pub fn advance(&self, by: Duration) {
        if let Inner::Test(now) = &*self.0 {
            now.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::Relaxed);
        }
    }

    /// How far the database's time was ahead of this machine's when last read, in milliseconds.
    pub fn drift_ms(&self) -> i64 {
        match &*self.0 {
            Inner::Database { drift, .. } => drift.load(Ordering::Relaxed),
            Inner::Test(_) => 0,
        }
    }
}

fn elapsed_ms(start: Instant) -> i64 {
    i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "the machine's clock is read only to show how far it is off")]
fn machine_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}
