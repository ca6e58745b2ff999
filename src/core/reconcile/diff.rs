//! The arithmetic of the reconciliation, without any I/O: what is unexplained, and what it is called (R22).

use std::collections::HashMap;

use crate::core::words::{DiffClass, ResourceType};
use crate::store::reconcile::{Figures, Sums};
use crate::store::reconcile_run::{Diff, Total};

/// What stands behind a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// Open orders that hold it.
    pub open: Vec<String>,
    /// Orders that are over and of whose lock the flow doesn't tell the end.
    pub unsettled: Vec<String>,
    /// Unfinished tasks, with their orders.
    pub tasks: Vec<(i64, String)>,
    /// A coupon or slot is locked by an order that has no hold on it.
    pub is_strangers: bool,
}

/// What orders and unfinished tasks leave unexplained.
pub fn unexplained(figures: &Figures) -> i64 {
    figures.in_ledger - figures.expected - figures.explained
}

/// What is wrong with a key.
pub fn class(figures: &Figures, behind: &Behind) -> DiffClass {
    let is_named = !behind.open.is_empty()
        || !behind.unsettled.is_empty()
        || !behind.tasks.is_empty()
        || figures.expected != 0
        || figures.explained != 0;
    match unexplained(figures) {
        _ if behind.is_strangers => DiffClass::HolderGone,
        over if over > 0 && is_named => DiffClass::MissedRelease,
        over if over > 0 => DiffClass::OrphanLock,
        _ if figures.in_ledger == 0 => DiffClass::MissingLock,
        _ => DiffClass::DoubleRelease,
    }
}

/// The finding about a key; its orders begin with those that look guilty.
pub fn finding(resource: ResourceType, figures: &Figures, behind: &Behind, first_seen: i64) -> Diff {
    let named = behind.unsettled.iter().chain(&behind.open).chain(behind.tasks.iter().map(|(_, order)| order));
    let mut orders: Vec<String> = Vec::new();
    for order in named {
        if !orders.contains(order) {
            orders.push(order.clone());
        }
    }
    Diff {
        id: 0,
        run_id: 0,
        resource,
        key: figures.key.clone(),
        class: class(figures, behind),
        in_ledger: figures.in_ledger,
        expected: figures.expected,
        explained: figures.explained,
        unexplained: unexplained(figures),
        orders,
        tasks: behind.tasks.iter().map(|(id, _)| *id).collect(),
        first_seen,
    }
}

/// The sums of a type, and what was found in it.
pub fn total(resource: ResourceType, sums: Sums, found: &Found) -> Total {
    Total {
        resource: resource.code(),
        keys: sums.keys,
        in_ledger: sums.in_ledger,
        expected: sums.expected,
        explained: sums.explained,
        findings: found.keys,
        over: found.over,
        under: found.under,
    }
}

/// What was found so far of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub keys: i64,
    pub over: i64,
    pub under: i64,
}

impl Found {
    pub fn add(&mut self, diff: &Diff) {
        self.keys += 1;
        self.over += diff.unexplained.max(0);
        self.under += (-diff.unexplained).max(0);
    }
}

/// Names by key.
pub fn by_key<T>(rows: Vec<(String, T)>) -> HashMap<String, Vec<T>> {
    let mut map: HashMap<String, Vec<T>> = HashMap::new();
    for (key, row) in rows {
        map.entry(key).or_default().push(row);
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(in_ledger: i64, expected: i64, explained: i64) -> Figures {
        Figures { key: "k".into(), in_ledger, expected, explained }
    }

    #[test]
    fn what_unfinished_tasks_explain_is_no_difference() {
        assert_eq!(unexplained(&figures(5, 2, 3)), 0);
        assert_eq!(unexplained(&figures(5, 2, 1)), 2);
        assert_eq!(unexplained(&figures(1, 2, 1)), -2);
    }

    #[test]
    fn each_difference_has_its_name() {
        let nobody = Behind::default();
        let closed = Behind { unsettled: vec!["A".into()], ..Behind::default() };
        let stranger = Behind { is_strangers: true, ..Behind::default() };
        let names = [
            (figures(2, 0, 0), &nobody, DiffClass::OrphanLock),
            (figures(2, 0, 0), &closed, DiffClass::MissedRelease),
            (figures(3, 1, 0), &nobody, DiffClass::MissedRelease),
            (figures(1, 2, 0), &nobody, DiffClass::DoubleRelease),
            (figures(1, 0, 2), &nobody, DiffClass::DoubleRelease),
            (figures(0, 1, 0), &nobody, DiffClass::MissingLock),
            (figures(1, 0, 0), &stranger, DiffClass::HolderGone),
            (figures(1, 1, 0), &stranger, DiffClass::HolderGone),
        ];
        for (figures, behind, name) in names {
            assert_eq!(class(&figures, behind), name, "{figures:?}");
        }
    }

    #[test]
    fn a_finding_names_the_guilty_first_and_nobody_twice() {
        let behind = Behind {
            open: vec!["B".into(), "C".into()],
            unsettled: vec!["A".into()],
            tasks: vec![(7, "C".into()), (8, "D".into())],
            is_strangers: false,
        };
        let diff = finding(ResourceType::Stock, &figures(9, 4, 2), &behind, 1);
        assert_eq!(diff.orders, ["A", "B", "C", "D"]);
        assert_eq!((diff.tasks, diff.unexplained), (vec![7, 8], 3));
    }
}
