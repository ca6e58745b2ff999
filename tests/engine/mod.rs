//! The rules of the model, each by name, on every engine.

mod durability;
mod keys;
mod schema;
