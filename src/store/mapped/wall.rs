//! DATETIME columns of a shop hold wall-clock times of its zone; Handback counts milliseconds in UTC (R18).

use std::str::FromStr as _;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The instant of a wall-clock time. One that the zone had twice is the first, one it never had the one after.
pub fn to_ms(text: &str, zone: &TimeZone) -> Option<i64> {
    let wall = DateTime::from_str(text.trim()).ok()?;
    Some(zone.to_timestamp(wall).ok()?.as_millisecond())
}

/// The wall-clock time of an instant, to the second.
pub fn of_ms(ms: i64, zone: &TimeZone) -> String {
    let at = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    let wall = zone.to_datetime(at);
    let (date, time) = (wall.date(), wall.time());
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        date.year(),
        date.month(),
        date.day(),
        time.hour(),
        time.minute(),
        time.second()
    )
}

/// The zone of this name; UTC without one.
pub fn zone(name: Option<&str>) -> Option<TimeZone> {
    name.map_or(Some(TimeZone::UTC), |name| TimeZone::get(name).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_in_shanghai_writes_eight_hours_ahead() {
        let shanghai = zone(Some("Asia/Shanghai")).expect("known");
        assert_eq!(to_ms("2026-11-30 18:00:00.000000", &shanghai), Some(1_796_032_800_000));
        assert_eq!(of_ms(1_796_032_800_000, &shanghai), "2026-11-30 18:00:00");
        assert_eq!(to_ms("2026-11-30 10:00:00", &TimeZone::UTC), Some(1_796_032_800_000));
        assert_eq!(to_ms("soon", &TimeZone::UTC), None);
    }
}
