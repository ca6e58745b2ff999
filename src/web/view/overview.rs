//! The overview: what a colleague would say first, then the figures behind it. A figure that is not
//! known says so; 0 is only what was counted as 0.

use askama::Template;

use super::{Eye, Figure, Link, Mark, Section, Shell, Stamp, Tone, format};
use crate::core::words::{FailureKind, FundsKind, ResourceType, TaskStatus};
use crate::store::overview::{Backlog, Snapshot};
use crate::web::i18n::Lang;
use crate::web::paths;

/// The alarm of the oldest task: 5 minutes waited is noted, 10 is bad.
const OLD_MS: i64 = 5 * 60_000;
const TOO_OLD_MS: i64 = 10 * 60_000;
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

/// The sums that the sentence and the figures are made of.
struct Sums<'a> {
    snapshot: &'a Snapshot,
    waiting: i64,
    retrying: i64,
    manual: i64,
    alive: usize,
}

impl Sums<'_> {
    fn of(snapshot: &Snapshot, now: i64) -> Sums<'_> {
        let sum = |status| snapshot.backlog.iter().filter(|b| b.status == status).map(|b| b.tasks).sum();
        Sums {
            snapshot,
            waiting: sum(TaskStatus::Waiting),
            retrying: sum(TaskStatus::Retrying),
            manual: sum(TaskStatus::Manual),
            alive: snapshot.workers.iter().filter(|w| now - w.seen_at <= SILENT_MS).count(),
        }
    }

    fn moving(&self) -> i64 {
        self.waiting + self.retrying
    }

    fn oldest_ms(&self, now: i64) -> Option<i64> {
        self.snapshot.oldest.as_ref().map(|o| now - o.created_at)
    }
}

impl OverviewPage {
    pub fn new(mut s: Shell, eye: &Eye, snapshot: &Snapshot) -> OverviewPage {
        s.section = Section::Overview;
        s.stream_view = "overview";
        let sums = Sums::of(snapshot, eye.now);
        let (tone, headline) = headline(eye, &sums);
        let backlog = backlog_rows(eye.lang, snapshot);
        OverviewPage {
            tone,
            headline,
            detail: detail(eye, &sums),
            acts: acts(eye.lang, &sums),
            as_of: eye.stamp(snapshot.at),
            figures: figures(eye, &sums),
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

/// What a colleague would say, worst first.
fn headline(eye: &Eye, sums: &Sums) -> (Tone, String) {
    let lang = eye.lang;
    let oldest = sums.oldest_ms(eye.now).unwrap_or(0);
    if sums.alive == 0 {
        let key = if sums.moving() > 0 { "overview.say.nobody_works" } else { "overview.say.nobody_idle" };
        return (Tone::Bad, lang.t(key).to_owned());
    }
    if oldest > TOO_OLD_MS {
        return (Tone::Bad, lang.f("overview.say.stuck", &[("age", &format::span(lang, oldest))]));
    }
    if sums.manual > 0 {
        return (Tone::Bad, lang.n("overview.say.manual", sums.manual, &[]));
    }
    if oldest > OLD_MS {
        return (Tone::Warn, lang.f("overview.say.slow", &[("age", &format::span(lang, oldest))]));
    }
    if sums.retrying > 0 {
        return (Tone::Warn, lang.n("overview.say.retrying", sums.retrying, &[]));
    }
    match sums.waiting {
        0 if sums.snapshot.recent_closes.is_empty() => (Tone::Good, lang.t("overview.say.nothing_yet").to_owned()),
        0 => (Tone::Good, lang.t("overview.say.all_back").to_owned()),
        n => (Tone::Good, lang.n("overview.say.flowing", n, &[])),
    }
}

fn detail(eye: &Eye, sums: &Sums) -> String {
    let lang = eye.lang;
    let mut said = Vec::new();
    if sums.manual > 0 {
        said.push(lang.n("overview.detail.manual", sums.manual, &[]));
    }
    if sums.retrying > 0 {
        said.push(lang.n("overview.detail.retrying", sums.retrying, &[]));
    }
    if sums.waiting > 0 {
        said.push(lang.n("overview.detail.waiting", sums.waiting, &[]));
    }
    if said.is_empty() {
        said.push(lang.t("overview.detail.nothing").to_owned());
    }
    said.join(lang.gap())
}

fn acts(lang: Lang, sums: &Sums) -> Vec<Link> {
    let mut acts = Vec::new();
    if sums.manual > 0 {
        let text = lang.n("overview.act.manual", sums.manual, &[]);
        acts.push(Link { href: paths::tasks(&[("status", "manual")]), text });
    }
    if sums.retrying > 0 {
        let text = lang.n("overview.act.retrying", sums.retrying, &[]);
        acts.push(Link { href: paths::tasks(&[("status", "retrying")]), text });
    }
    acts
}

fn figures(eye: &Eye, sums: &Sums) -> Vec<Figure> {
    let lang = eye.lang;
    vec![
        oldest_figure(eye, sums),
        Figure {
            href: paths::TASKS.to_owned(),
            label: lang.t("figure.backlog").to_owned(),
            stat: "backlog.total",
            raw: Some(sums.moving() + sums.manual),
            value: format::count(sums.moving() + sums.manual),
            unit: lang.t("figure.backlog_unit").to_owned(),
            note: lang.n("figure.backlog_note", sums.snapshot.orders_affected, &[]),
            tone: Tone::Calm,
        },
        manual_figure(eye, sums),
        success_figure(lang, sums.snapshot),
        Figure {
            href: String::new(),
            label: lang.t("figure.workers").to_owned(),
            stat: "workers",
            raw: i64::try_from(sums.alive).ok(),
            value: sums.alive.to_string(),
            unit: lang.f("figure.of", &[("n", &sums.snapshot.workers.len())]),
            note: lang.t(if sums.alive > 0 { "figure.workers_seen" } else { "figure.workers_silent" }).to_owned(),
            tone: if sums.alive > 0 { Tone::Calm } else { Tone::Bad },
        },
    ]
}

fn oldest_figure(eye: &Eye, sums: &Sums) -> Figure {
    let lang = eye.lang;
    let (label, stat) = (lang.t("figure.oldest").to_owned(), "oldest_age_s");
    match &sums.snapshot.oldest {
        None => Figure {
            label,
            stat,
            value: "–".to_owned(),
            note: lang.t("figure.oldest_none").to_owned(),
            ..Figure::default()
        },
        Some(oldest) => {
            let age = eye.now - oldest.created_at;
            let tone = match age {
                a if a > TOO_OLD_MS => Tone::Bad,
                a if a > OLD_MS => Tone::Warn,
                _ => Tone::Calm,
            };
            let note = lang.f("figure.oldest_note", &[("type", &lang.word("type", oldest.resource.word()))]);
            Figure {
                href: paths::task(oldest.task),
                label,
                stat,
                raw: Some(age.max(0) / 1_000),
                value: format::span(lang, age),
                note,
                tone,
                ..Figure::default()
            }
        }
    }
}

fn manual_figure(eye: &Eye, sums: &Sums) -> Figure {
    let lang = eye.lang;
    let note = match sums.snapshot.oldest_manual {
        Some(at) => lang.f("figure.manual_note", &[("age", &eye.ago(at))]),
        None => lang.t("figure.manual_none").to_owned(),
    };
    Figure {
        href: if sums.manual > 0 { paths::tasks(&[("status", "manual")]) } else { String::new() },
        label: lang.t("figure.manual").to_owned(),
        stat: "needs_person.tasks",
        raw: Some(sums.manual),
        value: format::count(sums.manual),
        note,
        tone: if sums.manual > 0 { Tone::Bad } else { Tone::Calm },
        ..Figure::default()
    }
}

fn success_figure(lang: Lang, snapshot: &Snapshot) -> Figure {
    let share = |tries: Option<crate::store::overview::Tries>| tries.and_then(|t| format::percent(t.succeeded, t.all));
    let label = lang.t("figure.success").to_owned();
    let day = match share(snapshot.tries_day) {
        Some(day) => lang.f("figure.success_day", &[("share", &day)]),
        None => lang.t("figure.success_none").to_owned(),
    };
    let low = snapshot.tries_hour.is_some_and(|t| t.succeeded * 100 < t.all * 95);
    match share(snapshot.tries_hour) {
        None => Figure { label, stat: "success_rate.hour", value: "–".to_owned(), note: day, ..Figure::default() },
        Some(value) => Figure {
            label,
            stat: "success_rate.hour",
            value,
            unit: "%".to_owned(),
            note: day,
            tone: if low { Tone::Warn } else { Tone::Calm },
            ..Figure::default()
        },
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
