//! Reads what a caller sent, field by field, and collects everything that is wrong with it: a
//! caller mends all of it at once. Nothing is guessed: a field nobody asked for is refused, and so
//! is one of the wrong type.

use super::node::Node;
use crate::core::instant::parse_moment;
use crate::core::text::{FieldError, check_range, check_text};

/// Something that can be read from fields.
///
/// `read` asks for every field before it gives up on any, so that all complaints come together.
pub(super) trait FromFields: Sized + Send + 'static {
    fn read(fields: &mut Fields) -> Option<Self>;
}

/// A body without fields: `{}`.
#[derive(Debug)]
pub(super) struct Nothing;

impl FromFields for Nothing {
    fn read(_: &mut Fields) -> Option<Self> {
        Some(Self)
    }
}

/// Fields whose meaning something else decides first, such as the type in the path.
#[derive(Debug)]
pub(super) struct Unread(pub Vec<(String, Node)>);

impl FromFields for Unread {
    fn read(fields: &mut Fields) -> Option<Self> {
        Some(Self(std::mem::take(&mut fields.entries)))
    }
}

impl Unread {
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }
}

#[derive(Debug, Default)]
pub(super) struct Fields {
    entries: Vec<(String, Node)>,
    /// Where in the body these are: `holds[0].`
    prefix: String,
    asked: Vec<&'static str>,
    errors: Vec<FieldError>,
}

/// Reads a whole value, or tells all that is wrong.
pub(super) fn read_all<T: FromFields>(entries: Vec<(String, Node)>) -> Result<T, Vec<FieldError>> {
    let mut fields = Fields { entries, ..Fields::default() };
    let value = T::read(&mut fields);
    fields.refuse_unasked();
    match value {
        Some(value) if fields.errors.is_empty() => Ok(value),
        _ => Err(fields.errors),
    }
}

impl Fields {
    /// A complaint about one field.
    pub fn complain(&mut self, name: &str, message: impl Into<String>) {
        self.errors.push(FieldError::new(format!("{}{name}", self.prefix), message));
    }

    /// Whether a field was sent and isn't null.
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(known, node)| known == name && *node != Node::Null)
    }

    fn take(&mut self, name: &'static str) -> Option<Node> {
        self.asked.push(name);
        let at = self.entries.iter().position(|(known, _)| known == name)?;
        let (_, node) = self.entries.remove(at);
        (node != Node::Null).then_some(node)
    }

    fn required<T>(&mut self, name: &'static str, value: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if !self.has(name) {
            self.take(name);
            self.complain(name, "is required");
            return None;
        }
        value(self)
    }

    fn check<T>(&mut self, name: &str, value: T, check: Result<(), String>) -> Option<T> {
        match check {
            Ok(()) => Some(value),
            Err(message) => {
                self.complain(name, message);
                None
            }
        }
    }

    fn wrong_type(&mut self, name: &str, wanted: &str, node: &Node) {
        self.complain(name, format!("must be {wanted}, is {}", node.name()));
    }

    /// A text of 1 to `max` characters.
    pub fn text(&mut self, name: &'static str, max: usize) -> Option<String> {
        self.required(name, |fields| fields.opt_text(name, max))
    }

    pub fn opt_text(&mut self, name: &'static str, max: usize) -> Option<String> {
        match self.take(name)? {
            Node::Text(text) | Node::Typed(text) => {
                let check = check_text(&text, max);
                self.check(name, text, check)
            }
            node => {
                self.wrong_type(name, "a text", &node);
                None
            }
        }
    }

    /// A text that passes a check of its own.
    pub fn checked(&mut self, name: &'static str, check: fn(&str) -> Result<(), String>) -> Option<String> {
        let text = self.required(name, |fields| match fields.take(name)? {
            Node::Text(text) => Some(text),
            node => {
                fields.wrong_type(name, "a text", &node);
                None
            }
        })?;
        let check = check(&text);
        self.check(name, text, check)
    }

    /// A whole number from `min` to `max`.
    pub fn whole(&mut self, name: &'static str, min: i64, max: i64) -> Option<i64> {
        self.required(name, |fields| fields.opt_whole(name, min, max))
    }

    pub fn opt_whole(&mut self, name: &'static str, min: i64, max: i64) -> Option<i64> {
        let number = match self.take(name)? {
            Node::Whole(number) => number,
            Node::Typed(text) if text.parse::<i64>().is_ok() => text.parse().ok()?,
            Node::Number(_) | Node::Typed(_) => {
                self.complain(name, format!("must be a whole number from {min} to {max}"));
                return None;
            }
            node => {
                self.wrong_type(name, &format!("a whole number from {min} to {max}"), &node);
                return None;
            }
        };
        self.check(name, number, check_range(number, min, max))
    }

    pub fn opt_truth(&mut self, name: &'static str) -> Option<bool> {
        match self.take(name)? {
            Node::Truth(truth) => Some(truth),
            node => {
                self.wrong_type(name, "true or false", &node);
                None
            }
        }
    }

    /// One of a few words.
    pub fn word<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.required(name, |fields| fields.opt_word(name, words))
    }

    pub fn opt_word<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Option<T> {
        let node = self.take(name)?;
        let found = match &node {
            Node::Text(text) | Node::Typed(text) => words.iter().find(|(word, _)| word == text),
            _ => None,
        };
        if found.is_none() {
            self.complain(name, format!("must be one of {}", spelt(words)));
        }
        found.map(|(_, value)| *value)
    }

    /// Some of a few words, with commas between them.
    pub fn opt_words<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Vec<T> {
        let Some(Node::Typed(text) | Node::Text(text)) = self.take(name) else { return Vec::new() };
        let mut values = Vec::new();
        for part in text.split(',').map(str::trim) {
            match words.iter().find(|(word, _)| *word == part) {
                Some((_, value)) => values.push(*value),
                None => self.complain(name, format!("must be some of {}, not {part:?}", spelt(words))),
            }
        }
        values
    }

    /// An instant, RFC 3339 with any offset, in milliseconds.
    pub fn moment(&mut self, name: &'static str) -> Option<i64> {
        self.required(name, |fields| fields.opt_moment(name))
    }

    pub fn opt_moment(&mut self, name: &'static str) -> Option<i64> {
        let moment = match self.take(name)? {
            Node::Text(text) => parse_moment(&text),
            _ => None,
        };
        if moment.is_none() {
            self.complain(name, "must be a time like 2026-11-30T06:15:00.000Z");
        }
        moment
    }

    /// A list of objects, at most `most` of them.
    pub fn list<T: FromFields>(&mut self, name: &'static str, most: usize) -> Option<Vec<T>> {
        self.required(name, |fields| fields.opt_list(name, most))
    }

    pub fn opt_list<T: FromFields>(&mut self, name: &'static str, most: usize) -> Option<Vec<T>> {
        let items = match self.take(name)? {
            Node::List(items) => items,
            node => {
                self.wrong_type(name, "a list", &node);
                return None;
            }
        };
        if items.len() > most {
            self.complain(name, format!("must have at most {most} entries, has {}", items.len()));
            return None;
        }
        let items = items.into_iter().enumerate();
        // All of them before any is given up: each has its own complaints.
        let read: Vec<Option<T>> = items.map(|(at, item)| self.item(&format!("{name}[{at}]"), item)).collect();
        read.into_iter().collect()
    }

    fn item<T: FromFields>(&mut self, name: &str, node: Node) -> Option<T> {
        let Node::Object(entries) = node else {
            self.wrong_type(name, "an object", &node);
            return None;
        };
        let mut inner = Self { entries, prefix: format!("{}{name}.", self.prefix), ..Self::default() };
        let value = T::read(&mut inner);
        inner.refuse_unasked();
        self.errors.append(&mut inner.errors);
        value
    }

    fn refuse_unasked(&mut self) {
        for (name, _) in std::mem::take(&mut self.entries) {
            let message = if self.asked.contains(&name.as_str()) { "is given twice" } else { "is not a known field" };
            self.complain(&shortened(&name), message);
        }
    }

    /// The fields that reading asks for, whatever was sent.
    #[cfg(test)]
    pub fn asked_by<T: FromFields>() -> Vec<&'static str> {
        let mut fields = Self::default();
        let _ = T::read(&mut fields);
        fields.asked.sort_unstable();
        fields.asked.dedup();
        fields.asked
    }
}

fn spelt<T>(words: &[(&str, T)]) -> String {
    words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
}

/// A name that somebody else made up, cut to what a complaint can carry.
fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Line {
        key: String,
        qty: i64,
    }

    impl FromFields for Line {
        fn read(f: &mut Fields) -> Option<Self> {
            let key = f.text("key", 4);
            let qty = f.whole("qty", 0, 9);
            Some(Self { key: key?, qty: qty? })
        }
    }

    #[derive(Debug)]
    struct Sheet {
        lines: Vec<Line>,
        at: Option<i64>,
    }

    impl FromFields for Sheet {
        fn read(f: &mut Fields) -> Option<Self> {
            let lines = f.list("lines", 3);
            let at = f.opt_moment("at");
            Some(Self { lines: lines?, at })
        }
    }

    fn read(json: &str) -> Result<Sheet, Vec<String>> {
        let Node::Object(entries) = serde_json::from_str(json).expect("JSON") else { panic!("an object") };
        read_all(entries).map_err(|errors| errors.iter().map(|e| format!("{} {}", e.field, e.message)).collect())
    }

    #[test]
    fn what_is_right_is_read() {
        let sheet = read(r#"{"lines": [{"key": "a", "qty": 3}], "at": null}"#).expect("right");
        assert_eq!((sheet.lines[0].key.as_str(), sheet.lines[0].qty, sheet.at), ("a", 3, None));
    }

    #[test]
    fn every_wrong_field_is_named_by_its_path() {
        let wrong =
            r#"{"lines": [{"key": "abcde", "qty": -1, "x": 1}, 7, {"qty": 1.5, "qty": 2}], "at": "soon", "y": {}}"#;
        let errors = read(wrong).expect_err("wrong");
        assert_eq!(
            errors,
            [
                "lines[0].key must have 1 to 4 characters, has 5",
                "lines[0].qty must be from 0 to 9, is -1",
                "lines[0].x is not a known field",
                "lines[1] must be an object, is a number",
            ]
            .into_iter()
            .chain([
                "lines[2].key is required",
                "lines[2].qty must be a whole number from 0 to 9",
                "lines[2].qty is given twice",
                "at must be a time like 2026-11-30T06:15:00.000Z",
                "y is not a known field",
            ])
            .collect::<Vec<_>>()
        );
    }

    #[test]
    fn figures_beyond_any_limit_are_no_figures() {
        for huge in ["99999999999999999999999", "1e400000", "-9223372036854775809", "1e2", "\"1\"", "true"] {
            let json = format!(r#"{{"lines": [{{"key": "a", "qty": {huge}}}]}}"#);
            let Ok(Node::Object(entries)) = serde_json::from_str(&json) else { continue };
            assert!(read_all::<Sheet>(entries).is_err(), "{huge}");
        }
    }
}
