//! The shop's own tables, from the configuration to the database: named, found, and fit to be worked on.

use super::outcome::Failure;
use crate::config::{Config, MappedDocuments, MappedLedger};
use crate::core::words::ResourceType;
use crate::store::Db;
use crate::store::mapped::{DocumentsSpec, LedgerSpec, Spec};

/// Ties the configured tables to the database, or says everything that is wrong with them.
pub(super) async fn connect(db: &mut Db, config: &Config) -> Result<(), Failure> {
    let spec = spec(config)?;
    if spec.is_empty() {
        return Ok(());
    }
    db.map(&spec).await?.map_err(|problems| {
        let list: Vec<String> = problems.iter().map(|problem| format!("\n  {problem}")).collect();
        Failure::Usage(format!("the mapped tables can't be worked on{}", list.concat()))
    })
}

/// What the configuration says of the shop's tables.
fn spec(config: &Config) -> Result<Spec, Failure> {
    let mut ledgers = Vec::new();
    for ledger in &config.mapped.ledgers {
        if config.remote.iter().any(|remote| remote.kind == ledger.kind) {
            let kind = &ledger.kind;
            return Err(Failure::Usage(format!("remote.{kind} and mapped.{kind}: a type is kept in one place only")));
        }
        ledgers.extend(of_ledger(ledger));
    }
    let documents = |of: &Option<MappedDocuments>| of.as_ref().map(of_documents);
    Ok(Spec { ledgers, orders: documents(&config.mapped.orders), returns: documents(&config.mapped.returns) })
}

fn of_ledger(of: &MappedLedger) -> Option<LedgerSpec> {
    Some(LedgerSpec {
        resource: ResourceType::from_word(&of.kind)?,
        table: of.table.clone(),
        key: of.key_column.clone(),
        available: of.available_column.clone(),
        locked: of.locked_column.clone(),
        sold: of.sold_column.clone(),
        version: of.version_column.clone(),
        status: of.status_column.clone(),
        holder: of.holder_column.clone(),
        expires: of.expires_column.clone(),
        values: of.values.clone(),
        zone: of.zone.clone(),
    })
}

fn of_documents(of: &MappedDocuments) -> DocumentsSpec {
    DocumentsSpec {
        table: of.table.clone(),
        no: of.no_column.clone(),
        status: of.status_column.clone(),
        counted: of.counted_value.clone(),
        items_table: of.items_table.clone(),
        items_order: of.items_order_column.clone(),
        items_key: of.items_key_column.clone(),
        items_qty: of.items_qty_column.clone(),
    }
}
