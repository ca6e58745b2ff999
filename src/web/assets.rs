//! The files under `static/`, part of the binary, under names that change with their content: a
//! browser may keep them for a year, and an upgrade is seen at once.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

pub struct Asset {
    /// The name in the source tree, `app.js`.
    pub name: &'static str,
    /// The name in the address, `app.1a2b3c4d5e.js`.
    pub path: String,
    pub mime: &'static str,
    pub body: &'static [u8],
}

macro_rules! assets {
    ($($name:literal $mime:literal),+ $(,)?) => {
        [$(Asset::new($name, $mime, include_bytes!(concat!("../../static/", $name)))),+]
    };
}

static ASSETS: LazyLock<[Asset; 8]> = LazyLock::new(|| {
    assets![
        "tokens.css" "text/css; charset=utf-8",
        "base.css" "text/css; charset=utf-8",
        "app.js" "text/javascript; charset=utf-8",
        "screen.js" "text/javascript; charset=utf-8",
        "vendor/htmx.min.js" "text/javascript; charset=utf-8",
        "vendor/hx-sse.min.js" "text/javascript; charset=utf-8",
        "vendor/hx-csp.min.js" "text/javascript; charset=utf-8",
        "icon.svg" "image/svg+xml",
    ]
});

impl Asset {
    fn new(name: &'static str, mime: &'static str, body: &'static [u8]) -> Asset {
        let sum = hex::encode(Sha256::digest(body));
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, "bin"));
        let stem = stem.rsplit('/').next().unwrap_or(stem);
        let path = format!("/static/{stem}.{}.{extension}", &sum[..10]);
        Asset { name, path, mime, body }
    }

    /// The address of a file of ours.
    pub fn path_of(name: &str) -> &'static str {
        ASSETS.iter().find(|a| a.name == name).map_or("", |a| &a.path)
    }

    pub fn find(path: &str) -> Option<&'static Asset> {
        ASSETS.iter().find(|a| a.path == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_with_content_and_read_back() {
        let path = Asset::path_of("app.js");
        assert!(path.starts_with("/static/app.") && path.len() == "/static/app..js".len() + 10, "{path}");
        assert_eq!(Asset::find(path).map(|a| a.name), Some("app.js"));
        assert!(Asset::find("/static/app.js").is_none());
    }

    #[test]
    fn own_script_stays_short_and_files_load_nothing_from_outside() {
        let script = std::str::from_utf8(include_bytes!("../../static/app.js")).unwrap();
        assert!(script.lines().count() < 150, "the console's own script is under 150 lines");
        for asset in ASSETS.iter().filter(|a| !a.name.starts_with("vendor/") && a.name != "icon.svg") {
            let text = std::str::from_utf8(asset.body).unwrap();
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("@import"), "{}", asset.name);
        }
    }
}
