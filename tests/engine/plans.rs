//! B7: what is looked for again and again is found in an index of open rows only, however many rows have ended.

use handback::store::{Decision, asking, load, order, task};
use serde_json::Value;

use crate::support::database::{Engine, TestDb, on_every_engine};
use crate::support::shop::{START_MS, Shop};

/// Orders and tasks that have ended.
const ENDED: i64 = 20_000;
/// Orders and tasks that are open.
const OPEN: i64 = 50;

on_every_engine!(b7_looking_for_what_is_due_reads_nothing_that_has_ended);

async fn b7_looking_for_what_is_due_reads_nothing_that_has_ended(db: TestDb) {
    let shop = Shop::open(&db).await;
    let filled = shop.core.db.write(|conn| {
        Box::pin(async move {
            load::ledgers(conn, &[(1, OPEN)], START_MS).await?;
            for from in (0..ENDED).step_by(5_000) {
                load::orders(conn, from, from + 5_000, true, START_MS).await?;
                load::finished(conn, from, from + 5_000, START_MS).await?;
            }
            load::orders(conn, ENDED, ENDED + OPEN, false, START_MS).await?;
            let lines: Vec<_> =
                (ENDED..ENDED + OPEN).map(|order| load::Line { order, key: 1, is_locked: true }).collect();
            load::lines(conn, &lines, true, START_MS).await?;
            Ok(Decision::Commit(()))
        })
    });
    filled.await.unwrap();
    load::analyze(&shop.core.db).await.unwrap();
    let looks = [
        ("idx_orders_due", order::DUE_LOOK.to_owned()),
        ("idx_orders_ask", asking::DUE_LOOK.to_owned()),
        ("idx_task_open", task::due_look()),
    ];
    for (index, look) in looks {
        let look = look.replace("$1", &(START_MS + 1).to_string()).replace("$2", "1000");
        let plan = plan(&db, &look).await;
        assert!(plan.contains(index), "{look}: {plan}");
        if db.engine == Engine::Mariadb {
            let plan: Value = serde_json::from_str(&plan).unwrap();
            let read = most_rows(&plan);
            assert!(read <= OPEN * 10, "{read} rows would be read: {plan}");
        }
    }
}

async fn plan(db: &TestDb, sql: &str) -> String {
    match db.engine {
        Engine::Sqlite => db.plan_of_sqlite(sql).await,
        Engine::Postgres => db.texts(&format!("EXPLAIN {sql}")).await.join("\n"),
        Engine::Mariadb => db.texts(&format!("EXPLAIN FORMAT=JSON {sql} FOR UPDATE SKIP LOCKED")).await.join("\n"),
    }
}

/// The largest number of rows that a step of the plan expects to read.
fn most_rows(plan: &Value) -> i64 {
    match plan {
        Value::Object(fields) => {
            let own = fields.get("rows").and_then(Value::as_i64).unwrap_or(0);
            fields.values().map(most_rows).fold(own, i64::max)
        }
        Value::Array(steps) => steps.iter().map(most_rows).max().unwrap_or(0),
        _ => 0,
    }
}
