//! Where values come from: the file, the environment, the command line.
//!
//! A layer knows nothing of what a key means; it only remembers each value with its place, so
//! that every complaint can say where to go and mend it. A TOML error is reported by position
//! and never with the line itself: the line may hold a password (R24).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) const PREFIX: &str = "HANDBACK_";

/// The place a value was read from, as a person would name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Environment(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// A value before anyone has said what it should be. Text from the environment and from flags
/// stays `Typed`: whether `5` is a number is for the key to say.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Raw {
    Typed(String),
    Text(String),
    Whole(i64),
    Fraction(f64),
    Truth(bool),
    List(Vec<Raw>),
    Moment,
}

#[derive(Debug, Clone)]
pub(super) struct Found {
    pub raw: Raw,
    pub origin: Origin,
}

/// One wrong thing in the configuration: which key, where it stands, what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub origin: Origin,
    pub key: String,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.origin, self.key.is_empty()) {
            (Origin::Default, _) => write!(f, "{}: {}", self.key, self.message),
            (origin, true) => write!(f, "{origin}: {}", self.message),
            (origin, false) => write!(f, "{} ({origin}): {}", self.key, self.message),
        }
    }
}

/// Keys of the file by their dotted name, and the sections that were opened in it.
#[derive(Debug, Default)]
pub(super) struct FileLayer {
    pub values: BTreeMap<Vec<String>, Found>,
    pub sections: BTreeMap<Vec<String>, Origin>,
}

impl FileLayer {
    /// Reads as much as can be read: what is wrong with the syntax is reported beside what is
    /// wrong with the values, not instead of it.
    pub fn parse(path: &Path, text: &str) -> (Self, Vec<Problem>) {
        let (table, errors) = DeTable::parse_recoverable(text);
        let problems = errors
            .iter()
            .map(|error| Problem {
                origin: Origin::File {
                    path: path.to_owned(),
                    line: line_at(text, error.span().map_or(0, |span| span.start)),
                },
                key: String::new(),
                message: format!("not TOML: {}", error.message()),
            })
            .collect();
        let mut layer = Self::default();
        layer.flatten(path, text, &mut Vec::new(), table.get_ref());
        (layer, problems)
    }

    fn flatten(&mut self, path: &Path, text: &str, at: &mut Vec<String>, table: &DeTable<'_>) {
        for (name, value) in table {
            at.push(name.get_ref().to_string());
            let origin = Origin::File { path: path.to_owned(), line: line_at(text, name.span().start) };
            if let DeValue::Table(inner) = value.get_ref() {
                self.sections.insert(at.clone(), origin);
                self.flatten(path, text, at, inner);
            } else {
                let raw = raw_of(value);
                self.values.insert(at.clone(), Found { raw, origin });
            }
            at.pop();
        }
    }
}

fn raw_of(value: &Spanned<DeValue<'_>>) -> Raw {
    match value.get_ref() {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()) {
            Ok(whole) => Raw::Whole(whole),
            Err(_) => Raw::Typed(number.as_str().to_owned()),
        },
        DeValue::Float(number) => match number.as_str().replace('_', "").parse() {
            Ok(fraction) => Raw::Fraction(fraction),
            Err(_) => Raw::Typed(number.as_str().to_owned()),
        },
        DeValue::Boolean(truth) => Raw::Truth(*truth),
        DeValue::Array(items) => Raw::List(items.iter().map(raw_of).collect()),
        // A table inside a list has no meaning anywhere in the configuration; a date neither.
        DeValue::Datetime(_) | DeValue::Table(_) => Raw::Moment,
    }
}

/// A list written in the environment: `1000,5000`, or as it would stand in the file.
pub(super) fn typed_list(text: &str) -> Option<Vec<Raw>> {
    let text = text.trim();
    if text.starts_with('[') {
        return match raw_of(&DeValue::parse(text).ok()?) {
            Raw::List(items) => Some(items),
            _ => None,
        };
    }
    let items = text.split(',').map(str::trim);
    Some(items.map(|item| Raw::Typed(item.to_owned())).collect())
}

/// The number in a table of one key, `{ name = 5 }`, written in the environment.
pub(super) fn inline_whole(text: &str, name: &str) -> Option<i64> {
    let value = DeValue::parse(text).ok()?;
    let table = value.get_ref().as_table().filter(|table| table.len() == 1)?;
    match raw_of(table.get(name)?) {
        Raw::Whole(number) => Some(number),
        _ => None,
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The variables that could be meant for us, by name. An empty one counts as not set, which is
/// what `${X:-}` in a compose file leaves behind.
#[derive(Debug, Default)]
pub(super) struct EnvironmentLayer {
    pub values: BTreeMap<String, String>,
}

impl EnvironmentLayer {
    pub fn gather(
        variables: impl IntoIterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
    ) -> (Self, Vec<Problem>) {
        let mut layer = Self::default();
        let mut problems = Vec::new();
        for (name, value) in variables {
            let Ok(name) = name.into_string() else {
                continue;
            };
            match value.into_string() {
                Ok(value) if value.is_empty() => {}
                Ok(value) => {
                    layer.values.insert(name, value);
                }
                Err(_) if name.starts_with(PREFIX) || name == "DATABASE_URL" => {
                    problems.push(Problem {
                        origin: Origin::Environment(name),
                        key: String::new(),
                        message: "must be UTF-8 text".to_owned(),
                    });
                }
                Err(_) => {}
            }
        }
        (layer, problems)
    }

    /// The variable for a key: `HANDBACK_SECTION__KEY`, each part in capitals or exactly as the
    /// key spells it (a merchant's name may need its small letters).
    pub fn find(&self, path: &[&str]) -> Option<(&str, &str)> {
        self.ours().find_map(|(name, parts, value)| {
            let same = parts.len() == path.len()
                && parts.iter().zip(path).all(|(part, key)| part == key || *part == key.to_uppercase());
            same.then_some((name, value))
        })
    }

    /// Names that stand where `path` has its next part: `HANDBACK_REMOTE__STOCK__BASE_URL` has
    /// `STOCK` under `remote`.
    pub fn names_under(&self, path: &[&str]) -> Vec<String> {
        let mut names = Vec::new();
        for (_, parts, _) in self.ours() {
            let inside = parts.len() > path.len()
                && parts.iter().zip(path).all(|(part, key)| *part == key.to_uppercase() || part == key);
            if inside {
                names.push(parts[path.len()].to_owned());
            }
        }
        names
    }

    fn ours(&self) -> impl Iterator<Item = (&str, Vec<&str>, &str)> {
        self.values.iter().filter_map(|(name, value)| {
            let parts = name.strip_prefix(PREFIX)?.split("__").collect();
            Some((name.as_str(), parts, value.as_str()))
        })
    }
}

/// What an orchestrator sets by itself for a service called `handback` (`HANDBACK_PORT`,
/// `HANDBACK_SERVICE_HOST`, `HANDBACK_PORT_8080_TCP_ADDR`): not ours, and no mistake of anyone.
pub(super) fn is_service_link(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or_default();
    !rest.contains("__") && (rest == "PORT" || rest.starts_with("PORT_") || rest.starts_with("SERVICE_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_line_is_named_but_never_quoted() {
        let text = "[database]\nurl = \"postgres://app:s3cret@db/handback\n";
        let (_, problems) = FileLayer::parse(Path::new("handback.toml"), text);
        let shown = problems.iter().map(ToString::to_string).collect::<String>();
        assert!(shown.contains("handback.toml:2"), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }

    #[test]
    fn a_list_may_be_written_with_commas_or_as_in_the_file() {
        let commas = typed_list("1, 2").expect("commas");
        assert_eq!(commas, [Raw::Typed("1".into()), Raw::Typed("2".into())]);
        let brackets = typed_list("[1, 2]").expect("brackets");
        assert_eq!(brackets, [Raw::Whole(1), Raw::Whole(2)]);
        assert_eq!(typed_list("[1, 2"), None);
    }

    #[test]
    fn variables_of_an_orchestrator_are_not_taken_for_keys() {
        assert!(is_service_link("HANDBACK_PORT"));
        assert!(is_service_link("HANDBACK_SERVICE_PORT_HTTP"));
        assert!(is_service_link("HANDBACK_PORT_8080_TCP_ADDR"));
        assert!(!is_service_link("HANDBACK_SERVER__LISTEN"));
        assert!(!is_service_link("HANDBACK_RETRY_MAX_FAILURES"));
    }
}
