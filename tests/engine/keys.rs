//! R17: order numbers and keys are compared byte by byte, on every engine, in every table.

use handback::store::Db;
use sqlx::{AssertSqlSafe, Row};

use crate::support::database::{Engine, TestDb, on_every_engine};

/// Look alike, are not the same: case, accents (composed and not), padding, leading zeros, width,
/// separators, letters outside the basic plane, what other collations fold or ignore.
const TWINS: &[&str] = &[
    "5ab4",
    "5AB4",
    "5ab4 ",
    " 5ab4",
    "05ab4",
    "5áb4",
    "5a\u{301}b4",
    "5ａb4",
    "5ab4\u{200d}",
    "ß",
    "ss",
    "ẞ",
    "İ",
    "i",
    "I",
    "ı",
    "🎟",
    "🎫",
    "券",
    "卷",
    "a/b",
    "a%2Fb",
    "a\\b",
    "a'b",
    "a\"b",
    "a`b",
    "a;b",
    "a b",
    "ab",
    "0",
    "00",
    "-0",
    "1e1",
    "10",
    "null",
    "NULL",
    "_",
    "%",
    "\u{feff}ab",
];

on_every_engine!(r17_keys_that_look_alike_are_different_rows);

async fn r17_keys_that_look_alike_are_different_rows(db: TestDb) {
    Db::open(&db.url, true, 2).await.unwrap().close().await;
    let mark = |n: usize| if db.engine == Engine::Postgres { format!("${n}") } else { "?".to_owned() };
    let mut connection = db.connect().await.unwrap();
    // A shop's row fills order_no, biz_key and the generated ref_no, under one unique key.
    let insert = format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty) VALUES ({}, 1, {}, 1)",
        mark(1),
        mark(2)
    );
    let pairs = TWINS.iter().map(|twin| (*twin, *twin));
    let keys_of_one_order = TWINS.iter().skip(1).map(|twin| (TWINS[0], *twin));
    for (number, key) in pairs.chain(keys_of_one_order) {
        sqlx::query(AssertSqlSafe(insert.as_str()))
            .bind(number)
            .bind(key)
            .execute(&mut connection)
            .await
            .unwrap_or_else(|e| panic!("{number:?}, {key:?}: {e}"));
    }
    let find = format!(
        "SELECT order_no, ref_no, biz_key FROM order_release_task WHERE ref_no = {} AND order_no = {} AND biz_key = {}",
        mark(1),
        mark(2),
        mark(3)
    );
    for number in TWINS {
        let found = sqlx::query(AssertSqlSafe(find.as_str()))
            .bind(*number)
            .bind(*number)
            .bind(*number)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        assert_eq!(found.len(), 1, "{number:?}");
        for column in 0..3 {
            assert_eq!(found[0].try_get::<String, _>(column).unwrap(), *number, "stored as it came");
        }
    }
}

on_every_engine!(r3_the_same_task_twice_is_one_row);

async fn r3_the_same_task_twice_is_one_row(db: TestDb) {
    Db::open(&db.url, true, 2).await.unwrap().close().await;
    let insert = "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty) VALUES ('o1', 1, 's', 1)";
    assert_eq!(db.execute(insert).await.unwrap(), 1);
    db.execute(insert).await.unwrap_err();
    let ignoring = match db.engine {
        Engine::Mariadb => format!("{insert} ON DUPLICATE KEY UPDATE id = id"),
        _ => format!("{insert} ON CONFLICT DO NOTHING"),
    };
    db.execute(&ignoring).await.unwrap();
    assert_eq!(db.execute("DELETE FROM order_release_task").await.unwrap(), 1);
}

on_every_engine!(a_shops_statement_fails_at_once_on_seconds_and_on_now);

async fn a_shops_statement_fails_at_once_on_seconds_and_on_now(db: TestDb) {
    Db::open(&db.url, true, 2).await.unwrap().close().await;
    for (number, time) in [("seconds", "1796000000"), ("digits", "20261130163000"), ("before", "1577836799999")] {
        for column in ["next_at", "created_at"] {
            let insert = format!(
                "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, {column}) \
                 VALUES ('{number}', 1, 's', 1, {time})"
            );
            db.execute(&insert).await.unwrap_err();
        }
    }
    if db.engine == Engine::Mariadb {
        let now = "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at) \
                   VALUES ('now', 1, 's', 1, NOW())";
        db.execute(now).await.unwrap_err();
    }
    assert_eq!(db.execute("DELETE FROM order_release_task").await.unwrap(), 0);
}

on_every_engine!(r1_no_figure_of_a_ledger_can_be_negative);

async fn r1_no_figure_of_a_ledger_can_be_negative(db: TestDb) {
    Db::open(&db.url, true, 2).await.unwrap().close().await;
    db.execute(
        "INSERT INTO ledger (resource_type, biz_key, available, locked, sold, created_at) \
         VALUES (1, 's', 0, 0, 0, 1796000000000)",
    )
    .await
    .unwrap();
    for figure in ["available", "locked", "sold"] {
        db.execute(&format!("UPDATE ledger SET {figure} = {figure} - 1")).await.unwrap_err();
    }
}
