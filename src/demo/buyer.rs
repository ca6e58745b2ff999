//! One visit to the simulated shop: an order is placed, then paid, cancelled, or forgotten; some pay too late.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::Plan;
use super::catalogue::{Catalogue, row, shop};
use crate::core::order::close::{CloseOrder, close_order};
use crate::core::order::complete::complete_order;
use crate::core::order::pay::{NewPayment, Said, record_payment};
use crate::core::order::place::{NewHold, NewOrder, Placed, place_order};
use crate::core::returns::accept::{Accepted, Told, ToldItem, accept_return};
use crate::core::returns::receive_return;
use crate::core::words::{ResourceType, Trigger};
use crate::core::{Core, Result, ledger};
use crate::store::ledger::NewLedger;
use crate::store::{Decision, outbox};

/// Share of paid orders of which something comes back.
const RETURNED: f64 = 0.08;
/// Share of returns whose stock step fails in the shop, after the seed "库存补偿".
const STEP_FAILS: f64 = 0.003;

/// What the buyer will do, decided by chance after the seeds' figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Pays,
    /// 38 % of all orders are never paid.
    Forgets,
    Cancels,
    /// Pays, but after the order was closed.
    PaysLate,
}

/// How buyers reach the core: a few calls at once, the rest wait in line.
pub(super) struct Door {
    pub core: Core,
    pub gate: Arc<Semaphore>,
}

impl Door {
    /// The core, once it is this caller's turn.
    async fn turn(&self) -> (&Core, Option<SemaphorePermit<'_>>) {
        (&self.core, self.gate.acquire().await.ok())
    }
}

pub(super) struct Visit {
    order: NewOrder,
    coupon: Option<NewLedger>,
    mood: Mood,
}

impl Visit {
    pub(super) fn new(number: u64, catalogue: &Catalogue, rng: &mut StdRng) -> Self {
        let buyer = catalogue.buyers[rng.random_range(0..catalogue.buyers.len())].clone();
        let order_no = format!("HB{number:07}");
        let mut holds = Vec::new();
        let mut lines = Vec::new();
        let mut amount: i64 = 0;
        for _ in 0..rng.random_range(1..=3) {
            let sku = catalogue.sku(rng).to_owned();
            let (qty, price) = (rng.random_range(1..=2), rng.random_range(9..400) * 100);
            amount += qty * price;
            lines.push(json!({"name": sku, "qty": qty, "price": price}));
            holds.push(NewHold { resource: ResourceType::Stock, key: sku, qty });
        }
        let mut hold = |resource, key: String, qty| holds.push(NewHold { resource, key, qty });
        let coupon = rng.random_bool(0.3).then(|| NewLedger {
            owner: Some(buyer.clone()),
            issuer: Some(if rng.random_bool(0.7) { "platform".into() } else { "merchant:M1".into() }),
            expires_at: None,
            ..row(ResourceType::Coupon, format!("C-{number:06}"), 1)
        });
        if let Some(coupon) = &coupon {
            hold(ResourceType::Coupon, coupon.key.clone(), 1);
        }
        if rng.random_bool(0.25) {
            hold(ResourceType::Funds, format!("bal:{buyer}"), rng.random_range(1..30) * 100);
        }
        if rng.random_bool(0.15) {
            hold(ResourceType::Funds, format!("pts:{buyer}"), rng.random_range(10..90));
        }
        if rng.random_bool(0.12) {
            hold(ResourceType::Quota, catalogue.activity.clone(), 1);
        }
        if rng.random_bool(0.03) {
            hold(ResourceType::Slot, catalogue.slots[rng.random_range(0..catalogue.slots.len())].clone(), 1);
        }
        let mood = match rng.random_range(0..1000) {
            0..572 => Mood::Pays,
            572..612 => Mood::Cancels,
            612..620 => Mood::PaysLate,
            _ => Mood::Forgets,
        };
        let lines = Some(serde_json::Value::from(lines).to_string());
        let order = NewOrder { order_no, buyer, amount, currency: "CNY".into(), holds, pay_within_s: None, lines };
        Self { order, coupon, mood }
    }

    /// The whole visit. What the shop refuses ends it; what breaks is said in the log.
    pub(super) async fn live(self, door: &Door, placing: OwnedSemaphorePermit, plan: Plan, rng: StdRng) {
        let order_no = self.order.order_no.clone();
        if let Err(error) = self.walk(door, placing, plan, rng).await {
            tracing::warn!(error = %error, order.no = order_no, "a visit to the simulated shop broke off");
        }
    }

    async fn walk(self, door: &Door, placing: OwnedSemaphorePermit, plan: Plan, mut rng: StdRng) -> Result<()> {
        let core = &door.core;
        let pay_within = Duration::from_secs(plan.pay_within_s().unsigned_abs());
        if let Some(mut coupon) = self.coupon {
            // Some coupons run out while their order waits.
            let lives = if rng.random_bool(0.1) { pay_within.mul_f64(0.9) } else { Duration::from_secs(86_400) };
            coupon.expires_at = Some(core.now() + i64::try_from(lives.as_millis()).unwrap_or(0));
            ledger::open(core, &shop(), coupon).await?;
        }
        let order = self.order.clone();
        if place_order(core, &shop(), order).await? != Placed::Placed {
            return Ok(());
        }
        drop(placing);
        let minutes = rng.random_range(0.3..13.0);
        match self.mood {
            // Half of those who forget had begun to pay: the channel is asked before their order is closed.
            Mood::Forgets if rng.random_bool(0.5) => pay(door, &self.order, Said::Started, "begun").await?,
            Mood::Forgets => {}
            Mood::Cancels => {
                tokio::time::sleep(plan.minutes(minutes)).await;
                close(door, &self.order.order_no, "buyer").await?;
            }
            Mood::Pays => {
                if rng.random_bool(0.08) {
                    pay(door, &self.order, Said::Failed, "a").await?;
                }
                pay(door, &self.order, Said::Started, "b").await?;
                tokio::time::sleep(plan.minutes(minutes)).await;
                pay(door, &self.order, Said::Succeeded, "b").await?;
                if rng.random_bool(0.1) {
                    // Channels tell things twice.
                    pay(door, &self.order, Said::Succeeded, "b").await?;
                }
                tokio::time::sleep(plan.minutes(60.0)).await;
                {
                    let (core, _turn) = door.turn().await;
                    complete_order(core, &self.order.order_no).await?;
                }
                if rng.random_bool(RETURNED) {
                    tokio::time::sleep(plan.minutes(120.0)).await;
                    send_back(door, &self.order, rng.random_bool(STEP_FAILS)).await?;
                }
            }
            Mood::PaysLate => {
                tokio::time::sleep(plan.minutes(25.0)).await;
                pay(door, &self.order, Said::Succeeded, "late").await?;
            }
        }
        if self.mood == Mood::Cancels && rng.random_bool(0.2) {
            // Two systems of the shop notice the same cancel.
            close(door, &self.order.order_no, "channel").await?;
        }
        Ok(())
    }
}

/// One line comes back. Where the shop's own stock step fails, its return is completed in the tables and nothing
/// moves: what the detector is for.
async fn send_back(door: &Door, order: &NewOrder, step_fails: bool) -> Result<()> {
    let Some(line) = order.holds.iter().find(|hold| hold.resource == ResourceType::Stock) else { return Ok(()) };
    let (core, _turn) = door.turn().await;
    let return_no = format!("R-{}", order.order_no);
    let (key, qty) = (line.key.clone(), line.qty);
    if step_fails {
        let (order_no, now) = (order.order_no.clone(), core.now());
        let written = core.db.write(move |conn| {
            let (return_no, order_no, key) = (return_no.clone(), order_no.clone(), key.clone());
            Box::pin(async move {
                Ok(Decision::Commit(outbox::complete_return(conn, &return_no, &order_no, &key, qty, now).await?))
            })
        });
        return Ok(written.await?);
    }
    let told = Told {
        return_no: return_no.clone(),
        order_no: Some(order.order_no.clone()),
        items: vec![ToldItem { key, qty, restock: true }],
        raw: json!({"return_no": return_no, "order_no": order.order_no}).to_string(),
    };
    if accept_return(core, told).await? == Accepted::Accepted {
        receive_return(core, &return_no).await?;
    }
    Ok(())
}

async fn close(door: &Door, order_no: &str, reason: &str) -> Result<()> {
    let (core, _turn) = door.turn().await;
    let close = CloseOrder { order_no: order_no.into(), reason: reason.into(), trigger: Trigger::Api };
    close_order(core, &shop(), close).await?;
    Ok(())
}

async fn pay(door: &Door, order: &NewOrder, said: Said, attempt: &str) -> Result<()> {
    let (core, _turn) = door.turn().await;
    let payment = NewPayment {
        order_no: order.order_no.clone(),
        said,
        channel: "pay-a".into(),
        channel_txn: format!("{}-{attempt}", order.order_no),
        amount: order.amount,
        currency: order.currency.clone(),
        occurred_at: core.now(),
    };
    record_payment(core, payment).await?;
    Ok(())
}
