//! Placing an order locks what it names, inline and all or nothing: the buyer needs the answer. The order row
//! is inserted first (R19), so the unique number decides against a twin and against a tombstone (R15).

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::core::order::pay;
use crate::core::policy::Homes;
use crate::core::text::{self, FieldError};
use crate::core::words::{Action, Actor, FundsKind, OrderStatus, PaymentStatus, ResourceType, source};
use crate::core::{Core, Error, Result, counters};
use crate::store::counter::Counts;
use crate::store::flow::NewFlow;
use crate::store::ledger::{Change, Key, Ledger, Terms};
use crate::store::order::{Hold, Order};
use crate::store::payment::Payment;
use crate::store::{self, Conn, Decision, counter, flow, order, payment, rows, task};

/// One thing to lock. Two lines of the same type and key add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewHold {
    pub resource: ResourceType,
    pub key: String,
    pub qty: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrder {
    pub order_no: String,
    pub buyer: String,
    /// Minor units. 0 is paid at once.
    pub amount: i64,
    pub currency: String,
    pub holds: Vec<NewHold>,
    /// Seconds; the configured time when not given.
    pub pay_within_s: Option<i64>,
    /// For display: a JSON list.
    pub lines: Option<String>,
}

/// Something an order wants and can't have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    pub resource: ResourceType,
    pub key: String,
    pub qty: i64,
    pub available: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    Placed,
    /// The same order with the same content is there already; it may have moved on since.
    Same,
    /// Another order has this number.
    Exists,
    /// The number was closed before its order came.
    Tombstone,
    Lacking(Vec<Lacking>),
}

/// Places an order: order, holds, lock flows and ledger figures in one transaction, or nothing at all.
///
/// A repeat with the same content answers [`Placed::Same`] and changes nothing.
///
/// # Errors
/// `Invalid` names every field that can't be taken.
pub async fn place_order(core: &Core, actor: &Actor, new: NewOrder) -> Result<Placed> {
    let wanted = check(&new).map_err(Error::Invalid)?;
    let now = core.now();
    let pay_within_s = new.pay_within_s.unwrap_or(core.policy.pay_within_s);
    let deadline = now + pay_within_s * 1000;
    let row = Order {
        id: 0,
        content: content(&new, &wanted),
        order_no: new.order_no,
        buyer: new.buyer,
        amount: new.amount,
        currency: new.currency,
        status: OrderStatus::Pending,
        round: 1,
        pay_within_s,
        placed_at: now,
        pay_deadline: deadline,
        due_at: Some(deadline),
        paid_at: None,
        closed_at: None,
        close_reason: None,
        closed_by: None,
        close_trigger: None,
        payment_seen: false,
        tombstone_until: None,
        lines: new.lines,
        asking: false,
        asked: 0,
        late_payment: None,
        version: 0,
    };
    let work = Arc::new((row, wanted, new.pay_within_s.is_some(), actor.to_string(), core.clone()));
    let placed = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { place(conn, &work.0, &work.1, work.2, &work.3, &work.4).await })
    });
    let placed = placed.await?;
    core.ring();
    Ok(placed)
}

type Wanted = BTreeMap<(ResourceType, String), i64>;

async fn place(
    conn: &mut Conn,
    row: &Order,
    wanted: &Wanted,
    compares_time: bool,
    actor: &str,
    core: &Core,
) -> store::Result<Decision<Placed>> {
    if !order::insert(conn, row).await? {
        let Some(known) = order::find(conn, &row.order_no).await? else {
            // Gone between the two statements (a tombstone that ran out): start again.
            return Err(store::Error::new(store::Class::Transient, "the order's row went away"));
        };
        let same = known.content == row.content && (!compares_time || known.pay_within_s == row.pay_within_s);
        return Ok(Decision::Rollback(match () {
            () if known.is_tombstone() => Placed::Tombstone,
            () if same => Placed::Same,
            () => Placed::Exists,
        }));
    }
    // Payments and tasks before ledger rows (R19).
    let early = payment::lock_of_order(conn, &row.order_no).await?;
    let homes = &core.policy.homes;
    let tasks = task::lock_of_ref(conn, &row.order_no).await?;
    let is_on_its_way =
        |task: &task::Task| !task.status.is_unfinished() || homes.is_remote(task.resource) && task.is_adopted;
    if tasks.iter().any(|task| task.action == Action::Release && is_on_its_way(task)) {
        // A shop's own row was worked off before, or is with its service: the release came before its lock (R15).
        return Ok(Decision::Rollback(Placed::Tombstone));
    }
    // What a service keeps was locked there by the shop: it is only put on record here.
    let here = wanted.keys().filter(|(resource, _)| !homes.is_remote(*resource));
    let keys: Vec<Key> = here.map(|(resource, key)| Key { resource: *resource, key: key.clone() }).collect();
    let locked = if keys.is_empty() { rows::Locked::default() } else { rows::lock_keys(conn, &keys).await? };
    let plan = match plan(row, wanted, &locked.rows, homes) {
        Ok(plan) => plan,
        Err(lacking) => return Ok(Decision::Rollback(Placed::Lacking(lacking))),
    };
    if !plan.holds.is_empty() {
        order::insert_holds(conn, &plan.holds).await?;
    }
    if !plan.flows.is_empty() {
        if !flow::insert(conn, &plan.flows, row.placed_at, actor).await? {
            return Err(store::Error::broken(format!("order {} has lock rows but no order row", row.order_no)));
        }
        locked.apply(conn, &plan.changes, &plan.terms, row.placed_at).await?;
    }
    let mut counts = Counts::default();
    counts.add(counters::PLACED, "", 1);
    pay_at_once(conn, row, early, &mut counts, core).await?;
    counter::append(conn, &counts, row.placed_at).await?;
    Ok(Decision::Commit(Placed::Placed))
}

/// An order of amount 0, or whose payment came before it, is paid as it is placed (R9).
async fn pay_at_once(
    conn: &mut Conn,
    row: &Order,
    early: Vec<Payment>,
    counts: &mut Counts,
    core: &Core,
) -> store::Result<()> {
    if early.is_empty() && row.amount > 0 {
        return Ok(());
    }
    for payment in early.iter().filter(|p| p.status == PaymentStatus::Unmatched) {
        payment::move_on(conn, payment.id, PaymentStatus::Unmatched, PaymentStatus::Recorded, row.placed_at).await?;
    }
    let payments = if early.is_empty() { early } else { payment::lock_of_order(conn, &row.order_no).await? };
    let Some(order) = order::lock(conn, &row.order_no).await? else {
        return Err(store::Error::broken("an order just inserted is not there"));
    };
    if let Some(matching) = pay::matching(&order, &payments) {
        pay::make_paid(conn, &order, Some(matching), &payments, row.placed_at, counts, core).await?;
    } else if order.amount == 0 {
        pay::make_paid(conn, &order, None, &payments, row.placed_at, counts, core).await?;
    }
    Ok(())
}

struct Plan {
    holds: Vec<Hold>,
    flows: Vec<NewFlow>,
    changes: Vec<Change>,
    terms: Vec<Terms>,
}

/// What locking these rows changes, or what is lacking. Pure: rows were read under lock.
fn plan(order: &Order, wanted: &Wanted, rows: &[Ledger], homes: &Homes) -> std::result::Result<Plan, Vec<Lacking>> {
    let mut plan = Plan { holds: Vec::new(), flows: Vec::new(), changes: Vec::new(), terms: Vec::new() };
    let mut lacking = Vec::new();
    for ((resource, key), qty) in wanted {
        let hold = |ledger_id| Hold {
            order_no: order.order_no.clone(),
            round: order.round,
            resource: *resource,
            key: key.clone(),
            ledger_id,
            locked: *qty,
        };
        if homes.is_remote(*resource) {
            plan.holds.push(hold(None));
            continue;
        }
        let row = rows.iter().find(|row| row.resource == *resource && row.key == *key);
        let available = row.map_or(0, |row| lockable(row, order));
        let Some(row) = row.filter(|_| available >= *qty) else {
            lacking.push(Lacking { resource: *resource, key: key.clone(), qty: *qty, available });
            continue;
        };
        plan.holds.push(hold(Some(row.id)));
        plan.flows.push(NewFlow {
            ledger_id: Some(row.id),
            resource: resource.code(),
            key: key.clone(),
            action: Action::Lock.code(),
            qty: *qty,
            ref_no: order.order_no.clone(),
            source: source::PLACE.into(),
            round: order.round,
            task_id: None,
            bearer: row.issuer.clone(),
            available_after: row.available - qty,
            locked_after: row.locked + qty,
            sold_after: row.sold,
            reason: None,
        });
        plan.changes.push(Change { id: row.id, available: -qty, locked: *qty, sold: 0 });
        if resource.is_single() {
            plan.terms.push(Terms {
                holder_no: Some(order.order_no.clone()),
                holder_round: Some(order.round),
                ..Terms::of(row)
            });
        }
    }
    if lacking.is_empty() { Ok(plan) } else { Err(lacking) }
}

/// How much of a row this order may lock: nothing of a coupon or points account past its end, nor of
/// somebody else's coupon.
fn lockable(row: &Ledger, order: &Order) -> i64 {
    let runs_out = row.resource == ResourceType::Coupon || row.kind == Some(FundsKind::Points);
    let is_others = row.owner.as_ref().is_some_and(|owner| *owner != order.buyer);
    if (runs_out && row.has_run_out(order.placed_at)) || is_others { 0 } else { row.available }
}

/// Checks every field; adds up lines of the same key. A line of 0 makes no hold.
fn check(new: &NewOrder) -> std::result::Result<Wanted, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut say = |field: &str, result: std::result::Result<(), String>| {
        if let Err(message) = result {
            errors.push(FieldError::new(field, message));
        }
    };
    say("order_no", text::check_text(&new.order_no, text::NUMBER_MAX));
    say("buyer", text::check_text(&new.buyer, text::KEY_MAX));
    say("amount", text::check_range(new.amount, 0, text::AMOUNT_MAX));
    say("currency", text::check_currency(&new.currency));
    if let Some(seconds) = new.pay_within_s {
        say("pay_within_s", text::check_range(seconds, 1, text::PAY_WITHIN_MAX_S));
    }
    if new.holds.len() > text::HOLDS_MAX {
        say("holds", Err(format!("must have at most {} entries, has {}", text::HOLDS_MAX, new.holds.len())));
    }
    let mut wanted = Wanted::new();
    for (at, hold) in new.holds.iter().take(text::HOLDS_MAX).enumerate() {
        say(&format!("holds[{at}].key"), text::check_text(&hold.key, text::KEY_MAX));
        if hold.resource == ResourceType::Payment {
            say(&format!("holds[{at}].type"), Err("must be stock, coupon, funds, quota or slot".into()));
        }
        let most = if hold.resource.is_single() { 1 } else { text::QTY_MAX };
        let in_range = text::check_range(hold.qty, 0, most);
        let is_good = in_range.is_ok();
        say(&format!("holds[{at}].qty"), in_range);
        if is_good && hold.qty > 0 {
            let sum = wanted.entry((hold.resource, hold.key.clone())).or_default();
            *sum += hold.qty;
            let total = *sum;
            if hold.resource.is_single() && total > 1 {
                say(&format!("holds[{at}].key"), Err(format!("names the same {} twice", hold.resource)));
            } else if total > text::QTY_MAX {
                say(&format!("holds[{at}].qty"), Err(format!("adds up to more than {} for this key", text::QTY_MAX)));
            }
        }
    }
    if errors.is_empty() { Ok(wanted) } else { Err(errors) }
}

/// A digest of what makes two placings the same: buyer, amount, currency, summed holds.
fn content(new: &NewOrder, wanted: &Wanted) -> String {
    let holds: Vec<(i64, &str, i64)> = wanted.iter().map(|((t, key), qty)| (t.code(), key.as_str(), *qty)).collect();
    let text = serde_json::json!([new.buyer, new.amount, new.currency, holds]).to_string();
    hex::encode(Sha256::digest(text.as_bytes()))
}
