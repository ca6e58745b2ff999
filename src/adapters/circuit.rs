//! The circuit to one service: after some failures in a row nothing is sent for a while, then one call tries
//! whether it is back. Tasks that meet an open circuit wait; they don't use up their tries.

/// Failures in a row that open it.
const FAILURES: u32 = 5;
/// How long it stays open the first time; each probe that fails doubles it.
const FIRST_MS: i64 = 1000;
const LONGEST_MS: i64 = 30_000;
/// How soon the others look again while one probes.
const PROBING_MS: i64 = 250;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed {
        failures: u32,
    },
    Open {
        until: i64,
        for_ms: i64,
    },
    /// One call is on its way to find out.
    HalfOpen {
        for_ms: i64,
    },
}

#[derive(Debug)]
pub struct Circuit {
    state: State,
}

/// May a call be made?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    Yes,
    /// Yes, and it is the one that finds out whether the service is back.
    Probe,
    No {
        wait_ms: i64,
    },
}

impl Circuit {
    pub const fn new() -> Self {
        Self { state: State::Closed { failures: 0 } }
    }

    /// What [`pass`](Self::pass) would say, without taking the probe.
    pub fn look(&self, now: i64) -> Pass {
        match self.state {
            State::Closed { .. } => Pass::Yes,
            State::Open { until, .. } if until <= now => Pass::Probe,
            State::Open { until, .. } => Pass::No { wait_ms: until - now },
            State::HalfOpen { .. } => Pass::No { wait_ms: PROBING_MS },
        }
    }

    pub fn pass(&mut self, now: i64) -> Pass {
        let pass = self.look(now);
        if let (Pass::Probe, State::Open { for_ms, .. }) = (pass, self.state) {
            self.state = State::HalfOpen { for_ms };
        }
        pass
    }

    /// The service answered, whatever it said.
    pub fn answered(&mut self) {
        self.state = State::Closed { failures: 0 };
    }

    /// It didn't answer, or not as the contract says. `true` when this opened the circuit.
    pub fn failed(&mut self, now: i64) -> bool {
        let failures = match self.state {
            State::Closed { failures } => failures + 1,
            State::HalfOpen { for_ms } => {
                let for_ms = (for_ms * 2).min(LONGEST_MS);
                self.state = State::Open { until: now + for_ms, for_ms };
                return false;
            }
            // Calls that were on their way when it opened.
            State::Open { .. } => return false,
        };
        let opens = failures >= FAILURES;
        self.state =
            if opens { State::Open { until: now + FIRST_MS, for_ms: FIRST_MS } } else { State::Closed { failures } };
        opens
    }

    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(now: i64) -> Circuit {
        let mut circuit = Circuit::new();
        let opened: Vec<bool> = (0..FAILURES).map(|_| circuit.failed(now)).collect();
        assert_eq!(opened.iter().filter(|opened| **opened).count(), 1, "the last of them opens it");
        circuit
    }

    #[test]
    fn one_answer_in_between_keeps_it_closed() {
        let mut circuit = Circuit::new();
        for _ in 0..3 {
            for _ in 1..FAILURES {
                circuit.failed(0);
            }
            circuit.answered();
        }
        assert_eq!(circuit.pass(0), Pass::Yes);
    }

    #[test]
    fn one_call_probes_and_an_answer_closes_it() {
        let mut circuit = opened(0);
        assert_eq!(circuit.pass(FIRST_MS - 1), Pass::No { wait_ms: 1 });
        assert_eq!(circuit.pass(FIRST_MS), Pass::Probe);
        assert_eq!(circuit.pass(FIRST_MS), Pass::No { wait_ms: PROBING_MS }, "one at a time");
        circuit.answered();
        assert_eq!(circuit.pass(FIRST_MS), Pass::Yes);
    }

    #[test]
    fn a_probe_that_fails_waits_twice_as_long_up_to_a_limit() {
        let mut circuit = opened(0);
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..7 {
            let Pass::No { wait_ms } = circuit.look(now) else { panic!("it is open") };
            waits.push(wait_ms);
            now += wait_ms;
            assert_eq!(circuit.pass(now), Pass::Probe);
            circuit.failed(now);
        }
        assert_eq!(waits, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    }

    #[test]
    fn calls_that_were_on_their_way_change_nothing() {
        let mut circuit = opened(0);
        circuit.failed(900);
        assert_eq!(circuit.look(FIRST_MS), Pass::Probe);
    }
}
