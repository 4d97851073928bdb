//! Adds messages to the commit of the end that they report.

use afl_engine::attribute::Blob;
use afl_engine::changes::Changes;
use afl_engine::evaluation::StoredRecord;
use afl_engine::event::{Event, Payload};
use afl_engine::id::{RunId, StepId};
use afl_engine::run::RunStatus;
use afl_engine::task::Task;
use afl_engine::time::Millis;
use afl_engine::version::Version;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::channel::ChannelFilter;
use super::message::{Message, MessageData};
use super::rows::{Outbox, row_write};
use crate::backend::{Batch, Durability, StoreError, Write};
use crate::store::{Error, Store};

/// The writes and blobs of messages, for the commit of the end that they report.
#[derive(Debug, Default)]
pub(crate) struct OutboxWrites {
    pub(crate) writes: Vec<Write>,
    pub(crate) blobs: Vec<Blob>,
}

impl OutboxWrites {
    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }
}

impl Store {
    /// The messages that a task has ended, if it has. Its version is the one that the write of it spends.
    pub(crate) async fn messages_of_end(
        &self,
        task: &StoredRecord<Task>,
        event: Option<&Event>,
        now: Millis,
    ) -> Result<OutboxWrites, Error> {
        let mut outbox = OutboxWrites::default();
        if !task.item.state.is_terminal() {
            return Ok(outbox);
        }
        let filters = self.channel_cache.filters(self, now).await?;
        // Most stores have none, and then nothing is made for them.
        if filters.is_empty() {
            return Ok(outbox);
        }
        if let Some(message) = Message::of_end(&task.item, event, now)
            && wanted(&filters, &message).next().is_some()
        {
            let workflow = self.workflow_of(&task.item.workflow_id).await?;
            let result = event.and_then(|event| event.result.as_ref());
            let message = Message { workflow, ..message };
            self.tell(&mut outbox, &filters, &message, result, task.version.number);
        }
        Ok(outbox)
    }

    /// The messages of an evaluation: that the run has ended, and tasks that were ended with it or by a person.
    pub(crate) async fn messages_of_changes(
        &self,
        changes: &Changes,
        now: Millis,
    ) -> Result<OutboxWrites, Error> {
        let ends = changes.run.item.status.is_terminal()
            || changes.tasks.iter().any(|put| put.item.state.is_terminal());
        let mut outbox = OutboxWrites::default();
        if !ends {
            return Ok(outbox);
        }
        let filters = self.channel_cache.filters(self, now).await?;
        if filters.is_empty() {
            return Ok(outbox);
        }
        let run = &changes.run;
        let events: BTreeMap<&StepId, &Event> =
            changes.events.iter().map(|put| (&put.item.step_id, &*put.item)).collect();
        for task in &changes.tasks {
            let event = events.get(&task.item.step_id).copied();
            if let Some(message) = Message::of_end(&task.item, event, now) {
                let message = Message { workflow: Some(run.item.workflow.clone()), ..message };
                let result = event.and_then(|event| event.result.as_ref());
                self.tell(&mut outbox, &filters, &message, result, number(task.version));
            }
        }
        if let Some(message) = Message::of_run(&run.item, now) {
            self.tell(&mut outbox, &filters, &message, outputs(changes).as_ref(), number(run.version));
        }
        Ok(outbox)
    }

    fn tell(
        &self,
        outbox: &mut OutboxWrites,
        filters: &[ChannelFilter],
        message: &Message,
        data: Option<&Payload>,
        version: u64,
    ) {
        let id = message.id(version);
        let mut wanted = wanted(filters, message).peekable();
        if wanted.peek().is_none() {
            return;
        }
        let (data, blob) = data.map(MessageData::new).unzip();
        outbox.blobs.extend(blob.flatten());
        let mut message = Message { data, ..message.clone() };
        outbox.writes.extend(wanted.map(|filter| {
            message.opened = filter.opened;
            row_write(self, &filter.channel, &id, &message)
        }));
    }

    async fn workflow_of(&self, run: &RunId) -> Result<Option<Arc<str>>, Error> {
        if !run.is_run() {
            return Ok(None);
        }
        Ok(self.run(run).await?.map(|run| run.item.workflow))
    }
}

impl Outbox {
    /// Sends the open event of a step to a channel that was opened at this time, durably; the same event only once.
    pub async fn dispatch(
        &self,
        channel: &str,
        opened: Millis,
        run: &RunId,
        step: &StepId,
    ) -> Result<bool, Error> {
        let work = self.0.work(run, step).await?;
        let (Some(task), Some(event)) = (work.task, work.event) else { return Ok(false) };
        if task.item.state.is_terminal() {
            return Ok(false);
        }
        let StoredRecord { item: event, version } = event;
        let (data, blob) = MessageData::new(&event.payload);
        let workflow = work.run.map(|run| run.item.workflow);
        let message = Message::of_dispatch(&task.item, self.0.now().await?);
        let message = Message { workflow, opened, data: Some(data), ..message };
        let write = row_write(&self.0, channel, &message.id(version.number), &message);
        let blobs: Vec<_> = blob.into_iter().collect();
        let batch = Batch { since: Some(version.epoch), ..Batch::new(vec![write], Durability::Durable) };
        match self.0.write_with_blobs(run, batch, &blobs).await {
            // It is on its way already.
            Err(Error::Backend(StoreError::Conflict { .. })) => Ok(true),
            outcome => outcome.map(|()| true),
        }
    }
}

/// That of the record before this change; zero for a new one.
fn number(version: Option<Version>) -> u64 {
    version.map_or(0, |version| version.number)
}

/// The yield of the workflow: its step ends in the iteration that ends the run.
fn outputs(changes: &Changes) -> Option<Payload> {
    match changes.run.item.status {
        RunStatus::Completed => {}
        RunStatus::Running | RunStatus::Paused | RunStatus::Failed | RunStatus::Canceled => return None,
    }
    let root = changes.steps.iter().find(|put| put.item.id == StepId::root())?;
    let returns = root.item.attributes.returns.iter();
    Some(returns.map(|(name, output)| (name.clone(), output.held.clone())).collect())
}

fn wanted<'a>(filters: &'a [ChannelFilter], message: &'a Message) -> impl Iterator<Item = &'a ChannelFilter> {
    filters.iter().filter(|filter| filter.wants(message.topic, &message.facet))
}
