//! What the overview says first: the sentence of a colleague, worst thing first, and the strip of figures.

use super::SILENT_MS;
use crate::core::reconcile::Known;
use crate::core::words::TaskStatus;
use crate::store::overview::{Snapshot, Tries};
use crate::web::i18n::Lang;
use crate::web::paths;
use crate::web::view::{Eye, Figure, Link, Tone, format};

/// The alarm of the oldest task: 5 minutes waited is noted, 10 is bad.
const OLD_MS: i64 = 5 * 60_000;
const TOO_OLD_MS: i64 = 10 * 60_000;

/// The sums that the sentence and the figures are made of.
pub struct Sums<'a> {
    pub snapshot: &'a Snapshot,
    pub waiting: i64,
    pub retrying: i64,
    pub manual: i64,
    alive: usize,
}

impl Sums<'_> {
    pub fn of(snapshot: &Snapshot, now: i64) -> Sums<'_> {
        let sum = |status| snapshot.backlog.iter().filter(|b| b.status == status).map(|b| b.tasks).sum();
        Sums {
            snapshot,
            waiting: sum(TaskStatus::Waiting),
            retrying: sum(TaskStatus::Retrying),
            manual: sum(TaskStatus::Manual),
            alive: snapshot.workers.iter().filter(|w| now - w.seen_at <= SILENT_MS).count(),
        }
    }

    pub fn moving(&self) -> i64 {
        self.waiting + self.retrying
    }

    fn oldest_ms(&self, now: i64) -> Option<i64> {
        self.snapshot.oldest.as_ref().map(|o| now - o.created_at)
    }
}

/// What a colleague would say, worst first.
pub fn headline(eye: &Eye, sums: &Sums) -> (Tone, String) {
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

pub fn detail(eye: &Eye, sums: &Sums) -> String {
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

pub fn acts(lang: Lang, sums: &Sums) -> Vec<Link> {
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

pub fn figures(eye: &Eye, sums: &Sums) -> Vec<Figure> {
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
        unexplained_figure(eye, sums.snapshot),
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

/// What the last reconciliation could not explain; a figure only once there was one.
fn unexplained_figure(eye: &Eye, snapshot: &Snapshot) -> Figure {
    let lang = eye.lang;
    let known = Known::of(&snapshot.reconciled);
    let figure = Figure {
        href: paths::RECONCILE.to_owned(),
        label: lang.t("figure.unexplained").to_owned(),
        stat: "reconcile.unexplained",
        ..Figure::default()
    };
    match (known.findings(), known.finished_at) {
        (Some(keys), Some(at)) => Figure {
            raw: Some(keys),
            value: format::count(keys),
            unit: lang.t("figure.unexplained_unit").to_owned(),
            note: lang.f("figure.unexplained_note", &[("age", &eye.ago(at))]),
            tone: if keys > 0 { Tone::Bad } else { Tone::Calm },
            ..figure
        },
        _ => Figure { value: "–".to_owned(), note: lang.t("figure.unexplained_none").to_owned(), ..figure },
    }
}

fn success_figure(lang: Lang, snapshot: &Snapshot) -> Figure {
    let share = |tries: Option<Tries>| tries.and_then(|t| format::percent(t.succeeded, t.all));
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
