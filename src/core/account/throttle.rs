//! Wrong tries slow down whoever makes them: by account and address, by address alone, and by account
//! over all addresses. A browser that signed in to the account before has a lane of its own, so that
//! somebody who guesses from elsewhere never locks its true user out.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Wrong tries are forgotten this long after the last one.
const MEMORY_MS: i64 = 15 * 60_000;
/// Each wait is twice the one before, up to this.
const LONGEST_WAIT_MS: i64 = 5 * 60_000;
/// More lanes than this are never kept: the quietest go first.
const LANES_MAX: usize = 20_000;

/// Free tries before waiting begins.
const FREE_ACCOUNT_FROM_ADDRESS: u32 = 5;
const FREE_ADDRESS: u32 = 50;
const FREE_ACCOUNT: u32 = 100;

/// Who tries, as far as it can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub account: String,
    pub address: String,
    /// Proven to be a browser that signed in to this account before.
    pub device: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    wrong: u32,
    last: i64,
}

#[derive(Debug, Default)]
pub struct Throttle(Mutex<HashMap<String, Lane>>);

impl Throttle {
    /// How long this source has to wait before its next try, if at all.
    pub fn wait(&self, source: &Source, now: i64) -> Option<i64> {
        let lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wait_of = |(key, free): (String, u32)| {
            let lane = lanes.get(&key)?;
            let until = lane.last + wait_after(lane.wrong, free);
            (until > now).then_some(until - now)
        };
        lanes_of(source).into_iter().filter_map(wait_of).max()
    }

    pub fn failed(&self, source: &Source, now: i64) {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() >= LANES_MAX {
            lanes.retain(|_, lane| now - lane.last < MEMORY_MS);
        }
        if lanes.len() >= LANES_MAX {
            // Still full: somebody tries from very many places. The quietest half says the least.
            let mut counts: Vec<u32> = lanes.values().map(|lane| lane.wrong).collect();
            counts.sort_unstable();
            let middle = counts[counts.len() / 2];
            lanes.retain(|_, lane| lane.wrong > middle);
        }
        for (key, _) in lanes_of(source) {
            let lane = lanes.entry(key).or_insert(Lane { wrong: 0, last: now });
            lane.wrong = if now - lane.last > MEMORY_MS { 1 } else { lane.wrong.saturating_add(1) };
            lane.last = now;
        }
    }

    /// A right try clears its own lane, not those it shares with others.
    pub fn succeeded(&self, source: &Source) {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((own, _)) = lanes_of(source).into_iter().next() {
            lanes.remove(&own);
        }
    }
}

/// The lanes of a source, its own first, with the free tries of each.
fn lanes_of(source: &Source) -> Vec<(String, u32)> {
    if let Some(device) = &source.device {
        return vec![(format!("device\n{}\n{device}", source.account), FREE_ACCOUNT_FROM_ADDRESS)];
    }
    vec![
        (format!("both\n{}\n{}", source.account, source.address), FREE_ACCOUNT_FROM_ADDRESS),
        (format!("address\n{}", source.address), FREE_ADDRESS),
        (format!("account\n{}", source.account), FREE_ACCOUNT),
    ]
}

fn wait_after(wrong: u32, free: u32) -> i64 {
    match wrong.checked_sub(free) {
        None => 0,
        Some(over) => 1_000_i64.checked_shl(over.min(16)).unwrap_or(LONGEST_WAIT_MS).min(LONGEST_WAIT_MS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> Source {
        Source { account: "ops".into(), address: address.into(), device: None }
    }

    #[test]
    fn after_five_wrong_tries_each_next_one_waits_longer() {
        let throttle = Throttle::default();
        for _ in 0..4 {
            throttle.failed(&from("a"), 0);
            assert_eq!(throttle.wait(&from("a"), 0), None);
        }
        throttle.failed(&from("a"), 0);
        assert_eq!(throttle.wait(&from("a"), 0), Some(1_000));
        throttle.failed(&from("a"), 1_000);
        assert_eq!(throttle.wait(&from("a"), 1_000), Some(2_000));
        assert_eq!(throttle.wait(&from("a"), 3_000), None);
    }

    #[test]
    fn a_known_browser_is_not_held_up_by_somebody_elses_guesses() {
        let throttle = Throttle::default();
        for n in 0..500 {
            throttle.failed(&from(&format!("address-{n}")), 0);
        }
        assert!(throttle.wait(&from("new"), 0).is_some(), "the account is slowed for strangers");
        let known = Source { device: Some("mark".into()), ..from("address-1") };
        assert_eq!(throttle.wait(&known, 0), None, "its true user is not");
    }

    #[test]
    fn one_address_is_slowed_over_many_accounts() {
        let throttle = Throttle::default();
        for n in 0..FREE_ADDRESS {
            throttle.failed(&Source { account: format!("user-{n}"), ..from("a") }, 0);
        }
        assert!(throttle.wait(&Source { account: "untried".into(), ..from("a") }, 0).is_some());
        assert_eq!(throttle.wait(&Source { account: "untried".into(), ..from("b") }, 0), None);
    }

    #[test]
    fn a_right_try_and_time_clear_the_lane() {
        let throttle = Throttle::default();
        for _ in 0..9 {
            throttle.failed(&from("a"), 0);
        }
        throttle.succeeded(&from("a"));
        assert_eq!(throttle.wait(&from("a"), 0), None);
        for _ in 0..9 {
            throttle.failed(&from("a"), 0);
        }
        throttle.failed(&from("a"), MEMORY_MS + 1);
        assert_eq!(throttle.wait(&from("a"), MEMORY_MS + 1), None, "one wrong try after a long time is the first");
    }

    #[test]
    fn the_memory_of_wrong_tries_is_bounded() {
        let throttle = Throttle::default();
        for n in 0..60_000 {
            throttle.failed(&Source { account: format!("u{n}"), address: format!("a{n}"), device: None }, 0);
        }
        assert!(throttle.0.lock().unwrap().len() <= LANES_MAX + 3);
    }
}
