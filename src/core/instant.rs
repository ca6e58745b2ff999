//! Instants as other programs write and read them: RFC 3339, in UTC, with milliseconds.

use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

/// `2026-11-30T06:15:00.000Z`.
pub fn moment(ms: i64) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    let instant = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000);
    instant.ok().and_then(|at| at.format(&format).ok()).unwrap_or_default()
}

pub fn opt_moment(ms: Option<i64>) -> Option<String> {
    ms.map(moment)
}

/// Milliseconds of a time with any offset, from 1970 on.
pub fn parse_moment(text: &str) -> Option<i64> {
    let instant = OffsetDateTime::parse(text, &Rfc3339).ok()?.to_offset(UtcOffset::UTC);
    let ms = i64::try_from(instant.unix_timestamp_nanos().div_euclid(1_000_000)).ok()?;
    (ms >= 0).then_some(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_back() {
        assert_eq!(moment(1_764_483_300_007), "2025-11-30T06:15:00.007Z");
        assert_eq!(parse_moment("2025-11-30T06:15:00.007Z"), Some(1_764_483_300_007));
        assert_eq!(parse_moment("2025-11-30T14:15:00.0079+08:00"), Some(1_764_483_300_007));
        assert_eq!(opt_moment(None), None);
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for wrong in ["2025-11-30", "2025-11-30T06:15:00", "2025-13-30T06:15:00Z", "1764483300", "1969-12-31T23:59:59Z"]
        {
            assert_eq!(parse_moment(wrong), None, "{wrong}");
        }
    }
}
