//! Lists for a person at a terminal: columns as wide as they need to be.

use time::OffsetDateTime;
use time::macros::format_description;

/// A time as a person reads it, in UTC.
pub(super) fn time(ms: i64) -> String {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]Z");
    let instant = OffsetDateTime::from_unix_timestamp(ms.div_euclid(1000)).ok();
    instant.and_then(|at| at.format(&format).ok()).unwrap_or_default()
}

/// A head and rows, two spaces between columns.
pub(super) fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows);
    let widths: [usize; N] =
        std::array::from_fn(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default());
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["a".to_owned(), "b".to_owned()], ["long".to_owned(), "c".to_owned()]];
        assert_eq!(table(["x", "y"], rows.into_iter()), "x     y\na     b\nlong  c\n");
        assert_eq!(time(1_764_483_300_999), "2025-11-30 06:15:00Z");
    }
}
