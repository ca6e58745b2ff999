//! What page handlers have at hand beside the [`App`]: accounts and the live figures. One per process.

use std::sync::Arc;

use super::live::Live;
use super::state::App;
use super::view::{Eye, Zone};
use crate::config::Language;
use crate::core::account::Accounts;
use crate::web::i18n::Lang;

#[derive(Clone)]
pub struct Desk(Arc<Inner>);

pub struct Inner {
    pub app: App,
    pub accounts: Accounts,
    pub live: Live,
    zone: Zone,
}

impl std::ops::Deref for Desk {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Desk {
    pub fn new(app: App) -> Desk {
        let zone = Zone::find(&app.config.display.zone).unwrap_or_else(|| {
            tracing::warn!(zone = app.config.display.zone, "no such time zone; pages show UTC");
            Zone::utc()
        });
        let accounts = Accounts::new(app.core.clone());
        let live = Live::new(app.core.clone(), app.stopping.clone());
        Desk(Arc::new(Inner { app, accounts, live, zone }))
    }

    /// The configured language, as a tag.
    pub fn language(&self) -> Option<&'static str> {
        self.app.config.display.language.map(|language| match language {
            Language::Chinese => Lang::Zh.tag(),
            Language::English => Lang::En.tag(),
        })
    }

    /// How somebody who chose `zone` sees this moment.
    pub fn eye(&self, lang: Lang, zone: Option<&str>) -> Eye {
        let zone = zone.and_then(Zone::find).unwrap_or_else(|| self.zone.clone());
        Eye { lang, zone, now: self.app.core.now() }
    }

    pub fn max_failures(&self) -> i64 {
        self.app.core.policy.retry.max_failures
    }
}
