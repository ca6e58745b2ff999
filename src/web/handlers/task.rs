//! One task, and the two acts of a person: retry, force-close. Both enter the core; the page afterwards
//! says what happened, also when somebody else was faster.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;

use crate::core::account::{CONFIRM_MS, Confirmed};
use crate::core::order::look::ask_for_help;
use crate::core::release::act::{self, ForceClose, ForceClosed, Resolution, Retried};
use crate::core::words::{ResourceType, Role};
use crate::core::{Error, text};
use crate::store::task_list::{self, TaskView};
use crate::web::desk::Desk;
use crate::web::extract::{As, Checked, Operator, Service, Viewer, Visit};
use crate::web::notice::Notice;
use crate::web::paths;
use crate::web::render::{self, Answer};
use crate::web::trouble::Oops;
use crate::web::view::error::Trouble;
use crate::web::view::task::{Forms, TaskPage};
use crate::web::view::{Section, format};

pub async fn show(State(desk): State<Desk>, As(visit, ..): As<Viewer>, Path(id): Path<String>) -> Answer {
    let view = find(&desk, &visit, &id).await?;
    let forms = forms(&visit, &view);
    let max = desk.max_failures();
    let mut page = TaskPage::new(visit.shell(Section::Tasks), &visit.eye, &view, max, forms);
    if visit.may(Role::Service) && !visit.may(Role::Operator) && view.row.status.is_unfinished() {
        page.call_href = paths::calls(view.row.id);
    }
    render::page(&page, visit.ask.part)
}

/// Somebody who looks after callers asks those who run the tasks to look at one.
pub async fn call(
    State(desk): State<Desk>,
    As(visit, ..): As<Service>,
    Path(id): Path<String>,
    Checked(form): Checked<RetryForm>,
) -> Answer {
    let id = number(&visit, &id)?;
    match ask_for_help(&desk.app.core, &visit.actor(), id, form.reason.trim()).await {
        Ok(true) => render::then(&desk, &paths::task(id), Notice::Called(id)),
        Ok(false) => Err(visit.oops(Trouble::TaskGone)),
        Err(Error::Invalid(_)) => Err(visit.oops(Trouble::BadRequest)),
        Err(error) => Err(error.into()),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RetryForm {
    reason: String,
}

pub async fn retry(
    State(desk): State<Desk>,
    As(visit, ..): As<Operator>,
    Path(id): Path<String>,
    Checked(form): Checked<RetryForm>,
) -> Answer {
    let id = number(&visit, &id)?;
    let retried = match act::retry(&desk.app.core, &visit.actor(), id, form.reason.trim()).await {
        Err(Error::Invalid(_)) => return refuse_retry(&desk, &visit, id, form).await,
        retried => retried?,
    };
    let notice = match retried {
        Retried::Succeeded(_) => Notice::RetrySucceeded(id),
        Retried::AlreadyDone(_) => Notice::RetryAlready(id),
        Retried::Failed(task) => Notice::RetryFailed(id, task.kind),
        Retried::NotRetryable(task) => Notice::NotRetryable(id, task.status),
        Retried::OrderOpen(_) => Notice::OrderOpen(id),
        Retried::Unknown => return Err(visit.oops(Trouble::TaskGone)),
    };
    render::then(&desk, &paths::task(id), notice)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CloseForm {
    reason: String,
    expected_version: String,
    resolution: String,
    password: String,
}

pub async fn close(
    State(desk): State<Desk>,
    As(visit, ..): As<Operator>,
    Path(id): Path<String>,
    Checked(form): Checked<CloseForm>,
) -> Answer {
    let id = number(&visit, &id)?;
    let expected_version = form.expected_version.parse().map_err(|_| visit.oops(Trouble::BadRequest))?;
    let resolution = match form.resolution.as_str() {
        "" | "leave_owed" => Resolution::LeaveOwed,
        "done_outside" => Resolution::DoneOutside,
        _ => return Err(visit.oops(Trouble::BadRequest)),
    };
    let reason = form.reason.trim().to_owned();
    if text::check_text(&reason, text::REASON_MAX).is_err() {
        return refuse_close(&desk, &visit, id, form, Refused::Reason).await;
    }
    if let Some(refused) = confirm(&desk, &visit, &form).await? {
        return refuse_close(&desk, &visit, id, form, refused).await;
    }
    let order = ForceClose { task_id: id, reason, expected_version, resolution };
    match act::force_close(&desk.app.core, &visit.actor(), order).await? {
        ForceClosed::ForceClosed(_) => render::then(&desk, &paths::task(id), Notice::Closed(id)),
        ForceClosed::AlreadyForceClosed(_) => render::then(&desk, &paths::task(id), Notice::AlreadyClosed(id)),
        ForceClosed::NotClosable(task) => render::then(&desk, &paths::task(id), Notice::NotClosable(id, task.status)),
        ForceClosed::Stale(_) => refuse_close(&desk, &visit, id, form, Refused::Stale).await,
        ForceClosed::Unknown => Err(visit.oops(Trouble::TaskGone)),
    }
}

/// Why a closure was not made.
#[derive(Clone, Copy, Debug)]
enum Refused {
    Reason,
    Password,
    Wait(i64),
    /// The row changed since it was seen.
    Stale,
}

/// Asks for the password when it was last given too long ago.
async fn confirm(desk: &Desk, visit: &Visit, form: &CloseForm) -> Result<Option<Refused>, Oops> {
    if !asks_password(visit) {
        return Ok(None);
    }
    let from = visit.ask.from(&desk.app.public_url);
    let confirmed = desk.accounts.confirm(&visit.user, &visit.session, &form.password, &from).await?;
    Ok(match confirmed {
        Confirmed::Yes => None,
        Confirmed::Wrong => Some(Refused::Password),
        Confirmed::Wait(ms) => Some(Refused::Wait(ms)),
    })
}

fn asks_password(visit: &Visit) -> bool {
    visit.eye.now - visit.session.signed_in_at > CONFIRM_MS
}

fn number(visit: &Visit, id: &str) -> Result<i64, Oops> {
    id.parse().map_err(|_| visit.oops(Trouble::TaskGone))
}

async fn find(desk: &Desk, visit: &Visit, id: &str) -> Result<TaskView, Oops> {
    let id = number(visit, id)?;
    let mut conn = desk.app.core.db.read().await?;
    let view = task_list::view(&mut conn, id, visit.eye.now).await?;
    view.ok_or_else(|| visit.oops(Trouble::TaskGone))
}

/// The panels, for who may use them.
fn forms(visit: &Visit, view: &TaskView) -> Option<Forms> {
    let lang = visit.eye.lang;
    visit.may(Role::Operator).then(|| Forms {
        retry_href: paths::retries(view.row.id),
        close_href: paths::closures(view.row.id),
        expected_version: view.row.version,
        retry_note: lang.t("task.retry_note").to_owned(),
        may_be_outside: view.row.resource == ResourceType::Payment,
        asks_password: asks_password(visit),
        password_hint: lang.f("task.password_hint", &[("age", &visit.eye.ago(visit.session.signed_in_at))]),
        ..Forms::default()
    })
}

/// The page again, with what was typed and what is missing.
async fn refuse_retry(desk: &Desk, visit: &Visit, id: i64, form: RetryForm) -> Answer {
    let view = find(desk, visit, &id.to_string()).await?;
    let problem = visit.eye.lang.t("task.reason_problem").to_owned();
    let forms = forms(visit, &view).map(|forms| Forms { retry_reason: form.reason, retry_problem: problem, ..forms });
    again(desk, visit, &view, forms, None, StatusCode::UNPROCESSABLE_ENTITY)
}

async fn refuse_close(desk: &Desk, visit: &Visit, id: i64, form: CloseForm, refused: Refused) -> Answer {
    let lang = visit.eye.lang;
    let view = find(desk, visit, &id.to_string()).await?;
    let done_outside = form.resolution == "done_outside";
    let mut forms = forms(visit, &view).map(|forms| Forms { close_reason: form.reason, done_outside, ..forms });
    let mut status = StatusCode::UNPROCESSABLE_ENTITY;
    let mut notice = None;
    if let Some(forms) = forms.as_mut() {
        match refused {
            Refused::Reason => forms.close_problem = lang.t("task.reason_problem").to_owned(),
            Refused::Password => forms.password_problem = lang.t("task.password_wrong").to_owned(),
            Refused::Wait(ms) => {
                status = StatusCode::TOO_MANY_REQUESTS;
                forms.password_problem = lang.f("login.wait", &[("span", &format::span(lang, ms))]);
            }
            Refused::Stale => {
                status = StatusCode::CONFLICT;
                notice = Some(Notice::Stale(id));
            }
        }
    }
    again(desk, visit, &view, forms, notice, status)
}

fn again(
    desk: &Desk,
    visit: &Visit,
    view: &TaskView,
    forms: Option<Forms>,
    notice: Option<Notice>,
    status: StatusCode,
) -> Answer {
    let mut s = visit.shell(Section::Tasks);
    s.here = paths::task(view.row.id);
    s.flash = notice.map(|notice| notice.flash(visit.eye.lang));
    render::page_as(&TaskPage::new(s, &visit.eye, view, desk.max_failures(), forms), visit.ask.part, status)
}
