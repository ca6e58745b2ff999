//! The console: pages for people, on top of the core. `paths` makes addresses, `view` what pages say,
//! `i18n` the words, `assets` the files that come with them.

pub mod assets;
pub mod i18n;
pub mod paths;
pub mod server;
pub mod view;
