//! The shop's own orders and returns, read only: for reconciliation and the order page, and for the detector.

use std::collections::BTreeMap;

use super::Column;
use crate::store::conn::{Conn, RowExt as _, Value};
use crate::store::db::Result;
use crate::store::dialect::Kind;

/// A table of documents and one of their lines; names are quoted.
#[derive(Debug)]
pub struct Documents {
    pub(super) header: Header,
    pub(super) origin: String,
    pub(super) items_table: String,
    pub(super) order: Column,
    pub(super) key: Column,
    pub(super) qty: Column,
}

#[derive(Debug)]
pub(super) struct Header {
    pub table: String,
    pub no: Column,
    pub status: Column,
    /// The status that counts, as a value of its column and in words.
    pub value: Value,
    pub counted: String,
}

impl Documents {
    /// Where they were found, as the configuration names it.
    pub fn origin(&self) -> &str {
        &self.origin
    }
}

/// A document of the shop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub no: String,
    /// As it stands in the shop's table.
    pub status: String,
    /// Open, for an order; completed, for a return.
    pub counts: bool,
    /// Quantities by key.
    pub items: BTreeMap<String, i64>,
}

/// A line of a document that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub no: String,
    pub key: String,
    pub qty: i64,
}

/// The lines of all documents that count: of open orders, what should be locked.
pub async fn lines(conn: &mut Conn, of: &Documents) -> Result<Vec<Line>> {
    let d = conn.dialect;
    let sql = format!(
        "SELECT {}, {}, {} FROM {} d JOIN {} i ON i.{} = d.{} WHERE d.{} = $1",
        d.read_foreign(&format!("d.{}", of.header.no.name), of.header.no.kind),
        d.read_foreign(&format!("i.{}", of.key.name), of.key.kind),
        d.read_foreign(&format!("i.{}", of.qty.name), Kind::Int),
        of.header.table,
        of.items_table,
        of.order.name,
        of.header.no.name,
        of.header.status.name
    );
    let rows = conn.built(sql).bind_all([of.header.value.clone()]).rows().await?;
    let mut lines = Vec::with_capacity(rows.len());
    for row in &rows {
        if let (Some(no), Some(key)) = (of.header.no.text(row, 0)?, of.key.text(row, 1)?) {
            lines.push(Line { no, key, qty: row.opt_int(2)?.unwrap_or(0) });
        }
    }
    Ok(lines)
}

/// One document with its lines, added up by key.
pub async fn find(conn: &mut Conn, of: &Documents, no: &str) -> Result<Option<Document>> {
    let Some(value) = of.header.no.value(no) else { return Ok(None) };
    let d = conn.dialect;
    let sql = format!(
        "SELECT {}, {} FROM {} d WHERE d.{} = $1",
        d.read_foreign(&format!("d.{}", of.header.no.name), of.header.no.kind),
        d.read_foreign(&format!("d.{}", of.header.status.name), of.header.status.kind),
        of.header.table,
        of.header.no.name
    );
    let Some(row) = conn.built(sql).bind_all([value.clone()]).row().await? else { return Ok(None) };
    if of.header.no.text(&row, 0)?.as_deref() != Some(no) {
        return Ok(None);
    }
    let status = of.header.status.text(&row, 1)?.unwrap_or_default();
    let sql = format!(
        "SELECT {}, {} FROM {} i WHERE i.{} = $1",
        d.read_foreign(&format!("i.{}", of.key.name), of.key.kind),
        d.read_foreign(&format!("i.{}", of.qty.name), Kind::Int),
        of.items_table,
        of.order.name
    );
    let Some(value) = of.order.value(no) else { return Ok(None) };
    let mut items = BTreeMap::new();
    for row in conn.built(sql).bind_all([value]).rows().await? {
        if let (Some(key), Some(qty @ 1..)) = (of.key.text(&row, 0)?, row.opt_int(1)?) {
            *items.entry(key).or_default() += qty;
        }
    }
    let counts = status == of.header.counted;
    Ok(Some(Document { no: no.to_owned(), status, counts, items }))
}

/// Numbers of documents that count, after `after` in the order of their column; fewer than `limit` is the end.
pub async fn counted_after(conn: &mut Conn, of: &Documents, after: Option<&str>, limit: i64) -> Result<Vec<String>> {
    let (no, header) = (&of.header.no, &of.header);
    let mut values = vec![header.value.clone()];
    let mut sql = format!(
        "SELECT {} FROM {} WHERE {} = $1",
        conn.dialect.read_foreign(&no.name, no.kind),
        header.table,
        header.status.name
    );
    if let Some(value) = after.and_then(|after| no.value(after)) {
        values.push(value);
        sql += &format!(" AND {} > ${}", no.name, values.len());
    }
    sql += &format!(" ORDER BY {} LIMIT ${}", no.name, values.len() + 1);
    let rows = conn.built(sql).bind_all(values).bind(limit).rows().await?;
    let mut numbers = Vec::new();
    for row in &rows {
        numbers.extend(no.text(row, 0)?);
    }
    Ok(numbers)
}

/// How far a duty has read.
pub async fn position(conn: &mut Conn, name: &str) -> Result<Option<String>> {
    let row = conn.stmt("SELECT position FROM reading WHERE name = $1").bind(name).row().await?;
    row.map(|row| row.text(0)).transpose()
}

/// Remembers how far a duty has read.
pub async fn set_position(conn: &mut Conn, name: &str, position: &str, now: i64) -> Result<()> {
    let hit = conn
        .stmt("UPDATE reading SET position = $2, at = $3 WHERE name = $1")
        .bind(name)
        .bind(position)
        .bind(now)
        .run()
        .await?;
    if hit == 0 {
        let sql = format!("INSERT INTO reading (name, position, at) VALUES ($1, $2, $3){}", conn.dialect.or_nothing());
        match conn.built(sql).bind(name).bind(position).bind(now).run().await {
            // Another worker was faster: its position is as good.
            Err(error) if error.is(crate::store::Class::Unique) => {}
            other => drop(other?),
        }
    }
    Ok(())
}
