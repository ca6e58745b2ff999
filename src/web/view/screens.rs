//! Screens on the wall, for an admin: register one (its code is shown once), see when each was last seen, revoke.

use askama::Template;

use super::{Eye, Mark, Section, Shell, Stamp};
use crate::store::screen::Screen;
use crate::web::view::task::actor;

#[derive(Template)]
#[template(path = "pages/screens.html", blocks = ["content"])]
pub struct ScreensPage {
    pub s: Shell,
    pub rows: Vec<ScreenRow>,
    pub name: String,
    pub problem: String,
    /// Shown once: the screen's name and its code.
    pub code: Option<(String, String)>,
    pub wall: String,
}

pub struct ScreenRow {
    pub id: i64,
    pub name: String,
    pub mark: Mark,
    pub seen: String,
    pub registered: Stamp,
    pub by: String,
    pub can_revoke: bool,
}

impl ScreensPage {
    pub fn new(mut s: Shell, eye: &Eye, screens: &[Screen], wall: String) -> ScreensPage {
        s.section = Section::Screens;
        let rows = screens.iter().map(|screen| ScreenRow::new(eye, screen)).collect();
        ScreensPage { s, rows, name: String::new(), problem: String::new(), code: None, wall }
    }
}

impl ScreenRow {
    fn new(eye: &Eye, screen: &Screen) -> ScreenRow {
        let lang = eye.lang;
        let has_code = screen.code_expires_at.is_some_and(|at| at > eye.now);
        let (class, icon, word) = match (screen.revoked_at, screen.is_open, has_code) {
            (Some(_), ..) => ("gone", "end", "revoked"),
            (None, true, _) => ("ok", "ok", "open"),
            (None, false, true) => ("wait", "wait", "waiting"),
            (None, false, false) => ("gone", "gone", "code_ran_out"),
        };
        ScreenRow {
            id: screen.id,
            name: screen.name.clone(),
            mark: Mark { class, icon, word: lang.word("screen", word) },
            seen: screen.seen_at.map_or_else(|| "–".to_owned(), |at| lang.f("span.ago", &[("age", &eye.ago(at))])),
            registered: eye.stamp(screen.created_at),
            by: actor(lang, &screen.created_by),
            can_revoke: screen.revoked_at.is_none(),
        }
    }
}
