//! Whether a call to one service may be made now: its circuit, its rate, and how many run side by side. Each
//! service has a gate of its own, so a slow one holds up nobody else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::circuit::{Circuit, Pass};
use super::rate::Rate;
use crate::core::clock::Clock;
use crate::core::ports::Room;

/// How soon to look again when as many calls run as may.
const FULL_MS: i64 = 50;

#[derive(Debug)]
pub struct Gate {
    name: String,
    clock: Clock,
    slots: Arc<Semaphore>,
    /// How long a call waits for one of them.
    patience: Duration,
    circuit: Mutex<Circuit>,
    rate: Option<Mutex<Rate>>,
}

/// A call may not be made now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shut {
    pub wait_ms: i64,
    pub why: &'static str,
}

impl Gate {
    pub fn new(name: &str, clock: Clock, side_by_side: usize, per_s: Option<i64>, patience: Duration) -> Self {
        let rate = per_s.map(|per_s| Mutex::new(Rate::new(per_s, clock.now_ms())));
        let slots = Arc::new(Semaphore::new(side_by_side));
        Self { name: name.to_owned(), clock, slots, patience, circuit: Mutex::new(Circuit::new()), rate }
    }

    pub fn room(&self) -> Room {
        let now = self.clock.now_ms();
        let free = self.slots.available_permits();
        let (most, wait_ms) = match locked(&self.circuit).look(now) {
            Pass::Yes => (free, FULL_MS),
            Pass::Probe => (free.min(1), FULL_MS),
            Pass::No { wait_ms } => (0, wait_ms),
        };
        let (by_rate, rate_wait_ms) = self.rate.as_ref().map_or((most, 0), |rate| locked(rate).room(now));
        let wait_ms = if most == 0 { wait_ms } else { rate_wait_ms };
        Room { calls: most.min(by_rate), wait_ms: wait_ms.max(1) }
    }

    /// Lets one call through, or says why not.
    pub async fn enter(&self) -> Result<Ticket<'_>, Shut> {
        let slot = self.slot().await?;
        let now = self.clock.now_ms();
        if let Pass::No { wait_ms } = locked(&self.circuit).look(now) {
            return Err(Shut { wait_ms, why: "the service hasn't answered for a while; it is left alone for now" });
        }
        if let Some(rate) = &self.rate {
            locked(rate).take(now).map_err(|wait_ms| Shut { wait_ms, why: "its calls of this second are used up" })?;
        }
        match locked(&self.circuit).pass(now) {
            Pass::No { wait_ms } => {
                Err(Shut { wait_ms, why: "another call is finding out whether the service is back" })
            }
            Pass::Yes | Pass::Probe => Ok(Ticket { gate: self, is_over: false, _slot: slot }),
        }
    }

    /// The same for a question: it isn't held up by the rate, but counts.
    pub async fn enter_to_ask(&self) -> Result<Ticket<'_>, Shut> {
        let slot = self.slot().await?;
        let now = self.clock.now_ms();
        match locked(&self.circuit).pass(now) {
            Pass::No { wait_ms } => Err(Shut { wait_ms, why: "the service hasn't answered for a while" }),
            Pass::Yes | Pass::Probe => {
                if let Some(rate) = &self.rate {
                    locked(rate).owe(now);
                }
                Ok(Ticket { gate: self, is_over: false, _slot: slot })
            }
        }
    }

    async fn slot(&self) -> Result<OwnedSemaphorePermit, Shut> {
        let full = || Shut { wait_ms: FULL_MS, why: "as many calls run as may" };
        let slot = tokio::time::timeout(self.patience, self.slots.clone().acquire_owned()).await;
        slot.map_err(|_| full())?.map_err(|_| full())
    }
}

/// A call on its way. One that is dropped without a word counts as unanswered.
#[derive(Debug)]
pub struct Ticket<'g> {
    gate: &'g Gate,
    is_over: bool,
    _slot: OwnedSemaphorePermit,
}

impl Ticket<'_> {
    /// The service answered by the contract, whatever it said.
    pub fn answered(mut self) {
        self.is_over = true;
        let mut circuit = locked(&self.gate.circuit);
        if !circuit.is_closed() {
            tracing::info!(service.name = self.gate.name, "the service answers again");
        }
        circuit.answered();
    }

    pub fn failed(mut self) {
        self.fail();
    }

    fn fail(&mut self) {
        self.is_over = true;
        if locked(&self.gate.circuit).failed(self.gate.clock.now_ms()) {
            tracing::warn!(service.name = self.gate.name, "the service doesn't answer; it is left alone for a while");
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.fail();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
