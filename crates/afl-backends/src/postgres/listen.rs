//! Wake-ups between processes: `NOTIFY` in the transaction that brings a record, `LISTEN` on a connection of its own.

use std::future::poll_fn;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use afl_store::record::{QueuePosition, Tenant};
use afl_store::watch::Watchers;
use tokio::time::{interval, sleep, timeout};
use tokio_postgres::{AsyncMessage, Client, Connection, Error, Notification, Socket};

use super::epochs::Epochs;
use super::server::{CONNECT_TIMEOUT, ServerAddress};
use super::tls::TlsStream;

const CHANNEL: &str = "afl";

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How often a connection that has nothing to tell is asked whether it lives, and how long it may take.
const PING: Duration = Duration::from_secs(15);

/// The server takes less than 8000 bytes.
const NOTICE_BYTES: usize = 7_000;

/// Who sent a notice: a handle does not wake itself a second time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NoticeOrigin(String);

impl NoticeOrigin {
    /// Different from all others, near enough: to take another's notice for one's own costs a wake-up, which the
    /// waiters' own look around makes good.
    pub(super) fn new() -> Self {
        static HANDLES: AtomicU64 = AtomicU64::new(0);
        let handle = HANDLES.fetch_add(1, Ordering::Relaxed);
        let started =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |span| span.as_nanos());
        Self(format!("{:x}-{handle:x}-{started:x}", process::id()))
    }
}

/// That something came into a bucket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct BucketNotice<'a> {
    pub(super) tenant: &'a Tenant,
    pub(super) bucket: &'a str,
}

impl BucketNotice<'_> {
    /// `origin tenant bucket`, or `origin` alone when that is too long: something came somewhere.
    pub(super) fn text(&self, NoticeOrigin(origin): &NoticeOrigin) -> String {
        let text = format!("{origin} {} {}", self.tenant.as_str(), self.bucket);
        if text.len() < NOTICE_BYTES { text } else { origin.clone() }
    }
}

/// Wakes the watchers of one handle until it is dropped.
#[derive(Debug)]
pub(super) struct NotifyListener {
    pub(super) server: ServerAddress,
    pub(super) epochs: Epochs,
    pub(super) origin: NoticeOrigin,
    pub(super) watchers: Arc<Watchers>,
}

impl NotifyListener {
    /// Never returns: a lost connection is made anew.
    pub(super) async fn run(self) {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Ok(Ok((client, connection))) = timeout(CONNECT_TIMEOUT, self.server.open()).await {
                pause = FIRST_PAUSE;
                // It ends with why the connection was lost; either way a new one follows.
                drop(self.listen(&client, connection).await);
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn listen(&self, client: &Client, connection: Connection<Socket, TlsStream>) -> Result<(), Error> {
        let listen = async {
            client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
            // What came while nobody listened is not told again, and what went by a crash is told by nobody.
            self.epochs.begin();
            self.watchers.wake_all();
            let mut pings = interval(PING);
            loop {
                pings.tick().await;
                if timeout(PING, client.check_connection()).await.is_err() {
                    return Ok(());
                }
            }
        };
        tokio::select! {
            ended = listen => ended,
            ended = self.receive(connection) => ended,
        }
    }

    async fn receive(&self, mut connection: Connection<Socket, TlsStream>) -> Result<(), Error> {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message? {
                self.wake(&notification);
            }
        }
        Ok(())
    }

    fn wake(&self, notification: &Notification) {
        let mut words = notification.payload().splitn(3, ' ');
        let is_own = words.next() == Some(self.origin.0.as_str());
        let tenant = words.next().and_then(|name| Tenant::new(name).ok());
        match (is_own, tenant, words.next()) {
            (true, ..) => {}
            (false, Some(tenant), Some(bucket)) => {
                self.watchers.wake(&tenant, &QueuePosition { bucket: bucket.to_owned(), rank: 0 });
            }
            (false, ..) => self.watchers.wake_all(),
        }
    }
}
