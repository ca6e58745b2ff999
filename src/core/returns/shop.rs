//! Returns in the shop's own tables (C2): read only, page by page by number. One reading follows the newest
//! numbers; another goes round for ever, so that a return of any age that is completed later is found too.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Received, receive};
use crate::core::{Core, Result, text};
use crate::store::mapped::Documents;
use crate::store::mapped::documents::{self, Document};
use crate::store::return_order::{Item, NewReturn};
use crate::store::{self, Conn, Decision, return_order};

/// Numbers looked at in one statement.
const PAGE: i64 = 500;

/// Looks at one page of each reading; how many returns got their tasks, and how many could not.
pub(super) async fn look(core: &Core) -> Result<(usize, usize)> {
    let Some(returns) = &core.db.mapped.returns else { return Ok((0, 0)) };
    let (mut written, mut failed) = (0, 0);
    for (name, goes_round) in [("returns.newest", false), ("returns.round", true)] {
        let at = documents::position(&mut core.db.read().await?, name).await?.filter(|at| !at.is_empty());
        let page = documents::counted_after(&mut core.db.read().await?, returns, at.as_deref(), PAGE).await?;
        let known = return_order::tasked_of(&mut core.db.read().await?, &page).await?;
        let known: HashSet<String> = known.into_iter().collect();
        for no in page.iter().filter(|no| !known.contains(*no)) {
            match take_over(core, no).await {
                Ok(true) => written += 1,
                Ok(false) => {}
                Err(error) if error.is_away() => return Err(error),
                // One that fails never holds up the others; the round comes back to it (R14).
                Err(error) => {
                    tracing::error!(error = %error, return.no = no, "the tasks of a return could not be written");
                    failed += 1;
                }
            }
        }
        let is_last = (page.len() as i64) < PAGE;
        let next = if is_last && goes_round { None } else { page.last().cloned().or_else(|| at.clone()) };
        if next != at {
            remember(core, name, next.unwrap_or_default()).await?;
        }
    }
    Ok((written, failed))
}

async fn remember(core: &Core, name: &'static str, position: String) -> Result<()> {
    let now = core.now();
    let done = core.db.write(move |conn| {
        let position = position.clone();
        Box::pin(async move {
            documents::set_position(conn, name, &position, now).await?;
            Ok(Decision::Commit(()))
        })
    });
    Ok(done.await?)
}

/// Writes down a return of the shop and its tasks, in one transaction; `false` when there is nothing to do (yet).
async fn take_over(core: &Core, no: &str) -> Result<bool> {
    if let Err(why) = text::check_text(no, text::NUMBER_MAX) {
        return Err(store::Error::broken(format!("the number {why}")).into());
    }
    let (work, now) = (Arc::new((core.clone(), no.to_owned())), core.now());
    let taken = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let (core, no) = (&work.0, &work.1);
            let tables = core.db.mapped.clone();
            let Some(of) = &tables.returns else { return Ok(Decision::Rollback(false)) };
            let found = documents::find(conn, of, no).await?;
            // Its lines may come later; then the round finds it.
            let Some(found) = found.filter(|found| found.counts && !found.items.is_empty()) else {
                return Ok(Decision::Rollback(false));
            };
            write_down(conn, of, &found, now).await?;
            Ok(match receive(conn, no, now, core).await? {
                Decision::Commit(_) => Decision::Commit(true),
                Decision::Rollback(Received::AlreadyReceived | Received::Unknown | Received::Received) => {
                    Decision::Rollback(false)
                }
            })
        })
    });
    Ok(taken.await?)
}

/// A return that was told of under the same number is that return: its lines stay as they were told.
async fn write_down(conn: &mut Conn, of: &Documents, found: &Document, now: i64) -> store::Result<()> {
    if return_order::find(conn, &found.no).await?.is_some() {
        return Ok(());
    }
    let raw = serde_json::json!({"no": found.no, "status": found.status, "items": found.items}).to_string();
    let new = NewReturn {
        return_no: &found.no,
        order_no: None,
        raw: Some(&raw),
        origin: Some(of.origin()),
        accepted_at: now,
    };
    if !return_order::insert(conn, &new).await? {
        return Err(store::Error::new(store::Class::Transient, "the return is being written at this moment"));
    }
    let lines = found.items.iter().zip(1..);
    let items: Vec<Item> =
        lines.map(|((key, qty), line)| Item { line, key: key.clone(), qty: *qty, restock: true }).collect();
    return_order::insert_items(conn, &found.no, &items).await
}
