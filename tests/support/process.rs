//! The built binary as a user starts it: arguments, environment, standard input, signals, exit
//! code. Whatever a test does, no process is left behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Long enough for a loaded machine; a test that gets here has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// `handback ARGS` in an empty folder, without the settings of whoever runs the tests.
pub struct Handback {
    command: Command,
    input: Option<String>,
    folder: TempDir,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// For commands that must work: says what they said when they didn't.
    pub fn ok(self) -> Self {
        assert_eq!(self.code(), Some(0), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

impl Handback {
    pub fn new<const N: usize>(args: [&str; N]) -> Self {
        let folder = tempfile::Builder::new().prefix("handback-run-").tempdir().expect("a temporary folder");
        // `setpriv` becomes the binary (same process id) and has the kernel kill it should this
        // process be killed, when nothing is dropped.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_handback")]);
        command.args(args).current_dir(folder.path());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("HANDBACK_") || name == "DATABASE_URL" || name == "RUST_LOG" {
                command.env_remove(&name);
            }
        }
        Self { command, input: None, folder }
    }

    pub fn arg(mut self, arg: &str) -> Self {
        self.command.arg(arg);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn database(self, url: &str) -> Self {
        self.env("DATABASE_URL", url)
    }

    pub fn input(mut self, text: &str) -> Self {
        self.input = Some(text.to_owned());
        self
    }

    /// A file in the folder the command runs in, like `handback.toml` or a CSV to import.
    pub fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.folder.path().join(name), text).expect("a file for the command");
        self
    }

    /// Runs to the end.
    pub fn run(self) -> Ended {
        self.start().wait()
    }

    pub fn start(mut self) -> Running {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the built binary starts");
        if let (Some(mut pipe), Some(text)) = (child.stdin.take(), self.input) {
            // A command that ends without reading closes the pipe; its exit code tells the rest.
            let _ = pipe.write_all(text.as_bytes());
        }
        let (line_to, lines) = channel();
        let stdout = Arc::new(Mutex::new(String::new()));
        let stderr = Arc::new(Mutex::new(String::new()));
        let out = child.stdout.take().expect("a pipe");
        let err = child.stderr.take().expect("a pipe");
        let readers = vec![
            std::thread::spawn({
                let kept = stdout.clone();
                move || {
                    for line in BufReader::new(out).lines().map_while(Result::ok) {
                        append(&kept, &line);
                        let _ = line_to.send(line);
                    }
                }
            }),
            std::thread::spawn({
                let kept = stderr.clone();
                move || keep_all(err, &kept)
            }),
        ];
        Running { child, lines, stdout, stderr, readers, _folder: self.folder }
    }

    /// Starts `serve` (or `demo`) and waits until it accepts connections.
    pub fn serve(self) -> (Running, String) {
        let mut running = self.start();
        let line = running.wait_for_line("listening on http://");
        let url = line.trim_start_matches("listening on ").to_owned();
        (running, url)
    }
}

fn append(kept: &Mutex<String>, line: &str) {
    let mut kept = kept.lock().expect("no reader panicked");
    kept.push_str(line);
    kept.push('\n');
}

fn keep_all(pipe: impl Read, kept: &Mutex<String>) {
    for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
        append(kept, &String::from_utf8_lossy(&line));
    }
}

/// A command that runs. Killed when dropped.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    stdout: Arc<Mutex<String>>,
    stderr: Arc<Mutex<String>>,
    readers: Vec<std::thread::JoinHandle<()>>,
    _folder: TempDir,
}

impl Running {
    /// The next line of standard output that starts with `start`; fails with what was said instead.
    pub fn wait_for_line(&mut self, start: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if line.starts_with(start) => return line,
                Ok(_) => {}
                Err(why) => {
                    let ended = match why {
                        RecvTimeoutError::Timeout => "in time",
                        RecvTimeoutError::Disconnected => "before it ended",
                    };
                    panic!("no line {start:?} {ended}; stderr:\n{}", self.stderr());
                }
            }
        }
    }

    pub fn stdout(&self) -> String {
        self.stdout.lock().expect("no reader panicked").clone()
    }

    /// What it logged until now.
    pub fn stderr(&self) -> String {
        self.stderr.lock().expect("no reader panicked").clone()
    }

    /// Sends a signal by name: `TERM`, `KILL`, `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        let sent =
            Command::new("/bin/kill").args(["-s", name, &self.child.id().to_string()]).status().expect("/bin/kill");
        assert!(sent.success(), "signal {name} was not delivered");
    }

    /// Waits for its end; one that doesn't end fails the test.
    pub fn wait(mut self) -> Ended {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("its state can be read") {
                break status;
            }
            assert!(started.elapsed() < PATIENCE, "it didn't end; stderr:\n{}", self.stderr());
            std::thread::sleep(Duration::from_millis(10));
        };
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        Ended { status, stdout: self.stdout(), stderr: self.stderr() }
    }

    /// Asks it to stop as a service manager does, and waits.
    pub fn stop(self) -> Ended {
        self.signal("TERM");
        self.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of `/api/v1` with a bearer token.
#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    base: String,
    token: String,
}

/// Status and body of an answer; what isn't JSON becomes a JSON string.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: serde_json::Value,
}

impl Api {
    pub fn new(url: &str, token: &str) -> Self {
        let http = crate::support::http::client().timeout(PATIENCE).build().expect("a client");
        Self { http, base: url.to_owned(), token: token.to_owned() }
    }

    /// Makes a token by the command, against the same database.
    pub fn with_new_token(url: &str, database: &str, scope: &str) -> Self {
        // A name is used once per database, and a test may start `serve` several times.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let made = Handback::new(["token", "create", &name, "--scope", scope]).database(database).run().ok();
        Self::new(url, made.stdout.trim())
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(reqwest::Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: serde_json::Value) -> Answer {
        self.send(reqwest::Method::POST, path, Some(body)).await
    }

    pub async fn put(&self, path: &str, body: serde_json::Value) -> Answer {
        self.send(reqwest::Method::PUT, path, Some(body)).await
    }

    /// `path` below `/api/v1`, beginning with a slash.
    pub async fn send(&self, method: reqwest::Method, path: &str, body: Option<serde_json::Value>) -> Answer {
        let url = format!("{}/api/v1{path}", self.base);
        let mut request = self.http.request(method, &url).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap_or_else(|e| panic!("{url}: {e}"));
        let status = answer.status().as_u16();
        let headers = answer.headers().clone();
        let text = answer.text().await.unwrap_or_default();
        let body = serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text));
        Answer { status, headers, body }
    }
}

/// Where files for a person to look at go: `target/NAME` of the build that runs.
pub fn output_folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().expect("target has this folder").join(name);
    std::fs::create_dir_all(&folder).expect("a folder for output");
    folder
}
