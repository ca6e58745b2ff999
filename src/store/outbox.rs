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
