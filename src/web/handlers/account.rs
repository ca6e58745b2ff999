//! One's own settings and sessions, the switch of language, and the page of keys.

use axum::extract::State;
use axum::response::IntoResponse;
use axum_extra::extract::CookieJar;
use serde::Deserialize;

use crate::store::{Decision, session, user};
use crate::web::cookies::{self, Kind};
use crate::web::desk::Desk;
use crate::web::extract::{As, Checked, Guest, Viewer, Visit};
use crate::web::i18n::Lang;
use crate::web::notice::Notice;
use crate::web::paths;
use crate::web::render::{self, Answer};
use crate::web::trouble::Oops;
use crate::web::view::account::{AccountPage, SessionRow, Settings};
use crate::web::view::error::{HelpPage, Trouble};
use crate::web::view::{Section, Zone};

pub async fn help(As(visit, ..): As<Viewer>) -> Answer {
    render::page(&HelpPage { s: visit.shell(Section::Help) }, visit.ask.part)
}

pub async fn show(State(desk): State<Desk>, As(visit, ..): As<Viewer>) -> Answer {
    let mut conn = desk.app.core.db.read().await?;
    let sessions = session::of_user(&mut conn, visit.user.id, visit.eye.now).await?;
    let rows = sessions.into_iter().map(|session| row(&visit, session)).collect();
    let settings = Settings {
        language: visit.user.language.clone(),
        zone: visit.user.zone.clone(),
        theme: visit.user.theme.clone(),
    };
    render::page(&AccountPage::new(visit.shell(Section::Account), &visit.eye, &settings, rows), visit.ask.part)
}

/// The hash of a session's secret names it; it opens nothing.
fn row(visit: &Visit, session: session::Session) -> SessionRow {
    let eye = &visit.eye;
    SessionRow {
        agent: session.agent.unwrap_or_default(),
        address: session.address.unwrap_or_default(),
        signed_in: eye.stamp(session.signed_in_at),
        seen: eye.lang.f("span.ago", &[("age", &eye.ago(session.seen_at))]),
        here: session.id_hash == visit.session.id_hash,
        handle: session.id_hash,
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SettingsForm {
    language: String,
    zone: String,
    theme: String,
}

pub async fn save(State(desk): State<Desk>, As(visit, ..): As<Viewer>, Checked(form): Checked<SettingsForm>) -> Answer {
    let known = form.language.is_empty() || Lang::from_tag(&form.language).is_some_and(|l| l.tag() == form.language);
    let known = known && (form.zone.is_empty() || Zone::find(&form.zone).is_some());
    if !known || !matches!(form.theme.as_str(), "" | "light" | "dark") {
        return Err(visit.oops(Trouble::BadRequest));
    }
    let chosen = |text: String| Some(text).filter(|text| !text.is_empty());
    let work = (visit.user.id, chosen(form.language), chosen(form.zone), chosen(form.theme));
    let saved = desk.app.core.db.write(move |conn| {
        let (id, language, zone, theme) = work.clone();
        Box::pin(async move {
            user::set_choices(conn, id, language.as_deref(), zone.as_deref(), theme.as_deref()).await?;
            Ok(Decision::Commit(()))
        })
    });
    saved.await?;
    render::then(&desk, paths::ACCOUNT, Notice::Saved)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct EndForm {
    session: String,
}

pub async fn end_session(
    State(desk): State<Desk>,
    As(visit, ..): As<Viewer>,
    Checked(form): Checked<EndForm>,
) -> Answer {
    if !form.session.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(visit.oops(Trouble::BadRequest));
    }
    let id = visit.user.id;
    let ended = desk.app.core.db.write(move |conn| {
        let handle = form.session.clone();
        Box::pin(async move { Ok(Decision::Commit(session::end_of(conn, id, &handle).await?)) })
    });
    // Zero rows: it had ended already, which is what was wanted.
    ended.await?;
    render::then(&desk, paths::ACCOUNT, Notice::SessionEnded)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LanguageForm {
    lang: String,
    back: String,
}

/// Of whoever is signed in the choice is kept with the account, of anyone else with the browser.
pub async fn set_language(State(desk): State<Desk>, guest: Guest, Checked(form): Checked<LanguageForm>) -> Answer {
    let lang = Lang::from_tag(&form.lang).ok_or(Oops::from(Trouble::BadRequest))?;
    if let Some(visit) = &guest.visit {
        let id = visit.user.id;
        let saved = desk.app.core.db.write(move |conn| {
            Box::pin(async move { Ok(Decision::Commit(user::set_language(conn, id, lang.tag()).await?)) })
        });
        saved.await?;
    }
    let kept = cookies::make(&desk.app.public_url, Kind::Language, lang.tag().to_owned());
    let back = paths::own_path(&form.back).unwrap_or(paths::OVERVIEW);
    Ok((CookieJar::new().add(kept), render::see_other(back)?).into_response())
}
