//! The shape of the source, checked: which module may use which, where SQL and engine differences
//! live, how long a file may be, what a template may not contain.
//!
//! Arrows go one way: `cli → web, worker, trigger → core → store`. Each check is a function from
//! a file's text to complaints, so that it can be shown to fail on a made-up offender.

use std::path::{Path, PathBuf};

/// What each top-level module may use besides itself. A module that isn't here may use nothing.
///
/// `words`, `text` and `clock` lie in `core` because they are its vocabulary, but know nothing of
/// it: a row in the database is spelt with the same words, so `store` may use these three and no
/// more of `core`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("main", &["adapters", "cli", "config", "core", "store", "web", "worker", "trigger", "demo", "bench"]),
    ("lib", &["adapters", "cli", "config", "core", "store", "web", "worker", "trigger", "demo", "bench"]),
    ("cli", &["adapters", "config", "core", "store", "web", "worker", "trigger", "demo", "bench"]),
    ("adapters", &["core"]),
    ("demo", &["config", "core", "store", "web", "worker", "trigger"]),
    ("bench", &["config", "core", "store", "worker", "trigger"]),
    ("web", &["config", "core", "store", "worker"]),
    ("worker", &["config", "core", "store", "trigger"]),
    ("trigger", &["config", "core", "store"]),
    ("config", &["core", "store"]),
    ("core", &["store"]),
    ("store", VOCABULARY),
];
const VOCABULARY: &[&str] = &["core::words", "core::text", "core::clock"];

/// Not counting the tests at a file's end.
const LONGEST_FILE: usize = 450;

type Check = fn(&str, &str) -> Vec<String>;

#[test]
fn the_source_keeps_its_shape() {
    let checks: [Check; 4] = [arrows, engine_knowledge, faceless_core, length];
    complain(&sources(), &checks);
}

#[test]
fn templates_escape_everything_and_hold_no_inline_script_or_style() {
    let templates = files_below("templates", "html");
    complain(&templates, &[template_is_safe as Check]);
}

#[test]
fn the_tests_that_the_docs_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_to_string(root.join("docs/testing.md")).unwrap();
    let tests: String = files_below("tests", "rs").into_iter().map(|(_, text)| text).collect();
    let rules = ["r", "b", "case_"];
    let is_test = |word: &&str| {
        let rest = rules.iter().find_map(|start| word.strip_prefix(start));
        rest.is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit()) && rest.len() > 10 && !rest.contains('/')
        })
    };
    let named: Vec<&str> = docs.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() > 15, "{named:?}");
    let missing: Vec<_> = named.iter().filter(|name| !tests.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "docs/testing.md names tests that don't exist: {missing:?}");
}

fn complain(files: &[(String, String)], checks: &[Check]) {
    let complaints: Vec<String> =
        files.iter().flat_map(|(name, text)| checks.iter().flat_map(move |check| check(name, text))).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Each path from the crate's root that a file names must be one its own module may use.
fn arrows(name: &str, text: &str) -> Vec<String> {
    let own = module_path(name);
    let top = own.first().cloned().unwrap_or_else(|| "lib".to_owned());
    let allowed = MAY_USE.iter().find(|(module, _)| *module == top).map_or(&[][..], |(_, may)| may);
    let vocabulary = own.len() > 1 && VOCABULARY.contains(&own[..2].join("::").as_str());
    let mut complaints = Vec::new();
    for path in paths(&own, &code_of(without_tests(text))) {
        let head = path.split("::").next().unwrap_or_default();
        let to_itself = head == top && !vocabulary;
        let known = MAY_USE.iter().any(|(module, _)| *module == head);
        let permitted = allowed.iter().any(|may| path == *may || path.starts_with(&format!("{may}::"))) && !vocabulary
            || vocabulary && VOCABULARY.iter().any(|word| path.starts_with(word));
        if known && !to_itself && !permitted {
            complaints.push(format!("{name}: {} must not use {path}", own.join("::")));
        }
    }
    complaints
}

/// SQL drivers are named in `store` only, and engines are told apart in its dialect only.
fn engine_knowledge(name: &str, text: &str) -> Vec<String> {
    let code = code_of(text);
    let mut complaints = Vec::new();
    if !name.starts_with("src/store") && names_crate(&code, "sqlx") {
        complaints.push(format!("{name}: sqlx belongs in src/store"));
    }
    let variant = ["Sqlite", "Postgres", "MySql", "Mysql", "Mariadb", "MariaDb"]
        .iter()
        .any(|engine| code.contains(&format!("Engine::{engine}")));
    if name != "src/store/dialect.rs" && !name.starts_with("src/store/dialect/") && variant {
        complaints.push(format!("{name}: only src/store/dialect.rs tells engines apart"));
    }
    complaints
}

/// The core and the store know no HTTP, no template, no broker.
fn faceless_core(name: &str, text: &str) -> Vec<String> {
    if !name.starts_with("src/core") && !name.starts_with("src/store") {
        return Vec::new();
    }
    let code = code_of(text);
    ["axum", "axum_extra", "askama", "tower", "tower_http", "redis", "lapin", "reqwest", "clap", "utoipa"]
        .iter()
        .filter(|krate| names_crate(&code, krate))
        .map(|krate| format!("{name}: {krate} has no place in the core or the store"))
        .collect()
}

fn length(name: &str, text: &str) -> Vec<String> {
    let lines = without_tests(text).lines().count();
    if lines > LONGEST_FILE {
        return vec![format!("{name}: {lines} lines, split it by concept (≤ {LONGEST_FILE})")];
    }
    Vec::new()
}

/// A strict content policy forbids inline script and style; `safe` switches escaping off.
fn template_is_safe(name: &str, text: &str) -> Vec<String> {
    let lower = without_between(&text.to_lowercase(), "{#", "#}");
    let squeezed: String = lower.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut complaints = Vec::new();
    if squeezed.replace("| ", "|").contains("|safe") {
        complaints.push(format!("{name}: `safe` switches escaping off"));
    }
    if squeezed.contains("<style") || has_attribute(&squeezed, |word| word == "style") {
        complaints.push(format!("{name}: style belongs in static/"));
    }
    let handler = |word: &str| {
        word.strip_prefix("on")
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|letter| letter.is_ascii_lowercase()))
    };
    if has_attribute(&squeezed, handler) {
        complaints.push(format!("{name}: a handler in an attribute is inline script"));
    }
    let inline = squeezed.split("<script").skip(1).any(|after| {
        after
            .split_once('>')
            .is_none_or(|(tag, rest)| !tag.contains("src=") || !rest.trim_start().starts_with("</script"))
    });
    if inline {
        complaints.push(format!("{name}: script belongs in static/"));
    }
    complaints
}

/// Whether some `name=` follows a space or a quote, as attributes do.
fn has_attribute(text: &str, wanted: impl Fn(&str) -> bool) -> bool {
    text.match_indices('=').any(|(at, _)| {
        let before = text[..at].trim_end();
        let start = before
            .rfind(|letter: char| !letter.is_ascii_alphanumeric() && !"-_:".contains(letter))
            .map_or(0, |found| found + 1);
        let follows = before[..start].chars().next_back();
        matches!(follows, Some(' ' | '"' | '\'')) && wanted(&before[start..])
    })
}

/// `src/core/release/mod.rs` → core, release; `src/main.rs` → main.
fn module_path(name: &str) -> Vec<String> {
    name.trim_start_matches("src/")
        .trim_end_matches(".rs")
        .split('/')
        .filter(|part| *part != "mod" && *part != "lib")
        .map(String::from)
        .collect()
}

/// The paths a file names, from the crate's root: `crate::a::b`, `super::c`, and each arm of
/// `crate::{a, b::c}`.
fn paths(own: &[String], code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for root in ["crate::", "handback::"] {
        for start in word_starts(code, root) {
            expand("", &code[start + root.len()..], &mut found);
        }
    }
    for start in word_starts(code, "super::") {
        if code[..start].ends_with("super::") {
            continue;
        }
        let mut rest = &code[start..];
        let mut ups = 0;
        while let Some(after) = rest.strip_prefix("super::") {
            rest = after;
            ups += 1;
        }
        let base = own[..own.len().saturating_sub(ups)].join("::");
        expand(&base, rest, &mut found);
    }
    found
}

fn word_starts<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(|at| {
        let before = code[..*at].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    })
}

/// Adds what `rest` (the text after `base::`) names: one path, or one for each arm of a group.
fn expand(base: &str, rest: &str, found: &mut Vec<String>) {
    let rest = rest.trim_start();
    let Some(group) = rest.strip_prefix('{') else {
        let end =
            rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != ':').unwrap_or(rest.len());
        let path = join(base, rest[..end].trim_end_matches(':'));
        match rest[..end].strip_suffix("::") {
            Some(_) if rest[end..].starts_with('{') => expand(&path, &rest[end..], found),
            _ => found.push(path),
        }
        return;
    };
    let (mut depth, mut arm) = (0_u32, 0);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                if !group[arm..at].trim().is_empty() {
                    expand(base, &group[arm..at], found);
                }
                arm = at + 1;
                if letter == '}' {
                    return;
                }
            }
            _ => {}
        }
    }
}

fn join(base: &str, path: &str) -> String {
    if base.is_empty() { path.to_owned() } else { format!("{base}::{path}") }
}

fn names_crate(code: &str, krate: &str) -> bool {
    word_starts(code, krate).any(|at| {
        let after = &code[at + krate.len()..];
        after.starts_with("::") || after.starts_with(';') || after.starts_with(" as ")
    })
}

/// A file's text up to the tests at its end.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod").next().unwrap_or_default()
}

/// The text without comments and without what stands in plain string literals.
fn code_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let joined = lines.join("\n").replace("\\\"", "");
    let kept: Vec<&str> = joined.split('"').step_by(2).collect();
    kept.join("\"\"")
}

fn without_between(text: &str, open: &str, close: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        kept.push_str(before);
        rest = after.split_once(close).map_or("", |(_, after)| after);
    }
    kept + rest
}

fn sources() -> Vec<(String, String)> {
    let files = files_below("src", "rs");
    assert!(!files.is_empty(), "no source found");
    files
}

/// Name (from the package's folder) and text of each file below `folder`.
fn files_below(folder: &str, extension: &str) -> Vec<(String, String)> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![package.join(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                let name = path.strip_prefix(package).unwrap_or(&path).display().to_string();
                found.push((name, std::fs::read_to_string(&path).unwrap_or_default()));
            }
        }
    }
    found.sort();
    found
}

mod the_checks_can_fail {
    use super::*;

    #[test]
    fn an_arrow_that_runs_back_is_found_however_it_is_written() {
        for (name, text) in [
            ("src/store/task.rs", "use crate::core::release::plan;"),
            ("src/store/task.rs", "use crate::core;"),
            ("src/store/task.rs", "use super::super::core::policy::Policy;"),
            ("src/core/check.rs", "use crate::{store::db, web::state::State};"),
            ("src/core/order/close.rs", "fn f() { super::super::super::worker::runner::wake() }"),
            ("src/core/order/mod.rs", "use crate::{\n  store,\n  trigger::{scan},\n};"),
            ("src/core/words.rs", "use crate::store::db::Db;"),
            ("src/web/mod.rs", "use crate::cli::serve;"),
            ("src/worker/runner.rs", "use crate::web::live;"),
        ] {
            assert_ne!(arrows(name, text), Vec::<String>::new(), "{name}: {text}");
        }
    }

    #[test]
    fn an_arrow_that_runs_forward_is_fine() {
        for (name, text) in [
            ("src/store/task.rs", "use crate::core::words::{Action, TaskStatus};"),
            ("src/store/task.rs", "use super::db::Tx; use crate::core::{clock::Instant, text};"),
            ("src/core/order/close.rs", "use super::Order; use crate::store::order;"),
            ("src/core/text.rs", "// use crate::web\nconst A: &str = \"crate::web::x\";"),
            ("src/cli/serve.rs", "use crate::{web, worker::runner};"),
            ("src/main.rs", "use handback::cli;"),
        ] {
            assert_eq!(arrows(name, text), Vec::<String>::new(), "{name}: {text}");
        }
    }

    #[test]
    fn a_driver_outside_the_store_and_an_engine_outside_the_dialect_are_found() {
        let outside = |name, text| engine_knowledge(name, text).len();
        assert_eq!(outside("src/core/check.rs", "use sqlx::Row;"), 1);
        assert_eq!(outside("src/store/task.rs", "use sqlx::Row;"), 0);
        assert_eq!(outside("src/store/task.rs", "if engine == Engine::Postgres {}"), 1);
        assert_eq!(outside("src/store/dialect.rs", "Engine::Postgres => 1,"), 0);
        assert_eq!(outside("src/core/check.rs", "// sqlx::Row, Engine::Postgres"), 0);
    }

    #[test]
    fn a_face_in_the_core_is_found() {
        assert_eq!(faceless_core("src/core/check.rs", "use axum::Json;").len(), 1);
        assert_eq!(faceless_core("src/store/db.rs", "impl tower::Service for X {}").len(), 1);
        assert_eq!(faceless_core("src/web/error.rs", "use axum::Json;").len(), 0);
        assert_eq!(faceless_core("src/core/check.rs", "let flower = tower_of(1);").len(), 0);
    }

    #[test]
    fn a_file_that_is_too_long_is_found_but_its_tests_do_not_count() {
        let long = "line\n".repeat(LONGEST_FILE + 1);
        assert_eq!(length("src/core/check.rs", &long).len(), 1);
        let tested = format!("line\n#[cfg(test)]\nmod tests {{\n{long}}}");
        assert_eq!(length("src/core/check.rs", &tested).len(), 0);
    }

    #[test]
    fn unsafe_templates_are_found() {
        for text in [
            "{{ name|safe }}",
            "{{ name | safe }}",
            "<p style=\"color: red\">",
            "<p class=\"a\"style='x'>",
            "<style>p {}</style>",
            "<script>alert(1)</script>",
            "<script src=\"/a.js\">more()</script>",
            "<script nonce=\"{{ nonce }}\">go()</script>",
            "<a onclick=\"go()\">",
            "<body\n  onload = 'go()'>",
        ] {
            assert_eq!(template_is_safe("t.html", text).len(), 1, "{text}");
        }
        for text in [
            "<script src=\"/static/app.js\" defer></script>",
            "<p class=\"style on\">{# <p style=\"x\"> #}{{ name }}</p>",
            "<input data-on=\"1\" hx-on=\"none\">{% if on == 1 %}{% endif %}",
        ] {
            assert_eq!(template_is_safe("t.html", text), Vec::<String>::new(), "{text}");
        }
    }
}
