//! What handlers ask for in their signatures: how a request wants to be answered ([`Ask`]), who makes it
//! ([`As`], [`Guest`]), and a form that proved where it comes from ([`Checked`]). A handler that asks for
//! `As<Operator>` can't be reached by anyone less: a missing check doesn't compile.

mod ask;
mod form;
mod visit;

pub use ask::{Ask, Part};
pub use form::Checked;
pub use visit::{Admin, As, Guest, Lead, Need, Operator, Service, Viewer, Visit};
