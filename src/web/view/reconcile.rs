//! The reconciliation: how many keys nothing explains, what is locked and why by type, each finding with the
//! orders and tasks behind it, and the last runs. What unfinished tasks explain stands apart: it is no difference.

use askama::Template;

use super::{Empty, Eye, Link, Mark, Section, Shell, Stamp, Tone, format};
use crate::core::reconcile::Latest;
use crate::core::words::{ResourceType, RunStatus};
use crate::store::reconcile_run::{Diff, Run, Total};
use crate::web::i18n::Lang;
use crate::web::paths;
use crate::web::view::task::actor;

#[derive(Template)]
#[template(path = "pages/reconcile.html", blocks = ["content"])]
pub struct ReconcilePage {
    pub s: Shell,
    pub tone: Tone,
    pub headline: String,
    pub detail: String,
    /// Somebody who may begin a run.
    pub may_run: bool,
    /// The run that is going on.
    pub running: String,
    pub sums: Vec<SumRow>,
    pub findings: Vec<FindingRow>,
    pub more: String,
    pub runs: Vec<RunRow>,
    pub empty: Option<Empty>,
    pub types: Vec<(&'static str, &'static str)>,
}

pub struct SumRow {
    pub kind: &'static str,
    pub stat: String,
    pub in_ledger: String,
    pub expected: String,
    pub explained: String,
    pub unexplained: String,
    pub amount: i64,
    pub is_bad: bool,
}

pub struct FindingRow {
    pub class: &'static str,
    pub kind: &'static str,
    pub key: String,
    pub in_ledger: String,
    pub expected: String,
    pub explained: String,
    pub unexplained: String,
    pub orders: Vec<Link>,
    pub tasks: Vec<Link>,
    pub first_seen: Stamp,
    pub means: &'static str,
}

pub struct RunRow {
    pub id: i64,
    pub href: String,
    pub mark: Mark,
    pub what: &'static str,
    pub by: String,
    pub started: Stamp,
    pub checked: String,
    pub findings: String,
    pub note: String,
}

/// What the page is made of.
pub struct Seen<'a> {
    /// The sums that are shown, each with its run.
    pub latest: &'a [Latest],
    pub snapshot_at: Option<i64>,
    pub diffs: &'a [Diff],
    pub runs: &'a [Run],
    /// A single run is shown, not how things stand.
    pub only: Option<&'a Run>,
    pub may_run: bool,
}

/// Findings shown on the page; the rest is told by the command and the API.
pub const ROWS: usize = 200;

impl ReconcilePage {
    pub fn new(mut s: Shell, eye: &Eye, seen: &Seen<'_>) -> ReconcilePage {
        s.section = Section::Reconcile;
        let lang = eye.lang;
        let findings: i64 = seen.latest.iter().map(|known| known.total.findings).sum();
        let keys: i64 = seen.latest.iter().map(|known| known.total.keys).sum();
        let (tone, headline) = match (seen.latest.is_empty(), findings) {
            (true, _) => (Tone::Calm, lang.t("reconcile.never").to_owned()),
            (false, 0) => (Tone::Good, lang.n("reconcile.all_agree", keys, &[])),
            (false, n) => {
                (Tone::Bad, lang.n("reconcile.not_explained", n, &[("rest", &format::count((keys - n).max(0)))]))
            }
        };
        let detail = match (seen.only, seen.snapshot_at) {
            (Some(run), Some(at)) => lang.f("reconcile.of_run", &[("run", &run.id), ("at", &eye.stamp(at).short())]),
            (_, Some(at)) => lang.f("reconcile.how", &[("at", &eye.stamp(at).short())]),
            (_, None) => lang.t("reconcile.never_text").to_owned(),
        };
        let running = seen.runs.iter().find(|run| run.status == RunStatus::Running);
        let more = seen.diffs.len().saturating_sub(ROWS);
        ReconcilePage {
            tone,
            headline,
            detail,
            may_run: seen.may_run,
            running: running.map_or_else(String::new, |run| {
                lang.f("reconcile.running", &[("run", &run.id), ("at", &eye.stamp(run.started_at).short())])
            }),
            sums: seen.latest.iter().map(|known| SumRow::new(lang, &known.total)).collect(),
            findings: seen.diffs.iter().take(ROWS).map(|diff| FindingRow::new(eye, diff)).collect(),
            more: if more == 0 {
                String::new()
            } else {
                lang.f("reconcile.more", &[("n", &format::count(more as i64))])
            },
            runs: seen.runs.iter().map(|run| RunRow::new(eye, run)).collect(),
            empty: (seen.diffs.is_empty() && !seen.latest.is_empty()).then(|| Empty {
                title: lang.t("reconcile.no_findings").to_owned(),
                text: lang.t("reconcile.no_findings_text").to_owned(),
                link: None,
            }),
            types: ResourceType::LEDGERS.map(|kind| (kind.word(), lang.word("type", kind.word()))).into(),
            s,
        }
    }
}

/// `+2 −1`, `0`.
fn both_ways(over: i64, under: i64) -> String {
    match (over, under) {
        (0, 0) => "0".to_owned(),
        (over, 0) => format!("+{}", format::count(over)),
        (0, under) => format::count(-under),
        (over, under) => format!("+{} {}", format::count(over), format::count(-under)),
    }
}

fn signed(n: i64) -> String {
    if n > 0 { format!("+{}", format::count(n)) } else { format::count(n) }
}

impl SumRow {
    fn new(lang: Lang, total: &Total) -> SumRow {
        let word = ResourceType::from_code(total.resource).map_or("", ResourceType::word);
        SumRow {
            kind: lang.word("type", word),
            stat: format!("reconcile.unexplained.{word}"),
            in_ledger: format::count(total.in_ledger),
            expected: format::count(total.expected),
            explained: format::count(total.explained),
            unexplained: both_ways(total.over, total.under),
            amount: total.over + total.under,
            is_bad: total.findings > 0,
        }
    }
}

impl FindingRow {
    fn new(eye: &Eye, diff: &Diff) -> FindingRow {
        let lang = eye.lang;
        FindingRow {
            class: lang.word("diff", diff.class.word()),
            means: lang.word("diff_means", diff.class.word()),
            kind: lang.word("type", diff.resource.word()),
            key: diff.key.clone(),
            in_ledger: format::count(diff.in_ledger),
            expected: format::count(diff.expected),
            explained: format::count(diff.explained),
            unexplained: match diff.unexplained {
                missing if missing < 0 => lang.f("reconcile.missing", &[("n", &format::count(-missing))]),
                over if over > 0 => lang.f("reconcile.over", &[("n", &signed(over))]),
                _ => lang.t("reconcile.sums_agree").to_owned(),
            },
            orders: diff.orders.iter().map(|no| Link { href: paths::order(no), text: no.clone() }).collect(),
            tasks: diff.tasks.iter().map(|id| Link { href: paths::task(*id), text: id.to_string() }).collect(),
            first_seen: eye.stamp(diff.first_seen),
        }
    }
}

impl RunRow {
    fn new(eye: &Eye, run: &Run) -> RunRow {
        let lang = eye.lang;
        let is_done = run.status == RunStatus::Done;
        let findings: i64 = run.totals.iter().map(|total| total.findings).sum();
        RunRow {
            id: run.id,
            href: paths::reconcile_run(run.id),
            mark: Mark::run(lang, run.status),
            what: run.resource.map_or_else(|| lang.t("reconcile.all_types"), |kind| lang.word("type", kind.word())),
            by: actor(lang, &run.started_by),
            started: eye.stamp(run.started_at),
            checked: if is_done { format::count(run.checked) } else { "–".to_owned() },
            findings: if is_done { format::count(findings) } else { "–".to_owned() },
            note: run.error.clone().unwrap_or_default(),
        }
    }
}
