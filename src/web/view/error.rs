//! What can't be shown, and what to do next: not found, not allowed, gone meanwhile, database away;
//! and the page of keys, which explains itself.

use askama::Template;

use super::{Link, Section, Shell};

/// What went wrong, as the reader meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    NotFound,
    TaskGone,
    OrderUnknown,
    Forbidden,
    /// The form was sent from elsewhere, or its token has run out.
    Unverified,
    BadRequest,
    DatabaseAway,
    Broken,
}

#[derive(Template)]
#[template(path = "pages/error.html", blocks = ["content"])]
pub struct ErrorPage {
    pub s: Shell,
    pub title: &'static str,
    pub text: &'static str,
    pub links: Vec<Link>,
}

impl Trouble {
    pub const ALL: [Trouble; 8] = [
        Self::NotFound,
        Self::TaskGone,
        Self::OrderUnknown,
        Self::Forbidden,
        Self::Unverified,
        Self::BadRequest,
        Self::DatabaseAway,
        Self::Broken,
    ];

    pub const fn status(self) -> u16 {
        match self {
            Self::NotFound | Self::TaskGone | Self::OrderUnknown => 404,
            Self::Forbidden | Self::Unverified => 403,
            Self::BadRequest => 400,
            Self::DatabaseAway => 503,
            Self::Broken => 500,
        }
    }

    const fn keys(self) -> (&'static str, &'static str) {
        match self {
            Self::NotFound => ("trouble.not_found", "trouble.not_found_text"),
            Self::TaskGone => ("trouble.task_gone", "trouble.task_gone_text"),
            Self::OrderUnknown => ("trouble.order_unknown", "trouble.order_unknown_text"),
            Self::Forbidden => ("trouble.forbidden", "trouble.forbidden_text"),
            Self::Unverified => ("trouble.unverified", "trouble.unverified_text"),
            Self::BadRequest => ("trouble.bad_request", "trouble.bad_request_text"),
            Self::DatabaseAway => ("trouble.database_away", "trouble.database_away_text"),
            Self::Broken => ("trouble.broken", "trouble.broken_text"),
        }
    }
}

impl ErrorPage {
    pub fn new(mut s: Shell, trouble: Trouble) -> ErrorPage {
        s.section = Section::Elsewhere;
        let (title, text) = trouble.keys();
        let link = |href: &str, key: &str| Link { href: href.to_owned(), text: s.lang.t(key).to_owned() };
        let links = match trouble {
            Trouble::TaskGone => vec![link("/tasks", "nav.tasks")],
            Trouble::OrderUnknown => vec![link("/orders", "nav.orders")],
            Trouble::DatabaseAway | Trouble::Broken => vec![link(&s.here, "trouble.again")],
            _ => vec![link("/", "nav.overview")],
        };
        ErrorPage { title: s.lang.t(title), text: s.lang.t(text), links, s }
    }
}

#[derive(Template)]
#[template(path = "pages/help.html", blocks = ["content"])]
pub struct HelpPage {
    pub s: Shell,
}

impl HelpPage {
    /// Each status of a task, and what it means for the reader.
    fn marks(&self) -> Vec<(super::Mark, &'static str)> {
        let lang = self.s.lang;
        let statuses = crate::core::words::TaskStatus::ALL.iter();
        statuses.map(|s| (super::Mark::task(lang, *s), lang.word("means", s.word()))).collect()
    }
}
