//! Returns (C1): accepted with a restock choice per line, received once, and then stock follows by task. Never
//! more comes back than an order paid for. What other programs write straight into the tables is found by
//! `detect` (C2). Locks: order, return, tasks by id (R19).

pub mod accept;
pub mod detect;
mod shop;

use std::collections::BTreeMap;

use crate::core::words::{Action, FailureKind, OrderStatus, ResourceType, TaskStatus, source};
use crate::core::{Core, Result, counters, task as core_task};
use crate::store::counter::Counts;
use crate::store::order::Order;
use crate::store::return_order::{Item, Return};
use crate::store::task::{Due, NewTask, Task};
use crate::store::{self, Conn, Decision, counter, order, return_order, task};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    Received,
    AlreadyReceived,
    Unknown,
}

/// The goods of a return are here: its status and one task per restocked line, in one transaction. The second
/// time says so and changes nothing.
pub async fn receive_return(core: &Core, return_no: &str) -> Result<Received> {
    let (core_in, no, now) = (core.clone(), return_no.to_owned(), core.now());
    let received = core.db.write(move |conn| {
        let (core, no) = (core_in.clone(), no.clone());
        Box::pin(async move { receive(conn, &no, now, &core).await })
    });
    let received = received.await?;
    core.ring();
    Ok(received)
}

/// Receiving inside a transaction; also what the detector does for rows that others wrote.
async fn receive(conn: &mut Conn, return_no: &str, now: i64, core: &Core) -> store::Result<Decision<Received>> {
    let Some(seen) = return_order::find(conn, return_no).await? else {
        return Ok(Decision::Rollback(Received::Unknown));
    };
    // The order before the return (R19); a return never changes its order.
    let order = match &seen.order_no {
        Some(no) => order::lock(conn, no).await?,
        None => None,
    };
    let Some(current) = return_order::lock(conn, return_no).await? else {
        return Ok(Decision::Rollback(Received::Unknown));
    };
    if current.is_tasked {
        return Ok(Decision::Rollback(Received::AlreadyReceived));
    }
    write_tasks(conn, &current, order.as_ref(), now, core).await?;
    if return_order::mark_received(conn, current.id, now).await? != 1 {
        return Err(store::Error::broken(format!("return {return_no} moved under its lock")));
    }
    // Somebody else had set it to received; only its tasks were missing.
    Ok(Decision::Commit(if current.is_received { Received::AlreadyReceived } else { Received::Received }))
}

/// One task per restocked line. What can't be right, because the order never paid for it, goes to a person.
async fn write_tasks(conn: &mut Conn, of: &Return, order: Option<&Order>, now: i64, core: &Core) -> store::Result<()> {
    let items = return_order::items(conn, &of.return_no).await?;
    let mut goods = match order {
        Some(order) => Some(Goods::of(conn, order, of.id).await?),
        // An order nobody knows: its goods were never counted as sold here.
        None => None,
    };
    let (mut new, mut wrong) = (Vec::new(), BTreeMap::new());
    for item in items {
        let problem = goods.as_mut().and_then(|goods| goods.take(&item).err());
        if !item.restock {
            continue;
        }
        let ledger_id = goods.as_ref().and_then(|goods| goods.ledger_of(&item.key));
        if let Some(problem) = problem {
            wrong.insert(source::return_line(item.line), problem);
        }
        new.push(NewTask {
            order_no: order.map_or_else(String::new, |order| order.order_no.clone()),
            source: source::return_line(item.line),
            round: 1,
            action: Action::ReturnIn.code(),
            resource: ResourceType::Stock.code(),
            key: item.key,
            qty: item.qty,
            ledger_id,
            lane: core.policy.homes.lane(ResourceType::Stock),
            return_no: of.return_no.clone(),
        });
    }
    task::insert(conn, &new, now).await?;
    if new.is_empty() || order.is_none() {
        return Ok(());
    }
    let tasks = own_tasks(conn, &of.return_no).await?;
    refuse(conn, &tasks, wrong, now, core).await?;
    let ids: Vec<i64> = tasks.iter().map(|task| task.id).collect();
    let waiting = return_order::unsettled(conn, &ids).await?;
    return_order::set_aside(conn, &waiting).await
}

/// The tasks of a return, by id. An order may have the same number.
pub async fn own_tasks(conn: &mut Conn, return_no: &str) -> store::Result<Vec<Task>> {
    let tasks = task::of_ref(conn, return_no).await?;
    Ok(tasks.into_iter().filter(|task| task.return_no == return_no).collect())
}

/// Fails the tasks of lines that can't be right, so that a person sees them and nothing is dropped.
async fn refuse(
    conn: &mut Conn,
    tasks: &[Task],
    wrong: BTreeMap<String, String>,
    now: i64,
    core: &Core,
) -> store::Result<()> {
    let kind = FailureKind::StateMismatch;
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    for task in tasks {
        let Some(problem) = wrong.get(&task.source) else { continue };
        counts.add(counters::FAILED, format!("{}/{kind}", task.resource), 1);
        failures.push(core_task::failed(&Due::of(task), kind, problem.clone(), now, &core.policy));
    }
    task::fail(conn, &failures, now, "worker:returns").await?;
    counter::append(conn, &counts, now).await
}

/// What of an order's goods may still come back.
struct Goods {
    status: OrderStatus,
    /// By key: paid for and not yet returned.
    left: BTreeMap<String, i64>,
    /// By key: the row that the goods were sold from, retired or not.
    ledgers: BTreeMap<String, Option<i64>>,
}

impl Goods {
    /// Counted against the order's settle tasks, run or not, less the returns before `return_id`. The order is
    /// locked; its tasks are locked here.
    async fn of(conn: &mut Conn, order: &Order, return_id: i64) -> store::Result<Self> {
        let mut goods = Self { status: order.status, left: BTreeMap::new(), ledgers: BTreeMap::new() };
        let tasks = task::lock_of_ref(conn, &order.order_no).await?;
        let settles = tasks.iter().filter(|task| {
            task.action == Action::Settle
                && task.resource == ResourceType::Stock
                && task.status != TaskStatus::Superseded
        });
        for settle in settles {
            *goods.left.entry(settle.key.clone()).or_default() += settle.qty;
            // By id: the latest round comes last.
            goods.ledgers.insert(settle.key.clone(), settle.ledger_id);
        }
        for (key, qty) in return_order::returned_before(conn, &order.order_no, return_id).await? {
            *goods.left.entry(key).or_default() -= qty;
        }
        Ok(goods)
    }

    fn is_paid(&self) -> bool {
        matches!(self.status, OrderStatus::Paid | OrderStatus::Completed)
    }

    fn left(&self, key: &str) -> i64 {
        if self.is_paid() { self.left.get(key).copied().unwrap_or(0).max(0) } else { 0 }
    }

    fn ledger_of(&self, key: &str) -> Option<i64> {
        self.ledgers.get(key).copied().flatten()
    }

    /// Takes a line's goods off what is left, or says why that can't be.
    fn take(&mut self, item: &Item) -> std::result::Result<(), String> {
        if !self.is_paid() {
            return Err(format!("the order is {}: nothing of it was paid for", self.status));
        }
        let left = self.left(&item.key);
        if item.qty > left {
            return Err(format!(
                "{} of {} come back; the order paid for {left} that had not come back",
                item.qty, item.key
            ));
        }
        if let Some(has) = self.left.get_mut(&item.key) {
            *has -= item.qty;
        }
        Ok(())
    }
}

/// Where a return stands, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    Accepted,
    Received,
    /// Received, and all its tasks are done.
    Completed,
}

impl Stands {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Received => "received",
            Self::Completed => "completed",
        }
    }
}

pub fn stands(of: &Return, tasks: &[Task]) -> Stands {
    let is_owed = |task: &Task| task.status.is_unfinished() || task.is_owed;
    match () {
        () if !of.is_received => Stands::Accepted,
        () if !of.is_tasked || tasks.iter().any(is_owed) => Stands::Received,
        () => Stands::Completed,
    }
}

/// A return with its lines and tasks.
#[derive(Clone, Debug)]
pub struct ReturnInFull {
    pub row: Return,
    pub items: Vec<Item>,
    pub tasks: Vec<Task>,
}

/// One return with everything about it.
pub async fn find(conn: &mut Conn, return_no: &str) -> store::Result<Option<ReturnInFull>> {
    let Some(row) = return_order::find(conn, return_no).await? else { return Ok(None) };
    Ok(Some(in_full(conn, row).await?))
}

/// The returns of an order, oldest first.
pub async fn of_order(conn: &mut Conn, order_no: &str) -> store::Result<Vec<ReturnInFull>> {
    let mut all = Vec::new();
    for row in return_order::of_order(conn, order_no).await? {
        all.push(in_full(conn, row).await?);
    }
    Ok(all)
}

async fn in_full(conn: &mut Conn, row: Return) -> store::Result<ReturnInFull> {
    let items = return_order::items(conn, &row.return_no).await?;
    let tasks = own_tasks(conn, &row.return_no).await?;
    Ok(ReturnInFull { row, items, tasks })
}
