//! Tasks under a filter, in the order they were written, page by page from a key: rows that come or
//! go meanwhile neither repeat nor hide others.

use super::db::{Conn, Result, Value};
use super::task::{COLUMNS, Task, read};
use super::task_list::Filter;

/// The `limit` tasks after the id `after` that fit the filter.
pub async fn search(conn: &mut Conn, filter: &Filter, now: i64, after: i64, limit: i64) -> Result<Vec<Task>> {
    let mut values = vec![Value::from(after), Value::from(limit)];
    let mut wanted = vec!["t.id > $1".to_owned()];
    let mut bind = |value: Value| {
        values.push(value);
        values.len()
    };
    if !filter.order_no.is_empty() {
        let n = bind(filter.order_no.as_str().into());
        wanted.push(format!("t.ref_no = ${n}"));
    }
    if !filter.key.is_empty() {
        let n = bind(filter.key.as_str().into());
        wanted.push(format!("t.biz_key = ${n}"));
    }
    if let Some(seconds) = filter.older_than_s {
        let n = bind(now.saturating_sub(seconds.saturating_mul(1000)).into());
        wanted.push(format!("t.created_at <= ${n}"));
    }
    if !filter.error.is_empty() {
        let n = bind(format!("%{}%", escaped(&filter.error)).into());
        wanted.push(conn.dialect.like("t.error", n));
    }
    wanted.extend(one_of("t.status", filter.statuses.iter().map(|status| status.code())));
    wanted.extend(one_of("t.resource_type", filter.types.iter().map(|kind| kind.code())));
    wanted.extend(one_of("t.kind", filter.kinds.iter().map(|kind| kind.code())));
    // Unfinished tasks are few among all: their own small index is read and sorted, instead of walking the
    // whole table by id for the next one that fits.
    let is_open = !filter.statuses.is_empty() && filter.statuses.iter().all(|status| status.is_unfinished());
    let order = if is_open { "t.next_at IS NOT NULL ORDER BY t.id + 0" } else { "1 = 1 ORDER BY t.id" };
    let sql = format!("SELECT {COLUMNS} FROM order_release_task t WHERE {} AND {order} LIMIT $2", wanted.join(" AND "));
    conn.built(sql).bind_all(values).rows().await?.iter().map(read).collect()
}

/// Codes are numbers of ours, so they stand in the text.
fn one_of(column: &str, codes: impl Iterator<Item = i64>) -> Option<String> {
    let codes: Vec<String> = codes.map(|code| code.to_string()).collect();
    (!codes.is_empty()).then(|| format!("{column} IN ({})", codes.join(", ")))
}

/// Wildcards in what a person typed mean themselves.
fn escaped(text: &str) -> String {
    text.replace('!', "!!").replace('%', "!%").replace('_', "!_")
}
