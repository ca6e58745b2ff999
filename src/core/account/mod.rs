//! Accounts and sessions: the first run, signing in, giving the password again, signing out. Unknown
//! names and wrong passwords get the same answer after the same time; passwords are checked in a bounded
//! pool, off the threads that serve; guessing is slowed without locking the true user out.

pub mod password;
pub mod throttle;

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::core::words::Role;
use crate::core::{Core, Error, Result, text};
use crate::store::session::Session;
use crate::store::user::User;
use crate::store::{self, Conn, Decision, audit, session, setup, user};

use password::Passwords;
use throttle::{Source, Throttle};

/// How long a set-up code is good.
pub const SETUP_CODE_MS: i64 = 30 * 60_000;
/// After this long a grave act asks for the password again.
pub const CONFIRM_MS: i64 = 15 * 60_000;
const PASSWORD_MIN: usize = 12;
const PASSWORD_MAX_BYTES: usize = 1024;

/// What signing in needs beside the core: the pool that checks passwords, the memory of wrong tries.
#[derive(Clone)]
pub struct Accounts {
    core: Core,
    passwords: Passwords,
    throttle: Arc<Throttle>,
}

/// Where a try comes from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    pub address: String,
    pub agent: String,
    /// What the browser kept from an earlier sign-in.
    pub device: Option<String>,
}

#[derive(Debug)]
pub enum SignedIn {
    /// The new session's secret, for the cookie alone, and what the browser keeps to be known again.
    Yes { secret: String, device: String },
    /// Unknown name, wrong password, disabled account: all the same.
    Wrong,
    /// Too many wrong tries: ask again after so many milliseconds.
    Wait(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetUp {
    Done,
    /// Wrong, used before, or too old.
    WrongCode,
    /// Somebody has an account already.
    Over,
    Wait(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmed {
    Yes,
    Wrong,
    Wait(i64),
}

impl Accounts {
    pub fn new(core: Core) -> Self {
        Self { core, passwords: Passwords::default(), throttle: Arc::default() }
    }

    /// Checks name and password, and begins a session that replaces the one the browser had.
    pub async fn sign_in(&self, name: &str, given: &str, from: &Origin, old: Option<&str>) -> Result<SignedIn> {
        // A name that no account can have is looked for nowhere, and answered like any unknown one.
        let found = match check_name(name) {
            Ok(()) => user::find(&mut self.core.db.read().await?, name).await?,
            Err(_) => None,
        };
        let source = self.source(name, from, found.as_ref());
        if let Some(wait) = self.throttle.wait(&source, self.core.now()) {
            return Ok(SignedIn::Wait(wait));
        }
        let hash = found.as_ref().map(|user| user.password_hash.clone());
        let is_right = self.passwords.verify(given, hash).await;
        let Some(user) = found.filter(|user| is_right && user.is_enabled) else {
            self.throttle.failed(&source, self.core.now());
            // The name may be a mistyped password: it goes no further than this line's address.
            tracing::info!(address = %from.address, "a sign-in failed");
            return Ok(SignedIn::Wrong);
        };
        self.throttle.succeeded(&source);
        let secret = secret();
        self.begin(&user, &secret, from, old.map(digest)).await?;
        Ok(SignedIn::Yes { secret, device: device_mark(&user) })
    }

    async fn begin(&self, user: &User, secret: &str, from: &Origin, old: Option<String>) -> Result<()> {
        let now = self.core.now();
        let session = Session {
            id_hash: digest(secret),
            user_id: user.id,
            csrf: crate::core::account::secret(),
            created_at: now,
            signed_in_at: now,
            seen_at: now,
            address: Some(clipped(&from.address, 64)),
            agent: Some(clipped(&from.agent, 255)),
        };
        let work = Arc::new((session, old, user.name.clone()));
        let begun = self.core.db.write(move |conn| {
            let work = work.clone();
            Box::pin(async move {
                let (new, old, name) = &*work;
                if let Some(old) = old {
                    session::end(conn, old).await?;
                }
                session::forget_ended(conn, new.created_at).await?;
                session::insert(conn, new).await?;
                let detail = serde_json::json!({"address": new.address, "agent": new.agent});
                note(conn, &format!("operator:{name}"), "session.begin", name, detail, now).await?;
                Ok(Decision::Commit(()))
            })
        });
        Ok(begun.await?)
    }

    /// Whose session this secret is, if it is still live.
    pub async fn session(&self, secret: &str) -> Result<Option<(User, Session)>> {
        Ok(session::find(&mut self.core.db.read().await?, &digest(secret), self.core.now()).await?)
    }

    /// The password once more, before a grave act; the session counts as fresh again.
    pub async fn confirm(&self, user: &User, session: &Session, given: &str, from: &Origin) -> Result<Confirmed> {
        let source = self.source(&user.name, from, Some(user));
        if let Some(wait) = self.throttle.wait(&source, self.core.now()) {
            return Ok(Confirmed::Wait(wait));
        }
        if !self.passwords.verify(given, Some(user.password_hash.clone())).await {
            self.throttle.failed(&source, self.core.now());
            return Ok(Confirmed::Wrong);
        }
        let (id, now) = (session.id_hash.clone(), self.core.now());
        let confirmed = self.core.db.write(move |conn| {
            let id = id.clone();
            Box::pin(async move { Ok(Decision::Commit(session::confirm(conn, &id, now).await?)) })
        });
        confirmed.await?;
        Ok(Confirmed::Yes)
    }

    /// The first account, an admin, for whoever holds the code that the server printed.
    ///
    /// # Errors
    /// `Invalid` for a name or a password that can't be taken.
    pub async fn set_up(&self, code: &str, name: &str, given: &str, from: &Origin) -> Result<SetUp> {
        check_name(name)?;
        check_password(given)?;
        let source = Source { account: String::new(), address: from.address.clone(), device: None };
        if let Some(wait) = self.throttle.wait(&source, self.core.now()) {
            return Ok(SetUp::Wait(wait));
        }
        let hash = self.passwords.hash(given).await?;
        let work = Arc::new((digest(code.trim()), name.to_owned(), hash));
        let now = self.core.now();
        let done = self.core.db.write(move |conn| {
            let work = work.clone();
            Box::pin(async move { first_account(conn, &work.0, &work.1, &work.2, now).await })
        });
        let done = done.await?;
        if done == SetUp::WrongCode {
            self.throttle.failed(&source, self.core.now());
        }
        Ok(done)
    }

    fn source(&self, name: &str, from: &Origin, user: Option<&User>) -> Source {
        let device = from.device.clone().filter(|mark| user.is_some_and(|user| is_device_of(user, mark)));
        Source { account: clipped(name, text::NUMBER_MAX), address: from.address.clone(), device }
    }
}

async fn first_account(
    conn: &mut Conn,
    code: &str,
    name: &str,
    hash: &str,
    now: i64,
) -> store::Result<Decision<SetUp>> {
    if user::is_anyone(conn).await? {
        return Ok(Decision::Rollback(SetUp::Over));
    }
    // Two at once: the second finds no code to take.
    if !setup::take(conn, code, now).await? {
        return Ok(Decision::Rollback(SetUp::WrongCode));
    }
    user::insert(conn, name, hash, Role::Admin, now).await?;
    setup::forget_all(conn).await?;
    note(conn, "setup", "user.add", name, serde_json::json!({"role": "admin"}), now).await?;
    Ok(Decision::Commit(SetUp::Done))
}

/// A new set-up code, the only one that is good from now on; `None` when somebody has an account.
pub async fn new_setup_code(core: &Core) -> Result<Option<String>> {
    let code = secret()[..24].to_owned();
    let (hash, now) = (digest(&code), core.now());
    let made = core.db.write(move |conn| {
        let hash = hash.clone();
        Box::pin(async move {
            if user::is_anyone(conn).await? {
                return Ok(Decision::Rollback(false));
            }
            setup::replace(conn, &hash, now, now + SETUP_CODE_MS).await?;
            Ok(Decision::Commit(true))
        })
    });
    Ok(made.await?.then_some(code))
}

/// Adds an account; `false` when the name is taken. Ends the first run.
///
/// # Errors
/// `Invalid` for a name or a password that can't be taken.
pub async fn add(core: &Core, actor: &str, name: &str, role: Role, given: &str) -> Result<bool> {
    check_name(name)?;
    check_password(given)?;
    let hash = Passwords::default().hash(given).await?;
    let work = Arc::new((actor.to_owned(), name.to_owned(), hash));
    let now = core.now();
    let added = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let (actor, name, hash) = &*work;
            if !user::insert(conn, name, hash, role, now).await? {
                return Ok(Decision::Rollback(false));
            }
            setup::forget_all(conn).await?;
            note(conn, actor, "user.add", name, serde_json::json!({"role": role.word()}), now).await?;
            Ok(Decision::Commit(true))
        })
    });
    Ok(added.await?)
}

/// Sets a new password and ends every session of the account; `false` when there is no such name.
///
/// # Errors
/// `Invalid` for a password that can't be taken.
pub async fn set_password(core: &Core, actor: &str, name: &str, given: &str) -> Result<bool> {
    check_password(given)?;
    let hash = Passwords::default().hash(given).await?;
    change(core, actor, name, "user.passwd", Change::Password(hash)).await
}

/// Lets an account sign in, or no more; ends its sessions. `false` when there is no such name.
pub async fn set_enabled(core: &Core, actor: &str, name: &str, is_enabled: bool) -> Result<bool> {
    let action = if is_enabled { "user.enable" } else { "user.disable" };
    change(core, actor, name, action, Change::Enabled(is_enabled)).await
}

enum Change {
    Password(String),
    Enabled(bool),
}

async fn change(core: &Core, actor: &str, name: &str, action: &'static str, change: Change) -> Result<bool> {
    let work = Arc::new((actor.to_owned(), name.to_owned(), change));
    let now = core.now();
    let changed = core.db.write(move |conn| {
        let work = work.clone();
        Box::pin(async move {
            let (actor, name, change) = &*work;
            let Some(found) = user::find(conn, name).await? else { return Ok(Decision::Rollback(false)) };
            match change {
                Change::Password(hash) => user::set_password(conn, found.id, hash).await?,
                Change::Enabled(is_enabled) => user::set_enabled(conn, found.id, *is_enabled).await?,
            };
            session::end_all_of(conn, found.id).await?;
            note(conn, actor, action, name, serde_json::json!({}), now).await?;
            Ok(Decision::Commit(true))
        })
    });
    Ok(changed.await?)
}

async fn note(
    conn: &mut Conn,
    actor: &str,
    action: &str,
    name: &str,
    detail: serde_json::Value,
    now: i64,
) -> store::Result<()> {
    let target = format!("user:{name}");
    audit::insert(conn, &audit::Entry { at: now, actor, action, target: &target, reason: None, detail }).await
}

/// Says what is wrong with a name as the name of an account.
pub fn check_name(name: &str) -> Result<()> {
    text::check_text(name, text::NUMBER_MAX).map_err(|m| Error::invalid("username", m))?;
    if name.trim() != name {
        return Err(Error::invalid("username", "must not begin or end with a space"));
    }
    Ok(())
}

/// Says what is wrong with a text as a new password. Any characters; no rules but length.
pub fn check_password(given: &str) -> Result<()> {
    if given.chars().count() < PASSWORD_MIN || given.len() > PASSWORD_MAX_BYTES {
        let message = format!("must have at least {PASSWORD_MIN} characters and at most {PASSWORD_MAX_BYTES} bytes");
        return Err(Error::invalid("password", message));
    }
    Ok(())
}

/// 256 random bits as text.
pub fn secret() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// What the database keeps of a secret.
pub fn digest(secret: &str) -> String {
    hex::encode(Sha256::digest(secret.as_bytes()))
}

/// What a browser keeps to be known as one that signed in to this account before. Made with the
/// account's own password hash, so it ends with the password and needs no table.
fn device_mark(user: &User) -> String {
    let nonce = secret()[..16].to_owned();
    let mac = device_mac(user, &nonce).map(|mac| hex::encode(mac.finalize().into_bytes())).unwrap_or_default();
    format!("{nonce}.{mac}")
}

fn is_device_of(user: &User, mark: &str) -> bool {
    let Some((nonce, mac)) = mark.split_once('.') else { return false };
    let (Some(expected), Ok(given)) = (device_mac(user, nonce), hex::decode(mac)) else { return false };
    expected.verify_slice(&given).is_ok()
}

fn device_mac(user: &User, nonce: &str) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(user.password_hash.as_bytes()).ok()?;
    mac.update(format!("device:{}:{nonce}", user.id).as_bytes());
    Some(mac)
}

fn clipped(text: &str, max: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(hash: &str) -> User {
        User {
            id: 7,
            name: "ops".into(),
            password_hash: hash.into(),
            role: Role::Operator,
            is_enabled: true,
            language: None,
            zone: None,
            theme: None,
            created_at: 0,
        }
    }

    #[test]
    fn a_browser_is_known_until_the_password_changes() {
        let mark = device_mark(&user("$argon2id$one"));
        assert!(is_device_of(&user("$argon2id$one"), &mark));
        assert!(!is_device_of(&user("$argon2id$two"), &mark));
        for forged in ["", ".", "x.y", &mark[..mark.len() - 1]] {
            assert!(!is_device_of(&user("$argon2id$one"), forged), "{forged}");
        }
    }

    #[test]
    fn secrets_have_256_bits_and_are_kept_as_a_digest() {
        let (one, two) = (secret(), secret());
        assert_ne!(one, two);
        assert_eq!(BASE64_URL_SAFE_NO_PAD.decode(&one).map(|bytes| bytes.len()), Ok(32));
        assert!(digest(&one).len() == 64 && !digest(&one).contains(&one));
    }

    #[test]
    fn passwords_are_judged_by_length_alone() {
        assert!(check_password("twelve chars").is_ok());
        assert!(check_password("一二三四五六七八九十十一十二").is_ok());
        assert!(check_password("short").is_err());
        assert!(check_password(&"x".repeat(1025)).is_err());
        assert!(check_name("ops 03").is_ok() && check_name(" ops").is_err() && check_name("").is_err());
    }
}
