//! Accepting a return: the line that keeps more from coming back than was paid for. Lines of the same key add up.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Goods;
use crate::core::text::{self, FieldError};
use crate::core::{Core, Error, Result};
use crate::store::return_order::{Item, NewReturn};
use crate::store::{self, Conn, Decision, order, return_order};

/// A return as its caller tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub return_no: String,
    /// `None`: the goods were sold elsewhere.
    pub order_no: Option<String>,
    pub items: Vec<ToldItem>,
    /// What was sent, as it came.
    pub raw: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldItem {
    pub key: String,
    /// A line of 0 makes no task.
    pub qty: i64,
    /// Goes back on sale.
    pub restock: bool,
}

/// More is to come back than the order paid for and has not yet returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    pub key: String,
    pub qty: i64,
    pub left: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    Accepted,
    /// The same return with the same content is there already.
    Same,
    /// Another return has this number.
    Exists,
    UnknownOrder,
    OverReturn(Vec<Over>),
}

/// Accepts a return. A repeat with the same content answers [`Accepted::Same`] and changes nothing.
///
/// # Errors
/// `Invalid` names every field that can't be taken.
pub async fn accept_return(core: &Core, told: Told) -> Result<Accepted> {
    let items = check(&told).map_err(Error::Invalid)?;
    let now = core.now();
    let work = Arc::new((told, items));
    let accepted = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { accept(conn, &work.0, &work.1, now).await })
    });
    Ok(accepted.await?)
}

async fn accept(conn: &mut Conn, told: &Told, items: &[Item], now: i64) -> store::Result<Decision<Accepted>> {
    let order = match &told.order_no {
        None => None,
        Some(no) => match order::lock(conn, no).await? {
            Some(order) => Some(order),
            None => return Ok(Decision::Rollback(Accepted::UnknownOrder)),
        },
    };
    let new = NewReturn {
        return_no: &told.return_no,
        order_no: told.order_no.as_deref(),
        raw: Some(&told.raw),
        origin: None,
        accepted_at: now,
    };
    let is_new = return_order::insert(conn, &new).await?;
    let Some(row) = return_order::lock(conn, &told.return_no).await? else {
        return Err(store::Error::new(store::Class::Transient, "the return's row went away"));
    };
    if !is_new {
        let known = return_order::items(conn, &told.return_no).await?;
        let is_same = row.order_no == told.order_no && summed(&known) == summed(items);
        return Ok(Decision::Rollback(if is_same { Accepted::Same } else { Accepted::Exists }));
    }
    if let Some(order) = &order {
        let goods = Goods::of(conn, order, row.id).await?;
        let over = over(&goods, items);
        if !over.is_empty() {
            return Ok(Decision::Rollback(Accepted::OverReturn(over)));
        }
    }
    return_order::insert_items(conn, &told.return_no, items).await?;
    Ok(Decision::Commit(Accepted::Accepted))
}

fn over(goods: &Goods, items: &[Item]) -> Vec<Over> {
    let mut wanted: BTreeMap<&str, i64> = BTreeMap::new();
    for item in items {
        *wanted.entry(&item.key).or_default() += item.qty;
    }
    let over = wanted.into_iter().map(|(key, qty)| Over { key: key.to_owned(), qty, left: goods.left(key) });
    over.filter(|over| over.qty > over.left).collect()
}

/// What makes two returns the same, whatever the order of their lines.
fn summed(items: &[Item]) -> BTreeMap<(&str, bool), i64> {
    let mut sums = BTreeMap::new();
    for item in items {
        *sums.entry((item.key.as_str(), item.restock)).or_default() += item.qty;
    }
    sums
}

/// Checks every field; lines are numbered from 1 as they came, those of 0 are left out.
fn check(told: &Told) -> std::result::Result<Vec<Item>, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut say = |field: String, result: std::result::Result<(), String>| {
        errors.extend(result.err().map(|message| FieldError::new(&field, message)));
    };
    say("return_no".into(), text::check_text(&told.return_no, text::NUMBER_MAX));
    if let Some(order_no) = &told.order_no {
        say("order_no".into(), text::check_text(order_no, text::NUMBER_MAX));
    }
    if told.items.is_empty() || told.items.len() > text::HOLDS_MAX {
        say("items".into(), Err(format!("must have 1 to {} entries, has {}", text::HOLDS_MAX, told.items.len())));
    }
    let mut items = Vec::new();
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for (at, item) in told.items.iter().take(text::HOLDS_MAX).enumerate() {
        say(format!("items[{at}].key"), text::check_text(&item.key, text::KEY_MAX));
        let in_range = text::check_range(item.qty, 0, text::QTY_MAX);
        let is_good = in_range.is_ok();
        say(format!("items[{at}].qty"), in_range);
        if !is_good || item.qty == 0 {
            continue;
        }
        let sum = sums.entry(&item.key).or_default();
        *sum += item.qty;
        if *sum > text::QTY_MAX {
            say(format!("items[{at}].qty"), Err(format!("adds up to more than {} for this key", text::QTY_MAX)));
        }
        items.push(Item { line: at as i64 + 1, key: item.key.clone(), qty: item.qty, restock: item.restock });
    }
    if errors.is_empty() { Ok(items) } else { Err(errors) }
}
