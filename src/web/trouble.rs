//! What pages answer when they can't show what was asked. A handler names the trouble; the frame, which
//! knows how the request wants to be answered, makes the page. What broke inside goes to the log only.

use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum_extra::extract::CookieJar;

use super::cookies::{self, Kind};
use super::desk::Desk;
use super::extract::{Ask, Part};
use super::i18n::Lang;
use super::notice::Notice;
use super::paths;
use super::view::error::Trouble;
use super::view::{Eye, Section, Shell, Who};
use crate::{core, store};

/// What a page knows of its reader.
#[derive(Clone, Debug)]
pub struct Face {
    pub lang: Lang,
    pub zone: Option<String>,
    pub theme: &'static str,
    pub csrf: String,
    pub who: Option<Who>,
}

impl Face {
    pub fn shell(&self, eye: &Eye, ask: &Ask, section: Section) -> Shell {
        let mut s = Shell::new(eye, section);
        s.theme = self.theme;
        s.nonce = ask.nonce.clone();
        s.csrf = self.csrf.clone();
        s.user = self.who.clone();
        s.here = ask.here.clone();
        s
    }
}

/// A trouble on its way to the frame.
#[derive(Clone, Debug)]
pub struct Oops {
    pub trouble: Trouble,
    pub face: Option<Face>,
}

impl From<Trouble> for Oops {
    fn from(trouble: Trouble) -> Oops {
        Oops { trouble, face: None }
    }
}

impl From<store::Error> for Oops {
    fn from(error: store::Error) -> Oops {
        if error.is(store::Class::Away) {
            tracing::warn!(error = %error, "the database can't be reached");
            return Trouble::DatabaseAway.into();
        }
        tracing::error!(error = %error, "a page could not be made");
        Trouble::Broken.into()
    }
}

impl From<core::Error> for Oops {
    fn from(error: core::Error) -> Oops {
        match error {
            core::Error::Invalid(_) => Trouble::BadRequest.into(),
            core::Error::Store(error) => error.into(),
        }
    }
}

impl From<askama::Error> for Oops {
    fn from(error: askama::Error) -> Oops {
        tracing::error!(error = %error, "a page could not be written");
        Trouble::Broken.into()
    }
}

impl IntoResponse for Oops {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.trouble.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        if self.trouble == Trouble::DatabaseAway {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("2"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Oops> for Response {
    fn from(oops: Oops) -> Response {
        oops.into_response()
    }
}

/// Whoever isn't signed in goes to the sign-in, and comes back afterwards.
pub fn to_sign_in(desk: &Desk, ask: &Ask) -> Response {
    let url = &desk.app.public_url;
    let back = if ask.part == Part::Whole && ask.here != "/" { ask.here.as_str() } else { "" };
    let path = paths::with_query(paths::LOGIN, &[("back", back)]);
    let mut jar = CookieJar::new();
    if ask.cookie(url, Kind::Session).is_some() {
        // There was a session: say that it ended, and take its cookie away.
        jar = jar.add(cookies::gone(url, Kind::Session));
        jar = jar.add(cookies::make(url, Kind::Notice, Notice::Expired.code()));
    }
    (jar, elsewhere(ask, &path)).into_response()
}

pub fn to_set_up(ask: &Ask) -> Response {
    elsewhere(ask, paths::SETUP)
}

/// A part of a page can't be a whole other page: htmx is told to move the window.
fn elsewhere(ask: &Ask, path: &str) -> Response {
    let Ok(path) = HeaderValue::from_str(path) else { return Oops::from(Trouble::BadRequest).into() };
    if ask.is_htmx {
        (StatusCode::UNAUTHORIZED, [("hx-redirect", path)]).into_response()
    } else {
        (StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response()
    }
}
