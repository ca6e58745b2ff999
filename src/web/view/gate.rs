//! The pages in front of the door: sign-in, and the first run.

use askama::Template;

use super::Shell;

#[derive(Template)]
#[template(path = "pages/login.html", blocks = ["content"])]
pub struct LoginPage {
    pub s: Shell,
    /// Kept as it was typed.
    pub username: String,
    /// The same words for an unknown name and a wrong password.
    pub problem: String,
    /// Where to go afterwards.
    pub back: String,
}

#[derive(Template)]
#[template(path = "pages/setup.html", blocks = ["content"])]
pub struct SetupPage {
    pub s: Shell,
    pub code: String,
    pub username: String,
    pub problem: String,
    pub code_problem: String,
    pub name_problem: String,
    pub password_problem: String,
    /// There are users already: nothing to set up.
    pub over: bool,
}
