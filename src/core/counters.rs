//! Names of the counters and the buckets of their histograms. A label is a type, a trigger, `type/kind`, or
//! `…/bucket`; buckets are logarithmic, each 10 % wider than the one before, so a percentile is right to 10 %.

/// Tasks that succeeded, by type (duplicates and nothing-locked included).
pub const SUCCEEDED: &str = "task.succeeded";
/// Tasks that found their flow row, by type.
pub const DUPLICATE: &str = "task.duplicate";
/// Failed tries, by `type/kind`.
pub const FAILED: &str = "task.failed";
/// Failed tries that a succeeded task had had, by number.
pub const RETRIES: &str = "task.retries";
/// Time from the first failure to success, by bucket.
pub const DELAY: &str = "task.delay";
/// Tasks that succeeded after a failure, by `worker` or `hand`.
pub const COMPENSATED: &str = "task.compensated";
/// Orders closed, by trigger.
pub const CLOSED: &str = "order.closed";
/// Closes of an order that was closed already, by trigger.
pub const CLOSE_REPEATED: &str = "order.close_repeated";
/// How long after its deadline an order was closed, by `trigger/bucket`.
pub const LATE: &str = "order.late";
/// Orders placed and paid, with an empty label.
pub const PLACED: &str = "order.placed";
pub const PAID: &str = "order.paid";

const RATIO: f64 = 1.1;

/// The bucket of a duration in milliseconds.
pub fn bucket(ms: i64) -> i64 {
    let ms = ms.max(0) as f64;
    ((ms + 1.0).ln() / RATIO.ln()).floor() as i64
}

/// The longest duration in a bucket, in milliseconds.
pub fn bucket_ms(bucket: i64) -> i64 {
    (RATIO.powi(i32::try_from(bucket).unwrap_or(i32::MAX) + 1) - 1.0).round() as i64
}

/// The `q`-quantile (0 to 1) of a histogram of (bucket, count), in milliseconds; `None` of an empty one.
pub fn quantile(histogram: &[(i64, i64)], q: f64) -> Option<i64> {
    let total: i64 = histogram.iter().map(|(_, n)| n).sum();
    if total <= 0 {
        return None;
    }
    let mut sorted = histogram.to_vec();
    sorted.sort_unstable();
    let rank = ((total as f64) * q).ceil().max(1.0) as i64;
    let mut seen = 0;
    for (bucket, n) in sorted {
        seen += n;
        if seen >= rank {
            return Some(bucket_ms(bucket));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_durations_to_ten_per_cent() {
        for ms in [0, 1, 5, 40, 999, 60_000, 3_600_000] {
            let top = bucket_ms(bucket(ms));
            assert!(top >= ms && (top as f64) <= (ms as f64 + 1.0) * 1.1 + 1.0, "{ms} → {top}");
        }
    }

    #[test]
    fn quantiles_of_nothing_are_unknown() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[(bucket(10), 99), (bucket(5000), 1)], 0.5), Some(bucket_ms(bucket(10))));
        assert_eq!(quantile(&[(bucket(10), 9), (bucket(5000), 1)], 0.99), Some(bucket_ms(bucket(5000))));
    }
}
