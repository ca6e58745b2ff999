//! Tasks as lists and pages show them: rows under a filter, page by page by key, never by offset.

use super::conn::{Conn, RowExt as _, Value};
use super::db::Result;
use super::flow::{self, Flow};
use super::task::{self, Attempt, NEVER, Task};
use super::{audit, ledger, order};
use crate::core::words::{FailureKind, FundsKind, OrderStatus, ResourceType, TaskStatus};

/// What to list. Empty means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub statuses: Vec<TaskStatus>,
    pub types: Vec<ResourceType>,
    pub kinds: Vec<FailureKind>,
    pub order_no: String,
    pub key: String,
    /// A part of the error text, in any case.
    pub error: String,
    pub older_than_s: Option<i64>,
}

impl Filter {
    /// What a list starts with: everything still owed and still tried by someone.
    pub fn open() -> Filter {
        let statuses = vec![TaskStatus::Waiting, TaskStatus::Retrying, TaskStatus::Manual];
        Filter { statuses, ..Filter::default() }
    }
}

/// A task's row, and beside it what saying its quantity needs.
#[derive(Clone, Debug)]
pub struct TaskRow {
    pub task: Task,
    /// Of the ledger row: money or points.
    pub funds: Option<FundsKind>,
    /// Of the order, when it is known.
    pub currency: Option<String>,
}

impl std::ops::Deref for TaskRow {
    type Target = Task;

    fn deref(&self) -> &Task {
        &self.task
    }
}

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub rows: Vec<TaskRow>,
    pub next: Option<String>,
    /// How many match; when there are more than `COUNT_LIMIT` of them only that is known.
    pub matching: Option<i64>,
}

/// Counting stops here, so that a list costs the same however much there is.
pub const COUNT_LIMIT: i64 = 10_000;

/// The ledger row behind a task, as it is now.
#[derive(Clone, Debug)]
pub struct LedgerNow {
    pub available: i64,
    pub locked: i64,
    pub sold: i64,
    pub holder_no: Option<String>,
    pub expires_at: Option<i64>,
    pub issuer: Option<String>,
    pub retired: bool,
}

/// The order around a task, if Handback knows it.
#[derive(Clone, Debug)]
pub struct OrderHead {
    pub status: OrderStatus,
    pub closed_at: Option<i64>,
    pub close_reason: Option<String>,
    pub tombstone: bool,
}

/// Everything the page of one task shows.
#[derive(Clone, Debug)]
pub struct TaskView {
    pub row: TaskRow,
    pub attempts: Vec<Attempt>,
    pub siblings: Vec<TaskRow>,
    pub flow: Vec<Flow>,
    pub ledger: Option<LedgerNow>,
    pub order: Option<OrderHead>,
    /// How many unfinished tasks have the same type and kind of failure; counted up to a limit.
    pub same_failure: Option<i64>,
    /// Who asked for help with it, and why.
    pub calls: Vec<audit::Note>,
}

/// Of the ledger row and the order, beside the columns of the task.
const BESIDE: &str = "l.kind, o.currency";
const FROM: &str =
    "order_release_task t LEFT JOIN ledger l ON l.id = t.ledger_id LEFT JOIN orders o ON o.order_no = t.order_no";
const TASK_COLUMNS: usize = 28;
/// A filter that hits little looks at no more finished tasks than this for one page.
const LOOK_AT: i64 = 200_000;

fn read(row: &sqlx::any::AnyRow) -> Result<TaskRow> {
    let funds = row.opt_int(TASK_COLUMNS)?.and_then(FundsKind::from_code);
    Ok(TaskRow { task: task::read(row)?, funds, currency: row.opt_text(TASK_COLUMNS + 1)? })
}

/// Where a page begins: in the part that needs a person, in the part that is tried, or among all by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cursor {
    Person { id: i64 },
    Tried { next_at: i64, id: i64 },
    All { before: i64 },
}

impl Cursor {
    fn parse(text: &str) -> Option<Cursor> {
        let mut parts = text.split('.');
        let (part, mut number) = (parts.next()?, || parts.next()?.parse().ok());
        match part {
            "p" => Some(Cursor::Person { id: number()? }),
            "t" => Some(Cursor::Tried { next_at: number()?, id: number()? }),
            "a" => Some(Cursor::All { before: number()? }),
            _ => None,
        }
    }

    fn text(self) -> String {
        match self {
            Cursor::Person { id } => format!("p.{id}"),
            Cursor::Tried { next_at, id } => format!("t.{next_at}.{id}"),
            Cursor::All { before } => format!("a.{before}"),
        }
    }
}

/// Conditions of a filter with their values, bound from `$1` on.
pub(super) struct Where {
    pub text: String,
    pub values: Vec<Value>,
}

impl Where {
    fn new() -> Where {
        Where { text: String::from("1 = 1"), values: Vec::new() }
    }

    /// Adds ` AND …`; `{}` in the text stands for the value's place.
    pub fn and(&mut self, text: &str, value: impl Into<Value>) {
        self.values.push(value.into());
        self.text.push_str(" AND ");
        self.text.push_str(&text.replace("{}", &format!("${}", self.values.len())));
    }

    /// `column IN (…)` of our own numbers, which need no binding.
    fn any_of(&mut self, column: &str, codes: impl Iterator<Item = i64>) {
        let list: Vec<String> = codes.map(|code| code.to_string()).collect();
        if !list.is_empty() {
            self.text.push_str(&format!(" AND {column} IN ({})", list.join(", ")));
        }
    }

    pub fn of(filter: &Filter, conn: &Conn, now: i64) -> Where {
        let mut w = Where::new();
        w.any_of("t.status", filter.statuses.iter().map(|s| s.code()));
        w.any_of("t.resource_type", filter.types.iter().map(|t| t.code()));
        w.any_of("t.kind", filter.kinds.iter().map(|k| k.code()));
        if !filter.order_no.is_empty() {
            w.and("t.ref_no = {}", &filter.order_no);
        }
        if !filter.key.is_empty() {
            w.and("t.biz_key = {}", &filter.key);
        }
        if let Some(s) = filter.older_than_s {
            w.and("t.created_at <= {}", now.saturating_sub(s.saturating_mul(1_000)));
        }
        if !filter.error.is_empty() {
            w.values.push(like(&filter.error).into());
            let text = conn.dialect.like("t.error", w.values.len());
            w.text.push_str(&format!(" AND {text}"));
        }
        w
    }
}

/// A text to look for anywhere; `%` and `_` stand for themselves.
pub(super) fn like(text: &str) -> String {
    let mut out = String::from("%");
    for c in text.chars() {
        if matches!(c, '!' | '%' | '_') {
            out.push('!');
        }
        out.push(c);
    }
    out.push('%');
    out
}

impl Filter {
    /// Whether only tasks of the small index over open ones can match.
    pub(super) fn is_open_only(&self) -> bool {
        !self.statuses.is_empty() && self.statuses.iter().all(|s| s.is_unfinished())
    }
}

/// One page under a filter. Open tasks: those that need a person first, then by next try. Otherwise the
/// newest first. A cursor that can't be read begins at the beginning.
pub async fn page(conn: &mut Conn, filter: &Filter, cursor: &str, limit: usize, now: i64) -> Result<Page> {
    let cursor = Cursor::parse(cursor);
    let mut page = match (filter.is_open_only() && filter.order_no.is_empty(), cursor) {
        (true, cursor) => open_page(conn, filter, cursor, limit, now).await?,
        (false, Some(Cursor::All { before })) => all_page(conn, filter, before, limit, now).await?,
        (false, _) => all_page(conn, filter, i64::MAX, limit, now).await?,
    };
    page.matching = if filter.is_open_only() { Some(matching(conn, filter, now).await?) } else { None };
    Ok(page)
}

async fn open_page(conn: &mut Conn, filter: &Filter, from: Option<Cursor>, limit: usize, now: i64) -> Result<Page> {
    let mut rows = Vec::new();
    let after_person = match from {
        None => Some(0),
        Some(Cursor::Person { id }) => Some(id),
        Some(_) => None,
    };
    if let Some(id) = after_person {
        let mut w = Where::of(filter, conn, now);
        w.and("t.next_at = {}", NEVER);
        w.and("t.id > {}", id);
        w.text.push_str(" AND t.status = 3");
        rows = select(conn, w, "t.id", limit + 1).await?;
    }
    if rows.len() <= limit {
        let (next_at, id) = match from {
            Some(Cursor::Tried { next_at, id }) => (next_at, id),
            _ => (0, 0),
        };
        let mut w = Where::of(filter, conn, now);
        w.and("t.next_at < {}", NEVER);
        w.and("t.next_at >= {}", next_at);
        w.values.extend([next_at.into(), id.into()]);
        let n = w.values.len();
        w.text.push_str(&format!(" AND (t.next_at > ${} OR t.id > ${n})", n - 1));
        rows.extend(select(conn, w, "t.next_at, t.id", limit + 1 - rows.len()).await?);
    }
    Ok(cut(rows, limit, |last| match last.next_at {
        Some(next_at) => Cursor::Tried { next_at, id: last.id },
        None => Cursor::Person { id: last.id },
    }))
}

async fn all_page(conn: &mut Conn, filter: &Filter, before: i64, limit: usize, now: i64) -> Result<Page> {
    let newest = conn.stmt("SELECT COALESCE(MAX(id), 0) FROM order_release_task").int().await?;
    let mut w = Where::of(filter, conn, now);
    w.and("t.id < {}", before);
    if filter.order_no.is_empty() {
        w.and("t.id > {}", before.min(newest).saturating_sub(LOOK_AT));
    }
    let rows = select(conn, w, "t.id DESC", limit + 1).await?;
    Ok(cut(rows, limit, |last| Cursor::All { before: last.id }))
}

async fn select(conn: &mut Conn, mut w: Where, order: &str, limit: usize) -> Result<Vec<TaskRow>> {
    w.values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
    let sql = format!(
        "SELECT {}, {BESIDE} FROM {FROM} WHERE {} ORDER BY {order} LIMIT ${}",
        task::COLUMNS,
        w.text,
        w.values.len()
    );
    conn.built(sql).bind_all(w.values).rows().await?.iter().map(read).collect()
}

/// One row more than asked for says that there is a next page.
fn cut(mut rows: Vec<TaskRow>, limit: usize, cursor: impl Fn(&TaskRow) -> Cursor) -> Page {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|last| cursor(last).text());
    Page { rows, next, matching: None }
}

/// How many open tasks match; counting stops one past the limit.
async fn matching(conn: &mut Conn, filter: &Filter, now: i64) -> Result<i64> {
    let mut w = Where::of(filter, conn, now);
    w.values.push((COUNT_LIMIT + 1).into());
    let sql = format!(
        "SELECT COUNT(*) FROM (SELECT t.id FROM order_release_task t WHERE t.next_at IS NOT NULL AND {} LIMIT ${}) matching",
        w.text,
        w.values.len()
    );
    conn.built(sql).bind_all(w.values).int().await
}

/// One task with what its page shows beside it.
pub async fn view(conn: &mut Conn, id: i64, now: i64) -> Result<Option<TaskView>> {
    let mut w = Where::new();
    w.and("t.id = {}", id);
    let Some(row) = select(conn, w, "t.id", 1).await?.pop() else { return Ok(None) };
    let attempts = task::attempts(conn, &row.task).await?;
    let siblings = of_ref(conn, &row.ref_no).await?;
    let mut flow = flow::of_ref(conn, &row.ref_no).await?;
    flow.retain(|f| f.resource == row.resource && f.key == row.key);
    let ledger = ledger::find(conn, row.resource, &row.key).await?.map(|l| LedgerNow {
        available: l.available,
        locked: l.locked,
        sold: l.sold,
        holder_no: l.holder_no,
        expires_at: l.expires_at,
        issuer: l.issuer,
        retired: l.retired_at.is_some(),
    });
    let order = order::find(conn, &row.order_no).await?.map(|o| OrderHead {
        status: o.status,
        closed_at: o.closed_at,
        tombstone: o.is_tombstone(),
        close_reason: o.close_reason,
    });
    let same_failure = match row.kind.filter(|_| row.status.is_unfinished()) {
        None => None,
        Some(kind) => {
            let same = Filter { types: vec![row.resource], kinds: vec![kind], ..Filter::open() };
            Some(matching(conn, &same, now).await?)
        }
    };
    let calls = audit::notes(conn, &format!("task:{id}"), "task.help").await?;
    Ok(Some(TaskView { row, attempts, siblings, flow, ledger, order, same_failure, calls }))
}

/// All tasks of an order or return, by id.
pub(super) async fn of_ref(conn: &mut Conn, ref_no: &str) -> Result<Vec<TaskRow>> {
    let mut w = Where::new();
    w.and("t.ref_no = {}", ref_no);
    select(conn, w, "t.id", 1_000).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_read_back_and_nonsense_is_no_cursor() {
        let all = [Cursor::Person { id: 7 }, Cursor::Tried { next_at: 1, id: 2 }, Cursor::All { before: 9 }];
        for cursor in all {
            assert_eq!(Cursor::parse(&cursor.text()), Some(cursor));
        }
        for nonsense in ["", "x.1", "p", "t.1", "a.b", "p.-"] {
            assert_eq!(Cursor::parse(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn wildcards_stand_for_themselves() {
        assert_eq!(like("50%_!"), "%50!%!_!!%");
    }
}
