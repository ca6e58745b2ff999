//! The product without a face: orders, holds, tasks, the release core. It knows no HTTP, no template, no SQL text.

pub mod clock;
pub mod text;
pub mod words;
