//! Takes records from a bucket: locks rows, lets the caller decide, and writes its decision in one transaction.
//!
//! Problem: many processes take from the head of one bucket at once. With plain row locks they would wait for each other.
//!
//! Approach: `FOR UPDATE SKIP LOCKED` passes over rows that another take has locked, so takes share a bucket without
//! waiting. The decision runs in this process, page by page, on locked rows; the write, the records read beside it and the
//! COMMIT go out together, so a take costs two round trips. A bucket with a limit needs a count that no other take changes:
//! an advisory lock lets one take at a time count and move.
//!
//! The decision also needs the number of the server's crashes. It comes with the locked rows, so it is that of the server
//! that commits the take, even behind a connection pooler. The first take after a crash counts it (`afl.count_crash`).
//!
//! A connection leaves the pool for good when its transaction did not end: a cancelled caller must not leave locks behind.

use afl_store::Epoch;
use afl_store::Millis;
use afl_store::backend::{
    BucketCursor, Decision, Durability, StoreError, TAKE_LOOKS, Take, TakeMoment, TakeResult,
};
use afl_store::record::{Key, Record};
use deadpool_postgres::{ClientWrapper, Object};
use futures_util::future::{join, join3};
use tokio::time::timeout;
use tokio_postgres::{Error, Row, Statement};

use super::LIMITS;
use super::failure::{Outlook, PostgresFailure, outlook};
use super::plan::{KeySlot, SlotAfter};
use super::read;
use super::rows::{COLUMNS, Keys, record};
use super::server::{ANSWER, Connections, SILENT, Tries};
use super::write::{BEGIN, COMMIT, Rows, TransactionEnd, and_tell, prepare};

/// When the decision left records of the first page, the next pages are at least this long.
const NEXT_PAGE: usize = 100;

/// One taker at a time for each bucket with a limit of records, until its transaction ends.
const ONE_AT_A_TIME: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('afl.ceiling ' || $1::text || ' ' || $2::text, 0))";

const HELD: &str =
    "SELECT count(*) FROM (SELECT FROM afl.records WHERE tenant = $1 AND bucket = $2 LIMIT $3) AS held";

#[derive(Clone, Copy, Debug)]
pub(super) struct Taker<'a> {
    pub(super) connections: &'a Connections,
    pub(super) now: Millis,
}

/// Why one try ended without records.
enum TakeError {
    /// Before the commit.
    Undone(Error),
    /// The commit was sent.
    Unknown(Error),
    Silent,
    Given(StoreError),
}

impl From<Error> for TakeError {
    fn from(error: Error) -> Self {
        Self::Undone(error)
    }
}

/// The records of a take as they will be, and where it gave up.
type ChosenRecords = (Vec<Record>, Option<BucketCursor>);

impl Taker<'_> {
    pub(super) async fn take(self, take: &Take) -> Result<TakeResult, StoreError> {
        let server = &self.connections.server;
        let mut tries = Tries::default();
        loop {
            // Taken out of the pool, so that one in the middle of a transaction, ours or a cancelled caller's, is
            // closed and never used again.
            let session = Session(Some(self.connections.get().await?));
            let attempt = timeout(ANSWER, self.attempt(session, take)).await;
            match attempt.unwrap_or(Err(TakeError::Silent)) {
                Ok(taken) => return Ok(taken),
                Err(TakeError::Undone(error))
                    if outlook(&error) != Outlook::Lasting && tries.again().await => {}
                Err(TakeError::Undone(error)) => return Err(PostgresFailure::of(server, &error).into()),
                Err(TakeError::Unknown(error)) => return Err(self.unknown(&error.to_string())),
                Err(TakeError::Silent) => return Err(self.unknown(SILENT)),
                Err(TakeError::Given(error)) => return Err(error),
            }
        }
    }

    async fn attempt(self, session: Session, take: &Take) -> Result<TakeResult, TakeError> {
        let client = session.client();
        let (moves, gave_up_at) = if take.max_in_bucket.is_some() {
            client.batch_execute(BEGIN).await?;
            let room = room(client, take).await?;
            self.choose(client, take, room).await?
        } else {
            let (begun, chosen) =
                join(client.batch_execute(BEGIN), self.choose(client, take, take.limit)).await;
            begun?;
            chosen?
        };
        for record in &moves {
            LIMITS.check_body(&record.content).map_err(TakeError::Given)?;
        }
        if moves.is_empty() {
            client.batch_execute(COMMIT).await?;
            session.finish();
            return Ok(TakeResult { gave_up_at, ..TakeResult::default() });
        }
        let mut rows = Rows::default();
        for moved in sorted(&moves) {
            let after = SlotAfter::Put { version: moved.version.number, content: &moved.content };
            rows.push(&moved.key, KeySlot { found: Some(moved.version.number - 1), after });
        }
        let keys = take.keys_to_read(&moves);
        prepare(client).await?;
        let wanted = client.prepare_cached(&read::by_key()).await?;
        let write = join3(
            rows.write(client, take.durability),
            read_also(client, &wanted, &keys, self.connections.epochs.now()),
            client.batch_execute(COMMIT),
        );
        let (written, also_read, committed) =
            and_tell(write, rows.tell(client, &self.connections.origin)).await;
        match (TransactionEnd::of(written), TransactionEnd::of(committed)) {
            (TransactionEnd::Undone(error), _) => return Err(TakeError::Undone(error)),
            (TransactionEnd::Unknown(error), _)
            | (_, TransactionEnd::Unknown(error) | TransactionEnd::Undone(error)) => {
                return Err(TakeError::Unknown(error));
            }
            (TransactionEnd::Committed, TransactionEnd::Committed) => {}
        }
        drop(rows);
        session.finish();
        self.took(take.durability, &moves);
        // The take stands; a read that failed would have taken the transaction with it.
        Ok(TakeResult { moved: moves, also_read: also_read.map_err(TakeError::Unknown)?, gave_up_at })
    }

    /// Locks records until enough are chosen, page by page.
    async fn choose(self, client: &ClientWrapper, take: &Take, room: usize) -> Result<ChosenRecords, Error> {
        let mut moves: Vec<Record> = Vec::new();
        let mut after = take.after.clone();
        let mut looked = 0;
        while moves.len() < room {
            if looked == TAKE_LOOKS {
                return Ok((moves, after));
            }
            let lacking = room - moves.len();
            let page = if looked == 0 { lacking } else { lacking.max(NEXT_PAGE) };
            let page = page.min(TAKE_LOOKS - looked);
            let epoch = self.connections.epochs.now();
            let records = lock(client, take, after.as_ref(), page, epoch).await?;
            looked += page;
            after = records.last().map(|(record, _)| BucketCursor::of(record));
            let is_last = records.len() < page;
            if !self.choose_from(take, records, room, &mut moves) || is_last {
                break;
            }
        }
        Ok((moves, None))
    }

    /// Chooses among the records of a page. Returns whether the take may read another page.
    fn choose_from(
        self,
        take: &Take,
        page: Vec<(Record, u64)>,
        room: usize,
        moves: &mut Vec<Record>,
    ) -> bool {
        for (record, crashes) in page {
            if moves.len() == room {
                return false;
            }
            match (take.decide)(&record, TakeMoment { now: self.now, crashes }) {
                Decision::Move(content) => {
                    moves.push(Record { version: record.version.next(), content, ..record });
                }
                Decision::Leave => {}
                Decision::Stop => return false,
            }
        }
        true
    }

    fn took(self, durability: Durability, moved: &[Record]) {
        self.connections.counters.transaction(durability);
        for record in moved {
            if let Some(place) = &record.content.place {
                self.connections.watchers.wake(&record.key.tenant, place);
            }
        }
    }

    fn unknown(self, reason: &str) -> StoreError {
        // As after a commit that may have happened.
        self.connections.watchers.wake_all();
        let reason = format!("{reason}; whether the last take happened is not known");
        PostgresFailure::unavailable(&self.connections.server, reason).into()
    }
}

/// How many records may be taken. Other takes of the same limited bucket wait until this transaction ends.
async fn room(client: &ClientWrapper, take: &Take) -> Result<usize, Error> {
    let Some(ceiling) = &take.max_in_bucket else { return Ok(take.limit) };
    let (lock, held) = (client.prepare_cached(ONE_AT_A_TIME).await?, client.prepare_cached(HELD).await?);
    let tenant = take.tenant.as_str();
    let max = i64::try_from(ceiling.max).unwrap_or(i64::MAX);
    let locked = async { client.execute(&lock, &[&tenant, &ceiling.bucket]).await };
    let counted = async { client.query_one(&held, &[&tenant, &ceiling.bucket, &max]).await };
    let (locked, counted) = join(locked, counted).await;
    locked?;
    let held: i64 = counted?.try_get(0)?;
    Ok(take.limit.min(usize::try_from(max - held).unwrap_or(0)))
}

/// Locks records, and returns with each how often the server crashed.
async fn lock(
    client: &ClientWrapper,
    take: &Take,
    after: Option<&BucketCursor>,
    page: usize,
    epoch: Epoch,
) -> Result<Vec<(Record, u64)>, Error> {
    let beyond = if after.is_some() { "AND (r.rank, r.scope, r.id) > ($5, $6, $7)" } else { "" };
    let sql = format!(
        "SELECT coalesce((SELECT crashes FROM afl.incarnation), afl.count_crash()), {COLUMNS} FROM afl.records r
         WHERE r.tenant = $1 AND r.bucket = $2 AND r.rank <= $3 {beyond}
         ORDER BY r.tenant, r.bucket, r.rank, r.scope, r.id LIMIT $4
         FOR UPDATE OF r SKIP LOCKED"
    );
    let statement = client.prepare_cached(&sql).await?;
    let (tenant, highest) = (take.tenant.as_str(), take.ranks.highest());
    let page = i64::try_from(page).unwrap_or(i64::MAX);
    let rows = match after {
        None => client.query(&statement, &[&tenant, &take.bucket, &highest, &page]).await?,
        Some(BucketCursor { rank, scope, id }) => {
            let params: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
                [&tenant, &take.bucket, &highest, &page, rank, &&**scope, id];
            client.query(&statement, &params).await?
        }
    };
    let locked = |row: &Row| Ok((record(row, 1, epoch)?, row.try_get::<_, i64>(0)?.cast_unsigned()));
    rows.iter().map(locked).collect()
}

/// Reads the further records that a take wants; without keys it sends no statement.
async fn read_also(
    client: &ClientWrapper,
    wanted: &Statement,
    keys: &[Key],
    epoch: Epoch,
) -> Result<Vec<Option<Record>>, Error> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = client.query(wanted, &keys.iter().collect::<Keys<'_>>().params()).await?;
    read::found(&rows, keys.len(), epoch)
}

/// In the order of keys, in which all transactions write.
fn sorted(moves: &[Record]) -> Vec<&Record> {
    let mut sorted: Vec<&Record> = moves.iter().collect();
    sorted.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    sorted
}

/// A connection that goes back to the pool only when its transaction has ended.
struct Session(Option<Object>);

impl Session {
    fn client(&self) -> &ClientWrapper {
        self.0.as_deref().expect("it is here until the session ends")
    }

    fn finish(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            drop(Object::take(object));
        }
    }
}
