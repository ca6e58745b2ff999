//! Who makes a request. The role a handler needs stands in its signature and is checked here, on every
//! request, from the session's row: a role that was taken away ends at once.

use std::convert::Infallible;
use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;

use super::form::Tokens;
use super::{Ask, Part};
use crate::core::account;
use crate::core::words::{Actor, Role};
use crate::store::Decision;
use crate::store::session::{self, Session};
use crate::store::user::{self, User};
use crate::web::cookies::Kind;
use crate::web::desk::Desk;
use crate::web::i18n::Lang;
use crate::web::notice::Notice;
use crate::web::trouble::{Face, Oops, to_set_up, to_sign_in};
use crate::web::view::error::Trouble;
use crate::web::view::{Eye, Section, Shell, Who};

/// A session's row is written at most this often for having been used.
const TOUCH_MS: i64 = 60_000;

/// The least role a handler asks for.
pub trait Need {
    const ROLE: Role;
}

macro_rules! needs {
    ($($(#[$doc:meta])* $name:ident = $role:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Need for $name {
            const ROLE: Role = $role;
        }
    )+};
}

needs! {
    /// Anyone who is signed in.
    Viewer = Role::Viewer;
    /// Whoever looks after callers.
    Service = Role::Service;
    Operator = Role::Operator;
    Lead = Role::Lead;
    Admin = Role::Admin;
}

/// A request of somebody whose role includes `N`.
pub struct As<N>(pub Visit, pub PhantomData<N>);

/// Somebody who is signed in, and how they see the console.
pub struct Visit {
    pub user: User,
    pub session: Session,
    pub eye: Eye,
    pub ask: Ask,
    notice: Option<Notice>,
    plain_http: bool,
}

impl<N: Need> FromRequestParts<Desk> for As<N> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, desk: &Desk) -> Result<Self, Response> {
        let ask = asked(parts);
        let visit = match Visit::find(desk, &ask).await {
            Ok(Some(visit)) => visit,
            Ok(None) => return Err(stranger(desk, &ask).await),
            Err(oops) => return Err(oops.into()),
        };
        if !visit.user.role.includes(N::ROLE) {
            return Err(visit.oops(Trouble::Forbidden).into());
        }
        visit.touch(desk).await;
        parts.extensions.insert(Tokens(vec![visit.session.csrf.clone()]));
        Ok(As(visit, PhantomData))
    }
}

impl Visit {
    /// Whose session the request carries, if it is live.
    async fn find(desk: &Desk, ask: &Ask) -> Result<Option<Visit>, Oops> {
        let url = &desk.app.public_url;
        let Some(secret) = ask.cookie(url, Kind::Session) else { return Ok(None) };
        let Some((user, session)) = desk.accounts.session(secret).await? else { return Ok(None) };
        let lang = ask.lang(url, user.language.as_deref(), desk.language());
        Ok(Some(Visit {
            eye: desk.eye(lang, user.zone.as_deref()),
            notice: ask.cookie(url, Kind::Notice).and_then(Notice::parse),
            plain_http: url.is_plain_elsewhere(),
            ask: ask.clone(),
            user,
            session,
        }))
    }

    /// Something was done. What renews itself is nothing done: an open page alone doesn't stay signed in.
    async fn touch(&self, desk: &Desk) {
        if self.ask.part == Part::Live || self.eye.now - self.session.seen_at < TOUCH_MS {
            return;
        }
        let (id, now) = (self.session.id_hash.clone(), self.eye.now);
        let touched = desk.app.core.db.write(move |conn| {
            let id = id.clone();
            Box::pin(async move { Ok(Decision::Commit(session::touch(conn, &id, now).await?)) })
        });
        if let Err(error) = touched.await {
            tracing::warn!(error = %error, "a session's use could not be written down");
        }
    }

    pub fn may(&self, needed: Role) -> bool {
        self.user.role.includes(needed)
    }

    pub fn actor(&self) -> Actor {
        Actor::Operator(self.user.name.clone())
    }

    pub fn shell(&self, section: Section) -> Shell {
        let mut s = self.face().shell(&self.eye, &self.ask, section);
        s.flash = self.notice.map(|notice| notice.flash(self.eye.lang));
        s.plain_http = self.plain_http;
        s.is_admin = self.may(Role::Admin);
        s
    }

    fn face(&self) -> Face {
        let role = self.eye.lang.word("role", self.user.role.word());
        Face {
            lang: self.eye.lang,
            zone: self.user.zone.clone(),
            theme: match self.user.theme.as_deref() {
                Some("light") => "light",
                Some("dark") => "dark",
                _ => "",
            },
            csrf: self.session.csrf.clone(),
            who: Some(Who { name: self.user.name.clone(), role }),
        }
    }

    /// What went wrong, on a page that still knows its reader.
    pub fn oops(&self, trouble: Trouble) -> Oops {
        Oops { trouble, face: Some(self.face()) }
    }
}

/// The frame has read every request; one that comes another way is read here.
fn asked(parts: &Parts) -> Ask {
    parts.extensions.get::<Ask>().cloned().unwrap_or_else(|| Ask::read(parts))
}

/// Where somebody goes who isn't signed in: to the sign-in, or to the first run when there is nobody yet.
async fn stranger(desk: &Desk, ask: &Ask) -> Response {
    let anyone = async { user::is_anyone(&mut desk.app.core.db.read().await?).await };
    match anyone.await {
        Ok(true) => to_sign_in(desk, ask),
        Ok(false) => to_set_up(ask),
        Err(error) => Oops::from(error).into(),
    }
}

/// Anyone, signed in or not: for the pages in front of the door.
pub struct Guest {
    pub eye: Eye,
    pub ask: Ask,
    pub visit: Option<Visit>,
    pub token: String,
    /// The token is new: the answer has to set its cookie.
    pub is_new: bool,
    plain_http: bool,
}

impl FromRequestParts<Desk> for Guest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, desk: &Desk) -> Result<Self, Infallible> {
        let ask = asked(parts);
        let url = &desk.app.public_url;
        // A database that is away signs nobody in; the page in front of the door still opens.
        let visit = Visit::find(desk, &ask).await.unwrap_or_default();
        let known = ask.cookie(url, Kind::Form).map(str::to_owned);
        let mut tokens: Vec<String> = known.iter().cloned().collect();
        tokens.extend(visit.iter().map(|visit| visit.session.csrf.clone()));
        parts.extensions.insert(Tokens(tokens));
        let lang: Lang = match &visit {
            Some(visit) => visit.eye.lang,
            None => ask.lang(url, None, desk.language()),
        };
        Ok(Guest {
            eye: desk.eye(lang, visit.as_ref().and_then(|visit| visit.user.zone.as_deref())),
            is_new: known.is_none(),
            token: known.unwrap_or_else(account::secret),
            plain_http: url.is_plain_elsewhere(),
            visit,
            ask,
        })
    }
}

impl Guest {
    pub fn shell(&self, desk: &Desk) -> Shell {
        let mut s = Shell::new(&self.eye, Section::Elsewhere);
        s.nonce = self.ask.nonce.clone();
        s.csrf = self.token.clone();
        s.here = self.ask.here.clone();
        s.plain_http = self.plain_http;
        let notice = self.ask.cookie(&desk.app.public_url, Kind::Notice).and_then(Notice::parse);
        s.flash = notice.map(|notice| notice.flash(self.eye.lang));
        s
    }
}
