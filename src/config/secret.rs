//! Values that must not be seen (R24). Neither `Debug` nor `Display` shows them; whoever really
//! needs one calls `expose`, which is easy to search for.

use std::fmt;

const MASK: &str = "***";

#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// An address with, perhaps, a password inside. Shown with whatever could be one masked: when in
/// doubt too much is hidden, never too little.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl(String);

impl SecretUrl {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The address with its password. For connecting, never for showing.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn scheme(&self) -> &str {
        self.0.split_once(':').map_or("", |(scheme, _)| scheme)
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked(&self.0))
    }
}

/// Query names whose values say nothing secret.
const PLAIN_QUERY: &[&str] = &["application_name", "charset", "mode", "ssl-mode", "sslmode", "timezone"];

fn masked(url: &str) -> String {
    // A SQLite address is a path; it has no place for a password.
    if url.starts_with("sqlite:") {
        return url.to_owned();
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return MASK.to_owned();
    };
    // The last @ of all: a password that should have been percent-encoded may hold / ? and @.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, rest),
    };
    let mut shown = format!("{scheme}://");
    if let Some(user) = user {
        shown += match user.split_once(':') {
            Some((name, _)) => name,
            None => user,
        };
        if user.contains(':') {
            shown += ":";
            shown += MASK;
        }
        shown += "@";
    }
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    shown += place;
    if let Some(query) = query {
        let parts: Vec<String> = query.split('&').map(masked_pair).collect();
        shown += "?";
        shown += &parts.join("&");
    }
    shown
}

fn masked_pair(pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, _)) if !PLAIN_QUERY.contains(&name) => format!("{name}={MASK}"),
        _ => pair.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_could_be_a_password_is_shown() {
        for (url, shown) in [
            ("postgres://app:pw@db:5432/hb", "postgres://app:***@db:5432/hb"),
            ("postgres://app@db/hb?sslmode=require", "postgres://app@db/hb?sslmode=require"),
            ("mysql://app:p@s/s?w@db/hb", "mysql://app:***@db/hb"),
            ("postgres://db/hb?user=a&password=pw", "postgres://db/hb?user=***&password=***"),
            ("redis://:pw@cache/0", "redis://:***@cache/0"),
            ("sqlite://data/handback.db?mode=rwc", "sqlite://data/handback.db?mode=rwc"),
            ("app:pw@db", "***"),
        ] {
            assert_eq!(SecretUrl::new(url).to_string(), shown);
            assert_eq!(format!("{:?}", SecretUrl::new(url)), shown);
        }
    }

    #[test]
    fn a_secret_has_no_readable_form() {
        assert_eq!(format!("{:?}", Secret::new("s3cret")), "***");
    }
}
