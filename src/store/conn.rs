//! A connection in our hands, statements with their values, and rows read by hand. The one place where a
//! statement's text meets its values; they are always bound, never written into it.

use std::sync::Arc;

use sqlx::any::{AnyArguments, AnyRow};
use sqlx::pool::PoolConnection;
use sqlx::{Any, Arguments as _, AssertSqlSafe, Executor as _, Row as _, SqlSafeStr as _, SqlStr};

use super::db::Result;
use super::dialect::Dialect;
use super::error::Error;
use super::mapped::Tables;

/// A connection in our hands; in a transaction when it came from [`Db::write`].
pub struct Conn {
    pub(super) inner: PoolConnection<Any>,
    pub dialect: Dialect,
    /// The shop's own tables.
    pub mapped: Arc<Tables>,
    /// A transaction is open on it.
    pub(super) open: bool,
}

impl Conn {
    /// A statement whose text is part of the program. `$N` may be used several times.
    pub fn stmt(&mut self, sql: &'static str) -> Stmt<'_> {
        Stmt { conn: self, sql: sql.into_sql_str(), values: Vec::new() }
    }

    /// A statement that the dialect or a list filter put together. Values are bound, never written into it.
    pub fn built(&mut self, sql: String) -> Stmt<'_> {
        Stmt { conn: self, sql: AssertSqlSafe(sql).into_sql_str(), values: Vec::new() }
    }

    pub(super) async fn raw(&mut self, sql: &'static str) -> Result<()> {
        (&mut *self.inner).execute(sqlx::raw_sql(sql)).await?;
        Ok(())
    }

    pub(super) async fn finish(&mut self, how: &'static str) -> Result<()> {
        let result = self.raw(how).await;
        self.open = result.is_err();
        result
    }

    /// Ends a [`Db::snapshot`].
    pub async fn done(mut self) -> Result<()> {
        self.finish("ROLLBACK").await
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        // Whatever went wrong, a connection with an open transaction never goes back to the pool.
        if self.open {
            self.inner.close_on_drop();
        }
    }
}

/// A value to bind.
#[derive(Clone, Debug)]
pub enum Value {
    Int(Option<i64>),
    Text(Option<String>),
}

impl From<i64> for Value {
    fn from(v: i64) -> Self {
        Self::Int(Some(v))
    }
}
impl From<Option<i64>> for Value {
    fn from(v: Option<i64>) -> Self {
        Self::Int(v)
    }
}
impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Self::Text(Some(v.to_owned()))
    }
}
impl From<String> for Value {
    fn from(v: String) -> Self {
        Self::Text(Some(v))
    }
}
impl From<&String> for Value {
    fn from(v: &String) -> Self {
        Self::Text(Some(v.clone()))
    }
}
impl From<Option<String>> for Value {
    fn from(v: Option<String>) -> Self {
        Self::Text(v)
    }
}
impl From<Option<&str>> for Value {
    fn from(v: Option<&str>) -> Self {
        Self::Text(v.map(str::to_owned))
    }
}

/// A statement with its values.
pub struct Stmt<'c> {
    conn: &'c mut Conn,
    sql: SqlStr,
    values: Vec<Value>,
}

impl<'c> Stmt<'c> {
    #[must_use]
    pub fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    #[must_use]
    pub fn bind_all(mut self, values: impl IntoIterator<Item = Value>) -> Self {
        self.values.extend(values);
        self
    }

    /// Runs it; the number of rows it matched.
    pub async fn run(self) -> Result<u64> {
        let (conn, sql, arguments) = self.prepare()?;
        Ok(sqlx::query_with(sql, arguments).execute(&mut *conn.inner).await?.rows_affected())
    }

    pub async fn rows(self) -> Result<Vec<AnyRow>> {
        let (conn, sql, arguments) = self.prepare()?;
        Ok(sqlx::query_with(sql, arguments).fetch_all(&mut *conn.inner).await?)
    }

    /// Many narrow rows of a SELECT with `columns` columns. SQLite hands each row from its own thread to ours,
    /// which costs more than reading it; there they come packed as one text, a JSON list a line.
    pub async fn many(self, columns: usize) -> Result<Many> {
        if !self.conn.dialect.packs_rows() {
            return Ok(Many::Rows(self.rows().await?));
        }
        let names = (0..columns).map(|n| format!("c{n}")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "WITH packed({names}) AS ({}) SELECT group_concat(json_array({names}), char(10)) FROM packed",
            self.sql.as_str()
        );
        let row = Stmt { sql: AssertSqlSafe(sql).into_sql_str(), ..self }.row().await?;
        Ok(Many::Packed(row.map(|row| row.opt_text(0)).transpose()?.flatten().unwrap_or_default()))
    }

    pub async fn row(self) -> Result<Option<AnyRow>> {
        let (conn, sql, arguments) = self.prepare()?;
        Ok(sqlx::query_with(sql, arguments).fetch_optional(&mut *conn.inner).await?)
    }

    /// The first column of the only row, a number.
    pub async fn int(self) -> Result<i64> {
        let row = self.row().await?.ok_or_else(|| Error::broken("a statement that always answers gave no row"))?;
        row.int(0)
    }

    fn prepare(self) -> Result<(&'c mut Conn, SqlStr, AnyArguments)> {
        let mut arguments = AnyArguments::default();
        let sql = if self.conn.dialect.numbers_placeholders() {
            for value in self.values {
                add(&mut arguments, value)?;
            }
            self.sql
        } else {
            let (text, order) = question_marks(self.sql.as_str());
            for n in order {
                let value = self.values.get(n - 1).ok_or_else(|| Error::broken(format!("${n} has no value")))?;
                add(&mut arguments, value.clone())?;
            }
            AssertSqlSafe(text).into_sql_str()
        };
        Ok((self.conn, sql, arguments))
    }
}

fn add(arguments: &mut AnyArguments, value: Value) -> Result<()> {
    match value {
        Value::Int(value) => arguments.add(value),
        Value::Text(value) => arguments.add(value),
    }
    .map_err(|error| Error::broken(error.to_string()))
}

/// `$N` → `?`, and the numbers in order of appearance.
fn question_marks(sql: &str) -> (String, Vec<usize>) {
    let mut text = String::with_capacity(sql.len());
    let mut order = Vec::new();
    let mut chars = sql.chars().peekable();
    while let Some(c) = chars.next() {
        let mut number = 0;
        if c == '$' {
            while let Some(digit) = chars.peek().and_then(|d| d.to_digit(10)) {
                number = number * 10 + digit as usize;
                chars.next();
            }
        }
        if number > 0 {
            order.push(number);
            text.push('?');
        } else {
            text.push(c);
        }
    }
    (text, order)
}

/// Reading a row by hand: columns by position, as the select lists them.
pub trait RowExt {
    fn int(&self, at: usize) -> Result<i64>;
    fn opt_int(&self, at: usize) -> Result<Option<i64>>;
    fn text(&self, at: usize) -> Result<String>;
    fn opt_text(&self, at: usize) -> Result<Option<String>>;
}

impl RowExt for AnyRow {
    fn int(&self, at: usize) -> Result<i64> {
        Ok(self.try_get(at)?)
    }
    fn opt_int(&self, at: usize) -> Result<Option<i64>> {
        Ok(self.try_get(at)?)
    }
    fn text(&self, at: usize) -> Result<String> {
        Ok(self.try_get(at)?)
    }
    fn opt_text(&self, at: usize) -> Result<Option<String>> {
        Ok(self.try_get(at)?)
    }
}

/// The rows of [`Stmt::many`].
pub enum Many {
    Rows(Vec<AnyRow>),
    Packed(String),
}

impl Many {
    pub fn read<T>(&self, read: impl Fn(&dyn RowExt) -> Result<T>) -> Result<Vec<T>> {
        match self {
            Self::Rows(rows) => rows.iter().map(|row| read(row)).collect(),
            Self::Packed(lines) => lines.lines().map(|line| read(&Packed::of(line)?)).collect(),
        }
    }
}

/// A row as a JSON list of its columns.
struct Packed(Vec<serde_json::Value>);

impl Packed {
    fn of(line: &str) -> Result<Self> {
        let row = serde_json::from_str(line);
        row.map(Self).map_err(|error| Error::broken(format!("a packed row can't be read: {error}")))
    }

    fn cell(&self, at: usize) -> Result<Option<&serde_json::Value>> {
        let cell = self.0.get(at).ok_or_else(|| Error::broken(format!("a packed row has no column {at}")))?;
        Ok((!cell.is_null()).then_some(cell))
    }
}

fn missing(at: usize) -> Error {
    Error::broken(format!("column {at} of a packed row is not what it should be"))
}

impl RowExt for Packed {
    fn int(&self, at: usize) -> Result<i64> {
        self.opt_int(at)?.ok_or_else(|| missing(at))
    }
    fn opt_int(&self, at: usize) -> Result<Option<i64>> {
        self.cell(at)?.map(|cell| cell.as_i64().ok_or_else(|| missing(at))).transpose()
    }
    fn text(&self, at: usize) -> Result<String> {
        self.opt_text(at)?.ok_or_else(|| missing(at))
    }
    fn opt_text(&self, at: usize) -> Result<Option<String>> {
        self.cell(at)?.map(|cell| cell.as_str().map(str::to_owned).ok_or_else(|| missing(at))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_become_question_marks_in_order_of_appearance() {
        let (text, order) = question_marks("SELECT $2, x FROM j('$[*]', '$.k', $1) WHERE a = $2 AND b = $10");
        assert_eq!(text, "SELECT ?, x FROM j('$[*]', '$.k', ?) WHERE a = ? AND b = ?");
        assert_eq!(order, [2, 1, 2, 10]);
    }
}
