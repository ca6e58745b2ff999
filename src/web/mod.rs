//! What the process says over HTTP, on top of the core. `routes` has every URL. The console: `paths`
//! makes addresses, `view` what pages say, `i18n` the words, `assets` the files that come with them.
//! The JSON API: `api`, with `error` for its problem documents. `server` accepts the connections.

pub mod api;
pub mod assets;
pub mod error;
pub mod i18n;
pub mod paths;
pub mod routes;
pub mod server;
pub mod state;
pub mod view;
