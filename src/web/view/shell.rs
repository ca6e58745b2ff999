//! What surrounds every page: bar, menu, flash, stream. Made once per answer from who is signed in.

use super::{Eye, Stamp, Tone};
use crate::web::assets::Asset;
use crate::web::i18n::Lang;
use crate::web::paths;

/// The pages of the menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Overview,
    Tasks,
    Orders,
    Refunds,
    Reconcile,
    Returns,
    Screens,
    Help,
    Account,
    Elsewhere,
}

/// Who is signed in.
#[derive(Clone, Debug)]
pub struct Who {
    pub name: String,
    pub role: &'static str,
}

/// The answer to one's own act, shown once.
#[derive(Clone, Debug)]
pub struct Flash {
    pub tone: Tone,
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct Shell {
    pub lang: Lang,
    /// `light`, `dark` or nothing (the system decides).
    pub theme: &'static str,
    /// This answer's nonce: scripts and htmx elements without it are dead.
    pub nonce: String,
    pub csrf: String,
    pub user: Option<Who>,
    /// Pages of the administration are on the menu.
    pub is_admin: bool,
    pub section: Section,
    pub zone: String,
    pub now: Stamp,
    /// Where the language switch comes back to.
    pub here: String,
    /// What stands in the search box.
    pub search: String,
    pub flash: Option<Flash>,
    /// Plain HTTP was allowed by configuration: said on every page.
    pub plain_http: bool,
    /// The part of the page the stream renews; nothing when only the clock is live.
    pub stream_view: &'static str,
}

impl Shell {
    pub fn new(eye: &Eye, section: Section) -> Shell {
        Shell {
            lang: eye.lang,
            theme: "",
            nonce: String::new(),
            csrf: String::new(),
            user: None,
            is_admin: false,
            section,
            zone: eye.zone.label(eye.now),
            now: eye.stamp(eye.now),
            here: String::from("/"),
            search: String::new(),
            flash: None,
            plain_http: false,
            stream_view: "",
        }
    }

    pub fn t(&self, key: &str) -> &'static str {
        self.lang.t(key)
    }

    pub fn asset(&self, name: &str) -> &'static str {
        Asset::path_of(name)
    }

    /// `aria-current` of a menu entry.
    pub fn current(&self, section: Section) -> &'static str {
        if self.section == section { "page" } else { "false" }
    }

    pub fn stream(&self) -> String {
        paths::with_query(paths::EVENTS, &[("view", self.stream_view)])
    }
}
