//! Both catalogues are complete, agree in their placeholders, and hold what the code asks for and
//! nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::*;
use crate::core::words::{
    Action, AttemptOutcome, DiffClass, FailureKind, FundsKind, OrderStatus, PaymentStatus, ResourceType, RunStatus,
    TaskStatus, Trigger,
};

fn holes(text: &str) -> BTreeSet<&str> {
    pieces(text)
        .filter_map(|p| match p {
            Piece::Hole(name) => Some(name),
            Piece::Text(_) => None,
        })
        .collect()
}

fn keys_with_holes(catalogue: &Catalogue) -> BTreeMap<&str, BTreeSet<&str>> {
    let entries = catalogue.0.iter();
    entries
        .map(|(key, entry)| match entry {
            Entry::Plain(text) => (key.as_str(), holes(text)),
            Entry::Counted { other, .. } => (key.as_str(), holes(other)),
        })
        .collect()
}

#[test]
fn both_languages_have_the_same_keys_and_placeholders() {
    let en = Catalogue::parse(include_str!("../../locales/en.toml")).unwrap();
    let zh = Catalogue::parse(include_str!("../../locales/zh-CN.toml")).unwrap();
    let (en, zh) = (keys_with_holes(&en), keys_with_holes(&zh));
    let differ: Vec<_> = en
        .keys()
        .chain(zh.keys())
        .filter(|key| en.get(*key) != zh.get(*key))
        .map(|key| (key, en.get(key), zh.get(key)))
        .collect();
    assert!(differ.is_empty(), "keys or placeholders differ: {differ:#?}");
    assert!(en.len() > 100, "the catalogue was read");
}

#[test]
fn no_text_is_empty() {
    for lang in Lang::ALL {
        for (key, entry) in &lang.catalogue().0 {
            let (one, other) = match entry {
                Entry::Plain(text) => (text, text),
                Entry::Counted { one, other } => (one, other),
            };
            assert!(!one.trim().is_empty() && !other.trim().is_empty(), "{key} in {lang:?}");
        }
    }
}

/// Every file that may ask for a text.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join("templates"), root.join("src/web")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("i18n_tests.rs") {
                found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

/// Literals that look like a key: `"group.name"`, where the catalogue has such a group.
fn asked_for<'a>(text: &'a str, groups: &BTreeSet<&str>) -> Vec<&'a str> {
    let literals = text.split('"').filter(|literal| {
        let plain = literal.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'.');
        plain && !literal.ends_with('.') && literal.split_once('.').is_some_and(|(group, _)| groups.contains(group))
    });
    literals.collect()
}

#[test]
fn every_text_asked_for_exists() {
    let groups = Lang::En.catalogue().0.keys().filter_map(|k| k.split_once('.')).map(|(group, _)| group).collect();
    let mut missing = Vec::new();
    let mut seen = 0;
    for (file, text) in sources() {
        for key in asked_for(&text, &groups) {
            seen += 1;
            if Lang::En.catalogue().find(key).is_none() {
                missing.push(format!("{file}: {key}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(seen > 50, "the scan found the calls");
}

#[test]
fn no_text_is_left_over() {
    let all: String = sources().into_iter().map(|(_, text)| text).collect();
    let unused: Vec<_> = Lang::En
        .catalogue()
        .0
        .keys()
        .filter(|k| !k.starts_with("word."))
        .filter(|k| !all.contains(&format!("\"{k}\"")))
        .collect();
    assert!(unused.is_empty(), "nobody asks for {unused:#?}");
}

#[test]
fn every_word_of_the_glossary_is_translated() {
    let mut missing = Vec::new();
    let mut need = |group: &str, words: Vec<&str>| {
        for word in words {
            if Lang::En.word(group, word).is_empty() {
                missing.push(format!("word.{group}.{word}"));
            }
        }
    };
    need("type", ResourceType::ALL.iter().map(|w| w.word()).collect());
    need("task", TaskStatus::ALL.iter().map(|w| w.word()).collect());
    need("order", OrderStatus::ALL.iter().map(|w| w.word()).collect());
    need("payment", PaymentStatus::ALL.iter().map(|w| w.word()).collect());
    need("kind", FailureKind::ALL.iter().map(|w| w.word()).collect());
    need("action", Action::ALL.iter().map(|w| w.word()).collect());
    need("trigger", Trigger::ALL.iter().map(|w| w.word()).collect());
    need("outcome", AttemptOutcome::ALL.iter().map(|w| w.word()).collect());
    need("payment_means", PaymentStatus::ALL.iter().map(|w| w.word()).collect());
    need("return", vec!["accepted", "owed", "completed"]);
    need("screen", vec!["open", "waiting", "revoked", "code_ran_out"]);
    need("run", RunStatus::ALL.iter().map(|w| w.word()).collect());
    need("diff", DiffClass::ALL.iter().map(|w| w.word()).collect());
    need("diff_means", DiffClass::ALL.iter().map(|w| w.word()).collect());
    need("funds", FundsKind::ALL.iter().map(|w| w.word()).collect());
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn counts_pick_their_form_and_group_digits() {
    assert_eq!(Lang::En.n("count.pieces", 1, &[]), "1 piece");
    assert_eq!(Lang::En.n("count.pieces", 1234, &[]), "1,234 pieces");
    assert_eq!(Lang::Zh.n("count.pieces", 1, &[]), "1 件");
}

#[test]
fn language_follows_setting_then_cookie_then_browser() {
    let browser = Some("fr-FR, zh-CN;q=0.9, en;q=0.8");
    assert_eq!(Lang::choose(&[Some("en"), Some("zh-CN")], browser), Lang::En);
    assert_eq!(Lang::choose(&[None, Some("zh-CN")], Some("en")), Lang::Zh);
    assert_eq!(Lang::choose(&[None, Some("xx")], browser), Lang::Zh);
    assert_eq!(Lang::choose(&[], Some("zh;q=0, en;q=0.1")), Lang::En);
    assert_eq!(Lang::choose(&[], None), Lang::En);
}

#[test]
fn rich_texts_escape_what_is_not_markup() {
    let html = Lang::En.rich("task.order_link", &[("order", Html::text("<b>"))]);
    assert!(html.to_string().contains("&lt;b&gt;"), "{html}");
}
