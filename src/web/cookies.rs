//! The cookies of the console. Their names follow the public address: over https they carry the
//! `__Host-` prefix, so that no neighbour on the domain can set them.

use axum_extra::extract::cookie::{Cookie, SameSite};
use time::Duration;

use crate::config::PublicUrl;
use crate::store::session::LONGEST_MS;

/// What a cookie is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The session's secret.
    Session,
    /// The token of forms that are sent before anyone is signed in.
    Form,
    /// The language chosen before anyone is signed in.
    Language,
    /// The answer to one's own act, shown once.
    Notice,
    /// That this browser signed in before.
    Device,
    /// A screen on the wall.
    Screen,
}

pub fn name(url: &PublicUrl, kind: Kind) -> &'static str {
    match (url.is_https(), kind) {
        (true, Kind::Session) => "__Host-hb",
        (true, Kind::Form) => "__Host-hb_form",
        (true, Kind::Language) => "__Host-hb_lang",
        (true, Kind::Notice) => "__Host-hb_notice",
        (true, Kind::Device) => "__Host-hb_device",
        (true, Kind::Screen) => "__Host-hb_screen",
        (false, Kind::Session) => "hb",
        (false, Kind::Form) => "hb_form",
        (false, Kind::Language) => "hb_lang",
        (false, Kind::Notice) => "hb_notice",
        (false, Kind::Device) => "hb_device",
        (false, Kind::Screen) => "hb_screen",
    }
}

pub fn make(url: &PublicUrl, kind: Kind, value: String) -> Cookie<'static> {
    let cookie = Cookie::build((name(url, kind), value)).path("/").http_only(true).secure(url.is_https());
    let cookie = match kind {
        Kind::Session => cookie.same_site(SameSite::Lax).max_age(Duration::milliseconds(LONGEST_MS)),
        Kind::Form => cookie.same_site(SameSite::Strict),
        Kind::Language => cookie.same_site(SameSite::Lax).max_age(Duration::days(365)),
        Kind::Notice => cookie.same_site(SameSite::Lax).max_age(Duration::seconds(60)),
        Kind::Screen => cookie.same_site(SameSite::Lax).max_age(Duration::days(400)),
        Kind::Device => cookie.same_site(SameSite::Strict).max_age(Duration::days(90)),
    };
    cookie.build()
}

/// Takes a cookie away.
pub fn gone(url: &PublicUrl, kind: Kind) -> Cookie<'static> {
    let mut cookie = make(url, kind, String::new());
    cookie.make_removal();
    cookie
}
