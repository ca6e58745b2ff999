//! The worker: duties, each `run_once`, and one loop that waits, wakes, stops and survives errors.

pub mod duties;
mod lane;
pub mod runner;

pub use runner::{Settings, Worker};
