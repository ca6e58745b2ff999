//! What configuration decides for the core. Read once at start; a changed setting never changes an order
//! that was placed before (its deadline is stored).

use std::collections::HashMap;

use crate::core::words::ResourceType;

/// What becomes of a coupon or points account that ran out while it was locked (A5, A6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRelease {
    /// Its end stays: a coupon is expired, points are back on an expired account.
    Keep,
    /// A new end, so many days after the release.
    Extend { days: i64 },
}

/// The rule for coupons, in general or of one issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CouponRule {
    pub on_release: OnRelease,
    /// A coupon that was extended once isn't extended again until its end is set anew.
    pub extend_once: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Waits after the first, second, … failure in milliseconds; the last repeats.
    pub delays_ms: Vec<i64>,
    /// From this many failures on a person decides.
    pub max_failures: i64,
    /// Spread round each delay: 0.2 is ± 20 %.
    pub jitter: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatePayment {
    TakeBack,
    Refund,
}

/// The lane of tasks that are worked off here, set-wise, in one transaction.
pub const LOCAL: i64 = 0;
/// The lane of refunds: the payment channel is called.
pub const CHANNEL: i64 = 6;

/// Which types other services keep. All others are local: owned by Handback, or mapped tables of the shop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Homes {
    pub remote: Vec<ResourceType>,
    pub mapped: Vec<ResourceType>,
    /// Is there a payment channel that can be asked and told to refund?
    pub has_channel: bool,
}

impl Homes {
    pub fn is_remote(&self, resource: ResourceType) -> bool {
        self.remote.contains(&resource)
    }

    pub fn is_mapped(&self, resource: ResourceType) -> bool {
        self.mapped.contains(&resource)
    }

    /// Handback itself keeps the ledger.
    pub fn is_owned(&self, resource: ResourceType) -> bool {
        resource != ResourceType::Payment && !self.is_remote(resource) && !self.is_mapped(resource)
    }

    /// Who works a task of this type off: the lane of a remote type is its own number.
    pub fn lane(&self, resource: ResourceType) -> i64 {
        match resource {
            ResourceType::Payment => CHANNEL,
            remote if self.is_remote(remote) => remote.code(),
            _ => LOCAL,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Time to pay, in seconds, for orders that name none.
    pub pay_within_s: i64,
    pub retry: Retry,
    pub coupon: CouponRule,
    /// Other rules for the coupons of one issuer.
    pub coupon_issuer: HashMap<String, CouponRule>,
    pub points: OnRelease,
    pub late_payment: LatePayment,
    /// How long a tombstone is kept, in milliseconds (R15: 30 days).
    pub tombstone_ms: i64,
    pub homes: Homes,
    /// Asking the channel before a timeout closes an order: so many times, so far apart in milliseconds.
    pub ask_times: i64,
    pub ask_every_ms: i64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            pay_within_s: 900,
            retry: Retry { delays_ms: vec![1000, 5000, 30_000, 300_000, 1_800_000], max_failures: 8, jitter: 0.2 },
            coupon: CouponRule { on_release: OnRelease::Keep, extend_once: true },
            coupon_issuer: HashMap::new(),
            points: OnRelease::Keep,
            late_payment: LatePayment::TakeBack,
            tombstone_ms: 30 * 24 * 3_600_000,
            homes: Homes::default(),
            ask_times: 3,
            ask_every_ms: 60_000,
        }
    }
}

impl Policy {
    /// The rule for a coupon of this issuer.
    pub fn coupon_of(&self, issuer: Option<&str>) -> CouponRule {
        issuer.and_then(|issuer| self.coupon_issuer.get(issuer)).copied().unwrap_or(self.coupon)
    }
}
