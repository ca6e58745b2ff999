//! The rules of the model, each by name, on every engine.

mod acting;
mod closing;
mod durability;
mod keys;
mod late;
mod ledgers;
mod lost_commits;
mod mapped;
mod payments;
mod plans;
mod reconciling;
mod releasing;
mod returning;
mod sale;
mod schema;
mod working;
