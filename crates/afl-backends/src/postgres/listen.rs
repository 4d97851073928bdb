//! Notifications between processes: `NOTIFY` behind each commit that puts records into buckets, `LISTEN` on one connection.
//!
//! Problem: a process that waits for work must start within milliseconds of another process's commit. Polling the buckets
//! that often would cost the server more than the work.
//!
//! Approach: a writer sends a notice for each bucket right behind its commit, on the same connection. Each process that
//! watches has one connection that listens, and wakes its own watchers of that bucket. A process wakes its own watchers
//! directly, so it ignores its own notices.
//!
//! A notice may be lost: the writer dies behind its commit, or the listener's connection breaks. After each reconnect all
//! watchers wake and read. Watchers also read again by themselves after a while, so a lost notice costs a delay only.
//!
//! Rejected: `NOTIFY` inside the transaction. It holds a lock of the whole server until the disk has answered.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use afl_store::record::{QueuePosition, Tenant};
use tokio::time::{interval, sleep, timeout};
use tokio_postgres::{AsyncMessage, Client, Connection, Error, Notification, Socket};

use super::server::{CONNECT_TIMEOUT, Connections, PAUSES};
use super::tls::TlsStream;
use crate::random_id;

const CHANNEL: &str = "afl";

/// How often an idle connection is checked, and how long its answer may take.
const PING: Duration = Duration::from_secs(15);

/// The server takes less than 8000 bytes.
const NOTICE_BYTES: usize = 7_000;

/// The sender of a notice: a handle does not wake itself a second time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NoticeOrigin(String);

impl NoticeOrigin {
    /// To mistake another's notice for one's own costs a delay, until the watchers read again by themselves.
    pub(super) fn new() -> Self {
        Self(random_id())
    }
}

/// A record was put into a bucket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct BucketNotice<'a> {
    pub(super) tenant: &'a Tenant,
    pub(super) bucket: &'a str,
}

impl BucketNotice<'_> {
    /// `origin tenant bucket`, or `origin` alone when that is too long, which stands for any bucket.
    pub(super) fn text(&self, NoticeOrigin(origin): &NoticeOrigin) -> String {
        let text = format!("{origin} {} {}", self.tenant.as_str(), self.bucket);
        if text.len() < NOTICE_BYTES { text } else { origin.clone() }
    }
}

/// Wakes the watchers of one handle until it is dropped.
#[derive(Debug)]
pub(super) struct NotifyListener(pub(super) Arc<Connections>);

impl NotifyListener {
    /// Never returns: a lost connection is made anew.
    pub(super) async fn run(self) {
        let mut failures = 0;
        loop {
            if let Ok(Ok((client, connection))) = timeout(CONNECT_TIMEOUT, self.0.server.open()).await {
                failures = 0;
                // The error says why the connection was lost; a new connection follows in any case.
                drop(self.listen(&client, connection).await);
            }
            failures += 1;
            sleep(PAUSES.after(failures).as_duration()).await;
        }
    }

    async fn listen(&self, client: &Client, connection: Connection<Socket, TlsStream>) -> Result<(), Error> {
        let listen = async {
            client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
            // The server does not repeat notices from before, and sends none for commits that a crash took back.
            self.0.epochs.begin();
            self.0.watchers.wake_all();
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
        let is_own = words.next() == Some(self.0.origin.0.as_str());
        let tenant = words.next().and_then(|name| Tenant::new(name).ok());
        match (is_own, tenant, words.next()) {
            (true, ..) => {}
            (false, Some(tenant), Some(bucket)) => {
                self.0.watchers.wake(&tenant, &QueuePosition { bucket: bucket.to_owned(), rank: 0 });
            }
            (false, ..) => self.0.watchers.wake_all(),
        }
    }
}
