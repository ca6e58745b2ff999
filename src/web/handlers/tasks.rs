//! The list of tasks. The filter lives in the address.

use axum::extract::{Query, State};
use serde::Deserialize;

use crate::core::text;
use crate::core::words::{FailureKind, ResourceType, TaskStatus};
use crate::store::task_list::{self, Filter};
use crate::web::desk::Desk;
use crate::web::extract::{As, Viewer};
use crate::web::render::{self, Answer};
use crate::web::view::Section;
use crate::web::view::error::Trouble;
use crate::web::view::tasks::TasksPage;

const ROWS: usize = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    status: String,
    #[serde(rename = "type")]
    types: String,
    kind: String,
    order_no: String,
    key: String,
    error: String,
    older_than_s: String,
    cursor: String,
}

pub async fn list(State(desk): State<Desk>, As(visit, ..): As<Viewer>, Query(asked): Query<Asked>) -> Answer {
    let filter = asked.filter().ok_or_else(|| visit.oops(Trouble::BadRequest))?;
    let mut conn = desk.app.core.db.read().await?;
    let page = task_list::page(&mut conn, &filter, &asked.cursor, ROWS, visit.eye.now).await?;
    let is_first = asked.cursor.is_empty();
    let s = visit.shell(Section::Tasks);
    let page = TasksPage::new(s, &visit.eye, &filter, &page, is_first, desk.max_failures());
    render::page(&page, visit.ask.part)
}

impl Asked {
    /// `None` for a word that isn't one of ours, or a figure that is none.
    fn filter(&self) -> Option<Filter> {
        let statuses = match self.status.as_str() {
            "" if self.order_no.is_empty() => Filter::open().statuses,
            "" | "any" => Vec::new(),
            some => words(some, TaskStatus::from_word)?,
        };
        let older_than_s = match self.older_than_s.as_str() {
            "" => None,
            text => Some(text.parse().ok().filter(|s| (0..=3_153_600_000_i64).contains(s))?),
        };
        let fits = |text: &str, max: usize| text.is_empty() || text::check_text(text, max).is_ok();
        let fits = fits(&self.order_no, text::NUMBER_MAX) && fits(&self.key, text::KEY_MAX) && fits(&self.error, 100);
        fits.then_some(Filter {
            statuses,
            types: words(&self.types, ResourceType::from_word)?,
            kinds: words(&self.kind, FailureKind::from_word)?,
            order_no: self.order_no.clone(),
            key: self.key.clone(),
            error: self.error.clone(),
            older_than_s,
        })
    }
}

fn words<T>(list: &str, read: fn(&str) -> Option<T>) -> Option<Vec<T>> {
    list.split(',').filter(|word| !word.is_empty()).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_filter_asks_for_what_is_unfinished() {
        assert_eq!(Asked::default().filter(), Some(Filter::open()));
        let any = Asked { status: "any".into(), ..Asked::default() };
        assert_eq!(any.filter(), Some(Filter::default()));
    }

    #[test]
    fn an_order_shows_all_its_tasks_unless_a_status_is_asked_for() {
        let asked = Asked { order_no: "A1".into(), ..Asked::default() };
        assert_eq!(asked.filter().unwrap().statuses, []);
    }

    #[test]
    fn words_and_figures_that_are_not_ours_are_refused() {
        let bad = [
            Asked { status: "done".into(), ..Asked::default() },
            Asked { types: "stock,gold".into(), ..Asked::default() },
            Asked { older_than_s: "-1".into(), ..Asked::default() },
            Asked { older_than_s: "soon".into(), ..Asked::default() },
            Asked { order_no: "x".repeat(65), ..Asked::default() },
            Asked { key: "a\nb".into(), ..Asked::default() },
        ];
        for asked in bad {
            assert_eq!(asked.filter(), None, "{asked:?}");
        }
    }
}
