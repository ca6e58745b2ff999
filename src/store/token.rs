//! API tokens: kept as SHA-256, shown once. A token is 256 random bits, so a plain hash can't be
//! guessed back; comparing it is a look-up by unique key.

use sha2::{Digest as _, Sha256};

use super::conn::{Conn, RowExt as _};
use super::db::Result;
use super::error::{Class, Error};

/// What a token may do. Each but `metrics` may also read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Read,
    /// Orders, payments, returns, ledgers.
    Shop,
    /// Retry, release, force-close, reconcile, repair.
    Operate,
    Admin,
    Metrics,
}

impl Scope {
    pub const ALL: &'static [(&'static str, Scope)] = &[
        ("read", Self::Read),
        ("shop", Self::Shop),
        ("operate", Self::Operate),
        ("admin", Self::Admin),
        ("metrics", Self::Metrics),
    ];

    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, scope)| *scope == self).map_or("", |(word, _)| word)
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, scope)| *scope)
    }

    /// Whether a token of this scope may do what asks for `needed`.
    pub fn covers(self, needed: Self) -> bool {
        match (self, needed) {
            (Self::Admin, _) => true,
            (Self::Metrics, needed) => needed == Self::Metrics,
            (_, Self::Read) => true,
            (own, needed) => own == needed,
        }
    }
}

/// A token as it is listed: everything but itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub id: i64,
    pub name: String,
    pub scope: Scope,
    pub created_at: i64,
    pub used_at: Option<i64>,
    pub revoked_at: Option<i64>,
}

/// A new token's text. Its prefix lets secret scanners know it.
pub fn generate() -> String {
    use base64::Engine as _;
    let random: [u8; 32] = rand::random();
    format!("hb_{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random))
}

fn hash(token: &str) -> String {
    hex::encode(Sha256::digest(token.as_bytes()))
}

const COLUMNS: &str = "id, name, scope, created_at, used_at, revoked_at";

fn read(row: &sqlx::any::AnyRow) -> Result<Token> {
    Ok(Token {
        id: row.int(0)?,
        name: row.text(1)?,
        scope: Scope::from_word(&row.text(2)?).ok_or_else(|| Error::broken("a token has an unknown scope"))?,
        created_at: row.int(3)?,
        used_at: row.opt_int(4)?,
        revoked_at: row.opt_int(5)?,
    })
}

/// Stores a token under a name; `false` when the name is taken, also by a revoked one: the audit
/// log names tokens, so a name means one token for ever.
pub async fn create(conn: &mut Conn, name: &str, scope: Scope, token: &str, now: i64) -> Result<bool> {
    let sql = format!(
        "INSERT INTO api_token (name, scope, token_hash, created_at) VALUES ($1, $2, $3, $4){}",
        conn.dialect.or_nothing()
    );
    let inserted = conn.built(sql).bind(name).bind(scope.word()).bind(hash(token)).bind(now).run().await;
    match inserted {
        Ok(count) => Ok(count == 1),
        Err(error) if error.is(Class::Unique) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The token with this text, unless it was revoked.
pub async fn find(conn: &mut Conn, token: &str) -> Result<Option<Token>> {
    let sql = format!("SELECT {COLUMNS} FROM api_token WHERE token_hash = $1 AND revoked_at IS NULL");
    conn.built(sql).bind(hash(token)).row().await?.as_ref().map(read).transpose()
}

pub async fn list(conn: &mut Conn) -> Result<Vec<Token>> {
    let sql = format!("SELECT {COLUMNS} FROM api_token ORDER BY id");
    conn.built(sql).rows().await?.iter().map(read).collect()
}

/// Ends a token. Zero rows: there is none of the name, or it was revoked before.
pub async fn revoke(conn: &mut Conn, name: &str, now: i64) -> Result<u64> {
    conn.stmt("UPDATE api_token SET revoked_at = $2 WHERE name = $1 AND revoked_at IS NULL")
        .bind(name)
        .bind(now)
        .run()
        .await
}

/// Notes that a token was used.
pub async fn touch(conn: &mut Conn, id: i64, now: i64) -> Result<u64> {
    conn.stmt("UPDATE api_token SET used_at = $2 WHERE id = $1").bind(id).bind(now).run().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_covers_itself_and_reading() {
        for (_, scope) in Scope::ALL {
            assert!(scope.covers(*scope));
            assert_eq!(scope.covers(Scope::Read), *scope != Scope::Metrics);
            assert!(Scope::Admin.covers(*scope));
            assert_eq!(Scope::from_word(scope.word()), Some(*scope));
        }
        assert!(!Scope::Shop.covers(Scope::Operate));
        assert!(!Scope::Operate.covers(Scope::Shop));
        assert!(!Scope::Shop.covers(Scope::Admin));
        assert!(!Scope::Read.covers(Scope::Metrics));
    }

    #[test]
    fn tokens_differ_and_are_kept_as_hashes() {
        let (one, other) = (generate(), generate());
        assert_ne!(one, other);
        assert_eq!(one.len(), 46);
        assert_eq!(hash(&one).len(), 64);
        assert!(!hash(&one).contains(&one[3..]));
    }
}
