//! Every word the console says, in both languages, from `locales/*.toml` built into the binary.
//! A key that one language lacks, or a placeholder that differs, fails a test (`i18n_tests`), so a
//! page can't be half translated. Lookups never fail: a missing key shows itself.

use std::collections::HashMap;
use std::fmt::{Display, Write};
use std::sync::LazyLock;

use toml::de::{DeTable, DeValue};

use super::view::format::count;
use super::view::html::Html;

/// The languages the console speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lang {
    En,
    Zh,
}

/// Values for the placeholders of one text.
pub type Args<'a> = &'a [(&'a str, &'a dyn Display)];

impl Lang {
    pub const ALL: [Lang; 2] = [Lang::En, Lang::Zh];

    /// The tag in `<html lang>`, the cookie and the user's row.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh-CN",
        }
    }

    /// The other language, for the switch in the bar.
    pub const fn other(self) -> Lang {
        match self {
            Self::En => Self::Zh,
            Self::Zh => Self::En,
        }
    }

    /// What the language calls itself.
    pub const fn own_name(self) -> &'static str {
        match self {
            Self::En => "English",
            Self::Zh => "中文",
        }
    }

    /// What stands between two sentences.
    pub const fn gap(self) -> &'static str {
        match self {
            Self::En => " ",
            Self::Zh => "",
        }
    }

    /// What stands between a name and what is said of it.
    pub const fn colon(self) -> &'static str {
        match self {
            Self::En => ": ",
            Self::Zh => "：",
        }
    }

    pub fn from_tag(tag: &str) -> Option<Lang> {
        let primary = tag.trim().split(['-', '_']).next().unwrap_or("");
        match primary.to_ascii_lowercase().as_str() {
            "en" => Some(Self::En),
            "zh" => Some(Self::Zh),
            _ => None,
        }
    }

    /// The first of these that names a language we speak; English when none does. `wishes` are in
    /// order: the user's setting, the link or cookie, the configuration.
    pub fn choose(wishes: &[Option<&str>], accept_language: Option<&str>) -> Lang {
        let wished = wishes.iter().flatten().find_map(|tag| Self::from_tag(tag));
        wished.or_else(|| accept_language.and_then(Self::from_accept)).unwrap_or(Self::En)
    }

    /// The best-weighted language of an `Accept-Language` header that we speak.
    fn from_accept(header: &str) -> Option<Lang> {
        let mut best: Option<(Lang, f32)> = None;
        for item in header.split(',').take(32) {
            let mut parts = item.split(';');
            let Some(lang) = parts.next().and_then(Self::from_tag) else {
                continue;
            };
            let weight = parts.find_map(|p| p.trim().strip_prefix("q=")).and_then(|q| q.parse().ok()).unwrap_or(1.0);
            if weight > 0.0 && best.is_none_or(|(_, w)| weight > w) {
                best = Some((lang, weight));
            }
        }
        best.map(|(lang, _)| lang)
    }

    fn catalogue(self) -> &'static Catalogue {
        match self {
            Self::En => &EN,
            Self::Zh => &ZH,
        }
    }

    /// A text without placeholders.
    pub fn t(self, key: &str) -> &'static str {
        self.catalogue().text(key, None)
    }

    /// A text with its placeholders filled.
    pub fn f(self, key: &str, args: Args) -> String {
        fill(self.t(key), args)
    }

    /// A text about `n` things: picks the form the language needs and fills `{n}`.
    pub fn n(self, key: &str, n: i64, args: Args) -> String {
        let text = self.catalogue().text(key, Some(n));
        let number = count(n);
        let mut all: Vec<(&str, &dyn Display)> = vec![("n", &number)];
        all.extend_from_slice(args);
        fill(text, &all)
    }

    /// A text whose placeholders are filled with ready markup (links, keys); the text is escaped.
    pub fn rich(self, key: &str, args: &[(&str, Html)]) -> Html {
        let mut out = Html::default();
        for piece in pieces(self.t(key)) {
            match piece {
                Piece::Text(text) => out.push_text(text),
                Piece::Hole(name) => match args.iter().find(|(n, _)| *n == name) {
                    Some((_, html)) => out.push(html),
                    None => out.push_text(&format!("{{{name}}}")),
                },
            }
        }
        out
    }

    /// The word for one value of the glossary, e.g. `word("task", "force_closed")`.
    pub fn word(self, group: &str, word: &str) -> &'static str {
        let key = format!("word.{group}.{}", word.to_ascii_lowercase());
        self.catalogue().find(&key).unwrap_or_else(|| {
            // A word added to the glossary without a translation: the test names it.
            tracing::warn!(i18n.key = key, "no translation");
            ""
        })
    }
}

/// One language's texts: a plain one, or one form per count.
struct Catalogue(HashMap<String, Entry>);

enum Entry {
    Plain(String),
    Counted { one: String, other: String },
}

impl Catalogue {
    fn parse(source: &str) -> Result<Catalogue, String> {
        let table = DeTable::parse(source).map_err(|e| e.to_string())?;
        let mut texts = HashMap::new();
        flatten("", table.get_ref(), &mut texts)?;
        Ok(Catalogue(texts))
    }

    fn find(&self, key: &str) -> Option<&str> {
        match self.0.get(key)? {
            Entry::Plain(text) => Some(text),
            Entry::Counted { other, .. } => Some(other),
        }
    }

    fn text(&'static self, key: &str, n: Option<i64>) -> &'static str {
        match (self.0.get(key), n) {
            (Some(Entry::Counted { one, .. }), Some(1)) => one,
            (Some(Entry::Counted { other, .. }), _) => other,
            (Some(Entry::Plain(text)), _) => text,
            (None, _) => "(missing text)",
        }
    }
}

/// A table with the key `other` is one text with count forms; any other table is a group of keys.
fn flatten(prefix: &str, table: &DeTable, out: &mut HashMap<String, Entry>) -> Result<(), String> {
    for (key, value) in table {
        let key = if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        match value.get_ref() {
            DeValue::String(text) => {
                out.insert(key, Entry::Plain(text.to_string()));
            }
            DeValue::Table(inner) => match inner.get("other").map(|v| v.get_ref().as_str()) {
                Some(Some(other)) => {
                    let one = inner.get("one").and_then(|v| v.get_ref().as_str());
                    let one = one.unwrap_or(other).to_owned();
                    let other = other.to_owned();
                    out.insert(key, Entry::Counted { one, other });
                }
                _ => flatten(&key, inner, out)?,
            },
            _ => return Err(format!("{key} is neither text nor table")),
        }
    }
    Ok(())
}

static EN: LazyLock<Catalogue> = LazyLock::new(|| embedded(include_str!("../../locales/en.toml")));
static ZH: LazyLock<Catalogue> = LazyLock::new(|| embedded(include_str!("../../locales/zh-CN.toml")));

/// The files are part of the binary and parsed by a test; an empty catalogue still serves pages.
fn embedded(source: &str) -> Catalogue {
    Catalogue::parse(source).unwrap_or_else(|problem| {
        tracing::error!(problem, "a built-in catalogue cannot be read");
        Catalogue(HashMap::new())
    })
}

enum Piece<'a> {
    Text(&'a str),
    Hole(&'a str),
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, left) = match (rest.find('{'), rest.find('}')) {
            (Some(0), Some(end)) => (Piece::Hole(&rest[1..end]), &rest[end + 1..]),
            (Some(start), _) if start > 0 => (Piece::Text(&rest[..start]), &rest[start..]),
            _ => (Piece::Text(rest), ""),
        };
        rest = left;
        Some(piece)
    })
}

fn fill(text: &str, args: Args) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Hole(name) => match args.iter().find(|(n, _)| *n == name) {
                // Writing to a String cannot fail.
                Some((_, value)) => drop(write!(out, "{value}")),
                None => drop(write!(out, "{{{name}}}")),
            },
        }
    }
    out
}

#[cfg(test)]
#[path = "i18n_tests.rs"]
mod tests;
