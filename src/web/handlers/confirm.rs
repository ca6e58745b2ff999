//! An act that is asked about first: a page of its own says what it does and asks why.

use axum::http::StatusCode;
use serde::Deserialize;

use crate::core::text;
use crate::web::extract::Visit;
use crate::web::render::{self, Answer};
use crate::web::view::Section;
use crate::web::view::confirm::ConfirmPage;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReasonForm {
    reason: String,
}

impl ReasonForm {
    /// The reason, or nothing when it can't be one.
    pub fn reason(&self) -> Option<&str> {
        let reason = self.reason.trim();
        text::check_text(reason, text::REASON_MAX).is_ok().then_some(reason)
    }
}

/// What a page that asks is about; text and button are names in the catalogue.
pub struct Question {
    pub title: String,
    pub text: &'static str,
    pub button: &'static str,
    pub action: String,
    pub back: String,
    pub section: Section,
    pub facts: Vec<(String, String)>,
}

/// The page that asks; `form` when it was sent and its reason can't be taken.
pub fn ask(visit: &Visit, question: Question, form: Option<&ReasonForm>) -> Answer {
    let lang = visit.eye.lang;
    let mut s = visit.shell(question.section);
    s.here = question.action.clone();
    let page = ConfirmPage {
        s,
        title: question.title,
        text: lang.t(question.text).to_owned(),
        facts: question.facts,
        action: question.action,
        button: lang.t(question.button).to_owned(),
        back: question.back,
        reason: form.map(|form| form.reason.clone()).unwrap_or_default(),
        problem: form.map(|_| lang.t("task.reason_problem").to_owned()).unwrap_or_default(),
    };
    let status = if form.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    render::page_as(&page, visit.ask.part, status)
}
