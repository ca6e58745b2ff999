//! Fills an empty database with a queue of a given shape, in chunks, so that memory stays small.

use std::collections::HashMap;

use super::What;
use crate::core::{Core, Result};
use crate::store::Decision;
use crate::store::load::{self, Line};

#[derive(Clone, Debug)]
pub struct Shape {
    /// Tasks to release, or orders to close (with three holds each).
    pub tasks: i64,
    pub keys: i64,
    /// 80 % on 5 keys.
    pub is_hot: bool,
    /// Share of tasks whose ledger row lacks what they give back.
    pub lacking_percent: f64,
    /// Finished tasks that lie in the table already.
    pub finished: i64,
}

const CHUNK: i64 = 1000;
const HOLDS_TO_CLOSE: i64 = 3;

/// The same line for the same number each time, spread by a multiplicative hash.
fn spread(n: i64) -> i64 {
    let mixed = (n.unsigned_abs() ^ 0x9e37_79b9).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    i64::try_from(mixed >> 33).unwrap_or(0)
}

impl Shape {
    fn line(&self, what: What, n: i64) -> Line {
        let per_order = if what == What::Close { HOLDS_TO_CLOSE } else { 1 };
        let (order, within) = (n / per_order, n % per_order);
        let lacks = what == What::Release && ((spread(n ^ 0x55) % 10_000) as f64) < self.lacking_percent * 100.0;
        if lacks {
            // A key of its own, after all others, of which nothing is locked.
            return Line { order, key: self.keys + 1, is_locked: false };
        }
        let hot = self.is_hot && spread(n ^ 0x2a) % 100 < 80;
        // Lines of one order name different keys.
        let key = if what == What::Close {
            let span = (if hot { 6 } else { self.keys }) / HOLDS_TO_CLOSE;
            within * span.max(1) + spread(n) % span.max(1)
        } else if hot {
            spread(n) % 5
        } else {
            spread(n) % self.keys
        };
        Line { order, key: key + 1, is_locked: true }
    }
}

pub(super) async fn fill(core: &Core, what: What, shape: &Shape) -> Result<()> {
    let (per_order, now) = (if what == What::Close { HOLDS_TO_CLOSE } else { 1 }, core.now());
    let lines = shape.tasks * per_order;
    let mut sums: HashMap<i64, i64> = (1..=shape.keys + 1).map(|key| (key, 0)).collect();
    for n in 0..lines {
        let line = shape.line(what, n);
        *sums.entry(line.key).or_default() += i64::from(line.is_locked);
    }
    let mut keys: Vec<(i64, i64)> = sums.into_iter().collect();
    keys.sort_unstable();
    for chunk in keys.chunks(CHUNK as usize) {
        let chunk = chunk.to_vec();
        core.db
            .write(move |conn| {
                let chunk = chunk.clone();
                Box::pin(async move { Ok(Decision::Commit(load::ledgers(conn, &chunk, now).await?)) })
            })
            .await?;
    }
    for from in (0..shape.finished).step_by(CHUNK as usize) {
        let to = (from + CHUNK).min(shape.finished);
        core.db
            .write(move |conn| {
                Box::pin(async move { Ok(Decision::Commit(load::finished(conn, from, to, now - 86_400_000).await?)) })
            })
            .await?;
    }
    for from in (0..shape.tasks).step_by(CHUNK as usize) {
        let to = (from + CHUNK).min(shape.tasks);
        let lines: Vec<Line> = (from * per_order..to * per_order).map(|n| shape.line(what, n)).collect();
        core.db
            .write(move |conn| {
                let lines = lines.clone();
                Box::pin(async move {
                    load::orders(conn, from, to, what == What::Release, now).await?;
                    load::lines(conn, &lines, what == What::Release, now).await?;
                    Ok(Decision::Commit(()))
                })
            })
            .await?;
    }
    load::analyze(&core.db).await?;
    Ok(())
}
