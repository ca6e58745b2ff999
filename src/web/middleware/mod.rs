//! The frame round every page: reads how the request wants to be answered, makes trouble into a page,
//! keeps a chosen language, shows a notice once, and sets the headers that keep a browser safe.

mod headers;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum_extra::extract::CookieJar;

use super::cookies::{self, Kind};
use super::desk::Desk;
use super::extract::{Ask, Part};
use super::i18n::Lang;
use super::render;
use super::trouble::Oops;
use super::view::error::ErrorPage;
use super::view::{Section, Shell};

pub async fn frame(State(desk): State<Desk>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let ask = Ask::read(&parts);
    let is_get = parts.method == Method::GET;
    parts.extensions.insert(ask.clone());
    let response = next.run(Request::from_parts(parts, body)).await;
    let response = match response.extensions().get::<Oops>().cloned() {
        Some(oops) => trouble_page(&desk, &ask, oops, response),
        None => response,
    };
    let response = keep(&desk, &ask, is_get, response);
    headers::secure(response, &ask.nonce, desk.app.public_url.is_https())
}

/// The page for a trouble, with the status and headers the answer had.
fn trouble_page(desk: &Desk, ask: &Ask, oops: Oops, bare: Response) -> Response {
    let of_reader = oops.face.as_ref().map(|face| face.lang.tag());
    let lang: Lang = ask.lang(&desk.app.public_url, of_reader, desk.language());
    let eye = desk.eye(lang, oops.face.as_ref().and_then(|face| face.zone.as_deref()));
    let shell = match &oops.face {
        Some(face) => face.shell(&eye, ask, Section::Elsewhere),
        None => {
            let mut shell = Shell::new(&eye, Section::Elsewhere);
            shell.nonce = ask.nonce.clone();
            shell.here = ask.here.clone();
            shell
        }
    };
    let page = ErrorPage::new(shell, oops.trouble);
    match render::page_as(&page, ask.part, bare.status()) {
        Ok(mut response) => {
            response.headers_mut().extend(bare.headers().clone());
            response
        }
        Err(_) => bare,
    }
}

/// Cookies that follow from the request itself.
fn keep(desk: &Desk, ask: &Ask, is_get: bool, response: Response) -> Response {
    let url = &desk.app.public_url;
    let mut jar = CookieJar::new();
    if let Some(lang) = ask.language.filter(|_| is_get) {
        jar = jar.add(cookies::make(url, Kind::Language, lang.tag().to_owned()));
    }
    let shown = is_get && ask.part != Part::Live && response.status().is_success() && is_page(&response);
    if shown && ask.cookie(url, Kind::Notice).is_some() {
        jar = jar.add(cookies::gone(url, Kind::Notice));
    }
    (jar, response).into_response()
}

fn is_page(response: &Response) -> bool {
    response.headers().get("content-type").is_some_and(|t| t.as_bytes().starts_with(b"text/html"))
}
