//! How long a failed task waits (A10): 1 s, 5 s, 30 s, 5 min, 30 min, then every 30 min, each spread a little
//! so that tasks that failed together don't come back together.

use crate::core::policy::Retry;

/// The wait after the `failures`-th failure (from 1) in milliseconds; `spread` is from -1 to 1.
pub fn wait_ms(retry: &Retry, failures: i64, spread: f64) -> i64 {
    let at = usize::try_from(failures.max(1) - 1).unwrap_or(usize::MAX).min(retry.delays_ms.len().saturating_sub(1));
    let delay = retry.delays_ms.get(at).copied().unwrap_or(1000);
    let spread = spread.clamp(-1.0, 1.0) * retry.jitter.clamp(0.0, 1.0);
    (delay as f64 * (1.0 + spread)).round() as i64
}

/// A random spread.
pub fn spread() -> f64 {
    rand::random_range(-1.0..=1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::policy::Policy;

    #[test]
    fn waits_grow_as_the_seed_says_and_the_last_repeats() {
        let retry = Policy::default().retry;
        let waits: Vec<i64> = (1..=8).map(|n| wait_ms(&retry, n, 0.0)).collect();
        assert_eq!(waits, [1000, 5000, 30_000, 300_000, 1_800_000, 1_800_000, 1_800_000, 1_800_000]);
    }

    #[test]
    fn spread_stays_within_its_share() {
        let retry = Policy::default().retry;
        assert_eq!((wait_ms(&retry, 2, -1.0), wait_ms(&retry, 2, 1.0)), (4000, 6000));
        for _ in 0..1000 {
            assert!((4000..=6000).contains(&wait_ms(&retry, 2, spread())));
        }
    }
}
