//! All tests that need more than one function of the crate. `docs/testing.md` says how they are
//! organised. One binary, because the database servers behind them are started once per process.

// A test that unwraps a failure has failed, which is what it is for.
#![allow(clippy::unwrap_used)]

mod adapters;
mod api;
mod browser;
mod cases;
mod commands;
mod engine;
mod late_model;
mod pages;
mod process;
mod structure;
mod support;
