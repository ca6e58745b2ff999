//! In front of the door, and one's own account.

use super::*;

pub fn account(eye: &Eye, hostile: &str) -> AccountPage {
    let session = |here| SessionRow {
        handle: format!("abc{hostile}"),
        agent: format!("Mozilla/5.0 (X11; Linux x86_64) Chrome/140{hostile}"),
        address: format!("192.0.2.7{hostile}"),
        signed_in: eye.stamp(NOW - 3_600_000),
        seen: eye.ago(NOW - 5_000),
        here,
    };
    let settings =
        Settings { language: Some(eye.lang.tag().to_owned()), zone: Some("Asia/Shanghai".to_owned()), theme: None };
    AccountPage::new(shell(eye, hostile), eye, &settings, vec![session(true), session(false)])
}

pub fn login(eye: &Eye, hostile: &str) -> LoginPage {
    let problem = eye.lang.t("login.wrong").to_owned();
    LoginPage {
        s: shell(eye, hostile),
        username: format!("ops-03{hostile}"),
        problem,
        back: format!("/tasks{hostile}"),
    }
}

pub fn setup(eye: &Eye, hostile: &str) -> SetupPage {
    SetupPage {
        s: shell(eye, hostile),
        code: hostile.to_owned(),
        username: hostile.to_owned(),
        problem: String::new(),
        code_problem: eye.lang.t("setup.code_wrong").to_owned(),
        name_problem: eye.lang.t("setup.name_problem").to_owned(),
        password_problem: eye.lang.t("setup.password_problem").to_owned(),
        over: false,
    }
}
