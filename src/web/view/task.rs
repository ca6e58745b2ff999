//! One task: what is not back yet and why, when it is tried, every attempt, what else the order gives
//! back, the flow, and the two acts a person has. Reading is left, acting is right.

use askama::Template;

use super::tasks::{Row, next_text};
use super::{Eye, Figure, Html, Mark, Section, Shell, Stamp, Tone, format};
use crate::core::words::{Action, AttemptOutcome, ResourceType, TaskStatus};
use crate::store::flow::Flow;
use crate::store::task::Attempt;
use crate::store::task_list::{LedgerNow, TaskRow, TaskView};
use crate::web::i18n::Lang;
use crate::web::paths;

#[derive(Template)]
#[template(path = "pages/task.html", blocks = ["content", "live"])]
pub struct TaskPage {
    pub s: Shell,
    pub id: i64,
    pub mark: Mark,
    /// The status as the first word of the sentence.
    pub status: String,
    pub sentence: Html,
    pub why: Html,
    pub version: i64,
    pub figures: Vec<Figure>,
    pub attempts: Vec<AttemptItem>,
    pub written: AttemptItem,
    pub due: String,
    pub siblings: Vec<Row>,
    pub flow: Vec<FlowItem>,
    pub ledger: String,
    pub facts: Vec<(String, Html)>,
    /// Nothing when nobody may act any more, or this reader never may.
    pub forms: Option<Forms>,
    pub no_forms: String,
    /// Who asked for help, when and why.
    pub calls: Vec<(Stamp, String, String)>,
    /// Where somebody who looks after callers asks for help; nothing for others.
    pub call_href: String,
    /// Renews itself while something may still happen.
    pub lives: bool,
    pub self_href: String,
}

/// The two panels of a person who may act.
#[derive(Clone, Debug, Default)]
pub struct Forms {
    pub retry_href: String,
    pub close_href: String,
    pub expected_version: i64,
    pub retry_note: String,
    pub retry_reason: String,
    pub retry_problem: String,
    pub close_reason: String,
    pub close_problem: String,
    pub done_outside: bool,
    /// An owned ledger can't be put right outside Handback: the choice is not offered.
    pub may_be_outside: bool,
    pub asks_password: bool,
    pub password_problem: String,
    pub password_hint: String,
}

pub struct AttemptItem {
    pub at: Stamp,
    pub tone: &'static str,
    pub icon: &'static str,
    pub title: String,
    pub took: String,
    pub by: String,
    pub error: String,
    pub open: bool,
}

pub struct FlowItem {
    pub at: Stamp,
    pub action: &'static str,
    pub source: String,
    pub ref_no: String,
    pub change: String,
    pub after: String,
    pub own: bool,
}

impl TaskPage {
    pub fn new(mut s: Shell, eye: &Eye, view: &TaskView, max_failures: i64, forms: Option<Forms>) -> TaskPage {
        s.section = Section::Tasks;
        let (lang, task) = (eye.lang, &view.row);
        TaskPage {
            id: task.id,
            mark: Mark::task(lang, task.status),
            status: lang.f("task.status_first", &[("status", &capital(lang.word("task", task.status.word())))]),
            sentence: sentence(eye, task),
            why: why(eye, view),
            version: task.version,
            figures: figures(eye, view, max_failures),
            attempts: attempts(eye, &view.attempts),
            written: written(eye, view),
            due: due(eye, task),
            siblings: siblings(eye, view, max_failures),
            flow: view.flow.iter().map(|f| flow_item(eye, f, task.id)).collect(),
            ledger: view.ledger.as_ref().map(|l| ledger(eye, task.resource, l)).unwrap_or_default(),
            facts: facts(eye, view),
            no_forms: no_forms(lang, task.status),
            calls: view.calls.iter().map(|c| (eye.stamp(c.at), actor(lang, &c.actor), c.reason.clone())).collect(),
            call_href: String::new(),
            forms: forms.filter(|_| may_act(task.status)),
            lives: task.status.is_unfinished(),
            self_href: paths::task(task.id),
            s,
        }
    }
}

/// Whether a person can still do anything about it.
pub fn may_act(status: TaskStatus) -> bool {
    status.is_unfinished()
}

fn no_forms(lang: Lang, status: TaskStatus) -> String {
    let key = match status {
        TaskStatus::Succeeded => "task.over_succeeded",
        TaskStatus::ForceClosed => "task.over_closed",
        TaskStatus::Superseded => "task.over_superseded",
        _ => "task.over_role",
    };
    lang.t(key).to_owned()
}

/// With a capital at the front, where the script has capitals.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// What the task is about: `Coupon C-7F3K`, `Stock sku-1 (2 pieces)`.
fn what(lang: Lang, task: &TaskRow) -> Html {
    let kind = capital(lang.word("type", task.resource.word()));
    let mut html = Html::text(&format!("{kind} "));
    html.push(&Html::code(&task.key));
    if !task.resource.is_single() {
        let qty = format::quantity(lang, task.resource, task.qty, task.funds, task.currency.as_deref());
        html.push_text(&format!(" ({qty})"));
    }
    html
}

fn sentence(eye: &Eye, task: &TaskRow) -> Html {
    let key = match (task.status, task.action) {
        (TaskStatus::Succeeded, Action::Settle) => "task.say.settled",
        (TaskStatus::Succeeded, _) => "task.say.back",
        (TaskStatus::ForceClosed, _) => "task.say.force_closed",
        (TaskStatus::Superseded, _) => "task.say.superseded",
        (TaskStatus::Manual, _) => "task.say.manual",
        (_, Action::Settle) => "task.say.settling",
        (_, _) => "task.say.not_back",
    };
    eye.lang.rich(key, &[("what", what(eye.lang, task))])
}

/// Why it stands as it does: the order around it, then the last failure in words.
fn why(eye: &Eye, view: &TaskView) -> Html {
    let (lang, task) = (eye.lang, &view.row);
    let link = Html::link(&paths::order(&task.order_no), &task.order_no);
    let mut html = match &view.order {
        None => lang.rich("task.order_unknown", &[("order", link)]),
        Some(order) => match order.closed_at.filter(|_| task.source == "close") {
            Some(at) => lang.rich("task.order_closed", &[("order", link), ("at", Html::text(&eye.stamp(at).short()))]),
            None => {
                let status = Html::text(lang.word("order", order.status.word()));
                lang.rich("task.order_link", &[("order", link), ("status", status)])
            }
        },
    };
    if task.is_in_doubt && task.status.is_unfinished() {
        html.push_text(lang.gap());
        html.push_text(&doubt(eye, task));
    }
    if let Some(kind) = task.kind.filter(|_| task.status.is_unfinished()) {
        html.push_text(lang.gap());
        html.push_text(lang.word("why", kind.word()));
    }
    html
}

fn figures(eye: &Eye, view: &TaskView, max_failures: i64) -> Vec<Figure> {
    let (lang, task) = (eye.lang, &view.row);
    let mut list = vec![next_figure(eye, task)];
    if task.status.is_unfinished() {
        list.push(Figure {
            label: lang.t("task.tries_left").to_owned(),
            stat: "tries_left",
            value: (max_failures - task.retry).max(0).to_string(),
            unit: lang.f("figure.of", &[("n", &max_failures)]),
            note: lang.t("task.tries_left_note").to_owned(),
            ..Figure::default()
        });
    }
    if let (Some(n), Some(kind)) = (view.same_failure, task.kind) {
        list.push(Figure {
            href: paths::tasks(&[("type", task.resource.word()), ("kind", kind.word())]),
            label: lang.t("task.same").to_owned(),
            stat: "same_failure",
            value: format::count(n),
            unit: lang.t("figure.backlog_unit").to_owned(),
            note: lang.word("kind", kind.word()).to_owned(),
            ..Figure::default()
        });
    }
    list.push(Figure {
        label: lang.t("task.at_stake").to_owned(),
        stat: "qty",
        value: format::quantity(lang, task.resource, task.qty, task.funds, task.currency.as_deref()),
        note: stake_note(eye, view),
        ..Figure::default()
    });
    list.push(Figure {
        label: lang.t("col.age").to_owned(),
        stat: "age",
        value: format::span(lang, task.finished_at.unwrap_or(eye.now) - task.created_at),
        note: lang.f("task.made", &[("at", &eye.stamp(task.created_at).short())]),
        ..Figure::default()
    });
    list
}

fn next_figure(eye: &Eye, task: &TaskRow) -> Figure {
    let lang = eye.lang;
    let (label, note, tone) = match (task.status, task.next_at) {
        (TaskStatus::Manual, _) => ("task.next", lang.t("task.next_manual").to_owned(), Tone::Bad),
        (status, Some(at)) if status.is_unfinished() && at > eye.now => {
            ("task.next", lang.f("task.next_in", &[("span", &format::span(lang, at - eye.now))]), Tone::Calm)
        }
        (status, _) if status.is_unfinished() => ("task.next", lang.t("task.next_due").to_owned(), Tone::Calm),
        _ => ("task.ended", task.ended_by.as_deref().map(|by| actor(lang, by)).unwrap_or_default(), Tone::Calm),
    };
    Figure {
        label: lang.t(label).to_owned(),
        stat: "next",
        value: next_text(eye, task),
        note,
        tone,
        ..Figure::default()
    }
}

fn stake_note(eye: &Eye, view: &TaskView) -> String {
    match view.ledger.as_ref().and_then(|l| l.expires_at) {
        Some(at) => eye.lang.f("task.ends", &[("at", &eye.stamp(at).short())]),
        None => eye.lang.word("type", view.row.resource.word()).to_owned(),
    }
}

/// An actor as a reader knows it: `worker w-1`, `operator ops-03`.
pub fn actor(lang: Lang, actor: &str) -> String {
    match actor.split_once(':') {
        Some((kind @ ("worker" | "operator" | "token" | "trigger"), name)) => {
            let name = if kind == "trigger" { lang.word("trigger", name) } else { name };
            format!("{} {name}", lang.word("actor", kind))
        }
        _ if actor == "reconcile" => lang.word("actor", "reconcile").to_owned(),
        _ => actor.to_owned(),
    }
}

fn attempts(eye: &Eye, attempts: &[Attempt]) -> Vec<AttemptItem> {
    let newest_first = attempts.iter().rev().enumerate();
    newest_first.map(|(i, attempt)| attempt_item(eye, attempt, i == 0)).collect()
}

fn attempt_item(eye: &Eye, a: &Attempt, newest: bool) -> AttemptItem {
    let lang = eye.lang;
    let (tone, icon, title) = match (a.outcome, a.ended_at) {
        (Some(AttemptOutcome::Failed), _) => {
            let kind = a.kind.map_or("", |k| lang.word("kind", k.word()));
            ("warn", "retry", lang.f("task.try_failed", &[("n", &a.n), ("kind", &kind)]))
        }
        (Some(outcome), _) => {
            let outcome = lang.word("outcome", outcome.word());
            ("good", "ok", lang.f("task.try_ended", &[("n", &a.n), ("outcome", &outcome)]))
        }
        (None, _) => ("muted", "run", lang.f("task.try_runs", &[("n", &a.n)])),
    };
    let fence = lang.f("task.fence", &[("n", &a.fence)]);
    AttemptItem {
        at: eye.stamp(a.started_at),
        tone,
        icon,
        title,
        // A local try is part of one transaction: it takes no time of its own.
        took: a
            .ended_at
            .filter(|end| *end > a.started_at)
            .map(|end| format::span(lang, end - a.started_at))
            .unwrap_or_default(),
        by: format!("{} · {fence}", actor(lang, &a.actor)),
        error: a.error.clone().unwrap_or_default(),
        open: newest,
    }
}

fn written(eye: &Eye, view: &TaskView) -> AttemptItem {
    let key = match view.row.source.as_str() {
        "close" => "task.written_close",
        "pay" => "task.written_pay",
        _ => "task.written",
    };
    AttemptItem {
        at: eye.stamp(view.row.created_at),
        tone: "muted",
        icon: "wait",
        title: eye.lang.t(key).to_owned(),
        took: String::new(),
        by: eye.lang.f("task.source", &[("source", &view.row.source)]),
        error: String::new(),
        open: false,
    }
}

/// The planned next try, as the top of the list of attempts.
/// It was sent, or is being sent, and nobody knows yet what became of it.
fn doubt(eye: &Eye, task: &TaskRow) -> String {
    match (&task.claimed_by, task.sent_at) {
        (Some(by), _) => eye.lang.f("task.being_sent", &[("by", &actor(eye.lang, by))]),
        (None, Some(at)) => eye.lang.f("task.in_doubt", &[("at", &eye.stamp(at).short())]),
        (None, None) => eye.lang.t("task.in_doubt_since").to_owned(),
    }
}

fn due(eye: &Eye, task: &TaskRow) -> String {
    match task.next_at {
        Some(at) if task.status.is_unfinished() => {
            eye.lang.f("task.try_due", &[("n", &(task.retry + 1)), ("at", &eye.stamp(at).short())])
        }
        _ => String::new(),
    }
}

fn siblings(eye: &Eye, view: &TaskView, max_failures: i64) -> Vec<Row> {
    let rows = view.siblings.iter();
    rows.map(|task| Row { here: task.id == view.row.id, ..Row::new(eye, task, max_failures) }).collect()
}

fn flow_item(eye: &Eye, f: &Flow, task: i64) -> FlowItem {
    let figures = [f.available_after, f.locked_after, f.sold_after];
    let after = match figures {
        [Some(available), Some(locked), Some(sold)] => eye.lang.f(
            "task.flow_after",
            &[
                ("available", &format::count(available)),
                ("locked", &format::count(locked)),
                ("sold", &format::count(sold)),
            ],
        ),
        _ => String::new(),
    };
    FlowItem {
        at: eye.stamp(f.at),
        action: eye.lang.word("action", f.action.word()),
        source: f.source.clone(),
        ref_no: f.ref_no.clone(),
        change: format::count(f.qty),
        after,
        own: f.task_id == Some(task),
    }
}

/// The ledger now: figures, or the state of one coupon or slot.
fn ledger(eye: &Eye, resource: ResourceType, l: &LedgerNow) -> String {
    let lang = eye.lang;
    let mut text = if resource.is_single() {
        let state = match (l.available, l.locked, l.sold) {
            (1, ..) if l.expires_at.is_some_and(|end| end <= eye.now) => "expired",
            (1, ..) => "unused",
            (_, 1, _) => "locked",
            _ => "used",
        };
        lang.f(
            "task.ledger_single",
            &[("state", &lang.word("single", state)), ("holder", &l.holder_no.as_deref().unwrap_or("–"))],
        )
    } else {
        let (available, locked, sold) = (format::count(l.available), format::count(l.locked), format::count(l.sold));
        lang.f("task.ledger_figures", &[("available", &available), ("locked", &locked), ("sold", &sold)])
    };
    if l.retired {
        text.push_str(lang.gap());
        text.push_str(lang.t("task.ledger_retired"));
    }
    text
}

fn facts(eye: &Eye, view: &TaskView) -> Vec<(String, Html)> {
    let (lang, task) = (eye.lang, &view.row);
    let action = lang.word("action", task.action.word());
    let round = task.round.to_string();
    let mut facts = vec![
        (
            lang.t("task.fact_action").to_owned(),
            Html::text(
                &lang.f("task.fact_action_is", &[("action", &action), ("source", &task.source), ("round", &round)]),
            ),
        ),
        (lang.t("col.key").to_owned(), what(lang, task)),
        (lang.t("task.fact_ref").to_owned(), Html::code(&task.ref_no)),
        (lang.t("task.fact_fence").to_owned(), Html::text(&format!("{} / {}", task.fence, task.version))),
    ];
    if let Some(issuer) = view.ledger.as_ref().and_then(|l| l.issuer.as_deref()) {
        facts.push((lang.t("task.fact_issuer").to_owned(), Html::code(issuer)));
    }
    if let Some(at) = task.sent_at {
        facts.push((lang.t("task.fact_sent").to_owned(), Html::text(&eye.stamp(at).full)));
    }
    if let Some(by) = &task.ended_by {
        facts.push((lang.t("task.fact_ended").to_owned(), Html::text(&actor(lang, by))));
    }
    if let Some(error) = &task.error {
        facts.push((lang.t("task.fact_error").to_owned(), Html::code(error)));
    }
    facts
}
