//! PostgreSQL and MariaDB, thrown away after the run.
//!
//! Each server is started once for the whole test binary, on a free loopback port, with its data in
//! a temporary folder, and only when a test asks for it. Durable settings stay on (that is part of
//! what is tested); buffers are small. A test that must take a server down starts one of its own
//! with [`Server::start`], so that the others keep theirs.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use super::held::Held;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    Sqlite,
    Postgres,
    Mariadb,
}

impl Engine {
    pub const ALL: [Engine; 3] = [Engine::Sqlite, Engine::Postgres, Engine::Mariadb];

    pub fn name(self) -> &'static str {
        match self {
            Engine::Sqlite => "sqlite",
            Engine::Postgres => "postgres",
            Engine::Mariadb => "mariadb",
        }
    }

    fn named(name: &str) -> Option<Engine> {
        Engine::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// Whether this run covers the engine. All do, unless `HANDBACK_TEST_ENGINES` names some.
    pub fn is_chosen(self) -> bool {
        CHOSEN.contains(&self)
    }
}

/// Read once. Says on the real standard error (not the captured one) what is left out, so that a
/// run over one engine can't be mistaken for a run over three.
static CHOSEN: LazyLock<Vec<Engine>> = LazyLock::new(|| {
    let Ok(list) = std::env::var("HANDBACK_TEST_ENGINES") else {
        return Engine::ALL.to_vec();
    };
    let chosen = chosen_engines(&list).unwrap_or_else(|problem| panic!("{problem}"));
    let left_out: Vec<_> =
        Engine::ALL.into_iter().filter(|engine| !chosen.contains(engine)).map(Engine::name).collect();
    if !left_out.is_empty() {
        say_aloud(&format!(
            "HANDBACK_TEST_ENGINES={list}: tests on {} do nothing in this run\n",
            left_out.join(" and ")
        ));
    }
    chosen
});

fn chosen_engines(list: &str) -> Result<Vec<Engine>, String> {
    list.split(',')
        .map(str::trim)
        .map(|name| {
            Engine::named(name)
                .ok_or_else(|| format!("HANDBACK_TEST_ENGINES: {name:?} is none of sqlite, postgres, mariadb"))
        })
        .collect()
}

/// On the real standard error, where a test that passes is heard too.
pub fn say_aloud(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// A database server of this run.
pub struct Server {
    held: Held,
    pub port: u16,
    engine: Engine,
}

static POSTGRES: LazyLock<Result<Server, String>> = LazyLock::new(|| Server::start(Engine::Postgres));
static MARIADB: LazyLock<Result<Server, String>> = LazyLock::new(|| Server::start(Engine::Mariadb));

impl Server {
    /// The server all tests share. A server that is missing fails the test with what to install.
    pub fn shared(engine: Engine) -> &'static Server {
        let server = match engine {
            Engine::Postgres => &*POSTGRES,
            Engine::Mariadb => &*MARIADB,
            Engine::Sqlite => panic!("SQLite has no server"),
        };
        server.as_ref().unwrap_or_else(|problem| panic!("{} for the tests: {problem}", engine.name()))
    }

    /// A server of the caller's own, stopped when dropped.
    pub fn start(engine: Engine) -> Result<Server, String> {
        // Between finding a free port and using it somebody else may take it: then once more.
        let mut problem = String::new();
        for _ in 0..3 {
            let port = free_port();
            let started = match engine {
                Engine::Postgres => start_postgres(port),
                Engine::Mariadb => start_mariadb(port),
                Engine::Sqlite => panic!("SQLite has no server"),
            };
            match started {
                Ok(held) => return Ok(Server { held, port, engine }),
                Err(why) => problem = why,
            }
            if problem.contains("install") {
                break;
            }
        }
        Err(problem)
    }

    pub fn url(&self, database: &str) -> String {
        let port = self.port;
        match self.engine {
            Engine::Postgres => format!("postgres://handback@127.0.0.1:{port}/{database}"),
            Engine::Mariadb => format!("mysql://root@127.0.0.1:{port}/{database}"),
            Engine::Sqlite => unreachable!("SQLite has no server"),
        }
    }

    /// Where a new database is made from.
    pub fn admin_url(&self) -> String {
        match self.engine {
            Engine::Postgres => self.url("postgres"),
            _ => self.url("mysql"),
        }
    }

    /// Stops it for good, as if the machine had gone away.
    pub fn stop(&mut self) {
        self.held.stop();
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free loopback port").port()
}

fn start_postgres(port: u16) -> Result<Held, String> {
    let initdb = find_program("initdb", &postgres_folders()).ok_or("initdb not found: install `postgresql`")?;
    let postgres = find_program("postgres", &postgres_folders()).ok_or("postgres not found: install `postgresql`")?;
    // PostgreSQL refuses to run as root, so as root everything of it belongs to its own user.
    let as_user = is_root().then_some("postgres");
    let folder = run_folder("handback-pg-", as_user)?;
    let data = folder.join("data");
    let mut init = as_that_user(as_user);
    init.extend([initdb.into(), "-D".into(), data.clone().into()]);
    init.extend(words("-U handback -A trust -E UTF8 --no-locale --no-sync"));
    run_to_end(&init)?;

    let mut command = as_that_user(as_user);
    command.extend([postgres.into(), "-D".into(), data.into()]);
    for setting in [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "fsync=on",
        "synchronous_commit=on",
        "full_page_writes=on",
        "shared_buffers=64MB",
        "max_connections=300",
        "max_wal_size=512MB",
        "autovacuum_naptime=10s",
        "log_min_messages=warning",
    ] {
        command.extend(["-c".into(), setting.into()]);
    }
    command.extend(["-p".into(), port.to_string().into()]);
    // SIGQUIT: leave at once. The folder is thrown away, there is nothing to write back.
    let mut held = Held::start(&command, folder.join("log"), "QUIT", &folder)?;
    held.wait_for_log("ready to accept connections", Duration::from_secs(60))?;
    Ok(held)
}

fn start_mariadb(port: u16) -> Result<Held, String> {
    let missing = "install `mariadb-server`";
    let folders = [PathBuf::from("/usr/sbin"), PathBuf::from("/usr/libexec")];
    let install =
        find_program("mariadb-install-db", &folders).ok_or(format!("mariadb-install-db not found: {missing}"))?;
    let mariadbd = find_program("mariadbd", &folders).ok_or(format!("mariadbd not found: {missing}"))?;
    let as_user = is_root().then_some("mysql");
    let folder = run_folder("handback-my-", as_user)?;
    let data = folder.join("data");
    let mut datadir = OsString::from("--datadir=");
    datadir.push(&data);
    let user = as_user.map(|name| OsString::from(format!("--user={name}")));

    let mut init: Vec<OsString> = vec![install.into(), "--no-defaults".into(), datadir.clone()];
    init.extend(words("--auth-root-authentication-method=normal --skip-test-db"));
    init.extend(user.clone());
    run_to_end(&init)?;

    let mut command: Vec<OsString> = vec![mariadbd.into(), "--no-defaults".into(), datadir];
    command.extend(user);
    let mut socket = OsString::from("--socket=");
    socket.push(folder.join("socket"));
    command.push(socket);
    // Its temporary tables have guessable names: two servers must not share a folder for them.
    let mut temporary = OsString::from("--tmpdir=");
    temporary.push(&folder);
    command.push(temporary);
    command.push(format!("--port={port}").into());
    command.extend(words(
        "--bind-address=127.0.0.1 --skip-name-resolve --innodb-flush-log-at-trx-commit=1 \
         --innodb-doublewrite=1 --innodb-buffer-pool-size=128M --innodb-log-file-size=64M \
         --max-connections=300 --skip-log-bin --performance-schema=off",
    ));
    let mut held = Held::start(&command, folder.join("log"), "KILL", &folder)?;
    held.wait_for_log("ready for connections", Duration::from_secs(60))?;
    Ok(held)
}

/// Debian keeps PostgreSQL's own programs out of PATH, one folder per version: the newest first.
fn postgres_folders() -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

pub fn find_program(name: &str, more_folders: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    more_folders
        .iter()
        .cloned()
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// A new folder for one server. It goes with the server (see [`Held`]), not when this returns.
fn run_folder(prefix: &str, owner: Option<&str>) -> Result<PathBuf, String> {
    let folder =
        tempfile::Builder::new().prefix(prefix).tempdir().map_err(|e| format!("temporary folder: {e}"))?.keep();
    if let Some(owner) = owner {
        give_to(&folder, owner)?;
    }
    Ok(folder)
}

fn give_to(folder: &Path, owner: &str) -> Result<(), String> {
    run_to_end(&["chown".into(), format!("{owner}:").into(), folder.into()])
}

fn as_that_user(user: Option<&str>) -> Vec<OsString> {
    match user {
        Some(user) => words(&format!("setpriv --reuid={user} --regid={user} --init-groups --")),
        None => Vec::new(),
    }
}

pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|answer| answer.stdout.trim_ascii() == b"0")
}

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

fn run_to_end(command: &[OsString]) -> Result<(), String> {
    let answer = Command::new(&command[0])
        .args(&command[1..])
        .current_dir("/")
        .output()
        .map_err(|e| format!("{}: {e}", command[0].display()))?;
    if answer.status.success() {
        return Ok(());
    }
    Err(format!(
        "{} ended with {}:\n{}{}",
        command[0].display(),
        answer.status,
        String::from_utf8_lossy(&answer.stdout),
        String::from_utf8_lossy(&answer.stderr),
    ))
}

#[cfg(test)]
mod tests {
    use super::{Engine, chosen_engines};

    #[test]
    fn a_list_of_engines_names_them_and_a_misspelt_one_is_refused() {
        assert_eq!(chosen_engines("sqlite, mariadb"), Ok(vec![Engine::Sqlite, Engine::Mariadb]));
        assert!(chosen_engines("sqlite,mysqll").is_err());
        assert!(chosen_engines("").is_err());
    }
}
