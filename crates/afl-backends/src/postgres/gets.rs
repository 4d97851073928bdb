//! Reads by key, which share statements under load.
//!
//! Problem: every read by key is a round trip and a statement. Under load the server spends more on the statements than on
//! the rows.
//!
//! Approach: a read runs at once while fewer than two statements are under way. Further reads queue, and the next statement
//! asks for the keys of all that wait, up to 1,000. The snapshot of a shared statement begins after each of its calls. Two
//! statements at once keep a long read from delaying short ones; more cost the server more than they gain.
//!
//! A statement that fails for one of its reads is repeated for each read alone.

use std::sync::Arc;

use afl_store::record::{Key, Record};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::failure::PostgresFailure;
use super::read;
use super::server::{Connections, apart};

/// How many statements may be under way.
const STATEMENTS: usize = 2;
/// The most keys that one statement asks for; a single read may ask for more.
const KEYS: usize = 1_000;

type GetReply = Vec<Option<Record>>;

#[derive(Debug)]
pub(super) struct Gets {
    connections: Arc<Connections>,
    free: Arc<Semaphore>,
    shared: mpsc::UnboundedSender<GetRequest>,
}

#[derive(Debug)]
struct GetRequest {
    keys: Vec<Key>,
    reply: oneshot::Sender<Result<GetReply, PostgresFailure>>,
}

impl Gets {
    /// Starts a task that ends when this is dropped.
    pub(super) fn new(connections: Arc<Connections>) -> Self {
        let free = Arc::new(Semaphore::new(STATEMENTS));
        let (shared, requests) = mpsc::unbounded_channel();
        tokio::spawn(share(connections.clone(), free.clone(), requests));
        Self { connections, free, shared }
    }

    /// From one snapshot, taken after the call.
    pub(super) async fn get(&self, keys: &[Key]) -> Result<GetReply, PostgresFailure> {
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            let (connections, keys) = (self.connections.clone(), keys.to_vec());
            return apart(async move {
                let _permit = permit;
                read::get(&connections, &keys).await
            })
            .await;
        }
        let gone =
            || PostgresFailure::unavailable(&self.connections.server, "the reader of this process has ended");
        let (reply, result) = oneshot::channel();
        self.shared.send(GetRequest { keys: keys.to_vec(), reply }).map_err(|_| gone())?;
        result.await.map_err(|_| gone())?
    }
}

async fn share(
    connections: Arc<Connections>,
    free: Arc<Semaphore>,
    mut requests: mpsc::UnboundedReceiver<GetRequest>,
) {
    while let Some(first) = requests.recv().await {
        // Meanwhile more come.
        let _permit = free.acquire().await.expect("it is never closed");
        let mut total = first.keys.len();
        let mut group = vec![first];
        while total < KEYS
            && let Ok(request) = requests.try_recv()
        {
            total += request.keys.len();
            group.push(request);
        }
        serve(&connections, group).await;
    }
}

async fn serve(connections: &Connections, group: Vec<GetRequest>) {
    let keys: Vec<Key> = group.iter().flat_map(|request| request.keys.iter().cloned()).collect();
    match read::get(connections, &keys).await {
        Ok(found) => {
            let mut found = found.into_iter();
            for GetRequest { keys, reply } in group {
                // The caller may have stopped waiting.
                drop(reply.send(Ok(found.by_ref().take(keys.len()).collect())));
            }
        }
        // One bad read must not fail the others.
        Err(failure) if failure.is_of_a_batch() && group.len() > 1 => {
            for GetRequest { keys, reply } in group {
                drop(reply.send(read::get(connections, &keys).await));
            }
        }
        Err(failure) => {
            for GetRequest { reply, .. } in group {
                drop(reply.send(Err(failure.clone())));
            }
        }
    }
}
