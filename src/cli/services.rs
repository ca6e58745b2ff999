//! From configuration to the services that others keep.

use std::sync::Arc;

use super::outcome::Failure;
use crate::adapters::{Channel, ChannelSettings, Remote, RemoteSettings};
use crate::config::{self, Config, RemoteAct};
use crate::core::clock::Clock;
use crate::core::ports::Services;
use crate::core::words::{Action, ResourceType};

/// The adapters that the configuration names. Nothing is called yet.
pub(super) fn of(config: &Config, clock: &Clock) -> Result<Services, Failure> {
    let mut services = Services::default();
    for remote in &config.remote {
        let key = format!("remote.{}.base_url", remote.kind);
        let wrong = |message: String| Failure::Usage(format!("{key}: {message}"));
        let resource = ResourceType::from_word(&remote.kind).ok_or_else(|| wrong("is of no known type".into()))?;
        let adapter = Remote::new(settings(remote, resource), clock.clone()).map_err(wrong)?;
        services.remote.insert(resource, Arc::new(adapter));
    }
    if let Some(base_url) = &config.channel.base_url {
        let settings = ChannelSettings {
            base_url: base_url.expose().to_owned(),
            secret: config.channel.secret.as_ref().map(|secret| secret.expose().to_owned()),
            timeout: config.channel.timeout,
        };
        let wrong = |message| Failure::Usage(format!("channel.base_url: {message}"));
        services.channel = Some(Arc::new(Channel::new(&settings, clock.clone()).map_err(wrong)?));
    }
    Ok(services)
}

fn settings(remote: &config::Remote, resource: ResourceType) -> RemoteSettings {
    let actions = remote.supports.iter().filter_map(|act| match act {
        RemoteAct::Settle => Some(Action::Settle),
        RemoteAct::Release => Some(Action::Release),
        RemoteAct::TakeBack => Some(Action::TakeBack),
        RemoteAct::ReturnIn => Some(Action::ReturnIn),
        RemoteAct::Status | RemoteAct::Locks => None,
    });
    RemoteSettings {
        resource,
        base_url: remote.base_url.expose().to_owned(),
        secret: remote.secret.as_ref().map(|secret| secret.expose().to_owned()),
        timeout: remote.timeout,
        max_concurrency: usize::try_from(remote.max_concurrency).unwrap_or(1).max(1),
        rate_per_s: remote.rate_per_s,
        key_lifetime: remote.key_lifetime,
        actions: actions.collect(),
        has_status: remote.supports.contains(&RemoteAct::Status),
    }
}
