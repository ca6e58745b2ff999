//! The one place that knows the engines apart: connection settings, statement shapes, error classes.
//! Everything else writes one text. Lists travel as ONE bind, a JSON text, so a statement's text stays
//! the same for every batch size and no limit on binds is met.

mod foreign;

use sqlx::error::DatabaseError;

use super::error::Class;
pub use foreign::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
    Mysql,
}

impl Engine {
    /// The engine that a database URL chooses by its scheme.
    pub fn of_url(url: &str) -> Option<Self> {
        match url.split(':').next()? {
            "sqlite" => Some(Self::Sqlite),
            "postgres" | "postgresql" => Some(Self::Postgres),
            "mysql" | "mariadb" => Some(Self::Mysql),
            _ => None,
        }
    }

    /// The URL to connect with. SQLite makes the file when it isn't there.
    pub fn connect_url(self, url: &str) -> String {
        if self != Self::Sqlite || url.contains("mode=") {
            return url.to_owned();
        }
        format!("{url}{}mode=rwc", if url.contains('?') { '&' } else { '?' })
    }
}

/// What a column of a JSON list holds.
#[derive(Clone, Copy)]
pub enum Cell {
    Int,
    Text,
}

/// Columns of a JSON list of objects: the key in the objects and the kind of value.
pub type Cells = &'static [(&'static str, Cell)];

/// Statements round a migration; `in_one_transaction` when they make one of all its files.
pub(super) struct MigrationGuard {
    pub begin: &'static str,
    pub end: &'static str,
    pub in_one_transaction: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    pub engine: Engine,
    /// The name of the binary, unpadded collation on MySQL and MariaDB.
    bin: &'static str,
}

impl Dialect {
    pub fn new(engine: Engine, server_version: &str) -> Self {
        let maria = server_version.contains("MariaDB");
        Self { engine, bin: if maria { "utf8mb4_nopad_bin" } else { "utf8mb4_0900_bin" } }
    }

    pub fn name(self) -> &'static str {
        match self.engine {
            Engine::Sqlite => "SQLite",
            Engine::Postgres => "PostgreSQL",
            Engine::Mysql if self.bin == "utf8mb4_nopad_bin" => "MariaDB",
            Engine::Mysql => "MySQL",
        }
    }

    pub fn collation(self) -> &'static str {
        self.bin
    }

    /// Many writers at once, or one?
    pub fn has_one_writer(self) -> bool {
        self.engine == Engine::Sqlite
    }

    /// Are many rows cheaper as one text?
    pub fn packs_rows(self) -> bool {
        self.engine == Engine::Sqlite
    }

    /// Most tasks in one transaction. What a commit costs on SQLite hardly grows with its size.
    pub fn batch(self) -> i64 {
        match self.engine {
            Engine::Sqlite => 4000,
            Engine::Postgres | Engine::Mysql => 1000,
        }
    }

    /// Can another process be told at once that there is work?
    pub fn can_notify(self) -> bool {
        self.engine == Engine::Postgres
    }

    /// Placeholders are `$N` in our texts; MySQL wants `?`, in order of appearance.
    pub fn numbers_placeholders(self) -> bool {
        self.engine != Engine::Mysql
    }

    /// Begin for writing. SQLite takes its write lock at once: a transaction that reads first and
    /// writes later would fail without waiting.
    pub fn begin(self) -> &'static str {
        match self.engine {
            Engine::Sqlite => "BEGIN IMMEDIATE",
            Engine::Postgres => "BEGIN",
            Engine::Mysql => "START TRANSACTION",
        }
    }

    /// One snapshot for several reads.
    pub fn begin_snapshot(self) -> &'static str {
        match self.engine {
            Engine::Sqlite => "BEGIN",
            Engine::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0",
            // Without the level, which the session has lower, the snapshot would be one per statement.
            Engine::Mysql => {
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
            }
        }
    }

    pub fn for_update(self) -> &'static str {
        match self.engine {
            Engine::Sqlite => "",
            Engine::Postgres | Engine::Mysql => " FOR UPDATE",
        }
    }

    pub fn for_update_skip(self) -> &'static str {
        match self.engine {
            Engine::Sqlite => "",
            Engine::Postgres | Engine::Mysql => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// Appended to an insert that leaves an existing row alone. On MySQL the duplicate-key error is
    /// caught instead, because `INSERT IGNORE` would hide other faults.
    pub fn or_nothing(self) -> &'static str {
        match self.engine {
            Engine::Sqlite | Engine::Postgres => " ON CONFLICT DO NOTHING",
            Engine::Mysql => "",
        }
    }

    /// `INSERT … ` that adds to `column` where the key exists.
    pub fn or_add(self, key: &str, table: &str, column: &str) -> String {
        match self.engine {
            Engine::Sqlite | Engine::Postgres => {
                format!(" ON CONFLICT ({key}) DO UPDATE SET {column} = {table}.{column} + excluded.{column}")
            }
            Engine::Mysql => format!(" ON DUPLICATE KEY UPDATE {column} = {column} + VALUES({column})"),
        }
    }

    /// The server's time in milliseconds since 1970.
    pub fn now_ms(self) -> &'static str {
        match self.engine {
            Engine::Sqlite => "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Engine::Postgres => "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
            Engine::Mysql => "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
        }
    }

    /// The id that the last insert on this connection made.
    pub fn last_id(self) -> &'static str {
        match self.engine {
            Engine::Sqlite => "SELECT last_insert_rowid()",
            Engine::Postgres => "SELECT lastval()",
            Engine::Mysql => "SELECT CAST(LAST_INSERT_ID() AS SIGNED)",
        }
    }

    /// SUM as a BIGINT; two engines give a decimal otherwise.
    pub fn sum(self, of: &str) -> String {
        match self.engine {
            Engine::Sqlite => format!("COALESCE(SUM({of}), 0)"),
            Engine::Postgres => format!("CAST(COALESCE(SUM({of}), 0) AS BIGINT)"),
            Engine::Mysql => format!("CAST(COALESCE(SUM({of}), 0) AS SIGNED)"),
        }
    }

    /// `IN` over a JSON list of numbers bound as `$n`.
    pub fn in_ids(self, n: usize) -> String {
        match self.engine {
            Engine::Sqlite => format!("IN (SELECT value FROM json_each(${n}))"),
            Engine::Postgres => format!("= ANY(ARRAY(SELECT json_array_elements_text(${n}::json)::bigint))"),
            Engine::Mysql => format!("IN (SELECT i FROM JSON_TABLE(${n}, '$[*]' COLUMNS (i BIGINT PATH '$')) ids)"),
        }
    }

    /// A JSON list of objects bound as `$n`, as a table expression named `v`.
    pub fn rows(self, n: usize, cells: Cells) -> String {
        let each = |form: &dyn Fn(&str, Cell) -> String| {
            cells.iter().map(|(key, cell)| form(key, *cell)).collect::<Vec<_>>().join(", ")
        };
        match self.engine {
            Engine::Sqlite => {
                let columns = each(&|key, _| format!("json_extract(value, '$.{key}') AS {key}"));
                format!("(SELECT {columns} FROM json_each(${n})) AS v")
            }
            Engine::Postgres => {
                let columns = each(&|key, cell| match cell {
                    Cell::Int => format!("{key} bigint"),
                    Cell::Text => format!("{key} text COLLATE \"C\""),
                });
                format!("json_to_recordset(${n}::json) AS v({columns})")
            }
            Engine::Mysql => {
                let columns = each(&|key, cell| match cell {
                    Cell::Int => format!("{key} BIGINT PATH '$.{key}'"),
                    Cell::Text => {
                        format!("{key} VARCHAR(600) CHARACTER SET utf8mb4 COLLATE {} PATH '$.{key}'", self.bin)
                    }
                });
                format!("JSON_TABLE(${n}, '$[*]' COLUMNS ({columns})) v")
            }
        }
    }

    /// `v` joined to a table `t`, driven by the list: rows are visited, and locked, in the list's order.
    pub fn rows_join(self, n: usize, cells: Cells, table: &str, on: &str) -> String {
        let join = match self.engine {
            Engine::Sqlite => "CROSS JOIN",
            Engine::Postgres => "JOIN",
            Engine::Mysql => "STRAIGHT_JOIN",
        };
        format!("{} {join} {table} t ON {on}", self.rows(n, cells))
    }

    /// Lock suffix for a select over [`rows_join`](Self::rows_join): only the table's rows.
    pub fn for_update_of_t(self) -> &'static str {
        match self.engine {
            Engine::Sqlite => "",
            Engine::Postgres => " FOR UPDATE OF t",
            Engine::Mysql => " FOR UPDATE",
        }
    }

    /// One update of many rows of `table` (named `t`) from a JSON list bound as `$n` (named `v`).
    pub fn update_from(self, table: &str, sets: &[(&str, &str)], n: usize, cells: Cells, on: &str) -> String {
        let list = |prefix: &str| {
            sets.iter().map(|(column, value)| format!("{prefix}{column} = {value}")).collect::<Vec<_>>().join(", ")
        };
        match self.engine {
            Engine::Sqlite | Engine::Postgres => {
                format!("UPDATE {table} AS t SET {} FROM {} WHERE {on}", list(""), self.rows(n, cells))
            }
            Engine::Mysql => format!("UPDATE {} SET {}", self.rows_join(n, cells, table, on), list("t.")),
        }
    }

    /// `LIKE` that looks for the bound text anywhere, whatever its case.
    pub fn like(self, column: &str, n: usize) -> String {
        match self.engine {
            Engine::Sqlite => format!("{column} LIKE ${n} ESCAPE '!'"),
            Engine::Postgres => format!("{column} ILIKE ${n} ESCAPE '!'"),
            Engine::Mysql => format!("{column} COLLATE utf8mb4_general_ci LIKE ${n} ESCAPE '!'"),
        }
    }

    /// A number as text.
    pub fn as_text(self, number: &str) -> String {
        match self.engine {
            Engine::Sqlite | Engine::Postgres => format!("CAST({number} AS TEXT)"),
            Engine::Mysql => format!("CAST({number} AS CHAR)"),
        }
    }

    pub fn concat(self, parts: &[&str]) -> String {
        match self.engine {
            Engine::Sqlite | Engine::Postgres => parts.join(" || "),
            Engine::Mysql => format!("CONCAT({})", parts.join(", ")),
        }
    }

    pub fn truncate(self, table: &str) -> String {
        match self.engine {
            Engine::Sqlite => format!("DELETE FROM {table}"),
            Engine::Postgres | Engine::Mysql => format!("TRUNCATE TABLE {table}"),
        }
    }

    pub fn analyze(self, table: &str) -> String {
        match self.engine {
            Engine::Sqlite => format!("ANALYZE {table}"),
            Engine::Postgres => format!("VACUUM ANALYZE {table}"),
            Engine::Mysql => format!("ANALYZE TABLE {table}"),
        }
    }

    /// Settings of every new connection. Durability is set where a client can set it and read back at start.
    pub fn on_connect(self) -> &'static [&'static str] {
        match self.engine {
            Engine::Sqlite => &[
                "PRAGMA journal_mode = WAL",
                "PRAGMA synchronous = FULL",
                "PRAGMA foreign_keys = ON",
                "PRAGMA busy_timeout = 10000",
                "PRAGMA cache_size = -4000",
            ],
            Engine::Postgres => &[
                "SET statement_timeout = '60s'",
                "SET idle_in_transaction_session_timeout = '60s'",
                "SET lock_timeout = '30s'",
                "SET jit = off",
            ],
            Engine::Mysql => &[
                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO'",
                "SET SESSION time_zone = '+00:00'",
                // A paused process must not hold its locks for ever; MySQL has no such limit and skips the comment.
                "SET SESSION innodb_lock_wait_timeout = 30 /*M!100300 , idle_transaction_timeout = 60 */",
            ],
        }
    }

    /// Reads back one durability setting, and says which values are safe.
    pub fn durability(self) -> &'static [(&'static str, &'static str, &'static [&'static str])] {
        match self.engine {
            Engine::Sqlite => &[
                ("journal_mode", "SELECT CAST(journal_mode AS TEXT) FROM pragma_journal_mode", &["wal"]),
                ("synchronous", "SELECT CAST(synchronous AS TEXT) FROM pragma_synchronous", &["2", "3"]),
            ],
            Engine::Postgres => &[
                ("fsync", "SELECT current_setting('fsync')", &["on"]),
                (
                    "synchronous_commit",
                    "SELECT current_setting('synchronous_commit')",
                    &["on", "remote_write", "remote_apply", "local"],
                ),
                ("full_page_writes", "SELECT current_setting('full_page_writes')", &["on"]),
            ],
            Engine::Mysql => &[
                ("innodb_flush_log_at_trx_commit", "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR)", &["1"]),
                ("innodb_doublewrite", "SELECT CAST(@@innodb_doublewrite AS CHAR)", &["1", "ON", "DETECT_AND_RECOVER"]),
            ],
        }
    }

    pub fn version(self) -> &'static str {
        match self.engine {
            Engine::Sqlite => "SELECT sqlite_version()",
            Engine::Postgres => "SELECT current_setting('server_version')",
            Engine::Mysql => "SELECT CAST(VERSION() AS CHAR)",
        }
    }

    /// The oldest version that has what the statements need (SKIP LOCKED, JSON tables, checks that
    /// are enforced).
    pub fn minimum_version(self) -> (u32, u32, u32) {
        match (self.engine, self.name()) {
            (Engine::Sqlite, _) => (3, 42, 0),
            (Engine::Postgres, _) => (13, 0, 0),
            (Engine::Mysql, "MariaDB") => (10, 6, 0),
            (Engine::Mysql, _) => (8, 0, 16),
        }
    }

    /// What keeps a second process out while one migrates. Ends with the connection when that breaks.
    pub(super) fn migration_guard(self) -> MigrationGuard {
        match self.engine {
            Engine::Sqlite => MigrationGuard { begin: "BEGIN IMMEDIATE", end: "COMMIT", in_one_transaction: true },
            Engine::Postgres => MigrationGuard {
                begin: "SELECT pg_advisory_lock(5184231)",
                end: "SELECT pg_advisory_unlock(5184231)",
                in_one_transaction: false,
            },
            Engine::Mysql => MigrationGuard {
                begin: "SELECT GET_LOCK(SHA1(CONCAT('handback migrates ', DATABASE())), 120)",
                end: "SELECT RELEASE_LOCK(SHA1(CONCAT('handback migrates ', DATABASE())))",
                in_one_transaction: false,
            },
        }
    }

    pub fn migration(self) -> &'static [(i64, &'static str, &'static str)] {
        match self.engine {
            Engine::Sqlite => &[
                (1, "core", include_str!("../../migrations/sqlite/0001_core.sql")),
                (2, "whole life", include_str!("../../migrations/sqlite/0002_whole_life.sql")),
                (3, "open rows", include_str!("../../migrations/sqlite/0003_open_rows.sql")),
            ],
            Engine::Postgres => &[
                (1, "core", include_str!("../../migrations/postgres/0001_core.sql")),
                (2, "whole life", include_str!("../../migrations/postgres/0002_whole_life.sql")),
                (3, "open rows", include_str!("../../migrations/postgres/0003_open_rows.sql")),
            ],
            Engine::Mysql => &[
                (1, "core", include_str!("../../migrations/mysql/0001_core.sql")),
                (2, "whole life", include_str!("../../migrations/mysql/0002_whole_life.sql")),
                (3, "open rows", include_str!("../../migrations/mysql/0003_open_rows.sql")),
            ],
        }
    }
}

/// What a database error means, by the engine's own codes.
pub(super) fn classify(error: &dyn DatabaseError) -> Class {
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return match error.number() {
            1062 | 1586 => Class::Unique,
            1213 | 1205 | 1020 => Class::Transient,
            3819 | 4025 | 1264 => Class::Check,
            1040 | 1053 | 1152..=1161 | 2006 | 2013 => Class::Away,
            _ => Class::Broken,
        };
    }
    let code = error.code().unwrap_or_default().into_owned();
    if error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().is_some() {
        return match code.as_str() {
            "23505" => Class::Unique,
            "40001" | "40P01" | "55P03" => Class::Transient,
            "23514" | "22003" => Class::Check,
            _ if code.starts_with("08") || code.starts_with("57P") || code == "53300" || code == "25P03" => Class::Away,
            _ => Class::Broken,
        };
    }
    match code.parse::<i64>().unwrap_or_default() {
        1555 | 2067 => Class::Unique,
        275 => Class::Check,
        code if matches!(code & 0xff, 5 | 6) => Class::Transient,
        code if matches!(code & 0xff, 10 | 13 | 14 | 26) => Class::Away,
        _ => Class::Broken,
    }
}
