//! The row that a shop writes itself, by plain SQL in the transaction that closes its own order (E2). The demo
//! and the tests use just this statement; everything else of the row has defaults.

use super::conn::Conn;
use super::db::Result;
use super::error::Class;
use crate::core::words::ResourceType;

/// Writes the row; `false` when it exists already, which a shop ignores.
pub async fn write(conn: &mut Conn, order_no: &str, resource: ResourceType, key: &str, qty: i64) -> Result<bool> {
    let sql = format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty) VALUES ($1, $2, $3, $4){}",
        conn.dialect.or_nothing()
    );
    match conn.built(sql).bind(order_no).bind(resource.code()).bind(key).bind(qty).run().await {
        Ok(count) => Ok(count == 1),
        Err(error) if error.is(Class::Unique) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What a program of the shop does whose own stock step failed: a return of one line, completed in the table, and
/// nothing behind it.
pub async fn complete_return(
    conn: &mut Conn,
    return_no: &str,
    order_no: &str,
    key: &str,
    qty: i64,
    now: i64,
) -> Result<()> {
    conn.stmt(
        "INSERT INTO return_order (return_no, order_no, status, accepted_at, received_at) VALUES ($1, $2, 1, $3, $3)",
    )
    .bind(return_no)
    .bind(order_no)
    .bind(now)
    .run()
    .await?;
    conn.stmt("INSERT INTO return_item (return_no, line, biz_key, qty) VALUES ($1, 1, $2, $3)")
        .bind(return_no)
        .bind(key)
        .bind(qty)
        .run()
        .await?;
    Ok(())
}
