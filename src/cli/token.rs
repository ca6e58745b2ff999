//! `handback token`: tokens of the API. `create` prints the token alone, once; only its hash is kept.

use std::sync::Arc;

use clap::{Subcommand, ValueEnum};

use super::outcome::{Failure, Outcome};
use super::{listing, start};
use crate::config::Config;
use crate::core::Core;
use crate::core::text::{NUMBER_MAX, check_text};
use crate::store::token::{self, Scope};
use crate::store::{self, Conn, Decision, audit};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a token and print it; it can't be shown again
    Create {
        /// What it is known by, for ever
        name: String,
        /// What it may do
        #[arg(long)]
        scope: ScopeAsked,
    },
    /// List the tokens, never themselves
    List,
    /// End a token at once
    Revoke { name: String },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ScopeAsked {
    /// Read everything
    Read,
    /// Read; orders, payments, returns, ledgers
    Shop,
    /// Read; retry, release, force-close
    Operate,
    /// Everything
    Admin,
    /// The metrics page only
    Metrics,
}

impl ScopeAsked {
    fn scope(self) -> Scope {
        match self {
            Self::Read => Scope::Read,
            Self::Shop => Scope::Shop,
            Self::Operate => Scope::Operate,
            Self::Admin => Scope::Admin,
            Self::Metrics => Scope::Metrics,
        }
    }
}

pub(super) async fn run(command: &Command, config: &Config) -> Result<Outcome, Failure> {
    let core = start::core(config, 2).await?;
    let outcome = match command {
        Command::Create { name, scope } => create(&core, name, scope.scope()).await,
        Command::List => list(&core).await,
        Command::Revoke { name } => revoke(&core, name).await,
    };
    core.db.close().await;
    outcome
}

async fn create(core: &Core, name: &str, scope: Scope) -> Result<Outcome, Failure> {
    check_text(name, NUMBER_MAX).map_err(|why| Failure::Usage(format!("NAME {why}")))?;
    let secret = token::generate();
    let (work, now) = (Arc::new((name.to_owned(), secret.clone())), core.now());
    let created = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let (name, secret) = &*work;
            if !token::create(conn, name, scope, secret, now).await? {
                return Ok(Decision::Rollback(false));
            }
            let detail = serde_json::json!({"scope": scope.word()});
            note(conn, "token.create", name, detail, now).await?;
            Ok(Decision::Commit(true))
        })
    });
    if created.await? {
        println!("{secret}");
        return Ok(Outcome::Done);
    }
    eprintln!("handback: there is a token {name:?} already; the audit log names tokens, so a name is used once");
    Ok(Outcome::No)
}

async fn list(core: &Core) -> Result<Outcome, Failure> {
    let tokens = token::list(&mut core.db.read().await?).await?;
    let rows = tokens.iter().map(|token| {
        let state = match token.revoked_at {
            Some(at) => format!("revoked {}", listing::time(at)),
            None => "good".to_owned(),
        };
        let used = token.used_at.map_or_else(|| "never".to_owned(), listing::time);
        [token.name.clone(), token.scope.word().to_owned(), listing::time(token.created_at), used, state]
    });
    print!("{}", listing::table(["name", "scope", "created", "last used", "state"], rows));
    Ok(Outcome::Done)
}

async fn revoke(core: &Core, name: &str) -> Result<Outcome, Failure> {
    let (work, now) = (Arc::new(name.to_owned()), core.now());
    let revoked = core.db.write(move |conn| {
        let name = work.clone();
        Box::pin(async move {
            if token::revoke(conn, &name, now).await? == 0 {
                return Ok(Decision::Rollback(false));
            }
            note(conn, "token.revoke", &name, serde_json::json!({}), now).await?;
            Ok(Decision::Commit(true))
        })
    });
    if revoked.await? {
        return Ok(Outcome::Done);
    }
    eprintln!("handback: there is no good token {name:?}");
    Ok(Outcome::No)
}

async fn note(conn: &mut Conn, action: &str, name: &str, detail: serde_json::Value, now: i64) -> store::Result<()> {
    let (actor, target) = (super::actor().to_string(), format!("token:{name}"));
    audit::insert(conn, &audit::Entry { at: now, actor: &actor, action, target: &target, reason: None, detail }).await
}
