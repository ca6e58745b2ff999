//! Services that others keep, over HTTP: remote resources and the payment channel, implementing the ports of
//! the core. `http` makes one bounded call, `gate` decides whether one may be made now (circuit, rate,
//! concurrency), `contract` knows what is sent and what an answer means, `remote` and `channel` are the ports.
//!
//! Nothing here decides anything about an order or a task; whatever isn't a certain answer is unknown.

mod channel;
mod circuit;
mod contract;
mod gate;
mod http;
mod rate;
mod remote;
mod sign;
mod tls;

pub use channel::{Channel, ChannelSettings};
pub use contract::idempotency_key;
pub use remote::{Remote, RemoteSettings};
