//! A shop as tests speak of it: orders, payments, closes and workers over the core, with a clock that
//! only the test moves. Helpers fail where they stand; figures and rows are read from the database.

use std::time::Duration;

use handback::core::clock::Clock;
use handback::core::ledger::{Adjusted, Adjustment, Opened, Retired};
use handback::core::order::close::{CloseOrder, Closed, Swept};
use handback::core::order::pay::{NewPayment, Paid, Said};
use handback::core::order::place::{NewHold, NewOrder, Placed};
use handback::core::policy::Policy;
use handback::core::ports::Services;
use handback::core::release::act::{ForceClose, ForceClosed, Resolution, Retried};
use handback::core::release::{Ran, run_due};
use handback::core::words::{Action, Actor, FundsKind, OrderStatus, ResourceType, Trigger};
use handback::core::{Core, check, ledger as core_ledger, order, release};
use handback::store::ledger::{Ledger, NewLedger};
use handback::store::{Db, flow, ledger, order as order_rows, task};

use super::database::TestDb;

/// Where every test's clock starts: 2026-11-30 10:00 UTC.
pub const START_MS: i64 = 1_796_032_800_000;
pub const MINUTE: Duration = Duration::from_secs(60);
const DAY_MS: i64 = 86_400_000;

#[derive(Clone)]
pub struct Shop {
    pub core: Core,
    pub clock: Clock,
}

/// An order by buyer `b`, 100.00 CNY, holding nothing yet.
pub fn an_order(order_no: &str) -> NewOrder {
    NewOrder {
        order_no: order_no.into(),
        buyer: "b".into(),
        amount: 10_000,
        currency: "CNY".into(),
        holds: Vec::new(),
        pay_within_s: None,
        lines: None,
    }
}

pub trait Ordering {
    fn holding(self, resource: ResourceType, key: &str, qty: i64) -> Self;
}

impl Ordering for NewOrder {
    fn holding(mut self, resource: ResourceType, key: &str, qty: i64) -> Self {
        self.holds.push(NewHold { resource, key: key.into(), qty });
        self
    }
}

/// The payment that [`an_order`] asks for.
pub fn a_payment(order_no: &str, channel_txn: &str) -> NewPayment {
    NewPayment {
        order_no: order_no.into(),
        said: Said::Succeeded,
        channel: "alipay".into(),
        channel_txn: channel_txn.into(),
        amount: 10_000,
        currency: "CNY".into(),
        occurred_at: START_MS,
    }
}

pub fn worker(name: &str) -> Actor {
    Actor::Worker(name.into())
}

pub fn operator(name: &str) -> Actor {
    Actor::Operator(name.into())
}

impl Shop {
    pub async fn open(db: &TestDb) -> Self {
        Self::with_policy(db, Policy::default()).await
    }

    pub async fn with_policy(db: &TestDb, policy: Policy) -> Self {
        Self::with(db, policy, 8).await
    }

    /// More connections than usual, for real contention in the server.
    pub async fn with_connections(db: &TestDb, connections: u32) -> Self {
        Self::with(db, Policy::default(), connections).await
    }

    /// A shop some of whose resources, or whose money, others keep.
    pub async fn with_services(db: &TestDb, policy: Policy, services: impl FnOnce(&Clock) -> Services) -> Self {
        let clock = Clock::test(START_MS);
        let services = services(&clock);
        let db = Db::open(&db.url, true, 8).await.unwrap();
        Self { core: Core::with_services(db, clock.clone(), policy, services), clock }
    }

    async fn with(db: &TestDb, policy: Policy, connections: u32) -> Self {
        let clock = Clock::test(START_MS);
        let db = Db::open(&db.url, true, connections).await.unwrap();
        Self { core: Core::new(db, clock.clone(), policy), clock }
    }

    /// Another process on the same database: its own pools, the same time.
    pub async fn another_process(&self, db: &TestDb) -> Self {
        let own = Db::open(&db.url, false, 4).await.unwrap();
        let (policy, services) = (self.core.policy.clone(), self.core.services.clone());
        Self { core: Core::with_services(own, self.clock.clone(), policy, services), clock: self.clock.clone() }
    }

    pub fn later(&self, by: Duration) {
        self.clock.advance(by);
    }

    // Ledgers ------------------------------------------------------------------------------------

    pub async fn stock(&self, key: &str, available: i64) {
        self.opens(ResourceType::Stock, key, available, None, None).await;
    }

    pub async fn quota(&self, key: &str, available: i64) {
        self.opens(ResourceType::Quota, key, available, None, None).await;
    }

    pub async fn slot(&self, key: &str) {
        self.opens(ResourceType::Slot, key, 1, None, None).await;
    }

    pub async fn balance(&self, key: &str, available: i64) {
        self.opens(ResourceType::Funds, key, available, Some(FundsKind::Balance), None).await;
    }

    pub async fn points(&self, key: &str, available: i64, ends_at: i64) {
        self.opens(ResourceType::Funds, key, available, Some(FundsKind::Points), Some(ends_at)).await;
    }

    pub async fn coupon(&self, key: &str, ends_at: i64) {
        self.opens(ResourceType::Coupon, key, 1, None, Some(ends_at)).await;
    }

    /// A coupon that runs out in thirty days.
    pub async fn good_coupon(&self, key: &str) {
        self.coupon(key, START_MS + 30 * DAY_MS).await;
    }

    async fn opens(
        &self,
        resource: ResourceType,
        key: &str,
        available: i64,
        kind: Option<FundsKind>,
        expires_at: Option<i64>,
    ) {
        let issuer = (resource == ResourceType::Coupon).then(|| "platform".to_owned());
        let new = NewLedger { resource, key: key.into(), available, kind, owner: None, issuer, expires_at };
        let opened = core_ledger::open(&self.core, &worker("setup"), new).await.unwrap();
        assert!(matches!(opened, Opened::Opened(_)), "{opened:?}");
    }

    pub async fn adjust(&self, key: &str, by: Adjustment) -> Adjusted {
        let (stock, lead) = (ResourceType::Stock, operator("lead"));
        core_ledger::adjust(&self.core, &lead, stock, key, by).await.unwrap()
    }

    pub async fn retire(&self, resource: ResourceType, key: &str) {
        let retired = core_ledger::retire(&self.core, &operator("lead"), resource, key).await.unwrap();
        assert_eq!(retired, Retired::Retired);
    }

    pub async fn ledger(&self, resource: ResourceType, key: &str) -> Ledger {
        let mut conn = self.core.db.read().await.unwrap();
        ledger::find(&mut conn, resource, key).await.unwrap().unwrap_or_else(|| panic!("no {resource} {key}"))
    }

    /// Available, locked, sold.
    pub async fn figures(&self, resource: ResourceType, key: &str) -> (i64, i64, i64) {
        let row = self.ledger(resource, key).await;
        (row.available, row.locked, row.sold)
    }

    pub async fn stock_figures(&self, key: &str) -> (i64, i64, i64) {
        self.figures(ResourceType::Stock, key).await
    }

    // Orders -------------------------------------------------------------------------------------

    pub async fn place(&self, new: NewOrder) -> Placed {
        order::place::place_order(&self.core, &Actor::Token("shop".into()), new).await.unwrap()
    }

    /// Places an order that must be new and lack nothing.
    pub async fn placed(&self, new: NewOrder) {
        let placed = self.place(new).await;
        assert_eq!(placed, Placed::Placed);
    }

    pub async fn pay(&self, order_no: &str) -> Paid {
        self.payment(a_payment(order_no, &format!("txn-{order_no}"))).await
    }

    pub async fn payment(&self, new: NewPayment) -> Paid {
        order::pay::record_payment(&self.core, new).await.unwrap()
    }

    pub async fn close(&self, order_no: &str, reason: &str) -> Closed {
        let close = CloseOrder { order_no: order_no.into(), reason: reason.into(), trigger: Trigger::Api };
        order::close::close_order(&self.core, &Actor::Token("shop".into()), close).await.unwrap()
    }

    /// One look for due orders, as the scan does.
    pub async fn sweep(&self) -> Swept {
        order::close::close_due(&self.core, Trigger::Scan, 500).await.unwrap()
    }

    pub async fn status(&self, order_no: &str) -> OrderStatus {
        let mut conn = self.core.db.read().await.unwrap();
        order_rows::find(&mut conn, order_no).await.unwrap().unwrap_or_else(|| panic!("no order {order_no}")).status
    }

    // Tasks --------------------------------------------------------------------------------------

    pub async fn run_once(&self, name: &str, limit: i64) -> Ran {
        run_due(&self.core, &worker(name), limit).await.unwrap()
    }

    /// Runs until nothing is due at this moment of the test's clock.
    pub async fn work(&self) -> Ran {
        let mut all = Ran::default();
        for _ in 0..1_000 {
            let ran = self.run_once("w1", 500).await;
            all += ran;
            if ran == Ran::default() {
                return all;
            }
        }
        panic!("the queue never became empty");
    }

    pub async fn tasks(&self, order_no: &str) -> Vec<task::Task> {
        let mut conn = self.core.db.read().await.unwrap();
        task::of_ref(&mut conn, order_no).await.unwrap()
    }

    /// The only task of an order.
    pub async fn task(&self, order_no: &str) -> task::Task {
        let mut tasks = self.tasks(order_no).await;
        assert_eq!(tasks.len(), 1, "{tasks:#?}");
        tasks.remove(0)
    }

    /// What the order moved, oldest first: action, key, quantity.
    pub async fn moves(&self, order_no: &str) -> Vec<(Action, String, i64)> {
        let flows = self.flows(order_no).await;
        flows.into_iter().map(|flow| (flow.action, flow.key, flow.qty)).collect()
    }

    pub async fn flows(&self, order_no: &str) -> Vec<flow::Flow> {
        let mut conn = self.core.db.read().await.unwrap();
        flow::of_ref(&mut conn, order_no).await.unwrap()
    }

    pub async fn retry(&self, by: &str, task_id: i64) -> Retried {
        release::act::retry(&self.core, &operator(by), task_id, "looked into it").await.unwrap()
    }

    pub async fn force_close(&self, by: &str, task_id: i64, expected_version: i64) -> ForceClosed {
        let resolution = Resolution::LeaveOwed;
        let act = ForceClose { task_id, reason: "counted by hand".into(), expected_version, resolution };
        release::act::force_close(&self.core, &operator(by), act).await.unwrap()
    }

    /// Every rule that a query can verify holds. What each test ends with.
    pub async fn rules_hold(&self) {
        let broken: Vec<_> = check::run(&self.core).await.unwrap().into_iter().filter(|r| r.broken != 0).collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }

    /// The named rule is found broken: `check` can fail.
    pub async fn rule_is_broken(&self, name: &str) {
        let rules = check::run(&self.core).await.unwrap();
        assert!(rules.iter().any(|rule| rule.name == name && rule.broken > 0), "{rules:#?}");
    }
}
