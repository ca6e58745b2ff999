//! A page of its own for an act that is asked about first: what it does, why it is done, one button.

use askama::Template;

use super::{Section, Shell};

#[derive(Template)]
#[template(path = "pages/confirm.html", blocks = ["content"])]
pub struct ConfirmPage {
    pub s: Shell,
    pub title: String,
    pub text: String,
    pub facts: Vec<(String, String)>,
    /// Where the form goes.
    pub action: String,
    pub button: String,
    pub back: String,
    pub reason: String,
    pub problem: String,
}

impl ConfirmPage {
    pub fn in_section(mut self, section: Section) -> Self {
        self.s.section = section;
        self
    }
}
