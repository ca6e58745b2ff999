//! TLS to the services that others keep: their certificates are checked against the machine's trust store, or the
//! file that the variable SSL_CERT_FILE names. There is no way to leave the check out.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

/// What a connection to `scheme` trusts. Plain connections trust nothing: should one ever be asked to speak TLS, it
/// fails.
///
/// # Errors
/// No certificate to trust was found, in words.
pub fn config(scheme: &str) -> Result<ClientConfig, String> {
    let roots = if scheme == "https" { roots()? } else { RootCertStore::empty() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn roots() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (taken, unreadable) = roots.add_parsable_certificates(found.certs);
    for error in &found.errors {
        tracing::warn!(%error, "a file of trusted certificates could not be read");
    }
    if unreadable > 0 {
        tracing::warn!(unreadable, taken, "some trusted certificates could not be read");
    }
    if roots.is_empty() {
        return Err("needs certificates to trust, and this machine has none: install its CA certificates, \
             or name a file of them in the variable SSL_CERT_FILE"
            .into());
    }
    Ok(roots)
}
