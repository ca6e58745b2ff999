//! Tables of the shop, on each engine: how they are named, described, read and written. Names come from the
//! configuration only and are quoted here; values are bound like everywhere.

use super::{Dialect, Engine};

/// What a column of a shop's table can be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Int,
    Text,
    /// A wall-clock time of the configured zone.
    Wall,
    /// An instant: what is read and written is UTC.
    Instant,
    Other,
}

impl Dialect {
    /// A name, and a schema before it if it has one.
    pub fn quoted(self, name: &str) -> String {
        let mark = match self.engine {
            Engine::Sqlite | Engine::Postgres => '"',
            Engine::Mysql => '`',
        };
        let part = |part: &str| format!("{mark}{}{mark}", part.replace(mark, ""));
        name.split('.').map(part).collect::<Vec<_>>().join(".")
    }

    /// Name and type of each column. `$1` is the schema or NULL, `$2` the table, `$3` the quoted whole.
    pub fn describe_columns(self) -> &'static str {
        match self.engine {
            Engine::Sqlite => "SELECT name, lower(type), $1, $3 FROM pragma_table_info($2)",
            Engine::Postgres => {
                "SELECT CAST(a.attname AS TEXT), CAST(t.typname AS TEXT), CAST($1 AS TEXT), CAST($2 AS TEXT) FROM pg_attribute a \
                 JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = to_regclass($3) AND a.attnum > 0 AND NOT a.attisdropped"
            }
            Engine::Mysql => {
                "SELECT CAST(column_name AS CHAR), CAST(data_type AS CHAR), $3 FROM information_schema.columns \
                 WHERE table_schema = COALESCE($1, DATABASE()) AND table_name = $2"
            }
        }
    }

    /// Columns that have a unique key for themselves alone, binds as above.
    pub fn describe_unique(self) -> &'static str {
        match self.engine {
            Engine::Sqlite => {
                "SELECT name, $1, $3 FROM pragma_table_info($2) WHERE pk = 1 AND (SELECT MAX(pk) FROM pragma_table_info($2)) = 1 \
                 UNION SELECT i.name, $1, $3 FROM pragma_index_list($2) l JOIN pragma_index_info(l.name) i \
                 WHERE l.\"unique\" = 1 AND l.partial = 0 AND (SELECT COUNT(*) FROM pragma_index_info(l.name)) = 1"
            }
            Engine::Postgres => {
                "SELECT CAST(a.attname AS TEXT), CAST($1 AS TEXT), CAST($2 AS TEXT) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid \
                 AND a.attnum = i.indkey[0] WHERE i.indrelid = to_regclass($3) AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1 AND i.indpred IS NULL"
            }
            Engine::Mysql => {
                "SELECT CAST(MAX(column_name) AS CHAR), $3 FROM information_schema.statistics WHERE table_schema = COALESCE($1, DATABASE()) \
                 AND table_name = $2 AND non_unique = 0 GROUP BY index_name HAVING COUNT(*) = 1 AND MAX(sub_part) IS NULL"
            }
        }
    }

    /// What a type's name means.
    pub fn kind_of(self, type_name: &str) -> Kind {
        let name = type_name.to_lowercase();
        let known = |list: &[&str]| list.contains(&name.as_str());
        match self.engine {
            Engine::Sqlite if name.contains("int") => Kind::Int,
            Engine::Sqlite if name.contains("char") || name.contains("text") || name.contains("clob") => Kind::Text,
            Engine::Sqlite if name.starts_with("datetime") || name.starts_with("timestamp") => Kind::Wall,
            Engine::Sqlite => Kind::Other,
            Engine::Postgres if known(&["int2", "int4", "int8"]) => Kind::Int,
            Engine::Postgres if known(&["text", "varchar", "bpchar"]) => Kind::Text,
            Engine::Postgres if name == "timestamp" => Kind::Wall,
            Engine::Postgres if name == "timestamptz" => Kind::Instant,
            Engine::Postgres => Kind::Other,
            Engine::Mysql if known(&["tinyint", "smallint", "mediumint", "int", "bigint"]) => Kind::Int,
            Engine::Mysql if name.ends_with("text") || known(&["char", "varchar", "enum"]) => Kind::Text,
            Engine::Mysql if name == "datetime" => Kind::Wall,
            // The session's zone is UTC.
            Engine::Mysql if name == "timestamp" => Kind::Instant,
            Engine::Mysql => Kind::Other,
        }
    }

    /// A column as the drivers can hand it over: numbers as BIGINT, all else as text.
    pub fn read_foreign(self, column: &str, kind: Kind) -> String {
        let (int, text) = match self.engine {
            Engine::Sqlite => ("INTEGER", "TEXT"),
            Engine::Postgres => ("BIGINT", "TEXT"),
            Engine::Mysql => ("SIGNED", "CHAR"),
        };
        match (kind, self.engine) {
            (Kind::Int, _) => format!("CAST({column} AS {int})"),
            (Kind::Text | Kind::Other, _) => format!("CAST({column} AS {text})"),
            (_, Engine::Sqlite) => format!("strftime('%Y-%m-%d %H:%M:%f', {column})"),
            (Kind::Wall, Engine::Postgres) => format!("to_char({column}, 'YYYY-MM-DD HH24:MI:SS.MS')"),
            (_, Engine::Postgres) => format!("to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')"),
            (_, Engine::Mysql) => format!("CAST(DATE_FORMAT({column}, '%Y-%m-%d %H:%i:%s.%f') AS CHAR)"),
        }
    }

    /// The bound text of a wall-clock time, as a value for a column of this kind.
    pub fn write_time(self, n: usize, kind: Kind) -> String {
        match (self.engine, kind) {
            (Engine::Postgres, Kind::Instant) => format!("CAST(${n} AS timestamp) AT TIME ZONE 'UTC'"),
            (Engine::Postgres, _) => format!("CAST(${n} AS timestamp)"),
            _ => format!("${n}"),
        }
    }
}
