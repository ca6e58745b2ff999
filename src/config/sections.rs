//! The sections about Handback itself: one struct each, and in its `read` the keys with their
//! defaults and limits.

use std::net::SocketAddr;
use std::time::Duration;

use super::kind::{
    explained, fraction, listen, second_person, secret_url, time_of_day, truth, whole, wholes, word, zone,
};
use super::public_url::PublicUrl;
use super::reader::Reader;
use super::secret::SecretUrl;

#[derive(Debug, Clone)]
pub struct Database {
    pub url: SecretUrl,
    /// Whether the commands that need the schema bring it up to date themselves.
    pub migrate: bool,
}

impl Database {
    pub(super) fn read(r: &mut Reader) -> Self {
        let url = secret_url(
            "an address that begins with sqlite://, postgres:// or mysql://",
            &["sqlite", "postgres", "postgresql", "mysql", "mariadb"],
        );
        let default = SecretUrl::new("sqlite://handback.db");
        Self {
            url: r.read(&["database", "url"], &url, default),
            migrate: r.read(&["database", "migrate"], &truth(), true),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Server {
    pub listen: SocketAddr,
    /// As configured; `Config::public_url` fills in what follows from the listener.
    pub(super) public_url: Option<PublicUrl>,
    pub allow_plain_http: bool,
}

impl Server {
    pub(super) fn read(r: &mut Reader) -> Self {
        let local = SocketAddr::from(([127, 0, 0, 1], 8080));
        let address = r.read(&["server", "listen"], &listen(), local);
        let allow_plain_http = r.read(&["server", "allow_plain_http"], &truth(), false);
        let public_url = explained(
            "https://host, or http://localhost and a port",
            move |text| PublicUrl::parse(text, allow_plain_http),
            ToString::to_string,
        );
        Self { listen: address, public_url: r.find(&["server", "public_url"], &public_url), allow_plain_http }
    }
}

#[derive(Debug, Clone)]
pub struct Metrics {
    pub require_token: bool,
}

impl Metrics {
    pub(super) fn read(r: &mut Reader) -> Self {
        Self { require_token: r.read(&["metrics", "require_token"], &truth(), false) }
    }
}

#[derive(Debug, Clone)]
pub struct Order {
    /// How long a buyer has, for orders that don't bring their own limit.
    pub pay_within_s: i64,
}

impl Order {
    /// The longest time limit of an order: 30 days.
    pub const LONGEST_PAY_WITHIN_S: i64 = 2_592_000;

    pub(super) fn read(r: &mut Reader) -> Self {
        let seconds = whole(1..=Self::LONGEST_PAY_WITHIN_S);
        Self { pay_within_s: r.read(&["order", "pay_within_s"], &seconds, 900) }
    }
}

#[derive(Debug, Clone)]
pub struct Scan {
    pub interval: Duration,
}

impl Scan {
    pub(super) fn read(r: &mut Reader) -> Self {
        let interval = r.read(&["scan", "interval_ms"], &whole(10..=3_600_000), 1000);
        Self { interval: Duration::from_millis(interval.unsigned_abs()) }
    }
}

#[derive(Debug, Clone)]
pub struct Retry {
    /// Never empty; the last one repeats.
    pub delays_ms: Vec<i64>,
    /// The failure that makes a task manual.
    pub max_failures: i64,
    /// Share of a delay that chance may add or take away.
    pub jitter: f64,
}

impl Retry {
    pub(super) fn read(r: &mut Reader) -> Self {
        let day = 86_400_000;
        let delays = vec![1000, 5000, 30_000, 300_000, 1_800_000];
        Self {
            delays_ms: r.read(&["retry", "delays_ms"], &wholes(1..=day, 32), delays),
            max_failures: r.read(&["retry", "max_failures"], &whole(1..=1000), 8),
            jitter: r.read(&["retry", "jitter"], &fraction(0.0..=1.0), 0.2),
        }
    }
}

/// What becomes of a coupon or of points that ran out while an order held them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRelease {
    /// They come back as they are: expired.
    Keep,
    /// They get some days more.
    Extend,
}

const ON_RELEASE: &[(&str, OnRelease)] = &[("keep", OnRelease::Keep), ("extend", OnRelease::Extend)];
const DAYS: std::ops::RangeInclusive<i64> = 1..=3650;

#[derive(Debug, Clone)]
pub struct Coupon {
    pub on_release: OnRelease,
    pub extend_days: i64,
    /// A coupon is extended once until its end is set anew.
    pub extend_once: bool,
    issuers: Vec<IssuerPolicy>,
}

/// What one issuer decided otherwise; what it left out is the general rule's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerPolicy {
    pub issuer: String,
    pub on_release: OnRelease,
    pub extend_days: i64,
    pub extend_once: bool,
}

impl Coupon {
    pub(super) fn read(r: &mut Reader) -> Self {
        let base = ["coupon"];
        let general =
            IssuerPolicy { issuer: String::new(), on_release: OnRelease::Keep, extend_days: 3, extend_once: true };
        let general = IssuerPolicy::read(r, &base, general);
        let mut issuers = Vec::new();
        for name in r.names_under(&["coupon", "issuer"]) {
            let issuer = issuer_name(&name);
            let path = ["coupon", "issuer", issuer.as_str()];
            if !is_issuer(&issuer) {
                r.complain(&path, "an issuer is \"platform\" or \"merchant:\" and its name");
            }
            let general = IssuerPolicy { issuer: issuer.clone(), ..general.clone() };
            issuers.push(IssuerPolicy::read(r, &path, general));
        }
        Self {
            on_release: general.on_release,
            extend_days: general.extend_days,
            extend_once: general.extend_once,
            issuers,
        }
    }

    /// The policy for a coupon of this issuer.
    pub fn policy(&self, issuer: &str) -> IssuerPolicy {
        let own = self.issuers.iter().find(|policy| policy.issuer == issuer);
        own.cloned().unwrap_or_else(|| IssuerPolicy {
            issuer: issuer.to_owned(),
            on_release: self.on_release,
            extend_days: self.extend_days,
            extend_once: self.extend_once,
        })
    }

    /// The issuers that decided otherwise.
    pub fn issuers(&self) -> &[IssuerPolicy] {
        &self.issuers
    }
}

impl IssuerPolicy {
    fn read(r: &mut Reader, path: &[&str], general: Self) -> Self {
        let key = |name| [path, &[name]].concat();
        Self {
            on_release: r.read(&key("on_release"), &word(ON_RELEASE), general.on_release),
            extend_days: r.read(&key("extend_days"), &whole(DAYS), general.extend_days),
            extend_once: r.read(&key("extend_once"), &truth(), general.extend_once),
            issuer: general.issuer,
        }
    }
}

/// A variable has its first word in capitals; the merchant's own name stays as written.
fn issuer_name(name: &str) -> String {
    match name.split_once(':') {
        Some((kind, merchant)) => format!("{}:{merchant}", kind.to_lowercase()),
        None if name == "PLATFORM" => name.to_lowercase(),
        None => name.to_owned(),
    }
}

fn is_issuer(name: &str) -> bool {
    name == "platform" || name.strip_prefix("merchant:").is_some_and(|m| !m.is_empty())
}

#[derive(Debug, Clone)]
pub struct Points {
    pub on_release: OnRelease,
    pub extend_days: i64,
}

impl Points {
    pub(super) fn read(r: &mut Reader) -> Self {
        let words = word(ON_RELEASE);
        Self {
            on_release: r.read(&["points", "on_release"], &words, OnRelease::Keep),
            extend_days: r.read(&["points", "extend_days"], &whole(DAYS), 3),
        }
    }
}

/// What a payment does that comes after the close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatePayment {
    TakeBack,
    Refund,
}

impl LatePayment {
    pub(super) fn read(r: &mut Reader) -> Self {
        let words = word(&[("take_back", Self::TakeBack), ("refund", Self::Refund)]);
        r.read(&["late_payment"], &words, Self::TakeBack)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay {
    pub hour: u8,
    pub minute: u8,
}

#[derive(Debug, Clone)]
pub struct Reconcile {
    pub at: TimeOfDay,
    pub zone: String,
}

const HOME_ZONE: &str = "Asia/Shanghai";

impl Reconcile {
    pub(super) fn read(r: &mut Reader) -> Self {
        let (hour, minute) = r.read(&["reconcile", "at"], &time_of_day(), (3, 10));
        Self { at: TimeOfDay { hour, minute }, zone: r.read(&["reconcile", "zone"], &zone(), HOME_ZONE.to_owned()) }
    }
}

/// When an act needs a second person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondPerson {
    Never,
    Always,
    /// Only for more than this, in the resource's own unit.
    AmountOver(i64),
}

#[derive(Debug, Clone)]
pub struct TwoPerson {
    pub force_close: SecondPerson,
    pub adjust: SecondPerson,
}

impl TwoPerson {
    pub(super) fn read(r: &mut Reader) -> Self {
        Self { force_close: SecondPerson::read(r, "force_close"), adjust: SecondPerson::read(r, "adjust") }
    }
}

impl SecondPerson {
    /// A word, or a table `{ amount_over = N }`, which is a key of its own to the layers. Whichever
    /// of the two stands in the stronger layer counts.
    fn read(r: &mut Reader, act: &str) -> Self {
        let (path, over) = (["two_person", act], ["two_person", act, "amount_over"]);
        let amount = r.find_instead(&over, &whole(0..=1_000_000_000_000_000));
        let overruled = r.origin(&path) > r.origin(&over);
        match amount {
            Some(amount) if !overruled => Self::AmountOver(amount),
            _ => r.read(&path, &second_person(), Self::Never),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Chinese,
    English,
}

#[derive(Debug, Clone)]
pub struct Display {
    pub zone: String,
    /// `None` = as the browser asks.
    pub language: Option<Language>,
}

impl Display {
    pub(super) fn read(r: &mut Reader) -> Self {
        let languages = word(&[("zh", Language::Chinese), ("en", Language::English), ("zh-CN", Language::Chinese)]);
        Self {
            zone: r.read(&["display", "zone"], &zone(), HOME_ZONE.to_owned()),
            language: r.find(&["display", "language"], &languages),
        }
    }
}
