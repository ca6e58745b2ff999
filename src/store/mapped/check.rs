//! Checks at start that the configured tables are there and can be worked on: every column, its type, and a
//! unique key. Everything that is wrong is said at once, in the words of the configuration.

use std::collections::HashMap;
use std::sync::Arc;

use super::documents::{Documents, Header};
use super::{Column, Shape, Single, Table, Tables, wall};
use crate::core::words::ResourceType;
use crate::store::conn::{Conn, RowExt as _};
use crate::store::db::Result;
use crate::store::dialect::Kind;

/// What the configuration says of the shop's tables.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    pub ledgers: Vec<LedgerSpec>,
    pub orders: Option<DocumentsSpec>,
    pub returns: Option<DocumentsSpec>,
}

impl Spec {
    pub fn is_empty(&self) -> bool {
        self.ledgers.is_empty() && self.orders.is_none() && self.returns.is_none()
    }
}

#[derive(Clone, Debug)]
pub struct LedgerSpec {
    pub resource: ResourceType,
    pub table: String,
    pub key: String,
    pub available: Option<String>,
    pub locked: Option<String>,
    pub sold: Option<String>,
    pub version: Option<String>,
    pub status: Option<String>,
    pub holder: Option<String>,
    pub expires: Option<String>,
    /// Our word, theirs.
    pub values: Vec<(String, String)>,
    pub zone: Option<String>,
}

/// The shop's orders or returns.
#[derive(Clone, Debug)]
pub struct DocumentsSpec {
    pub table: String,
    pub no: String,
    pub status: String,
    /// The value of `status` that counts.
    pub counted: String,
    pub items_table: String,
    pub items_order: String,
    pub items_key: String,
    pub items_qty: String,
}

/// The tables of `spec`, or all that is wrong with them.
pub async fn check(conn: &mut Conn, spec: &Spec) -> Result<std::result::Result<Tables, Vec<String>>> {
    let mut problems = Vec::new();
    let mut tables = Tables::default();
    for ledger in &spec.ledgers {
        let section = format!("mapped.{}", ledger.resource);
        let mut look = Look::at(conn, &section, &ledger.table, &mut problems).await?;
        if let Some(table) = look.ledger(ledger) {
            tables.ledgers.insert(ledger.resource, Arc::new(table));
        }
    }
    for (section, counted, documents, into) in [
        ("mapped.orders", "open_value", &spec.orders, &mut tables.orders),
        ("mapped.returns", "completed_value", &spec.returns, &mut tables.returns),
    ] {
        if let Some(documents) = documents {
            *into = read_documents(conn, section, counted, documents, &mut problems).await?;
        }
    }
    Ok(if problems.is_empty() { Ok(tables) } else { Err(problems) })
}

async fn read_documents(
    conn: &mut Conn,
    section: &str,
    counted: &str,
    spec: &DocumentsSpec,
    problems: &mut Vec<String>,
) -> Result<Option<Documents>> {
    let mut look = Look::at(conn, section, &spec.table, problems).await?;
    let no = look.column("no_column", &spec.no, &[Kind::Int, Kind::Text]);
    let status = look.column("status_column", &spec.status, &[Kind::Int, Kind::Text]);
    look.unique("no_column", &spec.no);
    let table = look.quoted.clone();
    let origin: String = spec.table.chars().take(64).collect();
    let mut items = Look::at(conn, section, &spec.items_table, problems).await?;
    let order = items.column("items_order_column", &spec.items_order, &[Kind::Int, Kind::Text]);
    let key = items.column("items_key_column", &spec.items_key, &[Kind::Int, Kind::Text]);
    let qty = items.column("items_qty_column", &spec.items_qty, &[Kind::Int]);
    let items_table = items.quoted.clone();
    let (Some(no), Some(status), Some(order), Some(key), Some(qty)) = (no, status, order, key, qty) else {
        return Ok(None);
    };
    let Some(value) = status.value(&spec.counted) else {
        problems.push(format!("{section}.{counted}: {} is a number, {:?} is none", spec.status, spec.counted));
        return Ok(None);
    };
    let header = Header { table, no, status, value, counted: spec.counted.clone() };
    Ok(Some(Documents { header, origin, items_table, order, key, qty }))
}

/// One table as it was found.
struct Look<'p> {
    section: String,
    table: String,
    quoted: String,
    columns: HashMap<String, (Kind, String)>,
    unique: Vec<String>,
    problems: &'p mut Vec<String>,
    dialect: crate::store::dialect::Dialect,
}

impl<'p> Look<'p> {
    async fn at(conn: &mut Conn, section: &str, table: &str, problems: &'p mut Vec<String>) -> Result<Self> {
        let dialect = conn.dialect;
        let quoted = dialect.quoted(table);
        let (schema, bare) = match table.split_once('.') {
            Some((schema, bare)) => (Some(schema), bare),
            None => (None, table),
        };
        let mut columns = HashMap::new();
        for row in conn.stmt(dialect.describe_columns()).bind(schema).bind(bare).bind(&quoted).rows().await? {
            let type_name = row.text(1)?;
            columns.insert(row.text(0)?, (dialect.kind_of(&type_name), type_name));
        }
        let mut unique = Vec::new();
        if columns.is_empty() {
            problems.push(format!("{section}: there is no table {table}"));
        } else {
            let rows = conn.stmt(dialect.describe_unique()).bind(schema).bind(bare).bind(&quoted).rows().await?;
            for row in &rows {
                unique.push(row.text(0)?);
            }
        }
        Ok(Self { section: section.into(), table: table.into(), quoted, columns, unique, problems, dialect })
    }

    /// The column of this name, if it is there and of one of these kinds.
    fn column(&mut self, key: &str, name: &str, kinds: &[Kind]) -> Option<Column> {
        if self.columns.is_empty() {
            return None;
        }
        let Some((kind, type_name)) = self.columns.get(name) else {
            let mut there: Vec<&str> = self.columns.keys().map(String::as_str).collect();
            there.sort_unstable();
            let there = there.join(", ");
            self.problems.push(format!("{}.{key}: {} has no column {name}; it has {there}", self.section, self.table));
            return None;
        };
        if !kinds.contains(kind) {
            let wanted = kinds.iter().map(|kind| spelt(*kind)).collect::<Vec<_>>().join(" or ");
            let is = if type_name.is_empty() { "without a type" } else { type_name };
            self.problems.push(format!("{}.{key}: {name} of {} must be {wanted}, is {is}", self.section, self.table));
            return None;
        }
        Some(Column { name: self.dialect.quoted(name), kind: *kind })
    }

    fn optional(&mut self, key: &str, name: Option<&String>, kinds: &[Kind]) -> Option<Column> {
        name.and_then(|name| self.column(key, name, kinds))
    }

    fn unique(&mut self, key: &str, name: &str) {
        if self.columns.contains_key(name) && !self.unique.iter().any(|known| known == name) {
            let table = &self.table;
            self.problems.push(format!(
                "{}.{key}: {name} has no unique key of its own in {table}, so one key could mean two rows",
                self.section
            ));
        }
    }

    fn ledger(&mut self, spec: &LedgerSpec) -> Option<Table> {
        let key = self.column("key_column", &spec.key, &[Kind::Int, Kind::Text]);
        self.unique("key_column", &spec.key);
        let version = self.optional("version_column", spec.version.as_ref(), &[Kind::Int]);
        let shape = if spec.resource.is_single() { self.single(spec) } else { self.counted(spec) };
        Some(Table {
            resource: spec.resource,
            name: self.quoted.clone(),
            key: key?,
            shape: shape?,
            version: version.map(|column| column.name),
        })
    }

    fn counted(&mut self, spec: &LedgerSpec) -> Option<Shape> {
        let available = self.optional("available_column", spec.available.as_ref(), &[Kind::Int]);
        let locked = self.optional("locked_column", spec.locked.as_ref(), &[Kind::Int]);
        let sold = self.optional("sold_column", spec.sold.as_ref(), &[Kind::Int]);
        let name = |column: Option<Column>| column.map(|column| column.name);
        Some(Shape::Counted { available: available?.name, locked: name(locked), sold: name(sold) })
    }

    fn single(&mut self, spec: &LedgerSpec) -> Option<Shape> {
        let status = self.optional("status_column", spec.status.as_ref(), &[Kind::Int, Kind::Text]);
        let holder = self.optional("holder_column", spec.holder.as_ref(), &[Kind::Int, Kind::Text]);
        let times = [Kind::Wall, Kind::Instant, Kind::Int];
        let expires = self.optional("expires_column", spec.expires.as_ref(), &times);
        let Some(zone) = wall::zone(spec.zone.as_deref()) else {
            self.problems.push(format!("{}.zone: there is no time zone {:?}", self.section, spec.zone));
            return None;
        };
        let status = status?;
        for (ours, theirs) in &spec.values {
            if status.value(theirs).is_none() {
                let name = spec.status.as_deref().unwrap_or_default();
                self.problems.push(format!("{}.values.{ours}: {name} is a number, {theirs:?} is none", self.section));
            }
        }
        Some(Shape::Single(Single { status, holder: holder?, expires, values: spec.values.clone(), zone }))
    }
}

fn spelt(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "a column of whole numbers",
        Kind::Text => "a column of texts",
        Kind::Wall => "a DATETIME",
        Kind::Instant => "a TIMESTAMP",
        Kind::Other => "anything",
    }
}
