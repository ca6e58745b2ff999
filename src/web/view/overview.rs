//! The overview: what a colleague would say first, then the figures behind it. A figure that is not
//! known says so; 0 is only what was counted as 0.

mod say;

use askama::Template;

use super::{Eye, Figure, Link, Mark, Section, Shell, Stamp, Tone, format};
use crate::core::words::{FailureKind, FundsKind, ResourceType, TaskStatus};
use crate::store::overview::{Backlog, Snapshot};
use crate::web::i18n::Lang;
use crate::web::paths;

use say::Sums;

/// A worker that has not been seen for this long is not counted as alive.
pub const SILENT_MS: i64 = 15_000;
/// The statuses of the backlog, in the order of the columns.
const OPEN: [TaskStatus; 3] = [TaskStatus::Waiting, TaskStatus::Retrying, TaskStatus::Manual];

#[derive(Template)]
#[template(path = "pages/overview.html", blocks = ["content", "live"])]
pub struct OverviewPage {
    pub s: Shell,
    pub tone: Tone,
    pub headline: String,
    pub detail: String,
    pub acts: Vec<Link>,
    pub as_of: Stamp,
    pub figures: Vec<Figure>,
    pub columns: Vec<Mark>,
    pub backlog: Vec<BacklogRow>,
    pub totals: Vec<String>,
    pub owed_mark: Mark,
    pub owed: String,
    pub owed_href: String,
    pub held: Vec<Held>,
    pub failures: Vec<FailureRow>,
    pub failures_hour: String,
    pub failures_day: String,
    pub closed: Vec<ClosedRow>,
    pub workers: Vec<WorkerRow>,
}

pub struct BacklogRow {
    pub kind: &'static str,
    pub cells: Vec<Cell>,
    pub total: String,
    pub bars: Vec<Bar>,
}

pub struct Cell {
    pub value: String,
    /// Nothing for a zero: there is no list behind it.
    pub href: String,
    pub stat: String,
    pub raw: i64,
    pub class: &'static str,
}

/// A piece of a row's bar, in hundredths of the longest row.
pub struct Bar {
    pub class: &'static str,
    pub x: String,
    pub width: String,
}

pub struct Held {
    pub label: String,
    pub note: String,
    pub value: String,
    pub href: String,
}

pub struct FailureRow {
    pub kind_of: &'static str,
    pub kind: &'static str,
    pub hour: String,
    pub day: String,
    pub stat: String,
    pub href: String,
}

pub struct ClosedRow {
    pub order_no: String,
    pub href: String,
    pub why: String,
    pub at: Stamp,
}

pub struct WorkerRow {
    pub mark: Mark,
    pub name: String,
    pub seen: String,
}

impl OverviewPage {
    pub fn new(mut s: Shell, eye: &Eye, snapshot: &Snapshot) -> OverviewPage {
        s.section = Section::Overview;
        s.stream_view = "overview";
        let sums = Sums::of(snapshot, eye.now);
        let (tone, headline) = say::headline(eye, &sums);
        let backlog = backlog_rows(eye.lang, snapshot);
        OverviewPage {
            tone,
            headline,
            detail: say::detail(eye, &sums),
            acts: say::acts(eye.lang, &sums),
            as_of: eye.stamp(snapshot.at),
            figures: say::figures(eye, &sums),
            columns: OPEN.iter().map(|status| Mark::task(eye.lang, *status)).collect(),
            totals: [sums.waiting, sums.retrying, sums.manual, sums.moving() + sums.manual].map(format::count).into(),
            backlog,
            owed_mark: Mark::task(eye.lang, TaskStatus::ForceClosed),
            owed: owed(eye.lang, snapshot),
            owed_href: paths::tasks(&[("status", "force_closed")]),
            held: held(eye.lang, snapshot),
            failures: failure_rows(eye.lang, snapshot),
            failures_hour: format::count(snapshot.failures.iter().map(|f| f.hour).sum()),
            failures_day: format::count(snapshot.failures.iter().map(|f| f.day).sum()),
            closed: closed_rows(eye, snapshot),
            workers: worker_rows(eye, snapshot),
            s,
        }
    }
}

fn tasks_of(snapshot: &Snapshot, status: TaskStatus, kind: ResourceType) -> i64 {
    let rows = snapshot.backlog.iter().filter(|b| b.status == status && b.resource == kind);
    rows.map(|b| b.tasks).sum()
}

fn backlog_rows(lang: Lang, snapshot: &Snapshot) -> Vec<BacklogRow> {
    let refunds = OPEN.iter().any(|s| tasks_of(snapshot, *s, ResourceType::Payment) > 0);
    let kinds = ResourceType::LEDGERS.into_iter().chain(refunds.then_some(ResourceType::Payment));
    let rows: Vec<(ResourceType, [i64; 3])> =
        kinds.map(|kind| (kind, OPEN.map(|s| tasks_of(snapshot, s, kind)))).collect();
    let longest = rows.iter().map(|(_, n)| n.iter().sum::<i64>()).max().unwrap_or(0).max(1);
    rows.into_iter().map(|(kind, counts)| backlog_row(lang, kind, counts, longest)).collect()
}

fn backlog_row(lang: Lang, kind: ResourceType, counts: [i64; 3], longest: i64) -> BacklogRow {
    let cells = OPEN.iter().zip(counts).map(|(status, n)| Cell {
        value: format::count(n),
        href: if n == 0 { String::new() } else { paths::tasks(&[("status", status.word()), ("type", kind.word())]) },
        stat: format!("backlog.{}.{}", status.word(), kind.word()),
        raw: n,
        class: if *status == TaskStatus::Manual { "bad" } else { "fig" },
    });
    BacklogRow {
        kind: lang.word("type", kind.word()),
        cells: cells.collect(),
        total: format::count(counts.iter().sum()),
        bars: bars(counts, longest),
    }
}

/// Pieces of the bar in tenths of a percent; what is there at all is at least a hair wide.
fn bars(counts: [i64; 3], longest: i64) -> Vec<Bar> {
    let mut x = 0;
    let mut bars = Vec::new();
    for (n, class) in counts.into_iter().zip(["a", "b", "c"]) {
        if n > 0 {
            let width = (n.saturating_mul(1_000) / longest).max(8);
            let tenths = |t: i64| format!("{}.{}", t / 10, t % 10);
            bars.push(Bar { class, x: tenths(x), width: tenths(width) });
            x += width;
        }
    }
    bars
}

fn owed(lang: Lang, snapshot: &Snapshot) -> String {
    let of_type = |kind: &ResourceType| match tasks_of(snapshot, TaskStatus::ForceClosed, *kind) {
        0 => None,
        n => Some(format!("{} {}", lang.word("type", kind.word()), format::count(n))),
    };
    ResourceType::ALL.iter().filter_map(of_type).collect::<Vec<_>>().join(" · ")
}

/// The backlog in business terms. Money is apart by currency, and apart from points.
fn held(lang: Lang, snapshot: &Snapshot) -> Vec<Held> {
    let open = |kind: ResourceType| {
        snapshot.backlog.iter().filter(move |b| b.resource == kind && b.status.is_unfinished()).collect::<Vec<_>>()
    };
    let (points, money): (Vec<_>, Vec<_>) =
        open(ResourceType::Funds).into_iter().partition(|b| b.funds == Some(FundsKind::Points));
    let mut rows = vec![held_row(lang, "overview.held_stock", ResourceType::Stock, &open(ResourceType::Stock))];
    let mut currencies: Vec<&str> = money.iter().filter_map(|b| b.currency.as_deref()).collect();
    currencies.sort_unstable();
    currencies.dedup();
    for currency in currencies {
        let of_currency: Vec<_> = money.iter().filter(|b| b.currency.as_deref() == Some(currency)).copied().collect();
        let row = held_row(lang, "overview.held_money", ResourceType::Funds, &of_currency);
        let sum = of_currency.iter().map(|b| b.qty).sum();
        rows.push(Held { value: format::money(sum, currency), ..row });
    }
    let unknown: Vec<_> = money.iter().filter(|b| b.currency.is_none()).copied().collect();
    if !unknown.is_empty() || money.is_empty() {
        let key = if money.is_empty() { "overview.held_money" } else { "overview.held_money_unknown" };
        rows.push(held_row(lang, key, ResourceType::Funds, &unknown));
    }
    rows.push(held_row(lang, "overview.held_points", ResourceType::Funds, &points));
    rows.push(held_row(lang, "overview.held_coupons", ResourceType::Coupon, &open(ResourceType::Coupon)));
    rows.push(held_row(lang, "overview.held_quota", ResourceType::Quota, &open(ResourceType::Quota)));
    rows.push(held_row(lang, "overview.held_slots", ResourceType::Slot, &open(ResourceType::Slot)));
    rows
}

fn held_row(lang: Lang, key: &str, kind: ResourceType, behind: &[&Backlog]) -> Held {
    let tasks: i64 = behind.iter().map(|b| b.tasks).sum();
    Held {
        label: lang.t(key).to_owned(),
        note: match tasks {
            0 => lang.t("overview.held_none").to_owned(),
            n => lang.n("overview.held_tasks", n, &[]),
        },
        value: format::count(behind.iter().map(|b| b.qty).sum()),
        href: if tasks == 0 { String::new() } else { paths::tasks(&[("type", kind.word())]) },
    }
}

fn failure_rows(lang: Lang, snapshot: &Snapshot) -> Vec<FailureRow> {
    let row = |kind_of: ResourceType, kind: FailureKind, hour, day| FailureRow {
        kind_of: lang.word("type", kind_of.word()),
        kind: lang.word("kind", kind.word()),
        hour: format::count(hour),
        day: format::count(day),
        stat: format!("failures.{}.{}", kind_of.word(), kind.word()),
        href: paths::tasks(&[("type", kind_of.word()), ("kind", kind.word()), ("status", "any")]),
    };
    snapshot.failures.iter().map(|f| row(f.resource, f.kind, f.hour, f.day)).collect()
}

fn closed_rows(eye: &Eye, snapshot: &Snapshot) -> Vec<ClosedRow> {
    let closed = snapshot.recent_closes.iter();
    closed
        .map(|c| ClosedRow {
            href: paths::order(&c.order_no),
            order_no: c.order_no.clone(),
            why: close_reason(eye.lang, &c.reason),
            at: eye.stamp(c.at),
        })
        .collect()
}

/// The reasons we know have words; a shop's own reason is shown as it is.
pub fn close_reason(lang: Lang, reason: &str) -> String {
    match reason {
        "timeout" => lang.t("close.timeout").to_owned(),
        "buyer" => lang.t("close.buyer").to_owned(),
        "operator" => lang.t("close.operator").to_owned(),
        "channel" => lang.t("close.channel").to_owned(),
        "shop" => lang.t("close.shop").to_owned(),
        other => other.to_owned(),
    }
}

fn worker_rows(eye: &Eye, snapshot: &Snapshot) -> Vec<WorkerRow> {
    let workers = snapshot.workers.iter();
    workers
        .map(|w| WorkerRow {
            mark: Mark::worker(eye.lang, eye.now - w.seen_at <= SILENT_MS),
            name: w.name.clone(),
            seen: eye.lang.f("span.ago", &[("age", &eye.ago(w.seen_at))]),
        })
        .collect()
}
