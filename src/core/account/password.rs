//! argon2id with 19 MiB, two passes, one lane. Each check costs memory and a core, so only a few run at
//! once; the others wait in line, away from the threads that serve pages.

use std::sync::{Arc, LazyLock};

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version};
use tokio::sync::Semaphore;

use crate::core::Result;
use crate::store::{Class, Error};

const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const AT_ONCE: usize = 2;

/// Of a password nobody has: checked for names nobody has, so that they take as long as any other.
static NOBODY: LazyLock<String> = LazyLock::new(|| hash_now("a password that nobody has").unwrap_or_default());

#[derive(Clone)]
pub struct Passwords(Arc<Semaphore>);

impl Default for Passwords {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Passwords {
    /// Hashes a new password into a PHC string.
    pub async fn hash(&self, given: &str) -> Result<String> {
        let given = given.to_owned();
        let hashed = self.run(move || hash_now(&given)).await.flatten();
        Ok(hashed.ok_or_else(|| Error::new(Class::Broken, "a password could not be hashed"))?)
    }

    /// Whether this is the password behind `hash`; without a hash it takes as long and is never right.
    pub async fn verify(&self, given: &str, hash: Option<String>) -> bool {
        let given = given.to_owned();
        let checked = self.run(move || {
            let known = hash.is_some();
            let hash = hash.unwrap_or_else(|| NOBODY.clone());
            let parsed = PasswordHash::new(&hash);
            let right = parsed.is_ok_and(|parsed| hasher().verify_password(given.as_bytes(), &parsed).is_ok());
            right && known
        });
        checked.await.unwrap_or(false)
    }

    /// Fails closed: a pool that is gone has checked nothing.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let permit = self.0.clone().acquire_owned().await.ok()?;
        let done = tokio::task::spawn_blocking(move || {
            let _in_line = permit;
            work()
        });
        done.await.ok()
    }
}

fn hasher() -> Argon2<'static> {
    // These figures are within the algorithm's limits; the default is the same algorithm.
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).unwrap_or_default();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn hash_now(given: &str) -> Option<String> {
    hasher().hash_password(given.as_bytes()).ok().map(|hash| hash.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_known_again_and_no_other_is() {
        let pool = Passwords::default();
        let hash = pool.hash("correct horse battery").await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(pool.verify("correct horse battery", Some(hash.clone())).await);
        assert!(!pool.verify("correct horse batterz", Some(hash)).await);
        assert!(!pool.verify("a password that nobody has", None).await, "nobody is nobody");
        assert!(!pool.verify("x", Some("not a hash".to_owned())).await);
    }
}
