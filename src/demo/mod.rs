//! The simulated shop of `handback demo`: a day after the seeds' figures (3,200 orders, 38 % never paid, a few
//! hot SKUs), compressed in time, through the same core as everybody else. No side door: what goes wrong here
//! goes wrong by acts that a real shop or person could do.

mod buyer;
mod catalogue;
mod faults;
pub mod seats;

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::core::{Core, Result};
use catalogue::Catalogue;

/// Orders a day, after the seed "订单超时自动取消与库存回补".
const ORDERS_A_DAY: f64 = 3200.0;
/// Calls of all buyers together that run at once.
const AT_ONCE: usize = 4;
/// Time to pay in the shop's own time.
const PAY_WITHIN_S: f64 = 900.0;

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many of the shop's seconds pass in one of ours.
    pub speed: f64,
    pub seed: u64,
}

impl Plan {
    /// Seconds to pay in our time; the deadline that orders are placed with.
    pub fn pay_within_s(self) -> i64 {
        (PAY_WITHIN_S / self.speed).ceil().max(1.0) as i64
    }

    /// The wait of so many of the shop's minutes.
    fn minutes(self, minutes: f64) -> Duration {
        // The time to pay never falls below a second, so nothing a buyer does is faster than its share of that.
        let share = minutes * 60.0 / PAY_WITHIN_S;
        Duration::from_secs_f64(share * self.pay_within_s() as f64)
    }
}

/// Runs the shop until told to stop; orders under way are left as they are.
pub async fn run(core: Core, plan: Plan, stop: CancellationToken) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(plan.seed);
    let catalogue = Catalogue::open(&core, &mut rng).await?;
    let tracker = TaskTracker::new();
    tracker.spawn(faults::run(core.clone(), catalogue.clone(), plan, rng.next_u64(), stop.clone()));
    let gate = Arc::new(Semaphore::new(AT_ONCE));
    let mut made: u64 = 0;
    let begin = tokio::time::Instant::now();
    while !stop.is_cancelled() {
        made += 1;
        let order = buyer::Visit::new(made, &catalogue, &mut rng);
        let (stop_in, seed) = (stop.clone(), rng.next_u64());
        let door = buyer::Door { core: core.clone(), gate: gate.clone() };
        // A machine that can't keep up sees fewer buyers, not a growing queue.
        let Ok(placing) = gate.clone().acquire_owned().await else { break };
        tracker.spawn(async move {
            tokio::select! {
                () = stop_in.cancelled() => {}
                () = order.live(&door, placing, plan, StdRng::seed_from_u64(seed)) => {}
            }
        });
        let hour = shop_hour(begin.elapsed(), plan);
        let a_second = ORDERS_A_DAY / 86_400.0 * plan.speed * busyness(hour);
        // Arrivals are independent of each other: the gap between two is exponential.
        let gap = -(1.0 - rng.random::<f64>()).ln() / a_second;
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(Duration::from_secs_f64(gap.min(5.0))) => {}
        }
    }
    tracker.close();
    tracker.wait().await;
    Ok(())
}

/// Hour of the shop's day: it opens at ten in the morning.
fn shop_hour(elapsed: Duration, plan: Plan) -> f64 {
    (10.0 + elapsed.as_secs_f64() * plan.speed / 3600.0) % 24.0
}

/// How busy an hour is against the day's mean: quiet at night, most in the evening.
fn busyness(hour: f64) -> f64 {
    let evening = (-((hour - 20.5) / 2.2).powi(2)).exp();
    let noon = (-((hour - 12.5) / 1.8).powi(2)).exp();
    0.45 + 1.9 * evening + 1.1 * noon
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_about_as_many_orders_as_the_seed_says() {
        let mean: f64 = (0..240).map(|n| busyness(f64::from(n) / 10.0)).sum::<f64>() / 240.0;
        assert!((0.85..1.15).contains(&mean), "{mean}");
    }

    #[test]
    fn time_to_pay_is_compressed_but_never_below_a_second() {
        assert_eq!(Plan { speed: 720.0, seed: 1 }.pay_within_s(), 2);
        assert_eq!(Plan { speed: 1.0, seed: 1 }.pay_within_s(), 900);
        assert_eq!(Plan { speed: 1e6, seed: 1 }.pay_within_s(), 1);
    }
}
