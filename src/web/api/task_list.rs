//! `GET /tasks`: tasks under a filter, oldest first, page by page.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::{Caller, ToRead};
use super::fields::{Fields, FromFields};
use super::request::Asked;
use super::show::TaskShown;
use super::{Answered, ok};
use crate::core::text::NUMBER_MAX;
use crate::core::words::{FailureKind, ResourceType, TaskStatus};
use crate::store::task_list::Filter;
use crate::store::task_search::search;
use crate::web::state::App;

const USUAL_PAGE: i64 = 50;
const LARGEST_PAGE: i64 = 200;

#[derive(Debug)]
pub(super) struct Sought {
    filter: Filter,
    limit: i64,
    /// The last id of the page before.
    after: i64,
}

impl FromFields for Sought {
    fn read(f: &mut Fields) -> Option<Self> {
        let statuses = f.opt_words("status", &words(TaskStatus::ALL, TaskStatus::word));
        let types = f.opt_words("type", &words(ResourceType::ALL, ResourceType::word));
        let kinds = f.opt_words("kind", &words(FailureKind::ALL, FailureKind::word));
        let order_no = f.opt_text("order_no", NUMBER_MAX).unwrap_or_default();
        let older_than_s = f.opt_whole("older_than_s", 0, i64::from(u32::MAX));
        let limit = f.opt_whole("limit", 1, LARGEST_PAGE).unwrap_or(USUAL_PAGE);
        let after = f.opt_whole("cursor", 0, i64::MAX).unwrap_or(0);
        let filter = Filter { statuses, types, kinds, order_no, older_than_s, ..Filter::default() };
        Some(Self { filter, limit, after })
    }
}

fn words<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str) -> Vec<(&'static str, T)> {
    all.iter().map(|known| (word(*known), *known)).collect()
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskPage {
    items: Vec<TaskShown>,
    /// Null on the last page
    next_cursor: Option<String>,
}

/// Tasks under a filter, oldest first
#[utoipa::path(get, path = "/tasks", tag = "tasks",
    params(("status" = Option<String>, Query, description = "Some of waiting, succeeded, retrying, manual, force_closed, \
            superseded, with commas"),
        ("type" = Option<String>, Query, description = "Some of stock, coupon, funds, quota, slot, with commas"),
        ("kind" = Option<String>, Query, description = "Kinds of failure, with commas"),
        ("order_no" = Option<String>, Query), ("older_than_s" = Option<i64>, Query),
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = TaskPage)))]
pub(super) async fn list(State(app): State<App>, _: Caller<ToRead>, Asked(sought): Asked<Sought>) -> Answered {
    let Sought { filter, limit, after } = sought;
    let mut conn = app.core.db.read().await?;
    // One more than the page tells whether there is another.
    let mut tasks = search(&mut conn, &filter, app.core.now(), after, limit + 1).await?;
    let is_more = tasks.len() as i64 > limit;
    tasks.truncate(usize::try_from(limit).unwrap_or_default());
    let next_cursor = tasks.last().filter(|_| is_more).map(|last| last.id.to_string());
    let max_failures = app.core.policy.retry.max_failures;
    ok(&TaskPage { items: tasks.iter().map(|task| TaskShown::of(task, max_failures)).collect(), next_cursor })
}
