//! Orders whose payment channel is asked before a timeout closes them (B5): `asking` gives them
//! to the asker, whose index is that of `ask_at`.

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::order::{DueOrder, read_due};

/// The channel is asked before a timeout closes this order, from now on.
pub async fn begin(conn: &mut Conn, id: i64, now: i64) -> Result<u64> {
    conn.stmt("UPDATE orders SET asking = 1, due_at = $2, version = version + 1 WHERE id = $1 AND status = 0")
        .bind(id)
        .bind(now)
        .run()
        .await
}

/// The look for orders whose channel is to be asked at `$1`, `$2` of them. It must read no other order.
pub const DUE_LOOK: &str = "SELECT id, order_no, pay_deadline FROM orders WHERE ask_at <= $1 ORDER BY ask_at LIMIT $2";

/// Claims orders whose channel is to be asked now.
pub async fn claim(conn: &mut Conn, now: i64, limit: i64) -> Result<Vec<DueOrder>> {
    let sql = DUE_LOOK.to_owned() + conn.dialect.for_update_skip();
    let rows = conn.built(sql).bind(now).bind(limit).rows().await?;
    rows.iter().map(read_due).collect()
}

/// The channel is asked again then; `counts` when it was asked and didn't know.
pub async fn again(conn: &mut Conn, id: i64, until: i64, counts: bool) -> Result<u64> {
    conn.stmt("UPDATE orders SET due_at = $2, asked = asked + $3 WHERE id = $1 AND status = 0 AND asking = 1")
        .bind(id)
        .bind(until)
        .bind(i64::from(counts))
        .run()
        .await
}

/// When the channel is to be asked next.
pub async fn next(conn: &mut Conn) -> Result<Option<i64>> {
    let row = conn.stmt("SELECT MIN(ask_at) FROM orders WHERE ask_at IS NOT NULL").row().await?;
    row.map(|row| row.opt_int(0)).transpose().map(Option::flatten)
}

/// Nobody can be asked any more: these orders are the scan's again, due now; how many. Those that were left to
/// a person stay with one.
pub async fn give_up(conn: &mut Conn, now: i64) -> Result<u64> {
    conn.stmt("UPDATE orders SET asking = 0, due_at = $1, version = version + 1 WHERE status = 0 AND asking = 1 AND ask_at <= $1")
        .bind(now)
        .run()
        .await
}
