//! Wake-ups between processes: notifications on PostgreSQL. Hints only (R23): a lost one costs a look later.

use std::sync::atomic::Ordering;

use sqlx::postgres::PgListener;

use super::db::{Db, Result};

const CHANNEL: &str = "handback_work";

/// Sends one notification in the background; calls while it is on its way are one with it.
pub(super) fn notify(db: Db) {
    if db.is_ringing.swap(true, Ordering::AcqRel) {
        return;
    }
    tokio::spawn(async move {
        db.is_ringing.store(false, Ordering::Release);
        if let Ok(mut conn) = db.read().await {
            let _ = conn.stmt("SELECT CAST(pg_notify('handback_work', '') AS TEXT)").rows().await;
        }
    });
}

/// Listens for notifications of other processes; `None` where the engine has none.
pub async fn listen(db: &Db, url: &str) -> Result<Option<Bell>> {
    if !db.dialect.can_notify() {
        return Ok(None);
    }
    let mut listener = PgListener::connect(url).await?;
    listener.listen(CHANNEL).await?;
    Ok(Some(Bell(listener)))
}

pub struct Bell(PgListener);

impl Bell {
    /// Waits for the next notification. A lost connection is made again; what was missed is found by polling.
    pub async fn rung(&mut self) -> Result<()> {
        self.0.recv().await?;
        Ok(())
    }
}
