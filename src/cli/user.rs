//! `handback user`: who may sign in to the console. A password comes from standard input or from a
//! prompt, never as an argument: arguments are in every process list.

use std::io::{IsTerminal as _, Read as _};

use clap::{Subcommand, ValueEnum};

use super::outcome::{Failure, Outcome};
use super::{listing, start};
use crate::config::Config;
use crate::core::words::Role;
use crate::core::{Core, account};
use crate::store::user;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Add a user
    Add {
        name: String,
        /// What they may do
        #[arg(long)]
        role: RoleAsked,
        #[command(flatten)]
        password: PasswordFrom,
    },
    /// List the users
    List,
    /// Set a new password; ends the user's sessions
    Passwd {
        name: String,
        #[command(flatten)]
        password: PasswordFrom,
    },
    /// Let a user sign in no more; ends their sessions
    Disable { name: String },
    /// Let a disabled user sign in again
    Enable { name: String },
}

#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct PasswordFrom {
    /// Read the password from standard input instead of asking for it
    #[arg(long)]
    password_stdin: bool,
}

/// A role of the console, by its word.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoleAsked(Role);

impl ValueEnum for RoleAsked {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: &[RoleAsked] = &[
            RoleAsked(Role::Viewer),
            RoleAsked(Role::Service),
            RoleAsked(Role::Operator),
            RoleAsked(Role::Lead),
            RoleAsked(Role::Admin),
        ];
        ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.word()))
    }
}

pub(super) async fn run(command: &Command, config: &Config) -> Result<Outcome, Failure> {
    // Asked for first: nobody types a password to learn that the database is away, but nobody
    // keeps a connection open while they think of one either.
    let given = match command {
        Command::Add { password, .. } | Command::Passwd { password, .. } => password.read()?,
        _ => String::new(),
    };
    let core = start::core(config, 2).await?;
    let outcome = act(&core, command, &given).await;
    core.db.close().await;
    outcome
}

async fn act(core: &Core, command: &Command, given: &str) -> Result<Outcome, Failure> {
    let by = &super::actor().to_string();
    let (is_done, otherwise) = match command {
        Command::List => return list(core).await,
        Command::Add { name, role, .. } => {
            (account::add(core, by, name, role.0, given).await?, format!("there is a user {name:?} already"))
        }
        Command::Passwd { name, .. } => (account::set_password(core, by, name, given).await?, nobody(name)),
        Command::Disable { name } => (account::set_enabled(core, by, name, false).await?, nobody(name)),
        Command::Enable { name } => (account::set_enabled(core, by, name, true).await?, nobody(name)),
    };
    if is_done {
        return Ok(Outcome::Done);
    }
    eprintln!("handback: {otherwise}");
    Ok(Outcome::No)
}

fn nobody(name: &str) -> String {
    format!("there is no user {name:?}")
}

async fn list(core: &Core) -> Result<Outcome, Failure> {
    let users = user::all(&mut core.db.read().await?).await?;
    let rows = users.iter().map(|user| {
        let state = if user.is_enabled { "enabled" } else { "disabled" };
        [user.name.clone(), user.role.word().to_owned(), state.to_owned(), listing::time(user.created_at)]
    });
    print!("{}", listing::table(["name", "role", "state", "created"], rows));
    Ok(Outcome::Done)
}

impl PasswordFrom {
    fn read(self) -> Result<String, Failure> {
        if self.password_stdin {
            return from_stdin();
        }
        if !std::io::stdin().is_terminal() {
            let message = "there is no terminal to ask for a password; give it with --password-stdin";
            return Err(Failure::Usage(message.to_owned()));
        }
        let ask = |prompt: &str| rpassword::prompt_password(prompt).map_err(|error| Failure::Usage(error.to_string()));
        let given = ask("Password: ")?;
        if ask("Once more: ")? != given {
            return Err(Failure::Usage("the two passwords differ".to_owned()));
        }
        Ok(given)
    }
}

/// All of standard input but the line's end: a password may hold spaces anywhere.
fn from_stdin() -> Result<String, Failure> {
    /// More than any password; keeps a wrong pipe from filling the memory.
    const LONGEST: u64 = 64 * 1024;
    let mut given = String::new();
    let read = std::io::stdin().take(LONGEST).read_to_string(&mut given);
    read.map_err(|error| Failure::Usage(format!("the password can't be read from standard input: {error}")))?;
    let given = given.strip_suffix('\n').unwrap_or(&given);
    Ok(given.strip_suffix('\r').unwrap_or(given).to_owned())
}
