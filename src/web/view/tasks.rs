//! The list of tasks: how many match in words, the filter (which lives in the address), the rows.

use askama::Template;

use super::{Empty, Eye, Link, Mark, Section, Shell, Stamp, format};
use crate::core::words::{FailureKind, ResourceType, TaskStatus};
use crate::store::task_list::{COUNT_LIMIT, Filter, Page, TaskRow};
use crate::web::i18n::Lang;
use crate::web::paths;

#[derive(Template)]
#[template(path = "pages/tasks.html", blocks = ["content"])]
pub struct TasksPage {
    pub s: Shell,
    pub headline: String,
    pub statuses: Vec<Choice>,
    pub types: Vec<Choice>,
    pub kinds: Vec<Choice>,
    pub ages: Vec<Choice>,
    pub order_no: String,
    pub key: String,
    pub error: String,
    pub chips: Vec<Link>,
    pub rows: Vec<Row>,
    pub empty: Option<Empty>,
    pub shown: String,
    pub first: String,
    pub next: String,
}

/// One entry of a select.
pub struct Choice {
    pub value: String,
    pub text: String,
    pub selected: bool,
}

/// A task in a list.
pub struct Row {
    pub id: i64,
    pub href: String,
    pub mark: Mark,
    pub kind_of: &'static str,
    pub key: String,
    pub qty: String,
    pub action: &'static str,
    pub order_no: String,
    pub order_href: String,
    pub kind: &'static str,
    pub error: String,
    pub tries: String,
    /// When it is tried next, when it ended, or who has it.
    pub next: String,
    pub age: String,
    pub made: Stamp,
    pub here: bool,
}

impl Row {
    pub fn new(eye: &Eye, task: &TaskRow, max_failures: i64) -> Row {
        let lang = eye.lang;
        Row {
            id: task.id,
            href: paths::task(task.id),
            mark: Mark::task(lang, task.status),
            kind_of: lang.word("type", task.resource.word()),
            key: task.key.clone(),
            qty: format::quantity(lang, task.resource, task.qty, task.funds, task.currency.as_deref()),
            action: lang.word("action", task.action.word()),
            order_no: task.order_no.clone(),
            order_href: paths::order(&task.order_no),
            kind: task.kind.map_or("", |k| lang.word("kind", k.word())),
            error: task.error.clone().unwrap_or_default(),
            tries: lang.f("tasks.tries", &[("n", &task.retry), ("max", &max_failures)]),
            next: next_text(eye, task),
            age: eye.ago(task.created_at),
            made: eye.stamp(task.created_at),
            here: false,
        }
    }
}

/// When something happens to it next, in a few words.
pub fn next_text(eye: &Eye, task: &TaskRow) -> String {
    match (task.finished_at, task.next_at) {
        (Some(at), _) => eye.stamp(at).short(),
        _ if task.status == TaskStatus::Manual => eye.lang.t("tasks.next_person").to_owned(),
        (None, Some(at)) if at <= eye.now => eye.lang.t("tasks.next_now").to_owned(),
        (None, Some(at)) => eye.stamp(at).short(),
        (None, None) => eye.lang.t("tasks.next_none").to_owned(),
    }
}

impl TasksPage {
    pub fn new(mut s: Shell, eye: &Eye, filter: &Filter, page: &Page, is_first: bool, max_failures: i64) -> TasksPage {
        s.section = Section::Tasks;
        let lang = eye.lang;
        let rows: Vec<Row> = page.rows.iter().map(|t| Row::new(eye, t, max_failures)).collect();
        TasksPage {
            headline: headline(lang, page),
            statuses: statuses(lang, filter),
            types: choices(
                ResourceType::ALL.iter().map(|t| (t.word(), lang.word("type", t.word()))),
                words(&filter.types, |t| t.word()),
                lang,
            ),
            kinds: choices(
                FailureKind::ALL.iter().map(|k| (k.word(), lang.word("kind", k.word()))),
                words(&filter.kinds, |k| k.word()),
                lang,
            ),
            ages: ages(lang, filter.older_than_s),
            order_no: filter.order_no.clone(),
            key: filter.key.clone(),
            error: filter.error.clone(),
            chips: chips(lang, filter),
            empty: rows.is_empty().then(|| empty(lang, filter)),
            shown: lang.n("tasks.shown", i64::try_from(rows.len()).unwrap_or(0), &[]),
            first: if is_first { String::new() } else { address(filter, "") },
            next: page.next.as_ref().map(|cursor| address(filter, cursor)).unwrap_or_default(),
            rows,
            s,
        }
    }
}

fn headline(lang: Lang, page: &Page) -> String {
    match page.matching {
        Some(n) if n > COUNT_LIMIT => lang.f("tasks.say_many", &[("n", &format::count(COUNT_LIMIT))]),
        Some(0) => lang.t("tasks.say_none").to_owned(),
        Some(n) => lang.n("tasks.say", n, &[]),
        None if page.rows.is_empty() => lang.t("tasks.say_none").to_owned(),
        None => lang.t("tasks.say_newest").to_owned(),
    }
}

fn words<T: Copy>(values: &[T], word: fn(T) -> &'static str) -> String {
    values.iter().map(|v| word(*v)).collect::<Vec<_>>().join(",")
}

/// The status part of the address: empty for what is unfinished, which is what a list starts with.
fn status_words(filter: &Filter) -> String {
    match words(&filter.statuses, TaskStatus::word).as_str() {
        "waiting,retrying,manual" => String::new(),
        "" => "any".to_owned(),
        some => some.to_owned(),
    }
}

fn statuses(lang: Lang, filter: &Filter) -> Vec<Choice> {
    let now = status_words(filter);
    let mut list = vec![
        (String::new(), lang.t("tasks.status_open").to_owned()),
        ("retrying,manual".to_owned(), lang.t("tasks.status_failing").to_owned()),
    ];
    list.extend(TaskStatus::ALL.iter().map(|s| (s.word().to_owned(), lang.word("task", s.word()).to_owned())));
    list.push(("any".to_owned(), lang.t("tasks.any").to_owned()));
    if !list.iter().any(|(value, _)| *value == now) {
        let text = filter.statuses.iter().map(|s| lang.word("task", s.word())).collect::<Vec<_>>().join(", ");
        list.push((now.clone(), text));
    }
    list.into_iter().map(|(value, text)| Choice { selected: value == now, value, text }).collect()
}

fn choices(all: impl Iterator<Item = (&'static str, &'static str)>, now: String, lang: Lang) -> Vec<Choice> {
    let mut list = vec![(String::new(), lang.t("tasks.any").to_owned())];
    list.extend(all.map(|(word, text)| (word.to_owned(), text.to_owned())));
    if !list.iter().any(|(value, _)| *value == now) {
        list.push((now.clone(), now.replace(',', ", ")));
    }
    list.into_iter().map(|(value, text)| Choice { selected: value == now, value, text }).collect()
}

fn ages(lang: Lang, now: Option<i64>) -> Vec<Choice> {
    let mut list = vec![(None, lang.t("tasks.any").to_owned())];
    let mut steps = vec![60, 300, 600, 3_600, 86_400];
    if let Some(own) = now.filter(|own| !steps.contains(own)) {
        steps.push(own);
    }
    list.extend(steps.into_iter().map(|s| (Some(s), age_text(lang, s))));
    let value = |s: Option<i64>| s.map(|s| s.to_string()).unwrap_or_default();
    list.into_iter().map(|(s, text)| Choice { value: value(s), text, selected: s == now }).collect()
}

fn age_text(lang: Lang, s: i64) -> String {
    lang.f("tasks.older", &[("age", &format::span(lang, s.saturating_mul(1_000)))])
}

/// The filter as an address.
fn address(filter: &Filter, cursor: &str) -> String {
    let older = filter.older_than_s.map(|s| s.to_string()).unwrap_or_default();
    paths::tasks(&[
        ("status", &status_words(filter)),
        ("type", &words(&filter.types, |t| t.word())),
        ("kind", &words(&filter.kinds, |k| k.word())),
        ("order_no", &filter.order_no),
        ("key", &filter.key),
        ("error", &filter.error),
        ("older_than_s", &older),
        ("cursor", cursor),
    ])
}

/// What is filtered, each with the address that takes it away.
fn chips(lang: Lang, filter: &Filter) -> Vec<Link> {
    let mut chips = Vec::new();
    let mut chip = |name: &str, value: String, without: Filter| {
        chips.push(Link {
            href: address(&without, ""),
            text: lang.f("tasks.chip", &[("name", &name), ("value", &value)]),
        });
    };
    let list = |texts: Vec<&str>| texts.join(", ");
    if !status_words(filter).is_empty() {
        let value = match filter.statuses.is_empty() {
            true => lang.t("tasks.any").to_owned(),
            false => list(filter.statuses.iter().map(|s| lang.word("task", s.word())).collect()),
        };
        chip(lang.t("col.status"), value, Filter { statuses: Filter::open().statuses, ..filter.clone() });
    }
    if !filter.types.is_empty() {
        let value = list(filter.types.iter().map(|t| lang.word("type", t.word())).collect());
        chip(lang.t("col.type"), value, Filter { types: Vec::new(), ..filter.clone() });
    }
    if !filter.kinds.is_empty() {
        let value = list(filter.kinds.iter().map(|k| lang.word("kind", k.word())).collect());
        chip(lang.t("col.kind"), value, Filter { kinds: Vec::new(), ..filter.clone() });
    }
    if !filter.order_no.is_empty() {
        chip(lang.t("col.order"), filter.order_no.clone(), Filter { order_no: String::new(), ..filter.clone() });
    }
    if !filter.key.is_empty() {
        chip(lang.t("col.key"), filter.key.clone(), Filter { key: String::new(), ..filter.clone() });
    }
    if !filter.error.is_empty() {
        chip(lang.t("tasks.error"), filter.error.clone(), Filter { error: String::new(), ..filter.clone() });
    }
    if let Some(s) = filter.older_than_s {
        chip(lang.t("col.age"), age_text(lang, s), Filter { older_than_s: None, ..filter.clone() });
    }
    chips
}

fn empty(lang: Lang, filter: &Filter) -> Empty {
    if *filter == Filter::open() {
        return Empty {
            title: lang.t("tasks.empty_open").to_owned(),
            text: lang.t("tasks.empty_open_text").to_owned(),
            link: Some(Link { href: paths::tasks(&[("status", "any")]), text: lang.t("tasks.show_all").to_owned() }),
        };
    }
    let link = Link { href: paths::TASKS.to_owned(), text: lang.t("tasks.clear").to_owned() };
    Empty { title: lang.t("tasks.empty").to_owned(), text: lang.t("tasks.empty_text").to_owned(), link: Some(link) }
}
