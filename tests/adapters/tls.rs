//! Services behind TLS: the certificate has to be one that this machine trusts for that name, and nothing is sent
//! to whoever can't show one. The database has no part in it, so SQLite is enough.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use handback::core::words::ResourceType;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::Town;
use crate::support::database::{Engine, TestDb, run_on};
use crate::support::process::Handback;
use crate::support::shop::{Ordering, an_order};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Puts TLS before a service that speaks plainly, with a certificate for `name`; answers its port.
async fn front(authority: &Authority, name: &str, service: &str) -> u16 {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = service.trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (acceptor, service) = (acceptor.clone(), service.clone());
            tokio::spawn(async move {
                let Ok(mut client) = acceptor.accept(client).await else { return };
                let Ok(mut service) = TcpStream::connect(service).await else { return };
                tokio::io::copy_bidirectional(&mut client, &mut service).await.ok();
            });
        }
    });
    port
}

/// Closes an order that holds a coupon of the service at `base_url`, and tells what its task came to.
async fn released_over(db: &TestDb, town: &Town, base_url: &str, trusted: &Path, order_no: &str) -> (i64, String) {
    town.shop.placed(an_order(order_no).holding(ResourceType::Coupon, order_no, 1)).await;
    town.shop.close(order_no, "buyer").await;
    let file = format!("[retry]\nmax_failures = 1\n[remote.coupon]\nbase_url = \"{base_url}\"\n");
    let worker = Handback::new(["worker"])
        .database(&db.url)
        .env("SSL_CERT_FILE", trusted.to_str().unwrap())
        .env("SSL_CERT_DIR", trusted.parent().unwrap().to_str().unwrap())
        .file("handback.toml", &file)
        .start();
    let waits = format!("SELECT COUNT(*) FROM order_release_task WHERE order_no = '{order_no}' AND status IN (0, 2)");
    let since = Instant::now();
    while db.count(&waits).await > 0 {
        assert!(since.elapsed() < Duration::from_secs(60), "{order_no} still waits:\n{}", worker.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    worker.stop().ok();
    let task = town.shop.task(order_no).await;
    (task.status.code(), task.error.unwrap_or_default())
}

#[test]
fn a_service_behind_tls_is_called_only_when_its_certificate_is_trusted_for_its_name() {
    run_on(Engine::Sqlite, |db| async move {
        let town = Town::open(&db).await;
        town.shop.clock.set(town.shop.core.db.now_ms().await.unwrap());
        let (ours, other) = (authority(), authority());
        let folder = tempfile::tempdir().unwrap();
        let trusted = folder.path().join("ca.pem");
        std::fs::write(&trusted, ours.pem()).unwrap();
        let service = &town.coupons.url;
        let good = front(&ours, "localhost", service).await;
        let (status, error) = released_over(&db, &town, &format!("https://localhost:{good}"), &trusted, "good").await;
        assert_eq!((status, error.as_str()), (1, ""));
        town.coupons.each_effect_once();
        assert_eq!(town.coupons.effect_count(), 1);

        let wrong_name = front(&ours, "elsewhere.example", service).await;
        let untrusted = front(&other, "localhost", service).await;
        let plain = service.trim_start_matches("http://127.0.0.1:").parse().unwrap();
        for (port, order_no) in [(wrong_name, "name"), (untrusted, "issuer"), (plain, "plain")] {
            let base_url = format!("https://localhost:{port}");
            let (status, error) = released_over(&db, &town, &base_url, &trusted, order_no).await;
            assert_ne!(status, 1, "{order_no}");
            assert!(order_no == "plain" || error.contains("certificate"), "{order_no}: {error}");
        }
        assert_eq!(town.coupons.effect_count(), 1, "nothing reached the service");
    });
}

#[test]
fn without_any_trusted_certificate_an_https_service_is_refused_at_start_and_a_plain_one_is_not() {
    run_on(Engine::Sqlite, |db| async move {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("none.pem");
        std::fs::write(&empty, "").unwrap();
        let check = |base_url: &str| {
            Handback::new(["serve", "--listen", "127.0.0.1:0"])
                .database(&db.url)
                .env("SSL_CERT_FILE", empty.to_str().unwrap())
                .env("SSL_CERT_DIR", folder.path().to_str().unwrap())
                .file("handback.toml", &format!("[remote.coupon]\nbase_url = \"{base_url}\"\n"))
        };
        let refused = check("https://localhost:1").run();
        assert_eq!(refused.code(), Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("remote.coupon.base_url") && refused.stderr.contains("SSL_CERT_FILE"));
        let (plain, _) = check("http://localhost:1").serve();
        plain.stop().ok();
    });
}
