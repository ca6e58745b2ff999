//! Runs of the reconciliation, and what they found.

use super::*;

pub fn reconcile_run(id: i64, status: RunStatus, hostile: &str) -> Run {
    let total = |resource: ResourceType, findings, over, under| Total {
        resource: resource.code(),
        keys: 3_072,
        in_ledger: 2_214,
        expected: 2_182,
        explained: 31,
        findings,
        over,
        under,
    };
    Run {
        id,
        resource: None,
        status,
        started_by: format!("operator:ops-03{hostile}"),
        started_at: NOW - 60_000,
        seen_at: NOW - 50_000,
        snapshot_at: Some(NOW - 60_000),
        finished_at: (status != RunStatus::Running).then_some(NOW - 41_000),
        checked: 9_217,
        totals: match status {
            RunStatus::Done => vec![
                total(ResourceType::Stock, 2, 2, 1),
                total(ResourceType::Coupon, 1, 1, 0),
                total(ResourceType::Funds, 0, 0, 0),
            ],
            _ => Vec::new(),
        },
        error: (status == RunStatus::Failed).then(|| format!("the database was away{hostile}")),
    }
}

pub fn reconcile(eye: &Eye, hostile: &str) -> ReconcilePage {
    let diff = |class: DiffClass, unexplained: i64| Diff {
        id: 1_042,
        run_id: 219,
        resource: ResourceType::Stock,
        key: format!("sku-61190{hostile}"),
        class,
        in_ledger: 46 + unexplained,
        expected: 31,
        explained: 15,
        unexplained,
        orders: vec![format!("HB20261111-0038850{hostile}")],
        tasks: vec![918_204, 918_205],
        first_seen: NOW - 86_400_000,
    };
    let runs = [RunStatus::Running, RunStatus::Done, RunStatus::Failed];
    let runs: Vec<Run> = (0_i64..).zip(runs).map(|(i, status)| reconcile_run(220 - i, status, hostile)).collect();
    let latest: Vec<Latest> = runs[1].totals.iter().map(|total| Latest { run: 219, total: total.clone() }).collect();
    let diffs = [
        diff(DiffClass::MissedRelease, 2),
        diff(DiffClass::DoubleRelease, -1),
        Diff { orders: Vec::new(), tasks: Vec::new(), ..diff(DiffClass::OrphanLock, 1) },
        diff(DiffClass::HolderGone, 0),
    ];
    let seen = Seen {
        latest: &latest,
        snapshot_at: Some(NOW - 60_000),
        diffs: &diffs,
        runs: &runs,
        only: None,
        may_run: true,
    };
    ReconcilePage::new(shell(eye, hostile), eye, &seen)
}

/// Nothing was ever compared; somebody may begin.
pub fn reconcile_empty(eye: &Eye) -> ReconcilePage {
    let seen = Seen { latest: &[], snapshot_at: None, diffs: &[], runs: &[], only: None, may_run: true };
    ReconcilePage::new(shell(eye, ""), eye, &seen)
}
