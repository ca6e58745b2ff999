//! Every template in both languages, with ordinary data and with hostile text in every field.

use askama::Template;

use super::error::Trouble;
use super::samples::{self, eye};
use crate::core::words::TaskStatus;
use crate::web::i18n::Lang;

const HOSTILE: &str = "\"'><script>alert(1)</script><img src=x hx-get=\"/logout\" onerror=alert(1)>";

/// Every page there is, rendered whole.
fn pages(lang: Lang, hostile: &str) -> Vec<(String, String)> {
    let eye = eye(lang);
    let mut pages = vec![
        ("overview", samples::overview(&eye, hostile).render()),
        ("overview-empty", samples::overview_empty(&eye).render()),
        ("tasks", samples::tasks(&eye, hostile).render()),
        ("tasks-empty", samples::tasks_empty(&eye).render()),
        ("orders", samples::orders(&eye, hostile).render()),
        ("orders-none", samples::orders_none(&eye, hostile).render()),
        ("returns", samples::returns(&eye, hostile).render()),
        ("returns-none", samples::returns_none(&eye).render()),
        ("order", samples::order(&eye, hostile).render()),
        ("shops-order", samples::shops_order(&eye, true, hostile).render()),
        ("shops-order-unreadable", samples::shops_order(&eye, false, hostile).render()),
        ("reconcile", samples::reconcile(&eye, hostile).render()),
        ("reconcile-never", samples::reconcile_empty(&eye).render()),
        ("refunds", samples::refunds(&eye, hostile).render()),
        ("refunds-none", samples::refunds_none(&eye).render()),
        ("confirm", samples::confirm(&eye, hostile).render()),
        ("screens", samples::screens(&eye, hostile).render()),
        ("wall", samples::wall(&eye, hostile).render()),
        ("wall-code", samples::code(&eye, hostile).render()),
        ("account", samples::account(&eye, hostile).render()),
        ("login", samples::login(&eye, hostile).render()),
        ("setup", samples::setup(&eye, hostile).render()),
        ("help", samples::help(&eye, hostile).render()),
        ("trouble", samples::trouble(&eye, Trouble::DatabaseAway, hostile).render()),
    ];
    for status in [TaskStatus::Retrying, TaskStatus::Manual, TaskStatus::Succeeded, TaskStatus::ForceClosed] {
        let name = ["task", "task-manual", "task-succeeded", "task-closed"][pages.len() % 4];
        pages.push((name, samples::task_page(&eye, status, hostile).render()));
    }
    for trouble in Trouble::ALL {
        pages.push(("trouble", samples::trouble(&eye, trouble, hostile).render()));
    }
    pages.into_iter().map(|(name, html)| (format!("{name} {}", lang.tag()), html.unwrap())).collect()
}

#[test]
fn every_page_renders_in_both_languages() {
    for lang in Lang::ALL {
        for (name, html) in pages(lang, "") {
            assert!(html.contains(&format!("<html lang=\"{}\"", lang.tag())), "{name}");
            assert!(!html.contains("(missing text)"), "{name} lacks a text");
            let body = html.split("<body>").nth(1).unwrap();
            // What the wall's script fills in again and again.
            let body = body.replace("{age}", "").replace("{at}", "");
            assert!(!body.contains('{'), "{name} has an unfilled placeholder");
            assert!(html.ends_with("</html>"), "{name} is whole");
        }
    }
}

#[test]
fn hostile_text_stays_text_on_every_page() {
    for lang in Lang::ALL {
        let clean = pages(lang, "");
        for ((name, html), (_, clean)) in pages(lang, HOSTILE).into_iter().zip(clean) {
            assert!(!html.contains("<script>"), "{name}: a script got through");
            assert!(!html.contains("<img"), "{name}: an element got through");
            let scripts = |text: &str| text.matches("<script").count();
            assert_eq!(scripts(&html), scripts(&clean), "{name}: as many scripts as without hostile text");
        }
    }
}

#[test]
fn no_page_carries_inline_script_or_style() {
    for (name, html) in pages(Lang::En, "") {
        assert!(!html.contains(" style=") && !html.contains("<style"), "{name} has inline style");
        assert!(!html.contains(" onclick=") && !html.contains("javascript:"), "{name} has inline script");
        for script in html.split("<script").skip(1) {
            let tag = script.split('>').next().unwrap();
            assert!(tag.contains(" src=\"/static/") && tag.contains("nonce=\"n0nce\""), "{name}: <script{tag}>");
        }
    }
}

#[test]
fn every_element_that_htmx_works_on_carries_the_nonce() {
    for (name, html) in pages(Lang::En, "") {
        for tag in
            html.split('<').filter(|t| t.contains(" hx-get=") || t.contains(" hx-post=") || t.contains("hx-sse:"))
        {
            assert!(tag.contains("hx-nonce=\"n0nce\""), "{name}: <{tag}");
        }
    }
}

#[test]
fn every_form_that_changes_something_carries_the_token() {
    for (name, html) in pages(Lang::En, "") {
        for form in html.split("<form").skip(1) {
            let form = form.split("</form>").next().unwrap();
            if form.contains("method=\"post\"") {
                assert!(form.contains("name=\"csrf\" value=\"t0ken\""), "{name}: {form}");
            }
        }
    }
}

#[test]
fn figures_and_rows_carry_the_names_that_programs_look_for() {
    let overview = samples::overview(&eye(Lang::En), "").render().unwrap();
    for stat in ["backlog.waiting.stock", "backlog.manual.slot", "oldest_age_s", "failures.coupon.remote_timeout.hour"]
    {
        assert!(overview.contains(&format!("data-stat=\"{stat}\"")), "{stat}");
    }
    let tasks = samples::tasks(&eye(Lang::En), "").render().unwrap();
    assert!(tasks.contains("data-task-id=\"918207\""));
    let task = samples::task_page(&eye(Lang::En), TaskStatus::Retrying, "").render().unwrap();
    assert!(task.contains("name=\"expected_version\" value=\"9\"") && task.contains("name=\"reason\""));
}

#[test]
fn what_is_not_known_is_not_shown_as_zero() {
    let html = samples::overview_empty(&eye(Lang::En)).render().unwrap();
    let figure = |stat: &str| {
        let rest = html.split(&format!("data-stat=\"{stat}\">")).nth(1).unwrap();
        rest.split('<').next().unwrap().trim().to_owned()
    };
    assert_eq!(figure("success_rate.hour"), "–");
    assert_eq!(figure("oldest_age_s"), "–");
    assert_eq!(figure("backlog.waiting.stock"), "0", "counted, and none there");
}

#[test]
fn a_live_part_is_the_same_text_in_the_page_and_alone() {
    let page = samples::overview(&eye(Lang::Zh), "");
    let (whole, part) = (page.render().unwrap(), page.as_live().render().unwrap());
    assert!(part.len() > 1_000 && whole.contains(&part));
    assert!(!part.contains("hx-"), "what the stream sends needs no htmx of its own");
}

/// Writes every page to a folder, to look at them in a browser: `HANDBACK_PAGES=/tmp/pages cargo test write_pages`.
#[test]
fn write_pages_where_asked() {
    let Ok(folder) = std::env::var("HANDBACK_PAGES") else { return };
    for lang in Lang::ALL {
        for (name, html) in pages(lang, "") {
            std::fs::write(format!("{folder}/{}.html", name.replace(' ', ".")), html).unwrap();
        }
    }
}
