//! What pages show: plain structs of words, numbers and addresses, ready to print. A page knows no
//! SQL and no HTTP; its template decides nothing but how it looks. Page and fragment are one template:
//! `content` is the part below the bar, `live` the part that renews itself.

pub mod account;
pub mod confirm;
pub mod error;
pub mod format;
pub mod gate;
pub mod html;
pub mod mark;
pub mod order;
pub mod orders;
pub mod overview;
pub mod reconcile;
pub mod refunds;
pub mod returns;
pub mod screens;
pub mod shell;
pub mod task;
pub mod tasks;
pub mod wall;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use format::{Stamp, Zone};
pub use html::Html;
pub use mark::{Mark, Tone};
pub use shell::{Flash, Section, Shell, Who};

use crate::web::i18n::Lang;

/// Who is looking: decides words, clock and zone of everything on a page.
#[derive(Clone, Debug)]
pub struct Eye {
    pub lang: Lang,
    pub zone: Zone,
    /// The instant the page is made, from the database's clock.
    pub now: i64,
}

impl Eye {
    pub fn stamp(&self, at: i64) -> Stamp {
        self.zone.stamp(at, self.now)
    }

    /// How long ago, in words of the reader.
    pub fn ago(&self, at: i64) -> String {
        format::span(self.lang, self.now - at)
    }
}

/// A link that does or shows something.
#[derive(Clone, Debug)]
pub struct Link {
    pub href: String,
    pub text: String,
}

/// One figure of the strip below the sentence.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// Nothing when there is no list behind it.
    pub href: String,
    pub label: String,
    /// The name under which programs find it.
    pub stat: &'static str,
    /// The figure alone, for programs; nothing when it is not known or is no number.
    pub raw: Option<i64>,
    pub value: String,
    pub unit: String,
    pub note: String,
    pub tone: Tone,
}

/// What a list says when it is empty: what is known, and what to do next.
#[derive(Clone, Debug)]
pub struct Empty {
    pub title: String,
    pub text: String,
    pub link: Option<Link>,
}
