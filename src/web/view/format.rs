//! Numbers, money, spans and instants as people read them. Integers only: money and long ids never
//! lose a digit. Every instant is an absolute time in a named zone.

use crate::core::words::{FundsKind, ResourceType};
use crate::web::i18n::Lang;

/// Groups the digits by three: `1,234,567`.
pub fn count(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if n < 0 {
        out.push('−');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// How many digits of the minor unit a currency has (ISO 4217).
fn exponent(currency: &str) -> u32 {
    match currency {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "UYI" | "VND"
        | "VUV" | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        "CLF" | "UYW" => 4,
        _ => 2,
    }
}

/// An amount in minor units as figures alone: `1,268.00`.
pub fn amount(minor: i64, currency: &str) -> String {
    let exponent = exponent(currency);
    let unit = 10_u64.pow(exponent);
    let (whole, rest) = (minor.unsigned_abs() / unit, minor.unsigned_abs() % unit);
    let sign = if minor < 0 { "−" } else { "" };
    let whole = count(i64::try_from(whole).unwrap_or(i64::MAX));
    match exponent {
        0 => format!("{sign}{whole}"),
        e => format!("{sign}{whole}.{rest:0width$}", width = e as usize),
    }
}

/// An amount with its currency: `1,268.00 CNY`.
pub fn money(minor: i64, currency: &str) -> String {
    format!("{} {currency}", amount(minor, currency))
}

/// What a quantity of one type is called: pieces, money, points, one coupon.
pub fn quantity(lang: Lang, kind: ResourceType, qty: i64, funds: Option<FundsKind>, currency: Option<&str>) -> String {
    match (kind, funds, currency) {
        (ResourceType::Stock, ..) => lang.n("count.pieces", qty, &[]),
        (ResourceType::Coupon, ..) => lang.n("count.coupons", qty, &[]),
        (ResourceType::Slot, ..) => lang.n("count.slots", qty, &[]),
        (ResourceType::Quota, ..) => lang.n("count.quota", qty, &[]),
        (ResourceType::Funds, Some(FundsKind::Points), _) => lang.n("count.points", qty, &[]),
        (ResourceType::Funds | ResourceType::Payment, _, Some(currency)) => money(qty, currency),
        (ResourceType::Funds | ResourceType::Payment, _, None) => lang.n("count.minor_units", qty, &[]),
    }
}

/// A span in its two largest units: `3 h 41 min`, `26 min 18 s`, `4 s`, `212 ms`.
pub fn span(lang: Lang, ms: i64) -> String {
    let ms = ms.max(0);
    if ms < 1_000 {
        return lang.f("span.ms", &[("ms", &ms)]);
    }
    let s = ms / 1_000;
    let (d, h, m, s) = (s / 86_400, s / 3_600 % 24, s / 60 % 60, s % 60);
    match (d, h, m) {
        (0, 0, 0) => lang.f("span.s", &[("s", &s)]),
        (0, 0, _) => lang.f("span.min", &[("m", &m), ("s", &s)]),
        (0, ..) => lang.f("span.h", &[("h", &h), ("m", &m)]),
        _ => lang.f("span.d", &[("d", &count(d)), ("h", &h)]),
    }
}

/// A share in percent with one digit. Only exactly all shows 100, only exactly none shows 0.
pub fn percent(part: i64, whole: i64) -> Option<String> {
    if whole <= 0 {
        return None;
    }
    let tenths = i128::from(part) * 1_000 / i128::from(whole);
    let tenths = match part {
        p if p > 0 && tenths == 0 => 1,
        _ => tenths,
    };
    Some(format!("{}.{}", tenths / 10, tenths % 10))
}

/// A time zone people read instants in.
#[derive(Clone, Debug)]
pub struct Zone {
    tz: jiff::tz::TimeZone,
    name: String,
}

/// An instant ready for a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// For `<time datetime>`: RFC 3339 in UTC.
    pub iso: String,
    /// Date, time, milliseconds and offset, for the title.
    pub full: String,
    pub date: String,
    /// `14:18:32`.
    pub time: String,
    /// `.298`.
    pub ms: String,
    /// The date is the page's own day, so that the time alone says it.
    pub today: bool,
}

impl Stamp {
    /// The time, with the date in front when it is not today's.
    pub fn short(&self) -> String {
        if self.today { self.time.clone() } else { format!("{} {}", self.date, self.time) }
    }

    /// The time to the minute, as said to a caller.
    pub fn spoken(&self) -> String {
        let minute = self.time.get(..5).unwrap_or(&self.time);
        if self.today { minute.to_owned() } else { format!("{} {minute}", self.date) }
    }
}

impl Zone {
    /// A zone of the IANA database that is part of the binary, e.g. `Asia/Shanghai`.
    pub fn find(name: &str) -> Option<Zone> {
        let tz = jiff::tz::TimeZone::get(name).ok()?;
        Some(Zone { tz, name: name.to_owned() })
    }

    pub fn utc() -> Zone {
        Zone { tz: jiff::tz::TimeZone::UTC, name: "UTC".to_owned() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// `UTC+8 Shanghai`: what the offset is at `now`, and where.
    pub fn label(&self, now: i64) -> String {
        let place = self.name.rsplit('/').next().unwrap_or(&self.name).replace('_', " ");
        let offset = self.offset(now);
        if place == "UTC" { "UTC".to_owned() } else { format!("{offset} {place}") }
    }

    /// `UTC+8`, `UTC+5:30`, `UTC`.
    pub fn offset(&self, now: i64) -> String {
        let seconds = self.tz.to_offset(timestamp(now)).seconds();
        let sign = if seconds < 0 { '−' } else { '+' };
        let (h, m) = (seconds.abs() / 3_600, seconds.abs() / 60 % 60);
        match (h, m) {
            (0, 0) => "UTC".to_owned(),
            (_, 0) => format!("UTC{sign}{h}"),
            _ => format!("UTC{sign}{h}:{m:02}"),
        }
    }

    pub fn stamp(&self, at: i64, now: i64) -> Stamp {
        let local = self.tz.to_datetime(timestamp(at));
        let date = local.date().to_string();
        let time = local.strftime("%H:%M:%S").to_string();
        let ms = format!(".{:03}", local.subsec_nanosecond() / 1_000_000);
        Stamp {
            iso: timestamp(at).strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
            full: format!("{date} {time}{ms} {}", self.offset(at)),
            today: self.tz.to_datetime(timestamp(now)).date() == local.date(),
            date,
            time,
            ms,
        }
    }
}

/// Out of range (the database allows 2020 … 2100) shows the nearest instant there is.
fn timestamp(ms: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(ms).unwrap_or(if ms < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX })
}

/// Whether a page may offer this name as a zone.
pub fn zone_names() -> Vec<String> {
    jiff::tz::db()
        .available()
        .map(|name| name.as_str().to_owned())
        .filter(|name| name.contains('/') || name == "UTC")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: i64 = 1_794_377_912_298; // 2026-11-11T06:18:32.298Z

    #[test]
    fn counts_are_grouped() {
        let shown: Vec<_> = [0, 7, 999, 1_000, 1_234_567, -1_234].map(count).into();
        assert_eq!(shown, ["0", "7", "999", "1,000", "1,234,567", "−1,234"]);
    }

    #[test]
    fn money_keeps_every_digit_in_every_currency() {
        assert_eq!(money(26_800, "CNY"), "268.00 CNY");
        assert_eq!(money(5, "CNY"), "0.05 CNY");
        assert_eq!(money(-5, "CNY"), "−0.05 CNY");
        assert_eq!(money(1_500, "JPY"), "1,500 JPY");
        assert_eq!(money(1_500, "KWD"), "1.500 KWD");
        assert_eq!(money(900_719_925_474_099_301, "CNY"), "9,007,199,254,740,993.01 CNY");
    }

    #[test]
    fn an_instant_is_shown_in_its_zone() {
        let shanghai = Zone::find("Asia/Shanghai").unwrap();
        let stamp = shanghai.stamp(AT, AT);
        assert_eq!((stamp.time.as_str(), stamp.ms.as_str(), stamp.today), ("14:18:32", ".298", true));
        assert_eq!(stamp.full, "2026-11-11 14:18:32.298 UTC+8");
        assert_eq!(stamp.iso, "2026-11-11T06:18:32.298Z");
        assert_eq!(stamp.spoken(), "14:18");
        assert_eq!(shanghai.label(AT), "UTC+8 Shanghai");
    }

    #[test]
    fn another_day_is_named() {
        let zone = Zone::find("America/New_York").unwrap();
        let stamp = zone.stamp(AT, AT + 86_400_000);
        assert_eq!(stamp.short(), "2026-11-11 01:18:32");
        assert_eq!(zone.offset(AT), "UTC−5");
        assert_eq!(Zone::find("Asia/Kolkata").unwrap().offset(AT), "UTC+5:30");
    }

    #[test]
    fn an_unknown_zone_is_refused() {
        assert!(Zone::find("Mars/Olympus").is_none());
        assert!(zone_names().iter().any(|n| n == "Asia/Shanghai"));
    }

    #[test]
    fn shares_never_round_to_all_or_none() {
        assert_eq!(percent(1, 100_000).as_deref(), Some("0.1"));
        assert_eq!(percent(99_999, 100_000).as_deref(), Some("99.9"));
        assert_eq!(percent(5, 5).as_deref(), Some("100.0"));
        assert_eq!(percent(0, 0), None);
    }

    #[test]
    fn spans_use_their_two_largest_units() {
        let shown: Vec<_> = [212, 4_000, 1_578_000, 13_260_000, 180_000_000].map(|ms| span(Lang::En, ms)).into();
        assert_eq!(shown, ["212 ms", "4 s", "26 min 18 s", "3 h 41 min", "2 d 2 h"]);
    }
}
