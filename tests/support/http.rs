//! A client of the tests: no proxy of the environment, no redirects, and no TLS, which only the product speaks.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

pub fn client() -> reqwest::ClientBuilder {
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).tls_backend_preconfigured(tls)
}
