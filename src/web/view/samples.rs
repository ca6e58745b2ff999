//! One moment of a shop, as the tests of the templates show it: an order whose coupon is not back.

mod door;
mod money;
mod reconciling;
mod returns;
mod screen;
mod shops;

pub use door::*;
pub use money::*;
pub use reconciling::*;
pub use returns::{returns, returns_none};
pub use screen::*;
pub use shops::shops_order;

use super::account::{AccountPage, SessionRow, Settings};
use super::confirm::ConfirmPage;
use super::error::{ErrorPage, HelpPage, Trouble};
use super::gate::{LoginPage, SetupPage};
use super::order::{May, OrderPage};
use super::orders::OrdersPage;
use super::overview::OverviewPage;
use super::reconcile::{ReconcilePage, Seen};
use super::refunds::{Cases, RefundsPage};
use super::screens::ScreensPage;
use super::task::{Forms, TaskPage};
use super::tasks::TasksPage;
use super::wall::{CodePage, WallPage};
use super::{Eye, Flash, Section, Shell, Tone, Who, Zone};
use crate::core::reconcile::Latest;
use crate::core::words::{
    Action, AttemptOutcome, DiffClass, FailureKind, FundsKind, OrderStatus, PaymentStatus, ResourceType, RunStatus,
    TaskStatus, Trigger,
};
use crate::store::audit::Note;
use crate::store::flow::Flow;
use crate::store::order::Order;
use crate::store::order_search::{Hit, Own};
use crate::store::order_view::{HoldRow, OrderView, ReturnView};
use crate::store::overview::{Backlog, Closed, Failures, Oldest, Snapshot, Tries, Worker};
use crate::store::payment::Payment;
use crate::store::payment_case::{Conflict, Misfit};
use crate::store::reconcile_run::{Diff, Run, Total};
use crate::store::reduction::Reduction;
use crate::store::return_order::{Item, Return};
use crate::store::screen::Screen;
use crate::store::task::{Attempt, Task};
use crate::store::task_list::{Filter, LedgerNow, OrderHead, Page, TaskRow, TaskView};
use crate::web::i18n::Lang;

/// 2026-11-11T06:18:32Z, 14:18:32 in Shanghai.
pub const NOW: i64 = 1_794_377_912_000;

pub fn eye(lang: Lang) -> Eye {
    Eye { lang, zone: Zone::find("Asia/Shanghai").unwrap(), now: NOW }
}

pub fn shell(eye: &Eye, hostile: &str) -> Shell {
    let mut s = Shell::new(eye, Section::Elsewhere);
    s.nonce = "n0nce".to_owned();
    s.csrf = "t0ken".to_owned();
    s.user = Some(Who { name: format!("ops-03{hostile}"), role: eye.lang.word("role", "operator") });
    if !hostile.is_empty() {
        s.flash = Some(Flash { tone: Tone::Bad, text: format!("no {hostile}") });
    }
    s
}

pub fn task(id: i64, status: TaskStatus, hostile: &str) -> TaskRow {
    let next_at = match status {
        TaskStatus::Waiting => Some(NOW),
        TaskStatus::Retrying => Some(NOW + 100_000),
        _ => None,
    };
    let failed = matches!(status, TaskStatus::Retrying | TaskStatus::Manual);
    let ended = matches!(status, TaskStatus::Succeeded | TaskStatus::ForceClosed | TaskStatus::Superseded);
    let task = Task {
        id,
        order_no: format!("HB20261111-0047193{hostile}"),
        ref_no: format!("HB20261111-0047193{hostile}"),
        source: "close".to_owned(),
        round: 1,
        action: Action::Release,
        resource: ResourceType::Coupon,
        key: format!("C-7F3K-91QD{hostile}"),
        qty: 1,
        status,
        kind: failed.then_some(FailureKind::RemoteTimeout),
        error: failed.then(|| format!("POST /release: operation timed out after 3000 ms {hostile}")),
        retry: if failed { 4 } else { 0 },
        next_at,
        created_at: NOW - 212_000,
        ledger_id: Some(7),
        is_adopted: true,
        lane: 0,
        claimed_by: None,
        is_in_doubt: false,
        sent_at: None,
        return_no: String::new(),
        first_failed_at: failed.then_some(NOW - 209_000),
        finished_at: ended.then_some(NOW - 100_000),
        ended_by: ended.then(|| format!("worker:w-1{hostile}")),
        outcome: None,
        version: 9,
        fence: 3128,
        is_owed: status == TaskStatus::ForceClosed,
    };
    TaskRow { task, funds: None, currency: Some("CNY".to_owned()) }
}

fn stock(id: i64, status: TaskStatus, hostile: &str) -> TaskRow {
    let mut row = task(id, status, hostile);
    row.task = Task { resource: ResourceType::Stock, key: format!("sku-40318{hostile}"), qty: 2, ..row.task };
    row
}

fn funds(id: i64, hostile: &str) -> TaskRow {
    let mut row = task(id, TaskStatus::Succeeded, hostile);
    row.task = Task { resource: ResourceType::Funds, key: format!("bal:u_88213{hostile}"), qty: 5_000, ..row.task };
    row.funds = Some(FundsKind::Balance);
    row
}

fn attempt(n: i64, hostile: &str) -> Attempt {
    Attempt {
        n,
        fence: 3100 + n,
        started_at: NOW - 200_000 + n * 10_000,
        ended_at: Some(NOW - 197_000 + n * 10_000),
        outcome: Some(AttemptOutcome::Failed),
        kind: Some(FailureKind::RemoteTimeout),
        error: Some(format!("POST /release: operation timed out {hostile}")),
        actor: format!("worker:w-{n}{hostile}"),
    }
}

fn flow(action: Action, hostile: &str) -> Flow {
    Flow {
        id: 1,
        ledger_id: Some(7),
        bearer: None,
        at: NOW - 212_000,
        action,
        resource: ResourceType::Stock,
        key: format!("sku-40318{hostile}"),
        qty: 2,
        ref_no: format!("HB20261111-0047193{hostile}"),
        source: format!("close{hostile}"),
        round: 1,
        task_id: Some(918_204),
        available_after: Some(47),
        locked_after: Some(0),
        sold_after: Some(12),
        note: None,
        reason: None,
        actor: Some(format!("worker:w-2{hostile}")),
    }
}

fn snapshot(hostile: &str) -> Snapshot {
    let rows = [
        (TaskStatus::Waiting, ResourceType::Stock, 212),
        (TaskStatus::Retrying, ResourceType::Stock, 3),
        (TaskStatus::Manual, ResourceType::Stock, 5),
        (TaskStatus::Waiting, ResourceType::Coupon, 96),
        (TaskStatus::Retrying, ResourceType::Coupon, 412),
        (TaskStatus::ForceClosed, ResourceType::Coupon, 3),
        (TaskStatus::Waiting, ResourceType::Funds, 31),
    ];
    let backlog = rows.map(|(status, resource, tasks)| {
        let funds = (resource == ResourceType::Funds).then_some(FundsKind::Balance);
        let currency = funds.map(|_| "CNY".to_owned());
        Backlog { status, resource, funds, currency, tasks, qty: tasks * 2 }
    });
    let closed = |no: i64| Closed {
        order_no: format!("HB20261111-004{no}{hostile}"),
        at: NOW - no,
        reason: format!("timeout{hostile}"),
        trigger: Some(Trigger::Scan),
    };
    Snapshot {
        at: NOW,
        backlog: backlog.into(),
        oldest: Some(Oldest { task: 918_090, resource: ResourceType::Coupon, created_at: NOW - 1_578_000 }),
        oldest_manual: Some(NOW - 40_080_000),
        failures: vec![
            Failures { resource: ResourceType::Coupon, kind: FailureKind::RemoteTimeout, hour: 1_873, day: 1_902 },
            Failures { resource: ResourceType::Stock, kind: FailureKind::Database, hour: 0, day: 14 },
        ],
        tries_hour: Some(Tries { succeeded: 12_431, all: 14_381 }),
        tries_day: Some(Tries { succeeded: 170_000, all: 172_000 }),
        orders_affected: 748,
        recent_closes: (7_100..7_108).map(closed).collect(),
        workers: vec![
            Worker { name: format!("w-1{hostile}"), seen_at: NOW - 1_000 },
            Worker { name: "w-2".to_owned(), seen_at: NOW - 107_000 },
        ],
        reconciled: vec![reconcile_run(219, RunStatus::Done, hostile)],
        late: vec![("scan/12".to_owned(), 90), ("scan/30".to_owned(), 2)],
    }
}

pub fn overview(eye: &Eye, hostile: &str) -> OverviewPage {
    OverviewPage::new(shell(eye, hostile), eye, &snapshot(hostile))
}

/// A shop that has just begun: nothing is known yet, and nothing may read as 0 that wasn't counted.
pub fn overview_empty(eye: &Eye) -> OverviewPage {
    OverviewPage::new(shell(eye, ""), eye, &Snapshot { at: NOW, ..Snapshot::default() })
}

pub fn tasks(eye: &Eye, hostile: &str) -> TasksPage {
    let filter = Filter {
        statuses: vec![TaskStatus::Retrying, TaskStatus::Manual],
        order_no: hostile.to_owned(),
        key: hostile.to_owned(),
        error: hostile.to_owned(),
        older_than_s: Some(90),
        ..Filter::default()
    };
    let rows = (0..4)
        .map(|i| stock(917_731 + i, TaskStatus::Manual, hostile))
        .chain((0..8).map(|i| task(918_207 + i, TaskStatus::Retrying, hostile)))
        .collect();
    let page = Page { rows, next: Some("retrying.1.2".to_owned()), matching: Some(433) };
    TasksPage::new(shell(eye, hostile), eye, &filter, &page, true, 8)
}

pub fn tasks_empty(eye: &Eye) -> TasksPage {
    TasksPage::new(shell(eye, ""), eye, &Filter::open(), &Page { matching: Some(0), ..Page::default() }, true, 8)
}

pub fn task_page(eye: &Eye, status: TaskStatus, hostile: &str) -> TaskPage {
    let row = task(918_207, status, hostile);
    let view = TaskView {
        siblings: vec![stock(918_204, TaskStatus::Succeeded, hostile), funds(918_206, hostile), row.clone()],
        row,
        attempts: (1..=4).map(|n| attempt(n, hostile)).collect(),
        flow: vec![flow(Action::Lock, hostile), flow(Action::Release, hostile)],
        ledger: Some(LedgerNow {
            available: 0,
            locked: 1,
            sold: 0,
            holder_no: Some(format!("HB20261111-0047193{hostile}")),
            expires_at: Some(NOW + 120_000_000),
            issuer: Some(format!("merchant:M1{hostile}")),
            retired: true,
        }),
        order: Some(OrderHead {
            status: OrderStatus::Closed,
            closed_at: Some(NOW - 212_000),
            close_reason: Some("timeout".to_owned()),
            tombstone: false,
        }),
        same_failure: Some(412),
        calls: vec![Note {
            at: NOW - 60_000,
            actor: format!("operator:kim{hostile}"),
            reason: format!("caller waits{hostile}"),
        }],
    };
    let forms = Forms {
        retry_href: "/tasks/918207/retries".to_owned(),
        close_href: "/tasks/918207/closures".to_owned(),
        expected_version: 9,
        retry_note: eye.lang.t("task.retry_note").to_owned(),
        retry_reason: hostile.to_owned(),
        close_reason: hostile.to_owned(),
        close_problem: eye.lang.t("task.reason_problem").to_owned(),
        may_be_outside: !hostile.is_empty(),
        asks_password: true,
        password_hint: eye.lang.f("task.password_hint", &[("age", &"42 min")]),
        ..Forms::default()
    };
    TaskPage::new(shell(eye, hostile), eye, &view, 8, Some(forms))
}

pub fn orders(eye: &Eye, hostile: &str) -> OrdersPage {
    let hit = |i: i64| Hit {
        order_no: format!("HB20261111-00471{i}{hostile}"),
        own: (i != 14).then(|| Own {
            status: if i % 2 == 0 { OrderStatus::Closed } else { OrderStatus::Pending },
            placed_at: NOW - i * 1_000,
            amount: 26_800,
            currency: "CNY".to_owned(),
        }),
    };
    let mut s = shell(eye, hostile);
    s.search = format!("00471{hostile}");
    OrdersPage::new(s, eye, &(10..15).map(hit).collect::<Vec<_>>(), 50)
}

pub fn orders_none(eye: &Eye, hostile: &str) -> OrdersPage {
    let mut s = shell(eye, hostile);
    s.search = format!("nothing{hostile}");
    OrdersPage::new(s, eye, &[], 50)
}

pub fn order(eye: &Eye, hostile: &str) -> OrderPage {
    let hold = |resource, key: &str, locked, funds, expires_at| HoldRow {
        round: 1,
        resource,
        key: format!("{key}{hostile}"),
        locked,
        funds,
        expires_at,
    };
    let lacking = serde_json::json!([{"type": "stock", "key": format!("sku-7{hostile}"), "qty": 2}]).to_string();
    let payment = |status| Payment {
        id: 1,
        order_no: String::new(),
        channel: format!("pay-a{hostile}"),
        channel_txn: format!("20261111005521{hostile}"),
        status,
        amount: 26_800,
        currency: "CNY".to_owned(),
        occurred_at: NOW - 602_000,
        recorded_at: NOW - 600_000,
        lacking: None,
    };
    let view = OrderView {
        order: Order {
            id: 1,
            content: String::new(),
            pay_within_s: 900,
            due_at: None,
            payment_seen: false,
            asking: false,
            asked: 0,
            late_payment: None,
            version: 3,
            tombstone_until: None,
            order_no: format!("HB20261111-0047193{hostile}"),
            buyer: format!("u_88213{hostile}"),
            amount: 26_800,
            currency: "CNY".to_owned(),
            status: OrderStatus::Closed,
            round: 1,
            placed_at: NOW - 1_112_000,
            pay_deadline: NOW - 212_000,
            paid_at: None,
            closed_at: Some(NOW - 211_800),
            close_reason: Some(format!("timeout{hostile}")),
            closed_by: Some("trigger:scan".to_owned()),
            close_trigger: Some(Trigger::Scan),
            lines: Some(
                serde_json::json!([{"name": format!("Desk lamp{hostile}"), "qty": 1, "price": 20_900}]).to_string(),
            ),
        },
        holds: vec![
            hold(ResourceType::Stock, "sku-40318", 2, None, None),
            hold(ResourceType::Funds, "bal:u_88213", 5_000, Some(FundsKind::Balance), None),
            hold(ResourceType::Coupon, "C-7F3K-91QD", 1, None, Some(NOW + 120_000_000)),
        ],
        tasks: vec![
            stock(918_204, TaskStatus::Succeeded, hostile),
            funds(918_206, hostile),
            task(918_207, TaskStatus::Retrying, hostile),
        ],
        failed: (1..=4).map(|n| (918_207, attempt(n, hostile))).collect(),
        flow: vec![flow(Action::Lock, hostile), flow(Action::Release, hostile)],
        payments: vec![
            payment(PaymentStatus::Failed),
            Payment { id: 2, lacking: Some(lacking), ..payment(PaymentStatus::RefundDue) },
        ],
        reductions: vec![Reduction {
            reference: format!("r-1{hostile}"),
            amount: 20_900,
            body: String::new(),
            at: NOW - 900_000,
        }],
        conflicts: vec![money::conflict(hostile)],
        returns: vec![returned(hostile)],
    };
    let may = May { decide: true, reveal: true, buyer: None };
    OrderPage::new(shell(eye, hostile), eye, &view, 8, may)
}

fn returned(hostile: &str) -> ReturnView {
    let item = |line, restock| Item { line, key: format!("sku-40318{hostile}"), qty: 1, restock };
    ReturnView {
        row: Return {
            id: 1,
            return_no: format!("R-7{hostile}"),
            order_no: None,
            is_received: true,
            is_tasked: true,
            raw: None,
            origin: None,
            accepted_at: Some(NOW - 400_000),
            received_at: Some(NOW - 300_000),
        },
        items: vec![item(1, true), item(2, false)],
        tasks: vec![stock(918_300, TaskStatus::Manual, hostile)],
    }
}

pub fn trouble(eye: &Eye, trouble: Trouble, hostile: &str) -> ErrorPage {
    ErrorPage::new(shell(eye, hostile), trouble)
}

pub fn help(eye: &Eye, hostile: &str) -> HelpPage {
    HelpPage { s: Shell { section: Section::Help, ..shell(eye, hostile) } }
}
