//! Reads typed values out of the layers and remembers everything worth telling.
//!
//! Asking for a key is what makes it known: the sections are the only list of keys there is, so
//! a key can't be documented, shown or hinted at without being read. A wrong value never stops
//! the reading; it is noted and the default takes its place, so all problems come out at once.

use std::collections::BTreeSet;

use super::kind::Kind;
use super::layer::{EnvironmentLayer, FileLayer, Found, Origin, PREFIX, Problem, Raw, is_service_link};
use super::secret::SecretUrl;

/// One line of the effective configuration, secrets already masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    /// As it would stand in the file; `None` when it isn't set and has no default.
    pub value: Option<String>,
    pub origin: Origin,
}

#[derive(Debug)]
pub(super) struct FlagValue {
    pub key: &'static [&'static str],
    pub flag: &'static str,
    pub value: String,
}

#[derive(Debug, Default)]
pub(super) struct Reader {
    file: FileLayer,
    environment: EnvironmentLayer,
    flags: Vec<FlagValue>,
    known: BTreeSet<Vec<String>>,
    used_variables: BTreeSet<String>,
    entries: Vec<Entry>,
    problems: Vec<Problem>,
}

impl Reader {
    pub fn new(file: FileLayer, environment: EnvironmentLayer, flags: Vec<FlagValue>, problems: Vec<Problem>) -> Self {
        Self { file, environment, flags, problems, ..Self::default() }
    }

    /// The value of a key, or its default.
    pub fn read<T: Clone>(&mut self, path: &[&str], kind: &Kind<T>, default: T) -> T {
        let shown = (kind.show)(&default);
        self.look_up(path, kind, Some(shown)).unwrap_or(default)
    }

    /// The value of a key that may stay unset.
    pub fn find<T>(&mut self, path: &[&str], kind: &Kind<T>) -> Option<T> {
        self.look_up(path, kind, None)
    }

    /// Like `find` for another way to write a key: it isn't shown while it isn't set.
    pub fn find_instead<T>(&mut self, path: &[&str], kind: &Kind<T>) -> Option<T> {
        self.known.insert(owned(path));
        self.origin(path)?;
        self.find(path, kind)
    }

    /// The value of a key that something else makes necessary.
    pub fn require<T>(&mut self, path: &[&str], kind: &Kind<T>, because: &str) -> Option<T> {
        let is_set = self.origin(path).is_some();
        let value = self.find(path, kind);
        if !is_set {
            let message = format!("must be set ({because}): {}", kind.allowed);
            self.complain(path, &message);
        }
        value
    }

    fn look_up<T>(&mut self, path: &[&str], kind: &Kind<T>, default_shown: Option<String>) -> Option<T> {
        self.known.insert(owned(path));
        let Some(Found { raw, origin }) = self.raw(path) else {
            self.note(path, default_shown, Origin::Default);
            return None;
        };
        match (kind.parse)(&raw) {
            Ok(value) => {
                self.note(path, Some((kind.show)(&value)), origin);
                Some(value)
            }
            Err(why) => {
                let message = why.unwrap_or_else(|| format!("must be {}", kind.allowed));
                let given = if kind.secret { String::new() } else { format!(", not {}", describe(&raw)) };
                self.problems.push(Problem { origin, key: dotted(path), message: message + &given });
                None
            }
        }
    }

    fn note(&mut self, path: &[&str], value: Option<String>, origin: Origin) {
        self.entries.push(Entry { key: dotted(path), value, origin });
    }

    /// Where a key is set, if it is.
    pub fn origin(&mut self, path: &[&str]) -> Option<Origin> {
        self.raw(path).map(|found| found.origin)
    }

    /// Flags before variables before `DATABASE_URL` before the file.
    fn raw(&mut self, path: &[&str]) -> Option<Found> {
        let variable = self.environment.find(path);
        if let Some((name, _)) = variable {
            self.used_variables.insert(name.to_owned());
        }
        if let Some(flag) = self.flags.iter().find(|flag| flag.key == path) {
            return Some(Found { raw: Raw::Typed(flag.value.clone()), origin: Origin::Flag(flag.flag) });
        }
        let plain = ["database", "url"] == path;
        let plain = plain
            .then(|| self.environment.values.get_key_value("DATABASE_URL"))
            .flatten()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        if let Some((name, value)) = variable.or(plain) {
            return Some(Found { raw: Raw::Typed(value.to_owned()), origin: Origin::Environment(name.to_owned()) });
        }
        self.file.values.get(&owned(path)).cloned()
    }

    /// Whether anything at all was written under a section.
    pub fn has_section(&self, path: &[&str]) -> bool {
        let prefix = owned(path);
        self.file.sections.contains_key(&prefix) || !self.environment.names_under(path).is_empty()
    }

    /// The names a section with free names was given, in the file and in the environment.
    pub fn names_under(&self, path: &[&str]) -> BTreeSet<String> {
        let prefix = owned(path);
        let in_file = self
            .file
            .sections
            .keys()
            .chain(self.file.values.keys())
            .filter(|key| key.len() > prefix.len() && key.starts_with(&prefix))
            .map(|key| key[prefix.len()].clone());
        in_file.chain(self.environment.names_under(path)).collect()
    }

    /// The secret in the variable that a `secret_env` key names.
    pub fn secret_in(&mut self, name: &str) -> Option<String> {
        self.used_variables.insert(name.to_owned());
        self.environment.values.get(name).cloned()
    }

    pub fn complain(&mut self, path: &[&str], message: &str) {
        let origin = match self.origin(path) {
            Some(origin) => origin,
            None => (1..=path.len())
                .rev()
                .find_map(|end| self.file.sections.get(&owned(&path[..end])))
                .cloned()
                .unwrap_or(Origin::Default),
        };
        self.problems.push(Problem { origin, key: dotted(path), message: message.to_owned() });
    }

    /// Call last: whatever nobody asked for is unknown.
    pub fn finish(mut self) -> (Vec<Entry>, Vec<Problem>) {
        self.note_unknown_keys();
        self.note_unknown_variables();
        self.problems.sort();
        self.problems.dedup();
        (self.entries, self.problems)
    }

    fn note_unknown_keys(&mut self) {
        let empty_sections = self.file.sections.iter().filter(|(section, _)| {
            !self.known.iter().any(|key| key.starts_with(section))
                && !self.file.values.keys().any(|key| key.starts_with(section))
        });
        let strangers = self
            .file
            .values
            .iter()
            .filter(|(key, _)| !self.known.contains(*key))
            .map(|(key, found)| (key, &found.origin))
            .chain(empty_sections);
        let problems: Vec<Problem> = strangers
            .map(|(key, origin)| Problem { origin: origin.clone(), key: dotted(key), message: self.why_unknown(key) })
            .collect();
        self.problems.extend(problems);
    }

    fn why_unknown(&self, key: &[String]) -> String {
        if self.known.iter().any(|known| known.starts_with(key)) {
            return "is a section, not a key".to_owned();
        }
        let names = self.known.iter().map(|known| dotted(known));
        match closest(&dotted(key), names) {
            Some(near) => format!("unknown key; did you mean {near}?"),
            None => "unknown key".to_owned(),
        }
    }

    fn note_unknown_variables(&mut self) {
        let strangers =
            self.environment.values.keys().filter(|name| {
                name.starts_with(PREFIX) && !self.used_variables.contains(*name) && !is_service_link(name)
            });
        let problems: Vec<Problem> = strangers
            .map(|name| {
                let names = self.known.iter().map(|key| variable(key));
                let hint = match closest(name, names) {
                    Some(near) => format!("; did you mean {near}?"),
                    None => String::new(),
                };
                Problem {
                    origin: Origin::Environment(name.clone()),
                    key: String::new(),
                    message: format!("unknown key{hint}"),
                }
            })
            .collect();
        self.problems.extend(problems);
    }
}

fn owned<S: AsRef<str>>(path: &[S]) -> Vec<String> {
    path.iter().map(|part| part.as_ref().to_owned()).collect()
}

/// A key as TOML spells it: `coupon.issuer."merchant:M1".extend_days`.
pub(super) fn dotted<S: AsRef<str>>(path: &[S]) -> String {
    let parts = path.iter().map(|part| {
        let part = part.as_ref();
        let bare = !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if bare { part.to_owned() } else { format!("{part:?}") }
    });
    parts.collect::<Vec<_>>().join(".")
}

/// The variable that sets a key.
pub(super) fn variable<S: AsRef<str>>(path: &[S]) -> String {
    let parts = path.iter().map(|part| {
        let part = part.as_ref();
        if part.contains(':') { part.to_owned() } else { part.to_uppercase() }
    });
    PREFIX.to_owned() + &parts.collect::<Vec<_>>().join("__")
}

fn describe(raw: &Raw) -> String {
    match raw {
        // An address in the wrong place may still carry a password.
        Raw::Typed(text) | Raw::Text(text) if text.contains("://") => {
            format!("\"{}\"", SecretUrl::new(text.as_str()))
        }
        Raw::Typed(text) | Raw::Text(text) => format!("{text:?}"),
        Raw::Whole(number) => number.to_string(),
        Raw::Fraction(number) => number.to_string(),
        Raw::Truth(truth) => truth.to_string(),
        Raw::List(items) => {
            let items: Vec<_> = items.iter().map(describe).collect();
            format!("[{}]", items.join(", "))
        }
        Raw::Moment => "that".to_owned(),
    }
}

/// The nearest name, if it is near enough to be a slip of the finger.
fn closest(wrong: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let limit = (wrong.chars().count() / 4).clamp(2, 5);
    names
        .map(|name| (distance(wrong, &name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Edit distance, one row at a time.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_edits() {
        assert_eq!(distance("delays_ms", "delays_ms"), 0);
        assert_eq!(distance("delay_ms", "delays_ms"), 1);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn a_name_far_from_every_key_gets_no_hint() {
        let names = || ["retry.jitter".to_owned()].into_iter();
        assert_eq!(closest("retry.jiter", names()).as_deref(), Some("retry.jitter"));
        assert_eq!(closest("colour.of.the.sky", names()), None);
    }

    #[test]
    fn odd_names_are_quoted_as_in_toml() {
        let path = ["coupon", "issuer", "merchant:M1", "extend_days"];
        assert_eq!(dotted(&path), r#"coupon.issuer."merchant:M1".extend_days"#);
        assert_eq!(variable(&path), "HANDBACK_COUPON__ISSUER__merchant:M1__EXTEND_DAYS");
    }
}
