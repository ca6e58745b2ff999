//! `GET /metrics`: Prometheus text. Base units, names `handback_*`; no order, buyer or key in a label,
//! so nothing private leaves and no label grows without end. `docs/api.md` lists them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::figures::{Read, bucketed};
use crate::core::counters::{self, bucket_ms};
use crate::store::stats::Counters;

/// Upper bounds of the histograms, in seconds.
const BOUNDS_S: [f64; 12] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0];

/// The whole text; without figures only that the database is away.
pub(super) fn text(read: Option<&Read>, now: i64) -> String {
    let mut page = Page::default();
    page.family("handback_build_info", "gauge", "The version that runs");
    page.line("handback_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    page.family("handback_database_up", "gauge", "Whether the database answers");
    page.line("handback_database_up", &[], if read.is_some() { 1.0 } else { 0.0 });
    if let Some(read) = read {
        gauges(&mut page, read, now);
        counts(&mut page, &read.counters);
        histograms(&mut page, &read.counters);
    }
    page.0
}

fn gauges(page: &mut Page, read: &Read, now: i64) {
    page.family("handback_tasks", "gauge", "Unfinished tasks");
    for waiting in &read.backlog {
        let labels = [("status", waiting.status.word()), ("type", waiting.resource.word())];
        page.line("handback_tasks", &labels, waiting.count as f64);
    }
    let ages = [
        ("handback_oldest_task_age_seconds", "Age of the oldest task that the worker moves", read.oldest),
        ("handback_oldest_manual_task_age_seconds", "Age of the oldest manual task", read.oldest_manual),
    ];
    for (name, help, written) in ages {
        page.family(name, "gauge", help);
        // Without such a task there is no age, and no line: never a false zero.
        if let Some(at) = written {
            page.line(name, &[], (now - at).max(0) as f64 / 1000.0);
        }
    }
    page.family("handback_overdue_orders", "gauge", "Open orders past their deadline");
    page.line("handback_overdue_orders", &[], read.overdue_orders as f64);
    page.family("handback_unmatched_payments", "gauge", "Payments whose order is unknown");
    page.line("handback_unmatched_payments", &[], read.unmatched_payments as f64);
    page.family("handback_unexplained_keys", "gauge", "Keys that the last reconciliation could not explain");
    for found in read.reconciled.unexplained().iter().flatten() {
        page.line("handback_unexplained_keys", &[("type", found.resource.word())], found.keys as f64);
    }
    page.family("handback_workers", "gauge", "Workers that gave a sign of life");
    page.line("handback_workers", &[], read.workers.len() as f64);
}

/// Counters: name, what it says, where it is counted, and its labels (split at `/`).
const COUNTS: &[(&str, &str, &str, &[&str])] = &[
    ("handback_orders_placed_total", "Orders placed", counters::PLACED, &[]),
    ("handback_orders_paid_total", "Orders paid", counters::PAID, &[]),
    ("handback_orders_closed_total", "Orders closed", counters::CLOSED, &["trigger"]),
    ("handback_closes_repeated_total", "Closes of an order that was closed", counters::CLOSE_REPEATED, &["trigger"]),
    ("handback_tasks_succeeded_total", "Tasks that succeeded", counters::SUCCEEDED, &["type"]),
    ("handback_tasks_duplicate_total", "Tasks that found their effect there", counters::DUPLICATE, &["type"]),
    ("handback_task_failures_total", "Failed tries", counters::FAILED, &["type", "kind"]),
    ("handback_tasks_recovered_total", "Tasks that succeeded after a failure", counters::COMPENSATED, &["by"]),
];

fn counts(page: &mut Page, counters: &Counters) {
    for (name, help, counter, label_names) in COUNTS {
        page.family(name, "counter", help);
        for (label, counted) in counters.of(counter) {
            let labels: Vec<(&str, &str)> = label_names.iter().copied().zip(label.split('/')).collect();
            page.line(name, &labels, counted.total as f64);
        }
    }
}

fn histograms(page: &mut Page, counters: &Counters) {
    let mut late: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
    for (label, counted) in counters.of(counters::LATE) {
        if let Some((trigger, bucket)) = bucketed(label) {
            late.entry(trigger).or_default().push((bucket, counted.total));
        }
    }
    let name = "handback_close_lateness_seconds";
    page.family(name, "histogram", "How long after its deadline an order was closed");
    for (trigger, histogram) in &late {
        page.histogram(name, &[("trigger", trigger)], histogram);
    }
    let name = "handback_recovery_seconds";
    page.family(name, "histogram", "From the first failure of a task to its success");
    let delays = counters.of(counters::DELAY);
    let delays: Vec<_> = delays.filter_map(|(label, counted)| Some((label.parse().ok()?, counted.total))).collect();
    if !delays.is_empty() {
        page.histogram(name, &[], &delays);
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    /// Our buckets are finer than the ones shown; the sum is right to the width of a bucket.
    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &[(i64, i64)]) {
        let seconds = |bucket: i64| bucket_ms(bucket) as f64 / 1000.0;
        for bound in BOUNDS_S {
            let below = histogram.iter().filter(|(bucket, _)| seconds(*bucket) <= bound);
            let text = bound.to_string();
            let labels = [labels, &[("le", text.as_str())]].concat();
            self.line(&format!("{name}_bucket"), &labels, below.map(|(_, n)| *n).sum::<i64>() as f64);
        }
        let count = histogram.iter().map(|(_, n)| *n).sum::<i64>() as f64;
        self.line(&format!("{name}_bucket"), &[labels, &[("le", "+Inf")]].concat(), count);
        let sum: f64 = histogram.iter().map(|(bucket, n)| seconds(*bucket) * *n as f64).sum();
        self.line(&format!("{name}_sum"), labels, sum);
        self.line(&format!("{name}_count"), labels, count);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_database_only_that_is_told() {
        let page = text(None, 0);
        assert!(page.contains("handback_database_up 0\n"), "{page}");
        assert!(!page.contains("handback_tasks"), "{page}");
    }

    #[test]
    fn every_metric_is_documented() {
        let documentation = include_str!("../../../docs/api.md");
        let read = Read::default();
        for line in text(Some(&read), 0).lines().filter(|line| line.starts_with("# TYPE ")) {
            let name = line.split(' ').nth(2).unwrap_or_default();
            assert!(documentation.contains(&format!("`{name}`")), "docs/api.md lacks {name}");
        }
    }

    #[test]
    fn buckets_add_up() {
        let mut page = Page::default();
        let histogram = [(counters::bucket(90), 3), (counters::bucket(4_000), 2), (counters::bucket(9_000_000), 1)];
        page.histogram("x", &[("trigger", "scan")], &histogram);
        assert!(page.0.contains("x_bucket{trigger=\"scan\",le=\"0.1\"} 3\n"), "{}", page.0);
        assert!(page.0.contains("x_bucket{trigger=\"scan\",le=\"5\"} 5\n"), "{}", page.0);
        assert!(page.0.contains("x_bucket{trigger=\"scan\",le=\"+Inf\"} 6\n"), "{}", page.0);
        assert!(page.0.contains("x_count{trigger=\"scan\"} 6\n"), "{}", page.0);
    }

    #[test]
    fn a_label_can_not_end_its_quotes() {
        let mut page = Page::default();
        page.line("x", &[("kind", "a\"b\\c\nd")], 1.0);
        assert_eq!(page.0, "x{kind=\"a\\\"b\\\\c\\nd\"} 1\n");
    }
}
