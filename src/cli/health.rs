//! `handback health`: asks a running server's `/readyz`, for containers that have no curl.

use std::time::Duration;

use clap::Args as ClapArgs;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;

use super::outcome::{Failure, Outcome};
use crate::config::{Config, Inputs, reachable};

const PATIENCE: Duration = Duration::from_secs(5);
/// An answer that is longer than this is no answer of ours.
const LONGEST_ANSWER: u64 = 64 * 1024;

#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Address of the server (default: what server.listen says)
    #[arg(long)]
    url: Option<String>,
}

pub(super) async fn run(args: Args, inputs: Inputs) -> Result<Outcome, Failure> {
    let url = match args.url {
        Some(url) => url,
        None => reachable(Config::load(inputs)?.server.listen),
    };
    let url = ready_url(&url).map_err(Failure::Usage)?;
    let answer = tokio::time::timeout(PATIENCE, ask(&url)).await;
    match answer {
        Ok(Ok((200, _))) => {
            println!("ready");
            Ok(Outcome::Done)
        }
        Ok(Ok((status, body))) => no(&format!("{url} answered {status}: {}", body.trim())),
        Ok(Err(error)) => no(&format!("{url} can't be asked: {error}")),
        Err(_) => no(&format!("{url} didn't answer within {} s", PATIENCE.as_secs())),
    }
}

fn no(why: &str) -> Result<Outcome, Failure> {
    eprintln!("handback: {why}");
    Ok(Outcome::No)
}

fn ready_url(text: &str) -> Result<Url, String> {
    let wrong = || format!("--url must be http://host:port, not {text:?}");
    let mut url = Url::parse(text).map_err(|_| wrong())?;
    let plain = url.scheme() == "http" && url.username().is_empty() && url.password().is_none();
    if !plain || url.host().is_none() || url.port() == Some(0) {
        return Err(wrong());
    }
    if url.path() == "/" {
        url.set_path("/readyz");
    }
    Ok(url)
}

async fn ask(url: &Url) -> std::io::Result<(u16, String)> {
    let address = url.socket_addrs(|| None)?;
    let mut stream = TcpStream::connect(&*address).await?;
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let request = format!("GET {} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n", url.path());
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer).await?;
    read_answer(&String::from_utf8_lossy(&answer))
        .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidData, "that was no HTTP answer"))
}

/// Status and body of an HTTP/1.1 answer.
fn read_answer(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?;
    Some((status.parse().ok()?, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_status_and_a_body() {
        let answer = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\naway";
        assert_eq!(read_answer(answer), Some((503, "away".to_owned())));
        assert_eq!(read_answer("SSH-2.0-OpenSSH_9.2\r\n\r\n"), None);
        assert_eq!(read_answer(""), None);
    }

    #[test]
    fn the_address_is_completed_and_must_be_plain_http() {
        let url = |text| ready_url(text).map(|url| url.to_string());
        assert_eq!(url("http://127.0.0.1:8080").as_deref(), Ok("http://127.0.0.1:8080/readyz"));
        assert_eq!(url("http://[::1]:80/readyz").as_deref(), Ok("http://[::1]/readyz"));
        for wrong in ["127.0.0.1:8080", "https://a.example", "http://u:p@a", "http://127.0.0.1:0"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }
}
