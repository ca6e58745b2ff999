//! Tasks under a filter in the order they were written, page by page from a key: rows that come or go
//! meanwhile neither repeat nor hide others, and a program that reads on to the end has read all.

use super::conn::Conn;
use super::db::Result;
use super::task::{COLUMNS, Task, read};
use super::task_list::{Filter, Where};

/// The `limit` tasks after the id `after` that fit the filter.
pub async fn search(conn: &mut Conn, filter: &Filter, now: i64, after: i64, limit: i64) -> Result<Vec<Task>> {
    let mut wanted = Where::of(filter, conn, now);
    wanted.and("t.id > {}", after);
    // Unfinished tasks are few among all: their own small index is read and sorted, instead of walking the
    // whole table by id for the next one that fits.
    let order = if filter.is_open_only() {
        "t.next_at IS NOT NULL AND t.open_lane IN (0, 1, 2, 3, 4, 5, 6) ORDER BY t.id + 0"
    } else {
        "1 = 1 ORDER BY t.id"
    };
    wanted.values.push(limit.into());
    let sql = format!(
        "SELECT {COLUMNS} FROM order_release_task t WHERE {} AND {order} LIMIT ${}",
        wanted.text,
        wanted.values.len()
    );
    conn.built(sql).bind_all(wanted.values).rows().await?.iter().map(read).collect()
}
