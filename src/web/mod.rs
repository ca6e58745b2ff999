//! What the process says over HTTP, on top of the core. `routes` has every URL; `server` accepts the
//! connections. The console: `handlers` has the table of every page, `extract` who may ask, `middleware`
//! the frame round all of them, `view` what pages say, `i18n` the words, `assets` the files that come
//! with them. The JSON API: `api`, with `error` for its problem documents.

pub mod api;
pub mod assets;
pub mod cookies;
pub mod desk;
pub mod error;
pub mod extract;
pub mod handlers;
pub mod i18n;
pub mod live;
pub mod middleware;
pub mod notice;
pub mod paths;
pub mod render;
pub mod routes;
pub mod server;
pub mod state;
pub mod trouble;
pub mod view;
pub mod waiting;
