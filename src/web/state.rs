//! What every handler has at hand. Cheap to clone; one per process.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::config::{Config, PublicUrl};
use crate::core::Core;

#[derive(Clone)]
pub struct App(Arc<Inner>);

pub struct Inner {
    pub core: Core,
    pub config: Config,
    /// Where people reach the console: cookies and the check of a form's origin follow it.
    pub public_url: PublicUrl,
    /// Cancelled when the process is asked to stop: whoever waits stops waiting.
    pub stopping: CancellationToken,
}

impl App {
    pub fn new(core: Core, config: Config, public_url: PublicUrl, stopping: CancellationToken) -> Self {
        Self(Arc::new(Inner { core, config, public_url, stopping }))
    }
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
