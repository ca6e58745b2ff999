//! The schema is written three times, once per engine. What the three must share is compared here:
//! tables, columns, what may be NULL, unique keys, indices, checks, and the families of types.

use std::collections::{BTreeMap, BTreeSet};

use handback::store::Db;
use sqlx::{AssertSqlSafe, Row};

use crate::support::database::{Engine, TestDb, fresh_database, on_every_engine};

/// Everything of a schema that all engines can say about themselves.
#[derive(Debug, Default, PartialEq, Eq)]
struct Schema {
    /// `table.column` → family of its type, and whether it may be NULL.
    columns: BTreeMap<String, String>,
    /// `table(column, column)` of primary and other unique keys.
    unique: BTreeSet<String>,
    /// `table(column, column)` of the other indices.
    indices: BTreeSet<String>,
    /// Names of check constraints that were given one.
    checks: BTreeSet<String>,
}

#[tokio::test]
async fn the_schemas_of_the_engines_agree() {
    let chosen: Vec<Engine> = Engine::ALL.into_iter().filter(|engine| engine.is_chosen()).collect();
    let mut schemas = Vec::new();
    for engine in chosen {
        let db = fresh_database(engine).await;
        Db::open(&db.url, true, 2).await.unwrap().close().await;
        let schema = read_schema(&db).await;
        assert!(schema.columns.contains_key("order_release_task.next_at"), "{engine:?}: {schema:#?}");
        assert!(schema.unique.len() > 10 && schema.indices.len() > 3, "{engine:?}: {schema:#?}");
        assert!(schema.checks.contains("ledger_figures"), "{engine:?}: {schema:#?}");
        schemas.push((engine, schema));
    }
    for pair in schemas.windows(2) {
        let [(one, left), (other, right)] = pair else { unreachable!("windows of two") };
        assert_eq!(left, right, "{one:?} (left) and {other:?} (right) differ");
    }
}

on_every_engine!(migrating_twice_changes_nothing);

async fn migrating_twice_changes_nothing(db: TestDb) {
    Db::open(&db.url, true, 2).await.unwrap().close().await;
    let first = read_schema(&db).await;
    db.execute("INSERT INTO counter_delta (at, body) VALUES (1, 'x')").await.unwrap();
    Db::open(&db.url, true, 2).await.unwrap().close().await;
    assert_eq!(read_schema(&db).await, first);
    assert_eq!(db.execute("DELETE FROM counter_delta").await.unwrap(), 1);
}

on_every_engine!(two_processes_that_start_at_once_migrate_once);

async fn two_processes_that_start_at_once_migrate_once(db: TestDb) {
    let open = || {
        let url = db.url.clone();
        tokio::spawn(async move { Db::open(&url, true, 2).await })
    };
    for opened in [open(), open(), open(), open()] {
        opened.await.unwrap().unwrap().close().await;
    }
}

async fn read_schema(db: &TestDb) -> Schema {
    match db.engine {
        Engine::Sqlite => sqlite(db).await,
        Engine::Postgres => postgres(db).await,
        Engine::Mariadb => mariadb(db).await,
    }
}

/// Rows of texts; everything is cast to text by the query.
async fn rows<const N: usize>(db: &TestDb, sql: &str) -> Vec<[String; N]> {
    let mut connection = db.connect().await.unwrap();
    sqlx::query(AssertSqlSafe(sql))
        .fetch_all(&mut connection)
        .await
        .unwrap_or_else(|e| panic!("{sql}: {e}"))
        .iter()
        .map(|row| std::array::from_fn(|at| row.try_get::<String, _>(at).unwrap()))
        .collect()
}

/// Types that mean the same to the statements, under one name.
fn family(of: &str) -> &'static str {
    let of = of.to_lowercase();
    match of.split(['(', ' ']).next().unwrap_or_default() {
        "bigint" | "integer" | "int" | "smallint" => "number",
        "varchar" | "character" | "text" | "mediumtext" => "text",
        other => panic!("a type that not every engine can read: {other}"),
    }
}

impl Schema {
    fn column(&mut self, table: &str, column: &str, of: &str, nullable: bool) {
        let null = if nullable { "may be null" } else { "is never null" };
        self.columns.insert(format!("{table}.{column}"), format!("{} {null}", family(of)));
    }

    /// `columns` as a comma list without spaces.
    fn key(&mut self, table: &str, columns: &str, unique: bool) {
        let keys = if unique { &mut self.unique } else { &mut self.indices };
        keys.insert(format!("{table}({columns})"));
    }
}

const NOT_OURS: &str = "'_sqlx_migrations'";

async fn sqlite(db: &TestDb) -> Schema {
    let mut schema = Schema::default();
    let tables = format!("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT IN ({NOT_OURS})");
    for [table, sql] in rows::<2>(db, &tables).await {
        // Hidden (generated) columns show in table_xinfo only.
        let columns = format!("SELECT name, type, \"notnull\" || '', pk || '' FROM pragma_table_xinfo('{table}')");
        let mut primary = BTreeMap::new();
        for [column, of, not_null, place] in rows::<4>(db, &columns).await {
            schema.column(&table, &column, &of.replace(" GENERATED ALWAYS", ""), not_null == "0" && place == "0");
            if place != "0" {
                primary.insert(place, column);
            }
        }
        schema.key(&table, &primary.into_values().collect::<Vec<_>>().join(","), true);
        let indices = format!("SELECT name, \"unique\" || '' FROM pragma_index_list('{table}')");
        for [index, unique] in rows::<2>(db, &indices).await {
            let columns = rows::<1>(db, &format!("SELECT name FROM pragma_index_info('{index}') ORDER BY seqno")).await;
            schema.key(&table, &columns.concat().join(","), unique == "1");
        }
        let checks =
            sql.split("CONSTRAINT ").skip(1).filter_map(|rest| rest.split_once(" CHECK").map(|(name, _)| name));
        schema.checks.extend(checks.filter(|name| !name.contains(' ')).map(String::from));
    }
    schema
}

async fn postgres(db: &TestDb) -> Schema {
    let mut schema = Schema::default();
    let columns = format!(
        "SELECT c.table_name::text, c.column_name::text, c.data_type::text, c.is_nullable::text \
         FROM information_schema.columns c JOIN information_schema.tables t \
           ON t.table_schema = c.table_schema AND t.table_name = c.table_name AND t.table_type = 'BASE TABLE' \
         WHERE c.table_schema = 'public' AND c.table_name NOT IN ({NOT_OURS})"
    );
    for [table, column, of, nullable] in rows::<4>(db, &columns).await {
        schema.column(&table, &column, &of, nullable == "YES");
    }
    let indices = format!(
        "SELECT t.relname::text, i.indisunique::text, string_agg(a.attname::text, ',' ORDER BY k.place) \
         FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace \
           CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(number, place) \
           JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number \
         WHERE n.nspname = 'public' AND t.relname NOT IN ({NOT_OURS}) \
         GROUP BY i.indexrelid, t.relname, i.indisunique"
    );
    for [table, unique, columns] in rows::<3>(db, &indices).await {
        schema.key(&table, &columns, unique == "true");
    }
    let checks = "SELECT c.conname::text FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace \
                  WHERE c.contype = 'c' AND n.nspname = 'public'";
    schema.checks.extend(rows::<1>(db, checks).await.concat());
    schema
}

async fn mariadb(db: &TestDb) -> Schema {
    let mut schema = Schema::default();
    let columns = format!(
        "SELECT CAST(c.table_name AS CHAR), CAST(c.column_name AS CHAR), CAST(c.column_type AS CHAR), \
                CAST(c.is_nullable AS CHAR) \
         FROM information_schema.columns c JOIN information_schema.tables t \
           ON t.table_schema = c.table_schema AND t.table_name = c.table_name AND t.table_type = 'BASE TABLE' \
         WHERE c.table_schema = DATABASE() AND c.table_name NOT IN ({NOT_OURS})"
    );
    for [table, column, of, nullable] in rows::<4>(db, &columns).await {
        schema.column(&table, &column, &of, nullable == "YES");
    }
    let indices = format!(
        "SELECT CAST(table_name AS CHAR), CAST(MIN(non_unique) AS CHAR), \
                CAST(GROUP_CONCAT(column_name ORDER BY seq_in_index) AS CHAR) \
         FROM information_schema.statistics \
         WHERE table_schema = DATABASE() AND table_name NOT IN ({NOT_OURS}) GROUP BY table_name, index_name"
    );
    for [table, not_unique, columns] in rows::<3>(db, &indices).await {
        schema.key(&table, &columns, not_unique == "0");
    }
    let checks = "SELECT CAST(constraint_name AS CHAR) FROM information_schema.check_constraints \
                  WHERE constraint_schema = DATABASE()";
    schema.checks.extend(rows::<1>(db, checks).await.concat());
    schema
}
