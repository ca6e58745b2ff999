//! Markup that is safe to print as it is, because it can only be built from escaped text. Templates
//! escape everything else by themselves.

use std::fmt::{Display, Formatter, Result};

/// A piece of HTML made by this module's constructors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Html(String);

impl Html {
    pub fn text(text: &str) -> Html {
        let mut html = Html::default();
        html.push_text(text);
        html
    }

    /// A key, an order number, an id: monospaced.
    pub fn code(text: &str) -> Html {
        Html::text(text).within("<code>", "</code>")
    }

    pub fn strong(text: &str) -> Html {
        Html::text(text).within("<b>", "</b>")
    }

    /// A link to one of our own paths.
    pub fn link(href: &str, text: &str) -> Html {
        let open = format!("<a class=\"mono\" href=\"{}\">", Html::text(href));
        Html::text(text).within(&open, "</a>")
    }

    pub fn push(&mut self, other: &Html) {
        self.0.push_str(&other.0);
    }

    pub fn push_text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
    }

    fn within(self, open: &str, close: &str) -> Html {
        let mut html = String::with_capacity(self.0.len() + open.len() + close.len());
        for part in [open, &self.0, close] {
            html.push_str(part);
        }
        Html(html)
    }
}

impl Display for Html {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Html {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_through_unescaped() {
        let evil = "\"><script hx-get='/x'>&";
        for html in [Html::text(evil), Html::code(evil), Html::strong(evil), Html::link(evil, evil)] {
            let inner = html.to_string();
            assert!(!inner.contains("<script") && !inner.contains("\"><script"), "{inner}");
            assert!(inner.contains("&lt;script"));
        }
    }
}
