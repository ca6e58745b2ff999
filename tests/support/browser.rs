//! Chromium without a window, driven as a person uses it: real layout, real script, real cookies.
//!
//! One chromedriver serves the run; each test opens a browser with a profile of its own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::held::Held;
use super::process::output_folder;
use super::servers::{find_program, free_port};

struct Driver {
    _held: Held,
    url: String,
    /// Profiles lie here; it goes with the driver, however the run ends.
    folder: PathBuf,
}

static DRIVER: LazyLock<Result<Driver, String>> = LazyLock::new(|| {
    let program = find_program("chromedriver", &[]).ok_or("install `chromium-driver`")?;
    let folder = tempfile::Builder::new().prefix("handback-driver-").tempdir().map_err(|e| e.to_string())?.keep();
    let port = free_port();
    let command: Vec<OsString> = vec![program.into(), format!("--port={port}").into()];
    let mut held = Held::start(&command, folder.join("log"), "TERM", &folder)?;
    held.wait_for_log("started successfully", Duration::from_secs(30))?;
    Ok(Driver { _held: held, url: format!("http://127.0.0.1:{port}"), folder })
});

/// How the person who looks at the page has set up the browser.
#[derive(Clone, Copy)]
pub struct Person {
    language: &'static str,
    width: u32,
    height: u32,
    dark: bool,
    script: bool,
}

impl Person {
    /// English, a laptop, light, with script.
    pub fn new() -> Self {
        Self { language: "en", width: 1280, height: 800, dark: false, script: true }
    }

    /// A language as browsers name it: `en`, `zh-CN`.
    pub fn reads(mut self, language: &'static str) -> Self {
        self.language = language;
        self
    }

    pub fn on_a_phone(self) -> Self {
        self.with_size(360, 740)
    }

    pub fn with_size(mut self, width: u32, height: u32) -> Self {
        (self.width, self.height) = (width, height);
        self
    }

    pub fn in_the_dark(mut self) -> Self {
        self.dark = true;
        self
    }

    pub fn without_script(mut self) -> Self {
        self.script = false;
        self
    }

    pub async fn opens(self, url: &str) -> Browser {
        let driver = DRIVER.as_ref().unwrap_or_else(|problem| panic!("chromedriver for the tests: {problem}"));
        let chromium = find_program("chromium", &[])
            .or_else(|| find_program("google-chrome", &[]))
            .expect("a browser for the tests: install `chromium`");
        let profile =
            tempfile::Builder::new().prefix("profile-").tempdir_in(&driver.folder).expect("a temporary folder");
        let wanted = self.capabilities(&chromium, &profile);
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(wanted)
            .connect(&driver.url)
            .await
            .unwrap_or_else(|e| panic!("a new browser: {e}"));
        let session = client.session_id().await.expect("a session").expect("its id");
        let browser = Browser {
            client,
            http: crate::support::http::client().build().expect("a client"),
            commands: format!("{}/session/{session}/goog/cdp/execute", driver.url),
            _profile: profile,
        };
        browser.becomes(&self).await;
        browser.client.goto(url).await.unwrap_or_else(|e| panic!("{url}: {e}"));
        browser
    }

    fn capabilities(&self, chromium: &std::path::Path, profile: &TempDir) -> serde_json::Map<String, Value> {
        let mut args: Vec<String> = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-proxy-server",
        ]
        .map(String::from)
        .to_vec();
        args.push(format!("--user-data-dir={}", profile.path().display()));
        args.push(format!("--lang={}", self.language));
        args.push(format!("--window-size={},{}", self.width, self.height));
        let mut preferences = json!({"intl.accept_languages": self.language});
        if !self.script {
            preferences["profile.managed_default_content_settings.javascript"] = json!(2);
        }
        let wanted = json!({
            "browserName": "chrome",
            "goog:chromeOptions": {"args": args, "binary": chromium, "prefs": preferences},
            "goog:loggingPrefs": {"browser": "ALL"},
        });
        match wanted {
            Value::Object(wanted) => wanted,
            _ => unreachable!("an object was written"),
        }
    }
}

/// An open browser. `client` is what tests click and read with.
pub struct Browser {
    pub client: Client,
    http: reqwest::Client,
    commands: String,
    _profile: TempDir,
}

impl Browser {
    /// Takes on a person's window and colours, also while a page is open.
    pub async fn becomes(&self, person: &Person) {
        // The smallest window of Chromium is wider than a phone: the page's own width is set.
        self.command(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": person.width, "height": person.height,
                   "deviceScaleFactor": 1, "mobile": false}),
        )
        .await;
        let scheme = if person.dark { "dark" } else { "light" };
        self.command(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        )
        .await;
    }

    /// The language of all pages from now on, as the browser's settings would ask for it.
    pub async fn asks_for(&self, language: &str) {
        self.command("Network.enable", json!({})).await;
        self.command("Network.setExtraHTTPHeaders", json!({"headers": {"Accept-Language": language}})).await;
    }

    /// A command of the browser's own protocol.
    pub async fn command(&self, name: &str, parameters: Value) -> Value {
        let answer = self
            .http
            .post(&self.commands)
            .json(&json!({"cmd": name, "params": parameters}))
            .send()
            .await
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let good = answer.status().is_success();
        let body: Value = answer.json().await.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(good, "{name}: {body}");
        body["value"].clone()
    }

    /// A picture of the whole page, for people to look at: `target/screenshots/NAME.png`.
    pub async fn screenshot(&self, name: &str) -> PathBuf {
        let size = self.command("Page.getLayoutMetrics", json!({})).await;
        let clip = json!({
            "x": 0, "y": 0, "scale": 1,
            "width": size["cssContentSize"]["width"],
            "height": size["cssContentSize"]["height"],
        });
        let picture = self
            .command("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": true, "clip": clip}))
            .await;
        let bytes = base64::Engine::decode(
            &base64::engine::general_purpose::STANDARD,
            picture["data"].as_str().expect("a picture"),
        )
        .expect("base64");
        let file = output_folder("screenshots").join(format!("{name}.png"));
        std::fs::write(&file, bytes).expect("the picture is written");
        file
    }

    pub async fn close(self) {
        let _ = self.client.close().await;
    }
}
