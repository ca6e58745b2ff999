//! Services that others keep, against a stand-in that lies in every way the contract allows: remote resources
//! and the payment channel, on every engine, through the core as the worker and people use it.

mod answers;
mod channel;
mod claims;
mod doubts;
mod gates;
mod hands;
mod killed;
mod late;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use handback::adapters::{Channel, ChannelSettings, Remote, RemoteSettings};
use handback::core::clock::Clock;
use handback::core::policy::{CHANNEL, Policy, Retry};
use handback::core::ports::Services;
use handback::core::release::Ran;
use handback::core::release::remote;
use handback::core::words::{Action, ResourceType, TaskStatus};
use handback::store::claim;
use handback::store::task::Task;

use crate::support::database::TestDb;
use crate::support::shop::{Ordering, Shop, an_order, worker};
use crate::support::standin::Standin;

use ResourceType::Coupon;

/// A shop whose coupons and quota a stand-in keeps, and whose money another one does.
pub struct Town {
    pub shop: Shop,
    /// Coupons.
    pub coupons: Standin,
    pub quota: Standin,
    pub bank: Standin,
}

const SECRET: &str = "s3cret-of-the-coupons";
/// Long enough that a busy machine isn't taken for a service that hangs.
const PATIENT: Duration = Duration::from_secs(20);
/// For tests in which it hangs.
const IMPATIENT: Duration = Duration::from_millis(700);

/// What tests change about the coupon service.
pub fn settings(base_url: &str, resource: ResourceType) -> RemoteSettings {
    RemoteSettings {
        resource,
        base_url: base_url.to_owned(),
        secret: Some(SECRET.to_owned()),
        timeout: PATIENT,
        max_concurrency: 8,
        rate_per_s: None,
        key_lifetime: Duration::from_secs(86_400),
        actions: vec![Action::Settle, Action::Release, Action::TakeBack, Action::ReturnIn],
        has_status: true,
    }
}

/// No jitter, so that a moved clock meets every next try.
pub fn policy() -> Policy {
    let retry = Retry { jitter: 0.0, ..Policy::default().retry };
    Policy { retry, ..Policy::default() }
}

impl Town {
    pub async fn open(db: &TestDb) -> Self {
        Self::with(db, |settings| settings).await
    }

    /// Its coupon service hangs at times.
    pub async fn impatient(db: &TestDb) -> Self {
        Self::with(db, |settings| RemoteSettings { timeout: IMPATIENT, ..settings }).await
    }

    pub async fn with(db: &TestDb, change: impl FnOnce(RemoteSettings) -> RemoteSettings) -> Self {
        let (coupons, quota, bank) = (Standin::start().await, Standin::start().await, Standin::start().await);
        let coupon_settings = change(settings(&coupons.url, Coupon));
        let quota_settings = settings(&quota.url, ResourceType::Quota);
        let channel = ChannelSettings { base_url: bank.url.clone(), secret: None, timeout: PATIENT };
        let services = |clock: &Clock| {
            let mut services = Services::default();
            let coupons = Remote::new(coupon_settings, clock.clone()).unwrap();
            services.remote.insert(Coupon, Arc::new(coupons));
            services.remote.insert(ResourceType::Quota, Arc::new(Remote::new(quota_settings, clock.clone()).unwrap()));
            services.channel = Some(Arc::new(Channel::new(&channel, clock.clone()).unwrap()));
            services
        };
        let shop = Shop::with_services(db, policy(), services).await;
        Self { shop, coupons, quota, bank }
    }

    /// One pass over a lane.
    pub async fn lane(&self, lane: i64) -> Ran {
        remote::run_due(&self.shop.core, &worker("w1"), lane, 100).await.unwrap()
    }

    pub async fn coupon_lane(&self) -> Ran {
        self.lane(Coupon.code()).await
    }

    /// Runs every lane until nothing is due at this moment of the test's clock.
    pub async fn work(&self) {
        for _ in 0..100 {
            let mut seen = self.shop.work().await.claimed;
            for lane in [Coupon.code(), ResourceType::Quota.code(), CHANNEL] {
                seen += self.lane(lane).await.claimed;
            }
            if seen == 0 {
                return;
            }
        }
        panic!("the lanes never became empty");
    }

    /// Works, and moves the clock to each next try, until nothing is left to try.
    pub async fn work_to_the_end(&self) {
        for _ in 0..100 {
            self.work().await;
            let Some(at) = self.next_try().await else { return };
            self.shop.clock.set(at);
        }
        panic!("there is always a next try");
    }

    async fn next_try(&self) -> Option<i64> {
        let mut conn = self.shop.core.db.read().await.unwrap();
        let mut next = Vec::new();
        for lane in 0..=CHANNEL {
            next.extend(claim::next_due(&mut conn, lane).await.unwrap());
        }
        next.into_iter().min()
    }

    /// A closed order that held coupon `c-{order_no}`: one release waits for the coupon service.
    pub async fn closed(&self, order_no: &str) -> Task {
        self.shop.placed(an_order(order_no).holding(Coupon, &format!("c-{order_no}"), 1)).await;
        self.shop.close(order_no, "buyer").await;
        self.shop.task(order_no).await
    }

    /// Stands at its next try.
    pub async fn at_next_try(&self, order_no: &str) {
        let at = self.shop.task(order_no).await.next_at.expect("a next try is planned");
        self.shop.clock.set(at);
    }

    pub async fn is_succeeded(&self, order_no: &str) {
        let task = self.shop.task(order_no).await;
        assert_eq!(task.status, TaskStatus::Succeeded, "{task:#?}");
        assert!(!task.is_in_doubt && task.claimed_by.is_none(), "{task:#?}");
    }

    /// What every test ends with.
    pub async fn all_is_well(&self) {
        for standin in [&self.coupons, &self.quota, &self.bank] {
            standin.each_effect_once();
        }
        self.shop.rules_hold().await;
    }
}
