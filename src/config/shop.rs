//! The sections about the world around: what notices due orders, services that own a resource,
//! tables of the shop, the payment channel.

use std::time::Duration;

use super::kind::{column, secret_url, stored_word, table, variable_name, whole, words, zone};
use super::reader::Reader;
use super::secret::{Secret, SecretUrl};

const TYPES: &[(&str, &str)] =
    &[("stock", "stock"), ("coupon", "coupon"), ("funds", "funds"), ("quota", "quota"), ("slot", "slot")];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    Scan,
    Wheel,
    Redis,
    Broker,
}

#[derive(Debug, Clone)]
pub struct Triggers {
    /// The scan is always among them: it is the net under the others.
    pub enable: Vec<Trigger>,
    pub redis: Option<SecretUrl>,
    pub amqp: Option<SecretUrl>,
}

impl Triggers {
    pub(super) fn read(r: &mut Reader) -> Self {
        let kinds = words(&[
            ("scan", Trigger::Scan),
            ("wheel", Trigger::Wheel),
            ("redis", Trigger::Redis),
            ("broker", Trigger::Broker),
        ]);
        let mut enable = r.read(&["triggers", "enable"], &kinds, vec![Trigger::Scan]);
        if !enable.contains(&Trigger::Scan) {
            enable.insert(0, Trigger::Scan);
        }
        let redis = secret_url("an address that begins with redis:// or rediss://", &["redis", "rediss"]);
        let amqp = secret_url("an address that begins with amqp:// or amqps://", &["amqp", "amqps"]);
        let mut address = |path: &[&str], kind, trigger| {
            if enable.contains(&trigger) {
                r.require(path, kind, "triggers.enable asks for it")
            } else {
                r.find(path, kind)
            }
        };
        Self {
            redis: address(&["redis", "url"], &redis, Trigger::Redis),
            amqp: address(&["amqp", "url"], &amqp, Trigger::Broker),
            enable,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteAct {
    Settle,
    Release,
    TakeBack,
    ReturnIn,
    Status,
    Locks,
}

const REMOTE_ACTS: &[(&str, RemoteAct)] = &[
    ("settle", RemoteAct::Settle),
    ("release", RemoteAct::Release),
    ("take_back", RemoteAct::TakeBack),
    ("return_in", RemoteAct::ReturnIn),
    ("status", RemoteAct::Status),
    ("locks", RemoteAct::Locks),
];

/// A resource type that another service keeps.
#[derive(Debug, Clone)]
pub struct Remote {
    pub kind: String,
    pub base_url: SecretUrl,
    /// Signs the calls.
    pub secret: Option<Secret>,
    pub timeout: Duration,
    pub max_concurrency: i64,
    /// Calls a second; `None` = as fast as they are answered.
    pub rate_per_s: Option<i64>,
    /// How long the service remembers an idempotency key.
    pub key_lifetime: Duration,
    pub supports: Vec<RemoteAct>,
}

impl Remote {
    pub(super) fn read_all(r: &mut Reader) -> Vec<Self> {
        let mut services = Vec::new();
        for kind in type_names(r, "remote") {
            services.extend(Self::read(r, &kind));
        }
        services
    }

    fn read(r: &mut Reader, kind: &str) -> Option<Self> {
        let key = |name| ["remote", kind, name];
        let section = format!("remote.{kind} is configured");
        let base_url = r.require(&key("base_url"), &service_url(), &section);
        let all_but_questions = REMOTE_ACTS[..4].iter().map(|(_, act)| *act).collect();
        let timeout = r.read(&key("timeout_ms"), &whole(1..=120_000), 3000);
        let key_lifetime = r.read(&key("key_lifetime_s"), &whole(1..=31_536_000), 86_400);
        let remote = Self {
            kind: kind.to_owned(),
            base_url: SecretUrl::new(""),
            secret: secret(r, &key("secret_env")),
            timeout: Duration::from_millis(timeout.unsigned_abs()),
            max_concurrency: r.read(&key("max_concurrency"), &whole(1..=1000), 8),
            rate_per_s: r.find(&key("rate_per_s"), &whole(1..=100_000)),
            key_lifetime: Duration::from_secs(key_lifetime.unsigned_abs()),
            supports: r.read(&key("supports"), &words(REMOTE_ACTS), all_but_questions),
        };
        Some(Self { base_url: base_url?, ..remote })
    }
}

/// The types that `[section.TYPE]` names; anything else is left to be reported as unknown.
fn type_names(r: &Reader, section: &str) -> Vec<String> {
    let names = r.names_under(&[section]);
    let written = |kind: &str| names.iter().any(|name| name == kind || *name == kind.to_uppercase());
    let kinds = TYPES.iter().map(|(kind, _)| (*kind).to_owned());
    kinds.filter(|kind| written(kind)).collect()
}

fn service_url() -> super::kind::Kind<SecretUrl> {
    secret_url("an address that begins with http:// or https://", &["http", "https"])
}

/// The secret itself is never in the file: the key names the variable that holds it.
fn secret(r: &mut Reader, path: &[&str]) -> Option<Secret> {
    let name = r.find(path, &variable_name())?;
    let secret = r.secret_in(&name);
    if secret.is_none() {
        r.complain(path, &format!("names the variable {name}, which isn't set"));
    }
    secret.map(Secret::new)
}

/// The payment channel that is asked before an order with a started payment is closed.
#[derive(Debug, Clone)]
pub struct Channel {
    /// `None`: there is nobody to ask.
    pub base_url: Option<SecretUrl>,
    pub secret: Option<Secret>,
    pub timeout: Duration,
    pub ask_times: i64,
    pub ask_every: Duration,
}

impl Channel {
    pub(super) fn read(r: &mut Reader) -> Self {
        let timeout = r.read(&["channel", "timeout_ms"], &whole(1..=120_000), 3000);
        let ask_every = r.read(&["channel", "ask_every_ms"], &whole(10..=86_400_000), 60_000);
        Self {
            base_url: r.find(&["channel", "base_url"], &service_url()),
            secret: secret(r, &["channel", "secret_env"]),
            timeout: Duration::from_millis(timeout.unsigned_abs()),
            ask_times: r.read(&["channel", "ask_times"], &whole(1..=1000), 3),
            ask_every: Duration::from_millis(ask_every.unsigned_abs()),
        }
    }
}

/// Tables of the shop that take the place of owned ledgers.
#[derive(Debug, Clone)]
pub struct Mapped {
    pub ledgers: Vec<MappedLedger>,
    pub orders: Option<MappedDocuments>,
    pub returns: Option<MappedDocuments>,
}

#[derive(Debug, Clone)]
pub struct MappedLedger {
    pub kind: String,
    pub table: String,
    pub key_column: String,
    pub available_column: Option<String>,
    pub locked_column: Option<String>,
    pub sold_column: Option<String>,
    pub version_column: Option<String>,
    pub status_column: Option<String>,
    pub holder_column: Option<String>,
    pub expires_column: Option<String>,
    /// Our words and what the shop's table has in their place.
    pub values: Vec<(String, String)>,
    pub zone: Option<String>,
}

/// The shop's orders or returns, to compare with.
#[derive(Debug, Clone)]
pub struct MappedDocuments {
    pub table: String,
    pub no_column: String,
    pub status_column: String,
    /// `open_value` of orders, `completed_value` of returns.
    pub counted_value: String,
    pub items_table: String,
    pub items_order_column: String,
    pub items_key_column: String,
    pub items_qty_column: String,
    pub zone: Option<String>,
}

impl Mapped {
    pub fn is_empty(&self) -> bool {
        self.ledgers.is_empty() && self.orders.is_none() && self.returns.is_none()
    }

    pub(super) fn read(r: &mut Reader) -> Self {
        let mut ledgers = Vec::new();
        for kind in type_names(r, "mapped") {
            ledgers.extend(MappedLedger::read(r, &kind));
        }
        Self {
            ledgers,
            orders: MappedDocuments::read(r, "orders", "open_value"),
            returns: MappedDocuments::read(r, "returns", "completed_value"),
        }
    }
}

impl MappedLedger {
    fn read(r: &mut Reader, kind: &str) -> Option<Self> {
        let section = format!("mapped.{kind} is configured");
        let single = kind == "coupon" || kind == "slot";
        let key = |name| ["mapped", kind, name];
        let name = r.require(&key("table"), &table(), &section);
        let key_column = r.require(&key("key_column"), &column(), &section);
        let mut figure = |name, needed: bool| {
            if needed { r.require(&key(name), &column(), &section) } else { r.find(&key(name), &column()) }
        };
        let mut ledger = Self {
            kind: kind.to_owned(),
            table: String::new(),
            key_column: String::new(),
            available_column: figure("available_column", !single),
            locked_column: figure("locked_column", false),
            sold_column: figure("sold_column", false),
            version_column: figure("version_column", false),
            status_column: figure("status_column", single),
            holder_column: figure("holder_column", single),
            expires_column: figure("expires_column", false),
            values: Vec::new(),
            zone: r.find(&key("zone"), &zone()),
        };
        ledger.values = stored_words(r, kind);
        ledger.table = name?;
        ledger.key_column = key_column?;
        Some(ledger)
    }
}

/// `values` of a coupon or slot table: each of our states must have its word there.
fn stored_words(r: &mut Reader, kind: &str) -> Vec<(String, String)> {
    let states: &[&str] = match kind {
        "coupon" => &["unused", "locked", "used", "expired"],
        "slot" => &["free", "held", "sold"],
        _ => return Vec::new(),
    };
    let mut words = Vec::new();
    for state in states {
        let because = format!("mapped.{kind} is configured");
        let path = ["mapped", kind, "values", state];
        let word = r.require(&path, &stored_word(), &because);
        words.extend(word.map(|word| ((*state).to_owned(), word)));
    }
    words
}

impl MappedDocuments {
    fn read(r: &mut Reader, section: &str, counted: &str) -> Option<Self> {
        if !r.has_section(&["mapped", section]) {
            return None;
        }
        let because = format!("mapped.{section} is configured");
        let key = |name| ["mapped", section, name];
        let zone = r.find(&key("zone"), &zone());
        let counted_value = r.require(&key(counted), &stored_word(), &because);
        let name = r.require(&key("table"), &table(), &because);
        let items_table = r.require(&key("items_table"), &table(), &because);
        let mut column_of = |name| r.require(&key(name), &column(), &because);
        let no_column = column_of("no_column");
        let status_column = column_of("status_column");
        let items_order_column = column_of("items_order_column");
        let items_key_column = column_of("items_key_column");
        let items_qty_column = column_of("items_qty_column");
        Some(Self {
            table: name?,
            no_column: no_column?,
            status_column: status_column?,
            counted_value: counted_value?,
            items_table: items_table?,
            items_order_column: items_order_column?,
            items_key_column: items_key_column?,
            items_qty_column: items_qty_column?,
            zone,
        })
    }
}
