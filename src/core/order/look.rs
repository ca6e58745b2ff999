//! What customer service does with an order: look at a buyer's name, with a reason that is kept.

use std::sync::Arc;

use crate::core::words::Actor;
use crate::core::{Core, Error, Result, text};
use crate::store::{Decision, audit, order};

/// The buyer of an order, and a row of the audit log that says who looked and why; `None` for an unknown order
/// or a tombstone.
///
/// # Errors
/// `Invalid` for a reason that can't be taken.
pub async fn reveal_buyer(core: &Core, actor: &Actor, order_no: &str, reason: &str) -> Result<Option<String>> {
    text::check_text(reason, text::REASON_MAX).map_err(|m| Error::invalid("reason", m))?;
    let now = core.now();
    let work = Arc::new((order_no.to_owned(), actor.to_string(), reason.to_owned()));
    let revealed = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let (order_no, actor, reason) = &*work;
            let Some(order) = order::find(conn, order_no).await?.filter(|order| !order.is_tombstone()) else {
                return Ok(Decision::Rollback(None));
            };
            let entry = audit::Entry {
                at: now,
                actor,
                action: "order.reveal",
                target: &format!("order:{order_no}"),
                reason: Some(reason),
                detail: serde_json::json!({"field": "buyer"}),
            };
            audit::insert(conn, &entry).await?;
            Ok(Decision::Commit(Some(order.buyer)))
        })
    });
    Ok(revealed.await?)
}

/// Asks those who run the tasks to look at one; what was asked stands on the task's page. `false` for a task
/// that nobody knows.
///
/// # Errors
/// `Invalid` for a reason that can't be taken.
pub async fn ask_for_help(core: &Core, actor: &Actor, task_id: i64, reason: &str) -> Result<bool> {
    text::check_text(reason, text::REASON_MAX).map_err(|m| Error::invalid("reason", m))?;
    let now = core.now();
    let work = Arc::new((actor.to_string(), reason.to_owned()));
    let asked = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let Some(task) = crate::store::task::find(conn, task_id).await? else {
                return Ok(Decision::Rollback(false));
            };
            let entry = audit::Entry {
                at: now,
                actor: &work.0,
                action: "task.help",
                target: &format!("task:{task_id}"),
                reason: Some(&work.1),
                detail: serde_json::json!({"order_no": task.order_no}),
            };
            audit::insert(conn, &entry).await?;
            Ok(Decision::Commit(true))
        })
    });
    Ok(asked.await?)
}
