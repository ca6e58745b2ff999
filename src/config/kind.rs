//! What a value may be: each kind says in words what is allowed, reads it from the file's types
//! as well as from plain text, and knows how the value is shown again.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use super::layer::{Raw, inline_whole, typed_list};
use super::secret::SecretUrl;
use super::sections::SecondPerson;

type Parse<T> = Box<dyn Fn(&Raw) -> Result<T, Option<String>>>;

/// `parse` answers `Err(None)` when saying what is allowed is enough, and its own words when it
/// can say more.
pub(super) struct Kind<T> {
    pub allowed: String,
    pub parse: Parse<T>,
    pub show: Box<dyn Fn(&T) -> String>,
    /// A value that is never repeated in a complaint.
    pub secret: bool,
}

impl<T: 'static> Kind<T> {
    fn new(
        allowed: impl Into<String>,
        parse: impl Fn(&Raw) -> Option<T> + 'static,
        show: impl Fn(&T) -> String + 'static,
    ) -> Self {
        Self {
            allowed: allowed.into(),
            parse: Box::new(move |raw| parse(raw).ok_or(None)),
            show: Box::new(show),
            secret: false,
        }
    }
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

fn text_of(raw: &Raw) -> Option<&str> {
    match raw {
        Raw::Typed(text) | Raw::Text(text) => Some(text),
        _ => None,
    }
}

fn whole_of(raw: &Raw) -> Option<i64> {
    match raw {
        Raw::Whole(number) => Some(*number),
        Raw::Typed(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn list_of(raw: &Raw) -> Option<Vec<Raw>> {
    match raw {
        Raw::List(items) => Some(items.clone()),
        Raw::Typed(text) => typed_list(text),
        _ => None,
    }
}

pub(super) fn truth() -> Kind<bool> {
    let parse = |raw: &Raw| match raw {
        Raw::Truth(truth) => Some(*truth),
        Raw::Typed(text) => match text.trim() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    };
    Kind::new("true or false", parse, ToString::to_string)
}

pub(super) fn whole(range: RangeInclusive<i64>) -> Kind<i64> {
    let allowed = format!("a whole number from {} to {}", range.start(), range.end());
    let parse = move |raw: &Raw| whole_of(raw).filter(|number| range.contains(number));
    Kind::new(allowed, parse, ToString::to_string)
}

pub(super) fn wholes(range: RangeInclusive<i64>, most: usize) -> Kind<Vec<i64>> {
    let allowed = format!("a list of 1 to {most} whole numbers from {} to {}", range.start(), range.end());
    let parse = move |raw: &Raw| {
        let numbers: Option<Vec<i64>> =
            list_of(raw)?.iter().map(|item| whole_of(item).filter(|number| range.contains(number))).collect();
        numbers.filter(|numbers| (1..=most).contains(&numbers.len()))
    };
    Kind::new(allowed, parse, |numbers| format!("{numbers:?}"))
}

pub(super) fn fraction(range: RangeInclusive<f64>) -> Kind<f64> {
    let allowed = format!("a number from {} to {}", range.start(), range.end());
    let parse = move |raw: &Raw| {
        let number = match raw {
            Raw::Fraction(number) => Some(*number),
            Raw::Typed(text) => text.trim().parse().ok(),
            Raw::Whole(0) => Some(0.0),
            Raw::Whole(1) => Some(1.0),
            _ => None,
        };
        number.filter(|number| range.contains(number))
    };
    Kind::new(allowed, parse, ToString::to_string)
}

/// One of a few words.
pub(super) fn word<T: Copy + PartialEq + 'static>(words: &'static [(&'static str, T)]) -> Kind<T> {
    let parse = move |raw: &Raw| pick(words, text_of(raw)?);
    let show = move |value: &T| quoted(spell(words, value));
    Kind::new(one_of(words), parse, show)
}

/// A list of some of a few words, each once.
pub(super) fn words<T: Copy + PartialEq + 'static>(words: &'static [(&'static str, T)]) -> Kind<Vec<T>> {
    let parse = move |raw: &Raw| {
        let mut values = Vec::new();
        for item in list_of(raw)? {
            let value = pick(words, text_of(&item)?.trim())?;
            if !values.contains(&value) {
                values.push(value);
            }
        }
        Some(values)
    };
    let show = move |values: &Vec<T>| {
        let words: Vec<_> = values.iter().map(|value| spell(words, value)).collect();
        format!("{words:?}")
    };
    Kind::new(format!("a list of {}", one_of(words)), parse, show)
}

fn pick<T: Copy>(words: &[(&str, T)], text: &str) -> Option<T> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value)
}

fn spell<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    let found = words.iter().find(|(_, known)| known == value);
    found.map_or("", |(word, _)| word)
}

fn one_of<T>(words: &[(&str, T)]) -> String {
    let mut names: Vec<_> = words.iter().map(|(word, _)| quoted(word)).collect();
    match names.pop() {
        Some(last) if !names.is_empty() => format!("{} or {last}", names.join(", ")),
        Some(only) => only,
        None => String::new(),
    }
}

/// `never`, `always`, or `{ amount_over = N }` written as text.
pub(super) fn second_person() -> Kind<SecondPerson> {
    let parse = |raw: &Raw| match text_of(raw)?.trim() {
        "never" => Some(SecondPerson::Never),
        "always" => Some(SecondPerson::Always),
        table => {
            let amount = inline_whole(table, "amount_over")?;
            (amount >= 0).then_some(SecondPerson::AmountOver(amount))
        }
    };
    let show = |value: &SecondPerson| match value {
        SecondPerson::Never => quoted("never"),
        SecondPerson::Always => quoted("always"),
        SecondPerson::AmountOver(amount) => format!("{{ amount_over = {amount} }}"),
    };
    Kind::new("\"never\", \"always\" or { amount_over = N }", parse, show)
}

/// Text that passes a check.
pub(super) fn text(allowed: &'static str, fits: fn(&str) -> bool) -> Kind<String> {
    let parse = move |raw: &Raw| Some(text_of(raw).filter(|text| fits(text))?.to_owned());
    Kind::new(allowed, parse, |text: &String| quoted(text))
}

/// The name of a table or column as it may stand in a statement: nothing that needs quoting, so
/// nothing that could end one.
pub(super) fn column() -> Kind<String> {
    text("a column name (letters, digits and _)", is_identifier)
}

pub(super) fn table() -> Kind<String> {
    text("a table name, with its schema if need be (letters, digits, _ and one dot)", |text| {
        let parts: Vec<_> = text.split('.').collect();
        parts.len() <= 2 && parts.into_iter().all(is_identifier)
    })
}

fn is_identifier(text: &str) -> bool {
    let starts_well = |c: char| c.is_alphabetic() || c == '_';
    text.starts_with(starts_well) && text.chars().count() <= 64 && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// A stored word of the shop's table, as it stands there.
pub(super) fn stored_word() -> Kind<String> {
    let parse = |raw: &Raw| match raw {
        Raw::Whole(number) => Some(number.to_string()),
        raw => text_of(raw).filter(|text| text.chars().count() <= 64).map(str::to_owned),
    };
    let allowed = "a text of up to 64 characters or a whole number";
    Kind::new(allowed, parse, |text: &String| quoted(text))
}

pub(super) fn variable_name() -> Kind<String> {
    text("the name of an environment variable (letters, digits and _)", |text| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !text.starts_with(|c: char| c.is_ascii_digit()) && !text.is_empty() && text.chars().all(is_part)
    })
}

pub(super) fn zone() -> Kind<String> {
    text("a time zone such as \"Asia/Shanghai\" or \"UTC\"", |text| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_-+".contains(c);
        let fits = |part: &str| !part.is_empty() && part.chars().all(is_part);
        text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.len() <= 64 && text.split('/').all(fits)
    })
}

/// A time of day, `03:10`.
pub(super) fn time_of_day() -> Kind<(u8, u8)> {
    let parse = |raw: &Raw| {
        let (hour, minute) = text_of(raw)?.split_once(':')?;
        let two_digits = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        if !two_digits(hour) || !two_digits(minute) {
            return None;
        }
        let (hour, minute) = (hour.parse().ok()?, minute.parse().ok()?);
        (hour < 24 && minute < 60).then_some((hour, minute))
    };
    let show = |(hour, minute): &(u8, u8)| format!("\"{hour:02}:{minute:02}\"");
    Kind::new("a time of day, \"00:00\" to \"23:59\"", parse, show)
}

pub(super) fn listen() -> Kind<SocketAddr> {
    let parse = |raw: &Raw| {
        let text = text_of(raw)?.trim();
        let text = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_owned(),
        };
        text.parse().ok()
    };
    let allowed = "an address and a port, such as \"127.0.0.1:8080\" or \"[::]:8080\" (port 0 = any free one)";
    Kind::new(allowed, parse, |address: &SocketAddr| quoted(&address.to_string()))
}

/// An address that may carry a password: never repeated, shown masked.
pub(super) fn secret_url(allowed: &'static str, schemes: &'static [&'static str]) -> Kind<SecretUrl> {
    let parse = move |raw: &Raw| {
        let url = SecretUrl::new(text_of(raw)?.trim());
        schemes.contains(&url.scheme()).then_some(url)
    };
    let show = |url: &SecretUrl| quoted(&url.to_string());
    Kind { secret: true, ..Kind::new(allowed, parse, show) }
}

/// A kind whose reading can say more than what is allowed.
pub(super) fn explained<T: 'static>(
    allowed: &'static str,
    parse: impl Fn(&str) -> Result<T, String> + 'static,
    show: impl Fn(&T) -> String + 'static,
) -> Kind<T> {
    Kind {
        allowed: allowed.to_owned(),
        parse: Box::new(move |raw| parse(text_of(raw).ok_or(None)?.trim()).map_err(Some)),
        show: Box::new(move |value| quoted(&show(value))),
        secret: false,
    }
}
