//! What the simulated shop has: goods with a few hot ones, buyers with money and points, an activity, slots.

use std::sync::Arc;

use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::core::words::{Actor, FundsKind, ResourceType};
use crate::core::{Core, Result, ledger};
use crate::store::ledger::NewLedger;

const SKUS: usize = 200;
const HOT: usize = 5;
const BUYERS: usize = 500;
const SLOTS: usize = 400;

#[derive(Debug)]
pub struct Catalogue {
    pub skus: Vec<String>,
    pub buyers: Vec<String>,
    pub activity: String,
    pub slots: Vec<String>,
}

pub fn shop() -> Actor {
    Actor::Token("shop".into())
}

pub fn row(resource: ResourceType, key: impl Into<String>, available: i64) -> NewLedger {
    NewLedger { resource, key: key.into(), available, kind: None, owner: None, issuer: None, expires_at: None }
}

impl Catalogue {
    /// Opens the ledger rows, in one transaction.
    pub async fn open(core: &Core, rng: &mut StdRng) -> Result<Arc<Self>> {
        let skus: Vec<String> = (1..=SKUS).map(|n| format!("sku-{}", 40_000 + n * 37)).collect();
        let buyers: Vec<String> = (1..=BUYERS).map(|n| format!("u_{}", 70_000 + n * 13)).collect();
        let slots: Vec<String> = (1..=SLOTS).map(|n| format!("slot-{:02}-{:02}", n / 20 + 1, n % 20)).collect();
        let activity = "flash-sale".to_owned();
        let mut rows = Vec::new();
        for (n, sku) in skus.iter().enumerate() {
            let pieces = if n < HOT { 4000 } else { rng.random_range(60..400) };
            rows.push(row(ResourceType::Stock, sku, pieces));
        }
        for buyer in &buyers {
            let balance = rng.random_range(100..2000) * 100;
            rows.push(NewLedger {
                kind: Some(FundsKind::Balance),
                ..row(ResourceType::Funds, format!("bal:{buyer}"), balance)
            });
            let end = core.now() + rng.random_range(1..90) * 86_400_000;
            let points = rng.random_range(100..5000);
            rows.push(NewLedger {
                kind: Some(FundsKind::Points),
                expires_at: Some(end),
                ..row(ResourceType::Funds, format!("pts:{buyer}"), points)
            });
        }
        rows.push(row(ResourceType::Quota, &activity, 100_000));
        // The seats are kept by another service.
        ledger::open_all(core, &shop(), rows).await?;
        Ok(Arc::new(Self { skus, buyers, activity, slots }))
    }

    /// A SKU as buyers choose them: more than half the orders name one of the hot five.
    pub fn sku(&self, rng: &mut StdRng) -> &str {
        let at = if rng.random_bool(0.55) { rng.random_range(0..HOT) } else { rng.random_range(0..self.skus.len()) };
        &self.skus[at]
    }

    /// One of the hot ones.
    pub fn hot_sku(&self, rng: &mut StdRng) -> &str {
        &self.skus[rng.random_range(0..HOT)]
    }
}
