//! Page or fragment: the one place that decides, and says so in `Vary`.

use askama::Template;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, VARY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum_extra::extract::CookieJar;

use super::cookies::{self, Kind};
use super::desk::Desk;
use super::extract::Part;
use super::notice::Notice;
use super::trouble::Oops;
use super::view::{
    account, confirm, error, gate, order, orders, overview, reconcile, refunds, returns, screens, task, tasks, wall,
};

pub type Answer = Result<Response, Oops>;

/// A template whose parts can stand alone.
pub trait Page {
    fn part(&self, part: Part) -> askama::Result<String>;
}

macro_rules! pages {
    ($($page:ty),+ $(,)?) => {$(
        impl Page for $page {
            fn part(&self, part: Part) -> askama::Result<String> {
                match part {
                    Part::Whole => self.render(),
                    Part::Content | Part::Live => self.as_content().render(),
                }
            }
        }
    )+};
}

macro_rules! pages_that_live {
    ($($page:ty),+ $(,)?) => {$(
        impl Page for $page {
            fn part(&self, part: Part) -> askama::Result<String> {
                match part {
                    Part::Whole => self.render(),
                    Part::Content => self.as_content().render(),
                    Part::Live => self.as_live().render(),
                }
            }
        }
    )+};
}

pages!(
    tasks::TasksPage,
    orders::OrdersPage,
    order::OrderPage,
    reconcile::ReconcilePage,
    returns::ReturnsPage,
    refunds::RefundsPage,
    confirm::ConfirmPage,
    screens::ScreensPage,
    wall::CodePage,
    account::AccountPage,
    gate::LoginPage,
    gate::SetupPage,
    error::ErrorPage,
    error::HelpPage,
);
pages_that_live!(overview::OverviewPage, task::TaskPage);

pub fn page(page: &impl Page, part: Part) -> Answer {
    page_as(page, part, StatusCode::OK)
}

pub fn page_as(page: &impl Page, part: Part, status: StatusCode) -> Answer {
    let html = page.part(part)?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (VARY, HeaderValue::from_static("HX-Request, HX-Target, Cookie, Accept-Language")),
    ];
    Ok((status, headers, html).into_response())
}

/// A page that has no parts.
pub fn whole(page: &impl Template) -> Answer {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, page.render()?).into_response())
}

/// After an act: to the page that shows it, with what is to be said there.
pub fn then(desk: &Desk, path: &str, notice: Notice) -> Answer {
    let notice = cookies::make(&desk.app.public_url, Kind::Notice, notice.code());
    Ok((CookieJar::new().add(notice), see_other(path)?).into_response())
}

pub fn see_other(path: &str) -> Answer {
    let path = HeaderValue::from_str(path).map_err(|_| Oops::from(error::Trouble::BadRequest))?;
    Ok((StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response())
}
