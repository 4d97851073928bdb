//! Waiting for a bucket to change without asking over and over.

use tokio::sync::watch;

/// Wakes after something came into the buckets it was made for. What came before it was made does not count, and
/// several changes may wake it once; so make it first, then look, then wait.
#[derive(Clone, Debug)]
pub struct Watch {
    changes: watch::Receiver<u64>,
}

impl Watch {
    pub fn new(changes: watch::Receiver<u64>) -> Self {
        Self { changes }
    }

    /// Returns after the next change; never, when the store is gone.
    pub async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
