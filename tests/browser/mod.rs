//! A person at the console, in real Chromium against the built binary. Pictures of what they saw land in
//! `target/screenshots/`.

mod accessible;
mod acting;
mod wall;
