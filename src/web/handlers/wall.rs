//! The wall and its screens. A screen has a cookie of its own and nothing else: it sees these figures and no page.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderValue, StatusCode};
use axum::response::IntoResponse;
use axum_extra::extract::CookieJar;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::events;
use crate::core::screen::{self, Registered};
use crate::store::screen::{self as screens, Screen};
use crate::web::cookies::{self, Kind};
use crate::web::desk::Desk;
use crate::web::extract::{Admin, As, Checked, Guest, Visit};
use crate::web::live::{self, TICK};
use crate::web::notice::Notice;
use crate::web::paths;
use crate::web::render::{self, Answer};
use crate::web::trouble::Oops;
use crate::web::view::Section;
use crate::web::view::error::Trouble;
use crate::web::view::screens::ScreensPage;
use crate::web::view::wall::{CodePage, WallPage, told};

/// A screen's row is written, and its right to look checked again, this often.
const LOOK_AGAIN_TICKS: u32 = 3;

pub async fn list(State(desk): State<Desk>, As(visit, ..): As<Admin>) -> Answer {
    render::page(&screens_page(&desk, &visit).await?, visit.ask.part)
}

async fn screens_page(desk: &Desk, visit: &Visit) -> Result<ScreensPage, Oops> {
    let all = screens::all(&mut desk.app.core.db.read().await?).await?;
    let wall = format!("{}{}", desk.app.public_url, paths::WALL);
    let mut s = visit.shell(Section::Screens);
    s.here = paths::SCREENS.to_owned();
    Ok(ScreensPage::new(s, &visit.eye, &all, wall))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct NameForm {
    name: String,
}

/// Registers a screen and shows its code, this once.
pub async fn register(State(desk): State<Desk>, As(visit, ..): As<Admin>, Checked(form): Checked<NameForm>) -> Answer {
    let name = form.name.trim();
    let lang = visit.eye.lang;
    let registered = screen::register(&desk.app.core, &visit.actor(), name).await;
    let mut page = screens_page(&desk, &visit).await?;
    let status = match registered {
        Ok(Registered::Yes { code }) => {
            page.code = Some((name.to_owned(), code));
            StatusCode::OK
        }
        Ok(Registered::NameTaken) => {
            page.problem = lang.t("screens.name_taken").to_owned();
            StatusCode::CONFLICT
        }
        Err(crate::core::Error::Invalid(_)) => {
            page.problem = lang.t("screens.name_problem").to_owned();
            StatusCode::UNPROCESSABLE_ENTITY
        }
        Err(error) => return Err(error.into()),
    };
    if page.code.is_none() {
        page.name = form.name;
    }
    render::page_as(&page, visit.ask.part, status)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct NoFields {}

pub async fn revoke(
    State(desk): State<Desk>,
    As(visit, ..): As<Admin>,
    Path(id): Path<String>,
    _: Checked<NoFields>,
) -> Answer {
    let id = id.parse().map_err(|_| visit.oops(Trouble::NotFound))?;
    screen::revoke(&desk.app.core, &visit.actor(), id).await?;
    render::then(&desk, paths::SCREENS, Notice::ScreenRevoked)
}

/// The screen whose cookie the request carries.
async fn own_screen(desk: &Desk, guest: &Guest) -> Result<Option<Screen>, Oops> {
    match guest.ask.cookie(&desk.app.public_url, Kind::Screen) {
        Some(secret) => Ok(screen::find(&desk.app.core, secret).await?),
        None => Ok(None),
    }
}

pub async fn show_code(State(desk): State<Desk>, guest: Guest) -> Answer {
    if let Some(screen) = own_screen(&desk, &guest).await? {
        return render::see_other(&paths::wall(screen.id));
    }
    code_page(&desk, &guest, "", StatusCode::OK)
}

fn code_page(desk: &Desk, guest: &Guest, problem: &str, status: StatusCode) -> Answer {
    let page = CodePage { s: guest.shell(desk), problem: problem.to_owned() };
    let response = render::page_as(&page, guest.ask.part, status)?;
    let token = cookies::make(&desk.app.public_url, Kind::Form, guest.token.clone());
    Ok((CookieJar::new().add(token), response).into_response())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CodeForm {
    code: String,
}

/// A code opens its screen once; from then on the browser has the screen's own cookie.
pub async fn open(State(desk): State<Desk>, guest: Guest, Checked(form): Checked<CodeForm>) -> Answer {
    match screen::open(&desk.app.core, &form.code).await? {
        Some((screen, secret)) => {
            let cookie = cookies::make(&desk.app.public_url, Kind::Screen, secret);
            Ok((CookieJar::new().add(cookie), render::see_other(&paths::wall(screen.id))?).into_response())
        }
        None => {
            let problem = guest.eye.lang.t("wall.code_wrong");
            code_page(&desk, &guest, problem, StatusCode::UNPROCESSABLE_ENTITY)
        }
    }
}

pub async fn show(State(desk): State<Desk>, guest: Guest, Path(id): Path<String>) -> Answer {
    let Some(screen) = own_screen(&desk, &guest).await?.filter(|screen| screen.id.to_string() == id) else {
        return render::see_other(paths::WALL);
    };
    screen::touch(&desk.app.core, screen.id).await?;
    let snapshot = live::read(&desk.app.core).await?;
    let page = WallPage::new(guest.shell(&desk), &guest.eye, (screen.id, &screen.name), &snapshot, TICK);
    // The cookie lasts from each look on: a screen that is looked at never has to be opened again.
    let kept = guest.ask.cookie(&desk.app.public_url, Kind::Screen).unwrap_or_default().to_owned();
    let cookie = cookies::make(&desk.app.public_url, Kind::Screen, kept);
    Ok((CookieJar::new().add(cookie), render::whole(&page)?).into_response())
}

/// The figures, for a page whose stream is silent.
pub async fn tiles(State(desk): State<Desk>, guest: Guest, Path(id): Path<String>) -> Answer {
    let Some(_) = own_screen(&desk, &guest).await?.filter(|screen| screen.id.to_string() == id) else {
        return Ok(StatusCode::UNAUTHORIZED.into_response());
    };
    let snapshot = live::read(&desk.app.core).await?;
    Ok(([(CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(told(&guest.eye, &snapshot))).into_response())
}

pub async fn stream(State(desk): State<Desk>, guest: Guest, Path(id): Path<String>) -> Answer {
    let Some(screen) = own_screen(&desk, &guest).await?.filter(|screen| screen.id.to_string() == id) else {
        return Ok(StatusCode::UNAUTHORIZED.into_response());
    };
    let (sender, receiver) = mpsc::channel::<Bytes>(4);
    tokio::spawn(run(desk, guest, screen, sender));
    events::answer(receiver)
}

/// Until the screen goes away, is revoked, or the process stops. The server's own beat comes also while the
/// figures can't be read: those then grow old, and say so.
async fn run(desk: Desk, mut guest: Guest, screen: Screen, sender: mpsc::Sender<Bytes>) {
    let mut live = desk.live.watch();
    let mut beat = tokio::time::interval(TICK);
    let mut beats: u32 = 0;
    loop {
        let next = tokio::select! {
            () = desk.app.stopping.cancelled() => return,
            () = sender.closed() => return,
            _ = beat.tick() => {
                beats += 1;
                match beats.is_multiple_of(LOOK_AGAIN_TICKS) && !still_there(&desk, &guest, &screen).await {
                    true => "event: gone\ndata: {}\n\n".to_owned(),
                    false => "event: beat\ndata: {}\n\n".to_owned(),
                }
            }
            changed = live.changed() => {
                if changed.is_err() {
                    return;
                }
                let snapshot = live.borrow_and_update().clone();
                guest.eye.now = desk.app.core.now();
                let told = snapshot.and_then(|snapshot| serde_json::to_string(&told(&guest.eye, &snapshot)).ok());
                told.map(|told| format!("event: tiles\ndata: {told}\n\n")).unwrap_or_default()
            }
        };
        if sender.send(Bytes::from(next)).await.is_err() {
            return;
        }
    }
}

/// Whether the screen may still look. A database that is away revokes nothing.
async fn still_there(desk: &Desk, guest: &Guest, screen: &Screen) -> bool {
    match own_screen(desk, guest).await {
        Ok(Some(found)) if found.id == screen.id => {
            if let Err(error) = screen::touch(&desk.app.core, screen.id).await {
                tracing::warn!(error = %error, "a screen's sign of life could not be written down");
            }
            true
        }
        Ok(_) => false,
        Err(_) => true,
    }
}
