//! Handback gives back what a closed order held, exactly once.
//!
//! Read first: `core::words` (the vocabulary), `core::release` (the core every actor enters),
//! `store::db` (how a transaction runs). `docs/architecture.md` has the module map.

pub mod adapters;
pub mod bench;
pub mod cli;
pub mod config;
pub mod core;
pub mod demo;
pub mod log;
pub mod store;
pub mod trigger;
pub mod web;
pub mod worker;
