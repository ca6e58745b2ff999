//! The rules of the model as queries: how many rows a rule is about, and how many break it.

use super::conn::{Conn, RowExt as _};
use super::db::Result;

pub struct Query {
    pub rule: &'static str,
    /// How many rows the rule is about.
    pub all: &'static str,
    /// How many break it. `{sum:x}` is a sum as a whole number.
    pub broken: &'static str,
}

/// Task and flow row of the same effect.
macro_rules! same_effect {
    () => {
        "f.ref_no = t.ref_no AND f.source = t.source AND f.round = t.round AND f.action = t.action AND f.resource_type = t.resource_type AND f.biz_key = t.biz_key"
    };
}

pub const QUERIES: &[Query] = &[
    Query {
        rule: "R1",
        all: "SELECT COUNT(*) FROM ledger",
        broken: "SELECT COUNT(*) FROM ledger l WHERE l.available < 0 OR l.locked < 0 OR l.sold < 0 OR (l.resource_type IN (2, 5) AND l.available + l.locked + l.sold <> 1)",
    },
    Query {
        // The ledger equals the sum of its flow rows.
        rule: "R2",
        all: "SELECT COUNT(*) FROM resource_flow",
        broken: "SELECT COUNT(*) FROM ledger l LEFT JOIN (SELECT ledger_id, \
                 {sum:CASE action WHEN 0 THEN -qty WHEN 3 THEN -qty WHEN 1 THEN qty WHEN 4 THEN qty WHEN 6 THEN qty ELSE 0 END} AS a, \
                 {sum:CASE action WHEN 0 THEN qty WHEN 3 THEN qty WHEN 1 THEN -qty WHEN 2 THEN -qty WHEN 7 THEN qty ELSE 0 END} AS l, \
                 {sum:CASE WHEN action = 2 THEN qty WHEN action = 4 AND COALESCE(note, '') <> 'sold elsewhere' THEN -qty ELSE 0 END} AS s \
                 FROM resource_flow GROUP BY ledger_id) f ON f.ledger_id = l.id \
                 WHERE l.available <> COALESCE(f.a, 0) OR l.locked <> COALESCE(f.l, 0) OR l.sold <> COALESCE(f.s, 0)",
    },
    Query {
        rule: "R3",
        all: "SELECT COUNT(*) FROM order_release_task",
        broken: "SELECT COUNT(*) FROM (SELECT 1 AS x FROM order_release_task GROUP BY ref_no, source, round, action, resource_type, biz_key HAVING COUNT(*) > 1) d",
    },
    Query {
        // No hold is settled and released for more than it locked.
        rule: "R4",
        all: "SELECT COUNT(*) FROM hold",
        broken: "SELECT COUNT(*) FROM (SELECT h.locked AS locked, {sum:t.qty} AS spoken FROM hold h JOIN order_release_task t ON t.ref_no = h.order_no \
                 AND t.round = h.round AND t.resource_type = h.resource_type AND t.biz_key = h.biz_key AND t.action IN (1, 2) AND t.status <> 5 \
                 AND (t.adopted = 1 OR t.status NOT IN (0, 2, 3)) AND COALESCE(t.outcome, 1) <> 3 \
                 GROUP BY h.order_no, h.round, h.resource_type, h.biz_key, h.locked) x WHERE x.spoken > x.locked",
    },
    Query {
        // A task succeeded exactly when its effect exists.
        rule: "R5",
        all: "SELECT COUNT(*) FROM order_release_task",
        broken: concat!(
            "SELECT (SELECT COUNT(*) FROM order_release_task t WHERE t.status = 1 AND COALESCE(t.outcome, 1) <> 3 AND NOT EXISTS (SELECT 1 FROM resource_flow f WHERE ",
            same_effect!(),
            ")) + (SELECT COUNT(*) FROM order_release_task t WHERE t.open_lane >= 0 AND t.next_at IS NOT NULL AND t.status IN (0, 2, 3) AND EXISTS (SELECT 1 FROM resource_flow f WHERE ",
            same_effect!(),
            "))"
        ),
    },
    Query {
        // Every closed order has a task for all that its holds had left.
        rule: "R6",
        all: "SELECT COUNT(*) FROM orders WHERE status = 3 AND tombstone_until IS NULL",
        broken: "SELECT COUNT(*) FROM orders o JOIN hold h ON h.order_no = o.order_no AND h.round = o.round WHERE o.status = 3 AND o.tombstone_until IS NULL \
                 AND h.locked <> (SELECT {sum:t.qty} FROM order_release_task t WHERE t.ref_no = h.order_no AND t.round = h.round AND t.resource_type = h.resource_type \
                 AND t.biz_key = h.biz_key AND t.action IN (1, 2) AND t.status <> 5)",
    },
    Query {
        // An order is open exactly while the scan may look at it, and no open order has a payment seen.
        rule: "R7",
        all: "SELECT COUNT(*) FROM orders",
        broken: "SELECT COUNT(*) FROM orders WHERE (status = 0 AND (due_at IS NULL OR payment_seen <> 0)) OR (status <> 0 AND due_at IS NOT NULL) OR (status IN (1, 2) AND payment_seen = 0)",
    },
    Query {
        // A paid order has no release caused by a close in its current round.
        rule: "R8",
        all: "SELECT COUNT(*) FROM orders WHERE status IN (1, 2)",
        broken: "SELECT COUNT(*) FROM orders o JOIN resource_flow f ON f.ref_no = o.order_no AND f.round = o.round WHERE o.status IN (1, 2) AND f.action = 1 AND (f.source = 'close' OR f.source LIKE 'repair:%')",
    },
    Query {
        // An applied payment belongs to an order that is paid, and to no other.
        rule: "R9",
        all: "SELECT COUNT(*) FROM payment",
        broken: "SELECT COUNT(*) FROM payment p LEFT JOIN orders o ON o.order_no = p.order_no WHERE p.status = 3 AND COALESCE(o.status, -1) NOT IN (1, 2)",
    },
    Query {
        // A locked coupon or slot is held by an order and round that has it on hold.
        rule: "R16",
        all: "SELECT COUNT(*) FROM ledger WHERE resource_type IN (2, 5)",
        broken: "SELECT COUNT(*) FROM ledger l WHERE l.resource_type IN (2, 5) AND ((l.locked = 1 AND NOT EXISTS (SELECT 1 FROM hold h WHERE h.ledger_id = l.id \
                 AND h.order_no = l.holder_no AND h.round = l.holder_round)) OR (l.available = 1 AND l.holder_no IS NOT NULL))",
    },
    Query {
        // A force-closed task that a flow row names is owed no more.
        rule: "R21",
        all: "SELECT COUNT(*) FROM order_release_task WHERE status = 4",
        broken: "SELECT COUNT(*) FROM order_release_task t WHERE t.status = 4 AND t.next_at IS NOT NULL AND EXISTS (SELECT 1 FROM resource_flow f WHERE f.task_id = t.id)",
    },
];

/// Runs one rule: (looked at, broken).
pub async fn run(conn: &mut Conn, query: &Query) -> Result<(i64, i64)> {
    let checked = conn.stmt(query.all).int().await?;
    let sql = with_sums(conn, query.broken);
    let row = conn.built(sql).row().await?;
    let broken = row.map(|row| row.int(0)).transpose()?.unwrap_or(0);
    Ok((checked, broken))
}

/// Writes `{sum:x}` as the engine wants it.
fn with_sums(conn: &Conn, text: &str) -> String {
    let mut sql = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{sum:") {
        let (of, tail) = after.split_once('}').unwrap_or((after, ""));
        sql.push_str(before);
        sql.push_str(&conn.dialect.sum(of));
        rest = tail;
    }
    sql.push_str(rest);
    sql
}
