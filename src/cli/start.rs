//! From configuration to a running core: what every command that does real work begins with.

use std::collections::HashMap;

use super::outcome::Failure;
use super::{mapped, services};
use crate::config::{self, Config};
use crate::core::Core;
use crate::core::clock::Clock;
use crate::core::policy::{CouponRule, LatePayment, OnRelease, Policy, Retry};
use crate::store::{Class, Db};

/// Connections to a server database.
pub(super) const CONNECTIONS: u32 = 10;

/// Connects (and migrates unless configured otherwise), takes the database's time, and says what is weak.
pub(super) async fn core(config: &Config, connections: u32) -> Result<Core, Failure> {
    let mut db = Db::open(config.database.url.expose(), config.database.migrate, connections).await?;
    if !config.database.migrate {
        require_schema(&db).await?;
    }
    mapped::connect(&mut db, config).await?;
    for warning in &db.facts.warnings {
        tracing::warn!(db.engine = db.facts.engine, "{warning}");
    }
    let clock = Clock::database(db.now_ms().await?);
    if clock.drift_ms().abs() > 2000 {
        tracing::warn!(clock.drift_ms = clock.drift_ms(), "this machine's clock and the database's differ");
    }
    let services = services::of(config, &clock)?;
    Ok(Core::with_services(db, clock, policy(config), services))
}

/// Where commands may not change tables, somebody else has to have done it.
async fn require_schema(db: &Db) -> Result<(), Failure> {
    let is_current = match db.is_current().await {
        Err(error) if error.is(Class::Away) => return Err(error.into()),
        // Without its own table of migrations there has been none.
        known => known.unwrap_or(false),
    };
    let message = "the schema isn't up to date and database.migrate is false; run `handback migrate`";
    if is_current { Ok(()) } else { Err(Failure::Usage(message.to_owned())) }
}

fn policy(config: &Config) -> Policy {
    let coupon = |on_release, days, extend_once| CouponRule { on_release: rule(on_release, days), extend_once };
    Policy {
        pay_within_s: config.order.pay_within_s,
        retry: Retry {
            delays_ms: config.retry.delays_ms.clone(),
            max_failures: config.retry.max_failures,
            jitter: config.retry.jitter,
        },
        coupon: coupon(config.coupon.on_release, config.coupon.extend_days, config.coupon.extend_once),
        coupon_issuer: config
            .coupon
            .issuers()
            .iter()
            .map(|own| (own.issuer.clone(), coupon(own.on_release, own.extend_days, own.extend_once)))
            .collect::<HashMap<_, _>>(),
        points: rule(config.points.on_release, config.points.extend_days),
        late_payment: match config.late_payment {
            config::LatePayment::TakeBack => LatePayment::TakeBack,
            config::LatePayment::Refund => LatePayment::Refund,
        },
        ask_times: config.channel.ask_times,
        ask_every_ms: i64::try_from(config.channel.ask_every.as_millis()).unwrap_or(i64::MAX),
        ..Policy::default()
    }
}

fn rule(on_release: config::OnRelease, days: i64) -> OnRelease {
    match on_release {
        config::OnRelease::Keep => OnRelease::Keep,
        config::OnRelease::Extend => OnRelease::Extend { days },
    }
}
