//! The list of returns: what is still owed to stock, in words first, then row by row.

use askama::Template;

use super::tasks::Choice;
use super::{Empty, Eye, Mark, Section, Shell, Stamp, format};
use crate::store::return_order::{Listed, Listing, State};
use crate::web::i18n::Lang;
use crate::web::paths;

/// What the list can be narrowed to, by the word in the address.
const STATES: [(&str, Option<State>); 4] = [
    ("", None),
    ("accepted", Some(State::Accepted)),
    ("owed", Some(State::Owed)),
    ("completed", Some(State::Completed)),
];

/// The state a word of the address means; `None` for a word that isn't one of ours.
pub fn state_of(word: &str) -> Option<Option<State>> {
    STATES.iter().find(|(known, _)| *known == word).map(|(_, state)| *state)
}

#[derive(Template)]
#[template(path = "pages/returns.html", blocks = ["content"])]
pub struct ReturnsPage {
    pub s: Shell,
    pub headline: String,
    pub states: Vec<Choice>,
    pub rows: Vec<Row>,
    pub empty: Option<Empty>,
    pub shown: String,
    pub first: String,
    pub next: String,
}

pub struct Row {
    pub mark: Mark,
    pub return_no: String,
    pub order_no: String,
    pub order_href: String,
    /// Where a return came from that nobody told of.
    pub origin: String,
    pub pieces: String,
    pub owed: String,
    pub why: String,
    pub accepted: Option<Stamp>,
}

impl ReturnsPage {
    pub fn new(mut s: Shell, eye: &Eye, state: Option<State>, listing: &Listing, is_first: bool) -> ReturnsPage {
        s.section = Section::Returns;
        let lang = eye.lang;
        let now = STATES.iter().find(|(_, known)| *known == state).map_or("", |(word, _)| word);
        let rows: Vec<Row> = listing.rows.iter().map(|listed| Row::new(eye, listed)).collect();
        let owing = listing.rows.iter().filter(|listed| is_owed(listed)).count();
        let word = |word: &str| if word.is_empty() { lang.t("returns.any") } else { lang.word("return", word) };
        ReturnsPage {
            headline: match (rows.is_empty(), owing) {
                (true, _) => lang.t("returns.say_none").to_owned(),
                (false, 0) => lang.t("returns.say_nothing_owed").to_owned(),
                (false, owing) => lang.n("returns.say_owed", i64::try_from(owing).unwrap_or(0), &[]),
            },
            states: STATES
                .iter()
                .map(|(known, _)| Choice {
                    value: (*known).to_owned(),
                    text: word(known).to_owned(),
                    selected: *known == now,
                })
                .collect(),
            empty: rows.is_empty().then(|| Empty {
                title: lang.t("returns.none").to_owned(),
                text: lang.t("returns.none_text").to_owned(),
                link: None,
            }),
            shown: lang.n("returns.shown", i64::try_from(rows.len()).unwrap_or(0), &[]),
            first: if is_first { String::new() } else { address(now, None) },
            next: listing.next.map(|before| address(now, Some(before))).unwrap_or_default(),
            rows,
            s,
        }
    }
}

fn address(state: &str, before: Option<i64>) -> String {
    let before = before.map(|id| id.to_string()).unwrap_or_default();
    paths::with_query(paths::RETURNS, &[("status", state), ("cursor", &before)])
}

/// Received, and stock doesn't have all of it yet.
fn is_owed(listed: &Listed) -> bool {
    listed.row.is_received && (!listed.row.is_tasked || listed.owed > 0)
}

impl Row {
    fn new(eye: &Eye, listed: &Listed) -> Row {
        let (lang, row) = (eye.lang, &listed.row);
        let state = match (row.is_received, is_owed(listed)) {
            (false, _) => "accepted",
            (true, true) => "owed",
            (true, false) => "completed",
        };
        Row {
            mark: Mark::goods(lang, state, listed.manual > 0),
            return_no: row.return_no.clone(),
            order_no: row.order_no.clone().unwrap_or_default(),
            order_href: row.order_no.as_deref().map(paths::order).unwrap_or_default(),
            origin: row.origin.clone().unwrap_or_default(),
            pieces: format::count(listed.pieces),
            owed: format::count(listed.owed),
            why: why(lang, listed).to_owned(),
            accepted: row.accepted_at.map(|at| eye.stamp(at)),
        }
    }
}

fn why(lang: Lang, listed: &Listed) -> &'static str {
    match () {
        () if listed.manual > 0 => lang.t("returns.why_manual"),
        () if listed.row.is_received && !listed.row.is_tasked => lang.t("returns.why_untasked"),
        () if listed.owed > 0 => lang.t("returns.why_on_its_way"),
        () => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_words_narrow_the_list() {
        assert_eq!(state_of("owed"), Some(Some(State::Owed)));
        assert_eq!(state_of(""), Some(None));
        assert_eq!(state_of("received"), None);
    }
}
