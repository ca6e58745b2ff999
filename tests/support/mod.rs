//! What tests stand on: real servers, real processes, a real browser.

pub mod browser;
pub mod channel;
pub mod database;
mod held;
pub mod http;
pub mod mapped;
pub mod process;
pub mod proxy;
mod selftest;
pub mod servers;
pub mod shop;
pub mod standin;
