//! Everything an operator can decide, read once at start.
//!
//! Layers, each winning over those before: defaults, the file (`handback.toml` or `--config`),
//! `DATABASE_URL`, variables `HANDBACK_SECTION__KEY`, flags. A key that nobody knows is an error,
//! and all errors come out together, each with its place. Start with [`Config::load`]; the
//! sections below it are the list of keys.

mod in_effect;
mod kind;
mod layer;
mod public_url;
mod reader;
mod secret;
mod sections;
mod shop;

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use layer::{Origin, Problem};
pub use public_url::{PublicUrl, reachable};
pub use reader::Entry;
pub use secret::{Secret, SecretUrl};
pub use sections::{
    Coupon, Database, Display, IssuerPolicy, Language, LatePayment, Metrics, OnRelease, Order, Points, Reconcile,
    Retry, Scan, SecondPerson, Server, TimeOfDay, TwoPerson,
};
pub use shop::{Channel, Mapped, MappedDocuments, MappedLedger, Remote, RemoteAct, Trigger, Triggers};

use layer::{EnvironmentLayer, FileLayer};
use reader::{FlagValue, Reader};

const DEFAULT_FILE: &str = "handback.toml";

#[derive(Debug, Clone)]
pub struct Config {
    pub database: Database,
    pub server: Server,
    pub metrics: Metrics,
    pub order: Order,
    pub scan: Scan,
    pub retry: Retry,
    pub coupon: Coupon,
    pub points: Points,
    pub late_payment: LatePayment,
    pub triggers: Triggers,
    /// By resource type; a type that isn't here is local.
    pub remote: Vec<Remote>,
    pub mapped: Mapped,
    pub channel: Channel,
    pub reconcile: Reconcile,
    pub two_person: TwoPerson,
    pub display: Display,
    entries: Vec<Entry>,
}

/// What the configuration is read from. Tests fill it by hand; the program uses `gather`.
#[derive(Debug, Default)]
pub struct Inputs {
    file: Option<(PathBuf, String)>,
    variables: Vec<(OsString, OsString)>,
    listen: Option<String>,
}

impl Inputs {
    /// Reads the file and the process's environment. Without `--config` a missing
    /// `handback.toml` is no mistake.
    pub fn gather(config_flag: Option<&Path>) -> Result<Self, Problems> {
        let path = config_flag.unwrap_or(Path::new(DEFAULT_FILE));
        let file = match std::fs::read_to_string(path) {
            Ok(text) => Some((path.to_owned(), text)),
            Err(error) if config_flag.is_none() && error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(Problems(vec![Problem {
                    origin: Origin::Default,
                    key: path.display().to_string(),
                    message: format!("can't be read: {error}"),
                }]));
            }
        };
        Ok(Self { file, variables: std::env::vars_os().collect(), listen: None })
    }

    pub fn with_file(mut self, path: &str, text: &str) -> Self {
        self.file = Some((path.into(), text.to_owned()));
        self
    }

    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    pub fn with_listen(mut self, listen: Option<String>) -> Self {
        self.listen = listen;
        self
    }
}

impl Config {
    pub fn load(inputs: Inputs) -> Result<Self, Problems> {
        let (file, mut problems) = match &inputs.file {
            Some((path, text)) => FileLayer::parse(path, text),
            None => Default::default(),
        };
        let (environment, unreadable) = EnvironmentLayer::gather(inputs.variables);
        problems.extend(unreadable);
        let flags = inputs.listen.map(|value| FlagValue { key: &["server", "listen"], flag: "--listen", value });
        let flags = flags.into_iter().collect();
        Self::read(Reader::new(file, environment, flags, problems))
    }

    fn read(mut reader: Reader) -> Result<Self, Problems> {
        let r = &mut reader;
        let late_payment = LatePayment::read(r);
        let mut config = Self {
            late_payment,
            database: Database::read(r),
            server: Server::read(r),
            metrics: Metrics::read(r),
            order: Order::read(r),
            scan: Scan::read(r),
            retry: Retry::read(r),
            coupon: Coupon::read(r),
            points: Points::read(r),
            triggers: Triggers::read(r),
            remote: Remote::read_all(r),
            mapped: Mapped::read(r),
            channel: Channel::read(r),
            reconcile: Reconcile::read(r),
            two_person: TwoPerson::read(r),
            display: Display::read(r),
            entries: Vec::new(),
        };
        config.refuse_two_owners(r);
        let (entries, problems) = reader.finish();
        config.entries = entries;
        if problems.is_empty() { Ok(config) } else { Err(Problems(problems)) }
    }

    fn refuse_two_owners(&self, reader: &mut Reader) {
        for remote in &self.remote {
            if self.mapped.ledgers.iter().any(|ledger| ledger.kind == remote.kind) {
                reader.complain(&["mapped", &remote.kind], "is also configured as remote; a type has one owner");
            }
        }
    }

    /// The address people use, now that the listener's port is known.
    pub fn public_url(&self, bound: SocketAddr) -> Result<PublicUrl, Problems> {
        match &self.server.public_url {
            Some(url) => Ok(url.clone()),
            None => PublicUrl::from_listen(bound, self.server.allow_plain_http).map_err(|why| {
                Problems(vec![Problem { origin: Origin::Default, key: "server.public_url".to_owned(), message: why }])
            }),
        }
    }

    /// Every key with its value and where it came from, secrets masked.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// All that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.0.len() == 1 { "" } else { "s" };
        write!(f, "{} problem{s} in the configuration", self.0.len())?;
        for problem in &self.0 {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests;
