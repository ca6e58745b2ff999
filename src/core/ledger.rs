//! Opening, adjusting and retiring ledger rows. Each change has its flow row in the same transaction (R2).

use std::sync::Arc;

use crate::core::text::{self, FieldError};
use crate::core::words::{Action, Actor, FundsKind, ResourceType, TaskStatus, source};
use crate::core::{Core, Error, Result};
use crate::store::flow::NewFlow;
use crate::store::ledger::{Change, Ledger, NewLedger};
use crate::store::{self, Conn, Decision, audit, flow, ledger, task};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    Opened(Ledger),
    /// The same row is there with the same start.
    Same(Ledger),
    /// A row of the name is there with another start.
    Exists(Ledger),
}

/// Opens a ledger row. A second start with the same figures changes nothing; with others it is refused.
///
/// # Errors
/// `Invalid` names every field that can't be taken.
pub async fn open(core: &Core, actor: &Actor, new: NewLedger) -> Result<Opened> {
    check_home(core, new.resource)?;
    let errors = check_new(&new);
    if !errors.is_empty() {
        return Err(Error::Invalid(errors));
    }
    let work = Arc::new((new, actor.to_string()));
    let now = core.now();
    let opened = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            if let Some(row) = open_row(conn, &work.0, &work.1, now).await? {
                return Ok(Decision::Commit(Opened::Opened(row)));
            }
            let Some(known) = ledger::find(conn, work.0.resource, &work.0.key).await? else {
                return Err(store::Error::new(store::Class::Transient, "the ledger row went away"));
            };
            let is_same = has_start(conn, &known, &work.0).await?;
            Ok(Decision::Rollback(if is_same { Opened::Same(known) } else { Opened::Exists(known) }))
        })
    });
    Ok(opened.await?)
}

/// Opens many rows, all or none; a name that is taken is answered by its place in the list.
pub async fn open_all(core: &Core, actor: &Actor, rows: Vec<NewLedger>) -> Result<Vec<usize>> {
    for new in &rows {
        check_home(core, new.resource)?;
    }
    let work = Arc::new((rows, actor.to_string()));
    let now = core.now();
    let taken = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let mut taken = Vec::new();
            for (at, new) in work.0.iter().enumerate() {
                if open_row(conn, new, &work.1, now).await?.is_none() {
                    taken.push(at);
                }
            }
            Ok(if taken.is_empty() { Decision::Commit(taken) } else { Decision::Rollback(taken) })
        })
    });
    Ok(taken.await?)
}

/// The row and its opening flow row; `None` when a live row of the name exists.
async fn open_row(conn: &mut Conn, new: &NewLedger, actor: &str, now: i64) -> store::Result<Option<Ledger>> {
    let Some(id) = ledger::insert(conn, new, now).await? else { return Ok(None) };
    let opening = NewFlow {
        ledger_id: Some(id),
        resource: new.resource.code(),
        key: new.key.clone(),
        action: Action::Adjust.code(),
        qty: new.available,
        ref_no: format!("open:{id}"),
        source: source::OPEN.into(),
        round: 1,
        task_id: None,
        bearer: new.issuer.clone(),
        available_after: new.available,
        locked_after: 0,
        sold_after: 0,
        reason: None,
    };
    if !flow::insert(conn, &[opening], now, actor).await? {
        return Err(store::Error::broken(format!("ledger row {id} had been opened before")));
    }
    ledger::find(conn, new.resource, &new.key).await
}

/// Whether a row was opened just so: its opening flow row says with what.
async fn has_start(conn: &mut Conn, known: &Ledger, new: &NewLedger) -> store::Result<bool> {
    let opening = format!("open:{}", known.id);
    let opening = flow::find(conn, &opening, source::OPEN, 1, Action::Adjust, known.resource, &known.key).await?;
    let started_with = opening.map(|flow| flow.qty);
    let original_end = known.original_expires_at.or(known.expires_at);
    Ok(started_with == Some(new.available)
        && known.kind == new.kind
        && known.owner == new.owner
        && known.issuer == new.issuer
        && original_end == new.expires_at)
}

/// Checks every field of a row to be opened.
pub fn check_new(new: &NewLedger) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut say = |field: &str, result: std::result::Result<(), String>| {
        if let Err(message) = result {
            errors.push(FieldError::new(field, message));
        }
    };
    say("key", text::check_text(&new.key, text::KEY_MAX));
    let most = if new.resource.is_single() { 1 } else { text::AMOUNT_MAX };
    say("available", text::check_range(new.available, 0, most));
    if let Some(owner) = &new.owner {
        say("owner", text::check_text(owner, text::KEY_MAX));
    }
    if let Some(issuer) = &new.issuer {
        let names_merchant = issuer.strip_prefix("merchant:").is_some_and(|m| !m.is_empty());
        let result = text::check_text(issuer, text::KEY_MAX);
        say(
            "issuer",
            if issuer == "platform" || names_merchant {
                result
            } else {
                Err("must be platform or merchant:NAME".into())
            },
        );
    } else if new.resource == ResourceType::Coupon {
        say("issuer", Err("is required: platform or merchant:NAME".into()));
    }
    if new.resource == ResourceType::Coupon && new.expires_at.is_none() {
        say("expires_at", Err("is required".into()));
    }
    if new.resource == ResourceType::Funds && new.kind.is_none() {
        say("kind", Err("is required: balance or points".into()));
    }
    if new.kind == Some(FundsKind::Balance) && new.expires_at.is_some() {
        say("expires_at", Err("only points run out; a balance has no end".into()));
    }
    if let Some(end) = new.expires_at {
        let range = text::check_range(end, crate::core::clock::EARLIEST_MS, crate::core::clock::LATEST_MS);
        say("expires_at", range.map_err(|_| "must be from 2020 to 2100".into()));
    }
    errors
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjustment {
    /// Signed; what is added to available and to locked.
    pub available: Option<i64>,
    pub locked: Option<i64>,
    /// Once per ref.
    pub reference: String,
    pub reason: String,
    /// The force-closed task whose debt this settles.
    pub task: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adjusted {
    Adjusted(Ledger),
    /// This ref was applied before.
    Same(Ledger),
    /// A figure would fall below zero.
    Insufficient(Ledger),
    /// No live row of the name.
    Unknown,
    /// The task isn't one whose debt this could settle.
    WrongTask(String),
}

/// Changes figures by hand: one flow row per figure, once per ref, with reason and audit row.
///
/// # Errors
/// `Invalid` names every field that can't be taken.
pub async fn adjust(
    core: &Core,
    actor: &Actor,
    resource: ResourceType,
    key: &str,
    adjustment: Adjustment,
) -> Result<Adjusted> {
    check_home(core, resource)?;
    check_adjustment(resource, &adjustment)?;
    let work = Arc::new((key.to_owned(), adjustment, actor.to_string()));
    let now = core.now();
    let adjusted = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { adjust_row(conn, resource, &work.0, &work.1, &work.2, now).await })
    });
    Ok(adjusted.await?)
}

async fn adjust_row(
    conn: &mut Conn,
    resource: ResourceType,
    key: &str,
    by: &Adjustment,
    actor: &str,
    now: i64,
) -> store::Result<Decision<Adjusted>> {
    // Locks: task before ledger row (R19).
    if let Some(problem) = check_task(conn, resource, key, by).await? {
        return Ok(Decision::Rollback(Adjusted::WrongTask(problem)));
    }
    let Some(row) = ledger::lock(conn, resource, key).await? else {
        return Ok(Decision::Rollback(Adjusted::Unknown));
    };
    for action in [Action::Adjust, Action::AdjustLocked] {
        if flow::find(conn, &by.reference, source::ADJUST, 1, action, resource, key).await?.is_some() {
            return Ok(Decision::Rollback(Adjusted::Same(row)));
        }
    }
    let (available, locked) = (by.available.unwrap_or(0), by.locked.unwrap_or(0));
    let (new_available, new_locked) = (row.available.checked_add(available), row.locked.checked_add(locked));
    let (Some(new_available @ 0..), Some(new_locked @ 0..)) = (new_available, new_locked) else {
        return Ok(Decision::Rollback(Adjusted::Insufficient(row)));
    };
    let flow_row = |action: Action, qty: i64, locked_after: i64| NewFlow {
        ledger_id: Some(row.id),
        resource: resource.code(),
        key: key.to_owned(),
        action: action.code(),
        qty,
        ref_no: by.reference.clone(),
        source: source::ADJUST.into(),
        round: 1,
        task_id: by.task,
        bearer: row.issuer.clone(),
        available_after: new_available,
        locked_after,
        sold_after: row.sold,
        reason: Some(by.reason.clone()),
    };
    let mut flows = Vec::new();
    if by.available.is_some() || by.locked.is_none() {
        flows.push(flow_row(Action::Adjust, available, row.locked));
    }
    if by.locked.is_some() {
        flows.push(flow_row(Action::AdjustLocked, locked, new_locked));
    }
    if !flow::insert(conn, &flows, now, actor).await? {
        return Err(store::Error::new(store::Class::Transient, "the same ref is being applied at this moment"));
    }
    ledger::apply(conn, &[Change { id: row.id, available, locked, sold: 0 }]).await?;
    if let Some(id) = by.task {
        task::settle_debt(conn, id).await?;
    }
    let after = Ledger { available: new_available, locked: new_locked, ..row.clone() };
    let figures =
        |row: &Ledger| serde_json::json!({"available": row.available, "locked": row.locked, "sold": row.sold});
    let entry = audit::Entry {
        at: now,
        actor,
        action: "ledger.adjust",
        target: &format!("ledger:{resource}/{key}"),
        reason: Some(&by.reason),
        detail: serde_json::json!({"ref": by.reference, "task": by.task, "before": figures(&row), "after": figures(&after)}),
    };
    audit::insert(conn, &entry).await?;
    Ok(Decision::Commit(Adjusted::Adjusted(after)))
}

/// What is wrong with the named task, if anything: it must be force-closed, of this key, and still owed.
async fn check_task(
    conn: &mut Conn,
    resource: ResourceType,
    key: &str,
    by: &Adjustment,
) -> store::Result<Option<String>> {
    let Some(id) = by.task else { return Ok(None) };
    Ok(match task::lock(conn, id).await? {
        None => Some(format!("there is no task {id}")),
        Some(task) if task.resource != resource || task.key != key => {
            Some(format!("task {id} is about {} {}", task.resource, task.key))
        }
        Some(task) if task.status != TaskStatus::ForceClosed => {
            Some(format!("task {id} is {}, not force-closed", task.status))
        }
        // A repeat of the same ref comes here too and is answered as such by the flow row.
        Some(_) => None,
    })
}

fn check_adjustment(resource: ResourceType, by: &Adjustment) -> Result<()> {
    let mut errors = Vec::new();
    let mut say = |field: &str, result: std::result::Result<(), String>| {
        if let Err(message) = result {
            errors.push(FieldError::new(field, message));
        }
    };
    if resource.is_single() {
        say("adjust", Err(format!("a {resource} has no figures to adjust")));
    }
    let most = text::AMOUNT_MAX;
    for (field, value) in [("adjust", by.available), ("adjust_locked", by.locked)] {
        if let Some(value) = value {
            say(field, text::check_range(value, -most, most));
        }
    }
    if by.available.is_none() && by.locked.is_none() {
        say("adjust", Err("or adjust_locked is required".into()));
    }
    say("ref", text::check_text(&by.reference, text::NUMBER_MAX));
    say("reason", text::check_text(&by.reason, text::REASON_MAX));
    if errors.is_empty() { Ok(()) } else { Err(Error::Invalid(errors)) }
}

/// Figures that others keep are changed where they are kept.
fn check_home(core: &Core, resource: ResourceType) -> Result<()> {
    if core.policy.homes.is_owned(resource) {
        return Ok(());
    }
    let keeper = if core.policy.homes.is_mapped(resource) { "the shop's own table" } else { "another service" };
    Err(Error::invalid("type", format!("{resource} is kept in {keeper}; it is changed there")))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retired {
    Retired,
    AlreadyRetired,
    Unknown,
}

/// Retires a key: it can't be locked any more, old holds settle and return on the retired row.
pub async fn retire(core: &Core, actor: &Actor, resource: ResourceType, key: &str) -> Result<Retired> {
    check_home(core, resource)?;
    let work = Arc::new((key.to_owned(), actor.to_string()));
    let now = core.now();
    let retired = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let Some(row) = ledger::lock(conn, resource, &work.0).await? else {
                let old = ledger::find(conn, resource, &work.0).await?;
                return Ok(Decision::Rollback(if old.is_some() { Retired::AlreadyRetired } else { Retired::Unknown }));
            };
            ledger::retire(conn, row.id, now).await?;
            let entry = audit::Entry {
                at: now,
                actor: &work.1,
                action: "ledger.retire",
                target: &format!("ledger:{resource}/{}", work.0),
                reason: None,
                detail: serde_json::json!({"available": row.available, "locked": row.locked, "sold": row.sold}),
            };
            audit::insert(conn, &entry).await?;
            Ok(Decision::Commit(Retired::Retired))
        })
    });
    Ok(retired.await?)
}
