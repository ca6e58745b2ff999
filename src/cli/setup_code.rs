//! `handback setup-code`: a new code for the first run, when the one that `serve` printed has run out.

use super::outcome::{Failure, Outcome};
use super::start;
use crate::config::Config;
use crate::core::account;

pub(super) async fn run(config: &Config) -> Result<Outcome, Failure> {
    let core = start::core(config, 2).await?;
    let code = account::new_setup_code(&core).await;
    core.db.close().await;
    let Some(code) = code? else {
        eprintln!("handback: somebody has an account already; `handback user` adds others");
        return Ok(Outcome::No);
    };
    // The address is only known for certain where the port is; the code alone is what matters.
    match config.public_url(config.server.listen) {
        Ok(url) if config.server.listen.port() != 0 => println!("set up at {url}/setup#{code}"),
        _ => println!("set up at /setup#{code}"),
    }
    Ok(Outcome::Done)
}
