//! What an order number, key or reason may be. Checked once, at the door, so that everything inside
//! can rely on it (R17: texts are compared byte by byte and stored as they came).

/// Longest texts, in characters.
pub const NUMBER_MAX: usize = 64;
pub const KEY_MAX: usize = 128;
pub const REASON_MAX: usize = 500;

/// Largest figures.
pub const QTY_MAX: i64 = 1_000_000_000_000;
pub const AMOUNT_MAX: i64 = 1_000_000_000_000_000;
pub const PAY_WITHIN_MAX_S: i64 = 2_592_000;
pub const HOLDS_MAX: usize = 200;

/// One field that can't be taken as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub field: String,
    pub message: String,
}

impl FieldError {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// Says what is wrong with `value` as a text of 1 to `max` characters: any Unicode but control
/// characters, and not `.` or `..` alone (they don't survive in a path).
pub fn check_text(value: &str, max: usize) -> Result<(), String> {
    let count = value.chars().count();
    if count == 0 || count > max {
        return Err(format!("must have 1 to {max} characters, has {count}"));
    }
    if let Some(control) = value.chars().find(|c| c.is_control()) {
        return Err(format!("must not contain control characters, contains U+{:04X}", u32::from(control)));
    }
    if value == "." || value == ".." {
        return Err("must not be . or .. alone".into());
    }
    Ok(())
}

/// Says what is wrong with `value` as a whole number from `min` to `max`.
pub fn check_range(value: i64, min: i64, max: i64) -> Result<(), String> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(format!("must be from {min} to {max}, is {value}")) }
}

/// Says what is wrong with `value` as a currency: three capital letters.
pub fn check_currency(value: &str) -> Result<(), String> {
    if value.len() == 3 && value.bytes().all(|b| b.is_ascii_uppercase()) {
        Ok(())
    } else {
        Err("must be three capital letters, like CNY".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_and_all_of_unicode_are_fine() {
        for ok in ["a/b", "券-7", "🎟", "a b ", "%2F", "\u{200d}x", "..."] {
            assert_eq!(check_text(ok, NUMBER_MAX), Ok(()), "{ok:?}");
        }
    }

    #[test]
    fn empty_long_control_and_dots_are_refused() {
        for bad in ["", &"x".repeat(65), "a\nb", "\0", ".", "..", "\u{85}"] {
            assert!(check_text(bad, NUMBER_MAX).is_err(), "{bad:?}");
        }
    }
}
