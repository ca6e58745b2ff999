//! So many calls a second: tokens that come back evenly, a tenth of a second's worth of them at most, so that
//! no second sees much more than its share.

#[derive(Debug)]
pub struct Rate {
    per_s: i64,
    /// Thousandths of a call.
    tokens: i64,
    at: i64,
}

impl Rate {
    pub const fn new(per_s: i64, now: i64) -> Self {
        let mut rate = Self { per_s, tokens: 0, at: now };
        rate.tokens = rate.most();
        rate
    }

    const fn most(&self) -> i64 {
        let tenth = self.per_s * 100;
        if tenth > 1000 { tenth } else { 1000 }
    }

    fn refill(&mut self, now: i64) {
        let passed = (now - self.at).clamp(0, 60_000);
        self.tokens = (self.tokens + passed * self.per_s).min(self.most());
        self.at = now.max(self.at);
    }

    /// How many calls may be made now, and how long until the next may.
    pub fn room(&mut self, now: i64) -> (usize, i64) {
        self.refill(now);
        let calls = usize::try_from(self.tokens / 1000).unwrap_or(0);
        let lacking = (1000 - self.tokens).max(0);
        (calls, (lacking + self.per_s - 1) / self.per_s)
    }

    /// Takes one call's worth; how long to wait when there is none.
    pub fn take(&mut self, now: i64) -> Result<(), i64> {
        match self.room(now) {
            (0, wait_ms) => Err(wait_ms.max(1)),
            _ => {
                self.tokens -= 1000;
                Ok(())
            }
        }
    }

    /// A call that is made in any case counts against those after it.
    pub fn owe(&mut self, now: i64) {
        self.refill(now);
        self.tokens -= 1000;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_ten_seconds_see_ten_seconds_worth_and_one_burst() {
        for per_s in [1, 5, 50, 333] {
            let mut rate = Rate::new(per_s, 0);
            let made = (0..10_000).filter(|now| rate.take(*now).is_ok()).count() as i64;
            let burst = (per_s / 10).max(1);
            assert!((per_s * 10 - 1..=per_s * 10 + burst).contains(&made), "{per_s} a second made {made}");
        }
    }

    #[test]
    fn the_wait_is_exactly_as_long_as_it_says() {
        let mut rate = Rate::new(3, 0);
        assert_eq!(rate.take(0), Ok(()));
        let wait = rate.take(0).unwrap_err();
        assert!(rate.take(wait - 1).is_err());
        assert_eq!(rate.take(wait), Ok(()));
    }

    #[test]
    fn a_long_rest_saves_up_no_more_than_a_burst() {
        let mut rate = Rate::new(20, 0);
        assert_eq!(rate.room(3_600_000).0, 2);
        rate.owe(3_600_000);
        rate.owe(3_600_000);
        rate.owe(3_600_000);
        assert_eq!(rate.room(3_600_000), (0, 100));
    }
}
