//! In front of the door: signing in and out, and the first run.

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use axum_extra::extract::CookieJar;
use serde::Deserialize;

use crate::core::account::{SetUp, SignedIn, check_name, check_password};
use crate::store::{Decision, session, user};
use crate::web::cookies::{self, Kind};
use crate::web::desk::Desk;
use crate::web::extract::{As, Checked, Guest, Viewer};
use crate::web::notice::Notice;
use crate::web::paths;
use crate::web::render::{self, Answer, Page};
use crate::web::trouble::Oops;
use crate::web::view::format;
use crate::web::view::gate::{LoginPage, SetupPage};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Back {
    back: String,
}

pub async fn show_sign_in(State(desk): State<Desk>, guest: Guest, Query(asked): Query<Back>) -> Answer {
    if guest.visit.is_some() {
        return render::see_other(paths::own_path(&asked.back).unwrap_or(paths::OVERVIEW));
    }
    if !is_anyone(&desk).await? {
        return render::see_other(paths::SETUP);
    }
    let page = LoginPage {
        s: guest.shell(&desk),
        username: String::new(),
        problem: String::new(),
        back: paths::own_path(&asked.back).unwrap_or("").to_owned(),
    };
    shown(&desk, &guest, &page, StatusCode::OK)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SignInForm {
    username: String,
    password: String,
    back: String,
}

pub async fn sign_in(State(desk): State<Desk>, guest: Guest, Checked(form): Checked<SignInForm>) -> Answer {
    let (url, lang) = (&desk.app.public_url, guest.eye.lang);
    let old = guest.ask.cookie(url, Kind::Session);
    let tried = desk.accounts.sign_in(&form.username, &form.password, &guest.ask.from(url), old).await?;
    let (problem, status, wait) = match tried {
        SignedIn::Yes { secret, device } => {
            let jar = CookieJar::new().add(cookies::make(url, Kind::Session, secret)).add(cookies::make(
                url,
                Kind::Device,
                device,
            ));
            let back = paths::own_path(&form.back).unwrap_or(paths::OVERVIEW);
            return Ok((jar, render::see_other(back)?).into_response());
        }
        SignedIn::Wrong => (lang.t("login.wrong").to_owned(), StatusCode::UNAUTHORIZED, 0),
        SignedIn::Wait(ms) => {
            let problem = lang.f("login.wait", &[("span", &format::span(lang, ms.max(1_000)))]);
            (problem, StatusCode::TOO_MANY_REQUESTS, ms)
        }
    };
    let page = LoginPage { s: guest.shell(&desk), username: form.username, problem, back: form.back };
    Ok(with_wait(shown(&desk, &guest, &page, status)?, wait))
}

pub async fn sign_out(State(desk): State<Desk>, As(visit, ..): As<Viewer>, _form: Checked<Back>) -> Answer {
    let url = &desk.app.public_url;
    let id = visit.session.id_hash.clone();
    let ended = desk.app.core.db.write(move |conn| {
        let id = id.clone();
        Box::pin(async move { Ok(Decision::Commit(session::end(conn, &id).await?)) })
    });
    ended.await?;
    let jar = CookieJar::new().add(cookies::gone(url, Kind::Session));
    Ok((jar, render::then(&desk, paths::LOGIN, Notice::SignedOut)?).into_response())
}

pub async fn show_set_up(State(desk): State<Desk>, guest: Guest) -> Answer {
    let over = is_anyone(&desk).await?;
    shown(&desk, &guest, &set_up_page(&desk, &guest, &SetUpForm::default(), over), StatusCode::OK)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SetUpForm {
    code: String,
    username: String,
    password: String,
}

pub async fn set_up(State(desk): State<Desk>, guest: Guest, Checked(form): Checked<SetUpForm>) -> Answer {
    let (url, lang) = (&desk.app.public_url, guest.eye.lang);
    let mut page = set_up_page(&desk, &guest, &form, false);
    if check_name(&form.username).is_err() {
        page.name_problem = lang.t("setup.name_problem").to_owned();
    }
    if check_password(&form.password).is_err() {
        page.password_problem = lang.t("setup.password_problem").to_owned();
    }
    if !page.name_problem.is_empty() || !page.password_problem.is_empty() {
        return shown(&desk, &guest, &page, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let from = guest.ask.from(url);
    let (status, wait) = match desk.accounts.set_up(&form.code, &form.username, &form.password, &from).await? {
        SetUp::Done => {
            let tried = desk.accounts.sign_in(&form.username, &form.password, &from, None).await?;
            let SignedIn::Yes { secret, device } = tried else { return render::see_other(paths::LOGIN) };
            let jar = CookieJar::new().add(cookies::make(url, Kind::Session, secret)).add(cookies::make(
                url,
                Kind::Device,
                device,
            ));
            return Ok((jar, render::then(&desk, paths::OVERVIEW, Notice::SetUp)?).into_response());
        }
        SetUp::Over => {
            page.over = true;
            (StatusCode::CONFLICT, 0)
        }
        SetUp::WrongCode => {
            page.code_problem = lang.t("setup.code_wrong").to_owned();
            (StatusCode::UNPROCESSABLE_ENTITY, 0)
        }
        SetUp::Wait(ms) => {
            page.problem = lang.f("login.wait", &[("span", &format::span(lang, ms.max(1_000)))]);
            (StatusCode::TOO_MANY_REQUESTS, ms)
        }
    };
    Ok(with_wait(shown(&desk, &guest, &page, status)?, wait))
}

fn set_up_page(desk: &Desk, guest: &Guest, form: &SetUpForm, over: bool) -> SetupPage {
    SetupPage {
        s: guest.shell(desk),
        code: form.code.clone(),
        username: form.username.clone(),
        problem: String::new(),
        code_problem: String::new(),
        name_problem: String::new(),
        password_problem: String::new(),
        over,
    }
}

async fn is_anyone(desk: &Desk) -> Result<bool, Oops> {
    Ok(user::is_anyone(&mut desk.app.core.db.read().await?).await?)
}

/// A page in front of the door, with the cookie that its form's token is compared with.
fn shown(desk: &Desk, guest: &Guest, page: &impl Page, status: StatusCode) -> Answer {
    let response = render::page_as(page, guest.ask.part, status)?;
    if !guest.is_new {
        return Ok(response);
    }
    let token = cookies::make(&desk.app.public_url, Kind::Form, guest.token.clone());
    Ok((CookieJar::new().add(token), response).into_response())
}

fn with_wait(mut response: Response, ms: i64) -> Response {
    if ms > 0 {
        response.headers_mut().insert(RETRY_AFTER, (ms / 1_000 + 1).into());
    }
    response
}
