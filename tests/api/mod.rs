//! The HTTP API as other programs hold on to it: every answer, every refusal, every name.

mod bad_input;
mod door;
mod figures;
mod ledgers;
mod orders;
mod problems;
mod reconcile;
mod repeats;
mod returns;
mod tasks;
