//! The wall: six figures that can be read across a room, each with the age of its data. Words are the reader's,
//! figures are short; nothing on it is private and nothing on it is a link.

use askama::Template;
use serde::Serialize;

use super::overview::SILENT_MS;
use super::{Eye, Shell, format};
use crate::core::counters::quantile;
use crate::core::reconcile::Known;
use crate::core::words::{ResourceType, TaskStatus};
use crate::store::overview::Snapshot;
use crate::web::assets::Asset;
use crate::web::i18n::Lang;

/// The oldest task may wait this long before its tile is an alarm.
const OLD_MS: i64 = 5 * 60_000;

#[derive(Template)]
#[template(path = "pages/wall.html")]
pub struct WallPage {
    pub s: Shell,
    pub name: String,
    pub interval_ms: u128,
    pub version: String,
    pub made: String,
    pub events: String,
    pub tiles_href: String,
    pub ago: String,
    pub stale: String,
    pub since: String,
    pub server: String,
    pub lost: String,
    pub tiles: Vec<Tile>,
}

/// Where a screen types its code.
#[derive(Template)]
#[template(path = "pages/code.html", blocks = ["content"])]
pub struct CodePage {
    pub s: Shell,
    pub problem: String,
}

pub struct Tile {
    pub id: &'static str,
    pub class: &'static str,
    pub label: &'static str,
    pub stat: &'static str,
    pub value: String,
    pub rows: Vec<TileRow>,
    pub note: String,
    pub alarm: bool,
}

pub struct TileRow {
    pub label: &'static str,
    pub stat: String,
    pub value: String,
}

/// What the stream sends.
#[derive(Serialize)]
pub struct Told {
    pub version: String,
    /// The server's time of day, in the reader's zone.
    pub time: String,
    /// When the figures were made, likewise.
    pub made: String,
    /// How old they are by now.
    pub age_ms: i64,
    tiles: Vec<TileTold>,
}

#[derive(Serialize)]
struct TileTold {
    id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<serde_json::Map<String, serde_json::Value>>,
    note: String,
    alarm: bool,
}

/// Changes with every build that changes what a screen shows.
pub fn version() -> String {
    format!("{} {} {}", env!("CARGO_PKG_VERSION"), Asset::path_of("screen.js"), Asset::path_of("base.css"))
}

impl WallPage {
    pub fn new(s: Shell, eye: &Eye, screen: (i64, &str), snapshot: &Snapshot, interval: std::time::Duration) -> Self {
        let (lang, (id, name)) = (eye.lang, screen);
        // The browser fills these in, again and again.
        let hole = |key, name: &str| lang.f(key, &[(name, &format!("{{{name}}}"))]);
        WallPage {
            name: name.to_owned(),
            interval_ms: interval.as_millis(),
            version: version(),
            made: eye.stamp(snapshot.at).time,
            events: format!("/wall/{id}/events"),
            tiles_href: format!("/wall/{id}/tiles"),
            ago: hole("wall.ago", "age"),
            stale: hole("wall.stale", "age"),
            since: hole("wall.since", "at"),
            server: hole("wall.server", "age"),
            lost: hole("wall.lost", "age"),
            tiles: tiles(eye, snapshot),
            s,
        }
    }
}

pub fn told(eye: &Eye, snapshot: &Snapshot) -> Told {
    let tile = |tile: Tile| TileTold {
        id: tile.id,
        value: tile.rows.is_empty().then_some(tile.value),
        rows: (!tile.rows.is_empty()).then(|| tile.rows.into_iter().map(|row| (row.stat, row.value.into())).collect()),
        note: tile.note,
        alarm: tile.alarm,
    };
    Told {
        version: version(),
        time: eye.stamp(eye.now).time,
        made: eye.stamp(snapshot.at).time,
        age_ms: (eye.now - snapshot.at).max(0),
        tiles: tiles(eye, snapshot).into_iter().map(tile).collect(),
    }
}

fn tiles(eye: &Eye, snapshot: &Snapshot) -> Vec<Tile> {
    vec![
        oldest(eye, snapshot),
        backlog(eye.lang, snapshot),
        late(eye.lang, snapshot),
        unexplained(eye, snapshot),
        workers(eye, snapshot),
        failures(eye.lang, snapshot),
    ]
}

fn oldest(eye: &Eye, snapshot: &Snapshot) -> Tile {
    let lang = eye.lang;
    let age = snapshot.oldest.as_ref().map(|oldest| (eye.now - oldest.created_at).max(0));
    Tile {
        id: "oldest",
        class: "head w-a",
        label: lang.t("wall.oldest"),
        stat: "oldest_age_s",
        value: age.map_or_else(|| "–".to_owned(), clock),
        rows: Vec::new(),
        note: lang.t(if age.is_none() { "wall.oldest_none" } else { "wall.oldest_limit" }).to_owned(),
        alarm: age.is_some_and(|age| age > OLD_MS),
    }
}

/// `0:04`, `26:18`, `3:41:05`.
fn clock(ms: i64) -> String {
    let s = ms / 1_000;
    match s / 3_600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        h => format!("{h}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

fn backlog(lang: Lang, snapshot: &Snapshot) -> Tile {
    let sum = |is: &dyn Fn(TaskStatus) -> bool| -> i64 {
        snapshot.backlog.iter().filter(|b| is(b.status)).map(|b| b.tasks).sum()
    };
    let manual = sum(&|status| status == TaskStatus::Manual);
    Tile {
        id: "backlog",
        class: "head w-b",
        label: lang.t("wall.backlog"),
        stat: "backlog.total",
        value: format::count(sum(&TaskStatus::is_unfinished)),
        rows: Vec::new(),
        note: lang.n("wall.manual", manual, &[]),
        alarm: manual > 0,
    }
}

/// Lateness of the last day's closes, over all triggers.
fn late(lang: Lang, snapshot: &Snapshot) -> Tile {
    let histogram: Vec<(i64, i64)> =
        snapshot.late.iter().filter_map(|(label, n)| Some((label.rsplit_once('/')?.1.parse().ok()?, *n))).collect();
    let p99 = quantile(&histogram, 0.99);
    Tile {
        id: "late",
        class: "w-c",
        label: lang.t("wall.late"),
        stat: "closing.p99_ms",
        value: p99.map_or_else(|| "–".to_owned(), seconds),
        rows: Vec::new(),
        note: lang.t(if p99.is_none() { "wall.late_none" } else { "wall.late_day" }).to_owned(),
        alarm: p99.is_some_and(|ms| ms > 60_000),
    }
}

/// `0.93 s`, `12 s`, `2:05`.
fn seconds(ms: i64) -> String {
    match ms {
        ms if ms < 10_000 => format!("{}.{:02} s", ms / 1_000, ms % 1_000 / 10),
        ms if ms < 100_000 => format!("{} s", ms / 1_000),
        ms => clock(ms),
    }
}

fn unexplained(eye: &Eye, snapshot: &Snapshot) -> Tile {
    let lang = eye.lang;
    let known = Known::of(&snapshot.reconciled);
    let keys = known.findings();
    Tile {
        id: "unexplained",
        class: "w-d",
        label: lang.t("wall.unexplained"),
        stat: "reconcile.unexplained",
        // Not compared yet is not 0.
        value: keys.map_or_else(|| "–".to_owned(), format::count),
        rows: Vec::new(),
        note: match known.finished_at {
            Some(at) => lang.f("wall.compared", &[("at", &eye.stamp(at).spoken())]),
            None => lang.t("wall.never_compared").to_owned(),
        },
        alarm: keys.is_some_and(|keys| keys > 0),
    }
}

fn workers(eye: &Eye, snapshot: &Snapshot) -> Tile {
    let alive = snapshot.workers.iter().filter(|w| eye.now - w.seen_at <= SILENT_MS).count();
    Tile {
        id: "workers",
        class: "w-e",
        label: eye.lang.t("wall.workers"),
        stat: "workers",
        value: alive.to_string(),
        rows: Vec::new(),
        note: eye.lang.f("wall.workers_of", &[("n", &snapshot.workers.len())]),
        alarm: alive == 0,
    }
}

fn failures(lang: Lang, snapshot: &Snapshot) -> Tile {
    let of =
        |kind: ResourceType| -> i64 { snapshot.failures.iter().filter(|f| f.resource == kind).map(|f| f.hour).sum() };
    let kinds = ResourceType::LEDGERS.into_iter().chain([ResourceType::Payment]);
    let rows = kinds.map(|kind| TileRow {
        label: lang.word("type", kind.word()),
        stat: format!("failures.{}.hour", kind.word()),
        value: format::count(of(kind)),
    });
    Tile {
        id: "failures",
        class: "w-f",
        label: lang.t("wall.failures"),
        stat: "",
        value: String::new(),
        rows: rows.collect(),
        note: String::new(),
        alarm: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_enough_for_a_tile() {
        assert_eq!([4_000, 1_578_000, 13_265_000].map(clock), ["0:04", "26:18", "3:41:05"]);
        assert_eq!([930, 12_000, 125_000].map(seconds), ["0.93 s", "12 s", "2:05"]);
    }
}
