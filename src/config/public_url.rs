//! Under which address people reach the console, and what follows for its safety: https, or
//! plain http on this machine only. Plain http elsewhere sends passwords and cookies over the
//! wire for anyone to read, so it is refused unless someone asks for it in so many words.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

const ELSEWHERE: &str = "plain http is for localhost and 127.0.0.1 only: passwords would cross \
     the network in the clear. Use https, or set server.allow_plain_http = true";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    https: bool,
    /// Host and, where it isn't the usual one, port.
    authority: String,
    on_this_machine: bool,
    /// Taken from a listener on every address: any host name leads here.
    any_host: bool,
}

impl PublicUrl {
    pub fn parse(text: &str, allow_plain_http: bool) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|_| shape())?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let anonymous = url.username().is_empty() && url.password().is_none();
        let https = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(shape()),
        };
        let Some(host) = url.host().filter(|_| bare && anonymous) else {
            return Err(shape());
        };
        let on_this_machine = match host {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        if !https && !on_this_machine && !allow_plain_http {
            return Err(format!("must begin with https://: {ELSEWHERE}"));
        }
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_string(),
        };
        Ok(Self { https, authority, on_this_machine, any_host: false })
    }

    /// The address that follows from the listener when none is configured.
    pub fn from_listen(bound: SocketAddr, allow_plain_http: bool) -> Result<Self, String> {
        let any_host = bound.ip().is_unspecified();
        if any_host && !allow_plain_http {
            return Err(format!(
                "must be set when listening on {bound}, for example \"https://handback.example\": {ELSEWHERE}"
            ));
        }
        let url = Self::parse(&format!("http://{bound}"), allow_plain_http)?;
        Ok(Self { any_host, ..url })
    }

    pub fn is_https(&self) -> bool {
        self.https
    }

    /// Passwords travel in the clear: the console says so on every page.
    pub fn is_plain_elsewhere(&self) -> bool {
        !self.https && !self.on_this_machine
    }

    /// Whether a browser that names this origin came from a page of ours. `host` is the request's
    /// own Host header; it only counts where no single address is ours.
    pub fn is_own_origin(&self, origin: &str, host: Option<&str>) -> bool {
        let own = if self.any_host { host.map(|host| format!("http://{host}")) } else { Some(self.to_string()) };
        own.is_some_and(|own| own.eq_ignore_ascii_case(origin))
    }
}

/// As an origin: no slash at the end.
impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

fn shape() -> String {
    "must be http(s)://host[:port] with nothing after it, such as \"https://handback.example\"".to_owned()
}

/// What `serve` prints: an address that can be opened, so a listener on every address is named
/// by the machine's own.
pub fn reachable(bound: SocketAddr) -> String {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, bound.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(text: &str) -> SocketAddr {
        text.parse().expect("address")
    }

    #[test]
    fn https_is_always_fine_and_written_as_an_origin() {
        let url = PublicUrl::parse("https://Handback.example/", false).expect("fine");
        assert_eq!(url.to_string(), "https://handback.example");
        assert!(url.is_https() && !url.is_plain_elsewhere());
        assert!(url.is_own_origin("https://handback.example", None));
        assert!(!url.is_own_origin("https://handback.example:444", None));
        assert!(!url.is_own_origin("http://handback.example", None));
    }

    #[test]
    fn plain_http_is_for_this_machine() {
        for text in ["http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080"] {
            let url = PublicUrl::parse(text, false).expect(text);
            assert_eq!(url.to_string(), text);
            assert!(!url.is_plain_elsewhere());
        }
        for text in ["http://handback.example", "http://localhost.evil.example", "http://10.0.0.5"] {
            let refusal = PublicUrl::parse(text, false).expect_err(text);
            assert!(refusal.contains("allow_plain_http"), "{refusal}");
            assert!(PublicUrl::parse(text, true).expect(text).is_plain_elsewhere());
        }
    }

    #[test]
    fn only_an_origin_is_taken() {
        for text in [
            "handback.example",
            "https://handback.example/console",
            "https://handback.example?x=1",
            "https://user:pw@handback.example",
            "ftp://handback.example",
            "https://",
            "",
        ] {
            let refusal = PublicUrl::parse(text, true).expect_err(text);
            assert!(refusal.contains("http(s)://host[:port]"), "{refusal}");
        }
    }

    #[test]
    fn a_listener_on_every_address_needs_a_public_url() {
        let refusal = PublicUrl::from_listen(bound("0.0.0.0:8080"), false).expect_err("refused");
        assert!(refusal.contains("must be set"), "{refusal}");
        let url = PublicUrl::from_listen(bound("127.0.0.1:8080"), false).expect("local");
        assert_eq!(url.to_string(), "http://127.0.0.1:8080");
    }

    #[test]
    fn where_every_host_is_ours_the_origin_must_match_the_host_asked_for() {
        let url = PublicUrl::from_listen(bound("0.0.0.0:8080"), true).expect("asked for");
        assert!(url.is_plain_elsewhere());
        assert!(url.is_own_origin("http://10.0.0.5:8080", Some("10.0.0.5:8080")));
        assert!(!url.is_own_origin("http://evil.example", Some("10.0.0.5:8080")));
        assert!(!url.is_own_origin("http://evil.example", None));
    }

    #[test]
    fn the_printed_address_can_be_opened() {
        assert_eq!(reachable(bound("0.0.0.0:8080")), "http://127.0.0.1:8080");
        assert_eq!(reachable(bound("[::]:8080")), "http://[::1]:8080");
        assert_eq!(reachable(bound("10.0.0.5:80")), "http://10.0.0.5:80");
    }
}
