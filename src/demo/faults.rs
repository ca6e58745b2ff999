//! What goes wrong in the simulated shop, by acts that real people and programs do: a stocktake that corrects
//! the locked figure of a hot SKU, a second system that releases what it never locked, a row for a paid order.
//! Now and then somebody looks at the manual queue: tries again, corrects the figure, tries again.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio_util::sync::CancellationToken;

use super::Plan;
use super::catalogue::Catalogue;
use crate::core::ledger::{Adjustment, adjust};
use crate::core::release::act;
use crate::core::words::{Actor, FailureKind, ResourceType, TaskStatus};
use crate::core::{Core, Result};
use crate::store::{Decision, outbox, task};

pub(super) async fn run(core: Core, catalogue: Arc<Catalogue>, plan: Plan, seed: u64, stop: CancellationToken) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut number = 0_u64;
    loop {
        // About once in twenty of the shop's minutes, at least every two of our seconds.
        let pause = (1200.0 / plan.speed).clamp(2.0, 60.0);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_secs_f64(pause)) => {}
        }
        number += 1;
        let done = match number % 5 {
            1 => stocktake(&core, catalogue.hot_sku(&mut rng), number).await,
            2 => stray_release(&core, catalogue.hot_sku(&mut rng), number).await,
            3 => look_at_queue(&core, number, &mut rng).await,
            4 => restock(&core, catalogue.sku(&mut rng), number).await,
            _ => Ok(()),
        };
        if let Err(error) = done {
            tracing::warn!(error = %error, "the simulated fault could not be made");
        }
    }
}

fn clerk() -> Actor {
    Actor::Operator("clerk".into())
}

/// A stocktake "finds" fewer pieces locked than there are: the next orders of that SKU can't give back all.
async fn stocktake(core: &Core, sku: &str, number: u64) -> Result<()> {
    let by = Adjustment {
        available: None,
        locked: Some(-2),
        reference: format!("stocktake-{number}"),
        reason: "stocktake: two pieces fewer than the figure says".into(),
        task: None,
    };
    adjust(core, &clerk(), ResourceType::Stock, sku, by).await?;
    Ok(())
}

/// A second system of the shop writes a release for an order that never locked anything here: more pieces
/// than anyone has locked, so the ledger says no.
async fn stray_release(core: &Core, sku: &str, number: u64) -> Result<()> {
    let sku = sku.to_owned();
    let written = core.db.write(move |conn| {
        let (no, sku) = (format!("ERP-{number:05}"), sku.clone());
        Box::pin(async move { Ok(Decision::Commit(outbox::write(conn, &no, ResourceType::Stock, &sku, 900).await?)) })
    });
    written.await?;
    Ok(())
}

async fn restock(core: &Core, sku: &str, number: u64) -> Result<()> {
    let by = Adjustment {
        available: Some(200),
        locked: None,
        reference: format!("delivery-{number}"),
        reason: "delivery".into(),
        task: None,
    };
    adjust(core, &clerk(), ResourceType::Stock, sku, by).await?;
    Ok(())
}

/// An operator takes one manual task: tries it as it is, and if it still lacks a little, corrects the figure
/// that the stocktake got wrong and tries again. What lacks a lot is left for the visitor.
async fn look_at_queue(core: &Core, number: u64, rng: &mut StdRng) -> Result<()> {
    let manual = task::some_of(&mut core.db.read().await?, TaskStatus::Manual, 20).await?;
    let fixable: Vec<_> =
        manual.into_iter().filter(|t| t.kind == Some(FailureKind::LockedInsufficient) && t.qty < 100).collect();
    if fixable.is_empty() {
        return Ok(());
    }
    let task = &fixable[rng.random_range(0..fixable.len())];
    act::retry(core, &clerk(), task.id, "is it back now?").await?;
    let by = Adjustment {
        available: None,
        locked: Some(task.qty),
        reference: format!("recount-{number}"),
        reason: "the stocktake was wrong".into(),
        task: None,
    };
    adjust(core, &clerk(), task.resource, &task.key, by).await?;
    act::retry(core, &clerk(), task.id, "the figure is corrected").await?;
    Ok(())
}
