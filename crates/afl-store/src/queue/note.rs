//! Reports of a holder while it works: parts of the result, and lines of the log.

use afl_engine::event::{Event, Partial};
use afl_engine::id::{RunId, StepId};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_engine::wire_enum;
use serde::{Deserialize, Serialize};

use super::lease::TicketWork;
use super::{Queue, Refusal, Ticket, outcome};
use crate::backend::{Batch, Durability, Write};
use crate::conflict::retry_on_conflict;
use crate::store::{Defect, Error, LOGS, StoredRecord, opened_json, sealed_json, task_record};

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
        /// Lines that the handler logs on purpose, and lines of the agent about it.
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
            let TicketWork { task, event, .. } = self.held(ticket).await?;
            outcome::check(&task.item, partial)?;
            let now = self.store.now().await?;
            let (told, blobs) = outcome::held(partial.clone());
            let mut values = event.item.told_by(ticket.token);
            values.extend(told);
            let partial = Some(Partial { token: ticket.token, values });
            let event = StoredRecord { item: Event { partial, ..event.item }, version: event.version };
            // The write expects the task's version, so a holder that has just lost the task writes nothing.
            let key = self.store.run_key(&ticket.run, task_record(&ticket.step));
            let writes = vec![Write::keep(key, task.version), self.store.update(&ticket.run, &event, now)];
            self.store.write_with_blobs(&ticket.run, Batch::new(writes, Durability::Durable), &blobs).await?;
            Ok(())
        })
        .await
    }

    /// Adds lines to the log of the ticket's attempt. The holder numbers what it sends: sending it again does no harm.
    pub async fn log(&self, ticket: &Ticket, number: u64, lines: Vec<LogLine>) -> Result<(), Refusal> {
        // The last lines may come after the outcome.
        self.holding(ticket).await?;
        let page = LogPage { token: ticket.token, number, at: self.store.now().await?, lines };
        let id = format!("{LOGS}{}/{}", ticket.step, place(ticket.token, number));
        let key = self.store.run_key(&ticket.run, id);
        let content = sealed_json(&key, &page, None);
        let write = Batch::new(vec![Write::put(key, None, content)], Durability::Relaxed);
        Ok(self.store.write_once(write).await?)
    }

    /// The log of a task after a page of it, over all attempts.
    pub async fn log_after(
        &self,
        run: &RunId,
        step: &StepId,
        after: Option<(u64, u64)>,
    ) -> Result<Vec<LogPage>, Error> {
        let prefix = format!("{LOGS}{step}/");
        let after = after.map(|(token, number)| format!("{prefix}{}", place(token, number)));
        let records = self.store.scan_scope(run.0.clone(), &prefix, after, PAGE).await?;
        let pages = records.iter().map(|record| {
            let page: LogPage = opened_json(record)?;
            let unnamed = || Defect::Body("its id names no page of a log".to_owned());
            let (token, number) = placed(&record.key.id[prefix.len()..])
                .ok_or_else(|| Error::unreadable(&record.key, unnamed()))?;
            Ok(LogPage { token, number, ..page })
        });
        pages.collect()
    }
}

/// So that texts sort as numbers.
fn place(token: u64, number: u64) -> String {
    format!("{token:020}/{number:010}")
}

fn placed(text: &str) -> Option<(u64, u64)> {
    let (token, number) = text.split_once('/')?;
    Some((token.parse().ok()?, number.parse().ok()?))
}
