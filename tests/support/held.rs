//! A child process that can't outlive the test run.
//!
//! Statics are never dropped and a killed process drops nothing at all, so a server started once
//! per run is not stopped by Rust. A small shell stands between us and the server: it holds the
//! reading end of a pipe whose writing end is ours. However this process ends (normally, by a
//! panic, by `kill -9`), the kernel closes our end, and the shell stops the server and removes its
//! folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// `$1` the log, `$2` the signal that ends the server, `$3` the folder to remove, then the server.
/// The shell itself ends when the server does, so that we can notice a server that doesn't come up.
const HOLD: &str = r#"
log=$1 signal=$2 folder=$3; shift 3
exec 3<&0
"$@" </dev/null >"$log" 2>&1 3<&- &
server=$!
( cat <&3 >/dev/null; kill -s "$signal" "$server" 2>/dev/null ) &
watch=$!
wait "$server"
kill "$watch" 2>/dev/null
rm -rf -- "$folder"
"#;

pub struct Held {
    shell: Child,
    pipe: Option<ChildStdin>,
    log: PathBuf,
}

impl Held {
    /// Starts `command` (program first) with its output in `log`. `folder` is removed when it ends.
    pub fn start(command: &[OsString], log: PathBuf, signal: &str, folder: &Path) -> Result<Self, String> {
        let mut shell = Command::new("/bin/sh");
        shell
            .arg("-c")
            .arg(HOLD)
            .arg("hold")
            .args([log.as_os_str(), signal.as_ref(), folder.as_os_str()])
            .args(command)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // A group of its own: Ctrl-C on the run must reach us, not the one who cleans up after us.
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        let mut shell = shell.spawn().map_err(|e| format!("/bin/sh: {e}"))?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe, log })
    }

    /// Waits until the log has a line with `words`; the log is the answer when it never comes.
    pub fn wait_for_log(&mut self, words: &str, at_most: Duration) -> Result<(), String> {
        let started = Instant::now();
        loop {
            if self.log().contains(words) {
                return Ok(());
            }
            if self.has_ended() || started.elapsed() > at_most {
                return Err(format!("never said {words:?}; its log:\n{}", self.log()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn has_ended(&mut self) -> bool {
        !matches!(self.shell.try_wait(), Ok(None))
    }

    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Ends the server now and waits until it is gone.
    pub fn stop(&mut self) {
        self.pipe = None;
        let _ = self.shell.wait();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.stop();
    }
}
