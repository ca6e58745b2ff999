//! One's own settings and sessions.

use askama::Template;

use super::tasks::Choice;
use super::{Eye, Section, Shell, format};
use crate::web::i18n::Lang;

#[derive(Template)]
#[template(path = "pages/account.html", blocks = ["content"])]
pub struct AccountPage {
    pub s: Shell,
    pub name: String,
    pub role: &'static str,
    pub languages: Vec<Choice>,
    pub zones: Vec<Choice>,
    pub themes: Vec<Choice>,
    pub sessions: Vec<SessionRow>,
    pub problem: String,
}

pub struct SessionRow {
    /// What the form sends to end it; no secret.
    pub handle: String,
    pub agent: String,
    pub address: String,
    pub signed_in: super::Stamp,
    pub seen: String,
    pub here: bool,
}

/// What the user has set; nothing where the configuration or the browser decides.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub language: Option<String>,
    pub zone: Option<String>,
    pub theme: Option<String>,
}

impl AccountPage {
    pub fn new(mut s: Shell, eye: &Eye, settings: &Settings, sessions: Vec<SessionRow>) -> AccountPage {
        s.section = Section::Account;
        let (name, role) = s.user.as_ref().map_or((String::new(), ""), |who| (who.name.clone(), who.role));
        let lang = eye.lang;
        AccountPage {
            name,
            role,
            languages: choices(
                &settings.language,
                lang.t("account.by_browser"),
                Lang::ALL.iter().map(|l| (l.tag(), l.own_name().to_owned())),
            ),
            zones: zones(lang, settings.zone.as_deref()),
            themes: choices(
                &settings.theme,
                lang.t("account.by_system"),
                [("light", lang.t("account.light").to_owned()), ("dark", lang.t("account.dark").to_owned())]
                    .into_iter(),
            ),
            sessions,
            problem: String::new(),
            s,
        }
    }
}

fn choices<'a>(now: &Option<String>, default: &str, all: impl Iterator<Item = (&'a str, String)>) -> Vec<Choice> {
    let now = now.as_deref().unwrap_or("");
    let first = Choice { value: String::new(), text: default.to_owned(), selected: now.is_empty() };
    let rest = all.map(|(value, text)| Choice { value: value.to_owned(), text, selected: value == now });
    std::iter::once(first).chain(rest).collect()
}

fn zones(lang: Lang, now: Option<&str>) -> Vec<Choice> {
    let names = format::zone_names();
    choices(&now.map(str::to_owned), lang.t("account.by_config"), names.iter().map(|n| (n.as_str(), n.clone())))
}
