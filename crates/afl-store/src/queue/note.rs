//! Reports of a holder while it works: parts of the result, and lines of the log.

use afl_engine::event::{Event, Partial};
use afl_engine::id::{RunId, StepId};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_engine::wire_enum;
use serde::{Deserialize, Serialize};

use super::settle::{TicketCheck, TicketWork};
use super::{Queue, Refusal, Ticket, outcome};
use crate::backend::{Change, Durability, Expect, Scan, StoreError, Write};
use crate::conflict::retry_on_conflict;
use crate::record::Key;
use crate::store::{Defect, Error, LOGS, Stored, opened, sealed};

/// Lines of one attempt that were sent together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LogPage {
    /// The claim they belong to.
    #[serde(skip)]
    pub token: u64,
    #[serde(skip)]
    pub number: u64,
    pub at: Millis,
    pub lines: Vec<LogLine>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LogLine {
    pub stream: LogStream,
    pub level: LogLevel,
    pub text: String,
}

wire_enum! {
    pub enum LogStream ("stream") {
        Stdout = "stdout",
        Stderr = "stderr",
        /// What the handler logs on purpose, and what the agent says of it.
        System = "system",
    }
}

wire_enum! {
    pub enum LogLevel ("level") {
        Debug = "debug",
        Info = "info",
        Warn = "warn",
        Error = "error",
    }
}

const PAGE: usize = 500;

impl Queue {
    /// A part of the result, seen at once; the whole result comes over it.
    pub async fn update(&self, ticket: &Ticket, partial: &Map<String, Value>) -> Result<(), Refusal> {
        retry_on_conflict(|| async {
            let TicketWork { task, event, .. } = match self.holding(ticket).await? {
                TicketCheck::Now(holding) => *holding,
                TicketCheck::Settled { path } => return Err(Refusal::LeaseLost { path }),
            };
            outcome::check(&task.item, partial)?;
            let now = self.store.now().await?;
            let (told, blobs) = outcome::held(partial.clone());
            let mut values = event.item.told_by(ticket.token);
            values.extend(told);
            let partial = Some(Partial { token: ticket.token, values });
            let event = Stored { item: Event { partial, ..event.item }, version: event.version };
            // The write expects the task's version, so a holder that has just lost the task writes nothing.
            let keep = Write {
                key: self.store.run_key(&ticket.run, crate::store::task_record(&ticket.step)),
                expect: Expect::Version(task.version),
                change: Change::Keep,
            };
            let writes = vec![keep, self.store.update(&ticket.run, &event, now)];
            self.store.write_with_blobs(&ticket.run, writes, &blobs, Durability::Durable).await?;
            Ok(())
        })
        .await
    }

    /// Adds lines to the log of the ticket's attempt. The holder numbers what it sends: sending it again does no harm.
    pub async fn log(&self, ticket: &Ticket, number: u64, lines: Vec<LogLine>) -> Result<(), Refusal> {
        // The last lines may come after the outcome.
        match self.holding(ticket).await? {
            TicketCheck::Now(_) | TicketCheck::Settled { .. } => {}
        }
        let page = LogPage { token: ticket.token, number, at: self.store.now().await?, lines };
        let key = self.log_key(ticket, number);
        let body = serde_json::to_vec(&page).expect("lines have a JSON form");
        let change = Change::Put(sealed(&key, body, None));
        match self.store.write(vec![Write { key, expect: Expect::Absent, change }], Durability::Relaxed).await
        {
            Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The log of a task after a page of it, over all attempts.
    pub async fn log_after(
        &self,
        run: &RunId,
        step: &StepId,
        after: Option<(u64, u64)>,
    ) -> Result<Vec<LogPage>, Error> {
        let prefix = format!("{LOGS}{step}/");
        let scan = Scan::Scope {
            tenant: self.store.tenant().clone(),
            scope: run.0.clone(),
            after: after.map(|(token, number)| format!("{prefix}{}", place(token, number))),
            prefix: prefix.clone(),
            limit: PAGE,
        };
        let records = self.store.backend().scan(&scan).await?;
        let pages = records.iter().map(|record| {
            let wrong = |reason: String| Error::unreadable(&record.key, Defect::Body(reason));
            let page: LogPage =
                serde_json::from_slice(opened(record)?).map_err(|error| wrong(error.to_string()))?;
            let (token, number) = placed(&record.key.id[prefix.len()..])
                .ok_or_else(|| wrong("its id names no page of a log".to_owned()))?;
            Ok(LogPage { token, number, ..page })
        });
        pages.collect()
    }

    fn log_key(&self, ticket: &Ticket, number: u64) -> Key {
        self.store.run_key(&ticket.run, format!("{LOGS}{}/{}", ticket.step, place(ticket.token, number)))
    }
}

/// So that texts sort as numbers.
fn place(token: u64, number: u64) -> String {
    format!("{token:010}/{number:010}")
}

fn placed(text: &str) -> Option<(u64, u64)> {
    let (token, number) = text.split_once('/')?;
    Some((token.parse().ok()?, number.parse().ok()?))
}
