//! Screens on the wall. An admin registers one and reads its code off once; whoever stands at the screen types it,
//! and from then on the screen is known by its own cookie, until it is revoked. No sign-in runs out on it.

use std::sync::Arc;

use crate::core::account::{digest, secret};
use crate::core::words::Actor;
use crate::core::{Core, Error, Result, text};
use crate::store::screen::{self, Screen};
use crate::store::{Conn, Decision, audit};

/// How long a code opens its screen.
pub const CODE_MS: i64 = 30 * 60_000;
/// Letters and digits that can't be taken for one another on a screen across the room.
const ALPHABET: &[u8; 31] = b"ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const CODE_LENGTH: usize = 10;
const NAME_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registered {
    /// The code, shown once.
    Yes {
        code: String,
    },
    NameTaken,
}

/// Registers a screen.
///
/// # Errors
/// `Invalid` for a name that can't be taken.
pub async fn register(core: &Core, actor: &Actor, name: &str) -> Result<Registered> {
    text::check_text(name, NAME_MAX).map_err(|m| Error::invalid("name", m))?;
    let (code, now) = (new_code(), core.now());
    let work = Arc::new((name.to_owned(), digest(&code), actor.to_string()));
    let made = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let (name, hash, actor) = &*work;
            let Some(id) = screen::insert(conn, name, hash, now + CODE_MS, actor, now).await? else {
                return Ok(Decision::Rollback(false));
            };
            note(conn, actor, "screen.register", id, now).await?;
            Ok(Decision::Commit(true))
        })
    });
    Ok(if made.await? { Registered::Yes { code } } else { Registered::NameTaken })
}

fn new_code() -> String {
    (0..CODE_LENGTH).map(|_| char::from(ALPHABET[rand::random_range(0..ALPHABET.len())])).collect()
}

/// Opens the screen of a code, however it was typed; the secret is for its cookie alone.
pub async fn open(core: &Core, typed: &str) -> Result<Option<(Screen, String)>> {
    let code: String = typed.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase();
    let (secret, now) = (secret(), core.now());
    let work = Arc::new((digest(&code), digest(&secret)));
    let opened = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move { Ok(Decision::Commit(screen::open(conn, &work.0, &work.1, now).await?)) })
    });
    Ok(opened.await?.map(|screen| (screen, secret)))
}

/// The screen whose cookie this is, unless it was revoked.
pub async fn find(core: &Core, secret: &str) -> Result<Option<Screen>> {
    Ok(screen::find(&mut core.db.read().await?, &digest(secret)).await?)
}

/// It was looked at.
pub async fn touch(core: &Core, id: i64) -> Result<()> {
    let now = core.now();
    let touched =
        core.db.write(move |conn| Box::pin(async move { Ok(Decision::Commit(screen::touch(conn, id, now).await?)) }));
    touched.await?;
    Ok(())
}

/// Revokes a screen; `false` when it was revoked before, or there is none.
pub async fn revoke(core: &Core, actor: &Actor, id: i64) -> Result<bool> {
    let (actor, now) = (actor.to_string(), core.now());
    let revoked = core.db.write(move |conn| {
        let actor = actor.clone();
        Box::pin(async move {
            if screen::revoke(conn, id, now).await? == 0 {
                return Ok(Decision::Rollback(false));
            }
            note(conn, &actor, "screen.revoke", id, now).await?;
            Ok(Decision::Commit(true))
        })
    });
    Ok(revoked.await?)
}

async fn note(conn: &mut Conn, actor: &str, action: &str, id: i64, at: i64) -> crate::store::Result<()> {
    let target = format!("screen:{id}");
    let detail = serde_json::json!({});
    audit::insert(conn, &audit::Entry { at, actor, action, target: &target, reason: None, detail }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_easy_to_read_and_never_the_same() {
        let codes: Vec<String> = (0..100).map(|_| new_code()).collect();
        assert!(codes.iter().all(|code| code.len() == CODE_LENGTH && !code.contains(['0', 'O', '1', 'I', 'L'])));
        assert!(codes.iter().enumerate().all(|(i, code)| !codes[i + 1..].contains(code)));
    }
}
