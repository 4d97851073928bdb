//! Adds messages to the commit of what they tell of.

use afl_engine::attribute::Blob;
use afl_engine::changes::Changes;
use afl_engine::evaluation::Stored;
use afl_engine::event::{Event, Payload};
use afl_engine::id::{RunId, StepId};
use afl_engine::run::RunStatus;
use afl_engine::task::Task;
use afl_engine::time::Millis;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::channel::Ear;
use super::message::{Data, Message};
use super::rows::{Outbox, row_write};
use crate::backend::{Durability, StoreError, Write};
use crate::store::{Error, Store};

/// What a commit has to hold beside what it tells of.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) writes: Vec<Write>,
    pub(crate) blobs: Vec<Blob>,
}

impl Told {
    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }
}

impl Store {
    /// The messages that a task has ended, if it has. Its version is the one that the write of it spends.
    pub(crate) async fn tell_of_end(
        &self,
        task: &Stored<Task>,
        event: Option<&Event>,
        now: Millis,
    ) -> Result<Told, Error> {
        let mut told = Told::default();
        if !task.item.state.is_terminal() {
            return Ok(told);
        }
        let ears = self.hearing().ears(self, now).await?;
        // Most stores have none, and then nothing is made for them.
        if ears.is_empty() {
            return Ok(told);
        }
        if let Some(message) = Message::of_end(&task.item, event, now)
            && wanted(&ears, &message).next().is_some()
        {
            let workflow = self.workflow_of(&task.item.workflow_id).await?;
            let result = event.and_then(|event| event.result.as_ref());
            let message = Message { workflow, ..message };
            self.tell(&mut told, &ears, &message, result, task.version);
        }
        Ok(told)
    }

    /// The messages of an evaluation: that the run has ended, and tasks that were ended with it or by a person.
    pub(crate) async fn tell_of_changes(&self, changes: &Changes, now: Millis) -> Result<Told, Error> {
        let ends = changes.run().item.status.is_terminal()
            || changes.tasks().iter().any(|put| put.item.state.is_terminal());
        if !ends {
            return Ok(Told::default());
        }
        let ears = self.hearing().ears(self, now).await?;
        Ok(self.tell_all(changes, &ears, now))
    }

    fn tell_all(&self, changes: &Changes, ears: &[Ear], now: Millis) -> Told {
        let mut told = Told::default();
        if ears.is_empty() {
            return told;
        }
        let run = changes.run();
        let events: BTreeMap<&StepId, &Event> =
            changes.events().iter().map(|put| (&put.item.step_id, &*put.item)).collect();
        for task in changes.tasks() {
            let event = events.get(&task.item.step_id).copied();
            if let Some(message) = Message::of_end(&task.item, event, now) {
                let message = Message { workflow: Some(run.item.workflow.clone()), ..message };
                let result = event.and_then(|event| event.result.as_ref());
                self.tell(&mut told, ears, &message, result, task.version.unwrap_or(0));
            }
        }
        if let Some(message) = Message::of_run(&run.item, now) {
            self.tell(&mut told, ears, &message, outputs(changes).as_ref(), run.version.unwrap_or(0));
        }
        told
    }

    fn tell(&self, told: &mut Told, ears: &[Ear], message: &Message, data: Option<&Payload>, version: u64) {
        let id = message.id(version);
        let mut wanted = wanted(ears, message).peekable();
        if wanted.peek().is_none() {
            return;
        }
        let (data, blob) = data.map(Data::new).unzip();
        told.blobs.extend(blob.flatten());
        let mut message = Message { data, ..message.clone() };
        told.writes.extend(wanted.map(|ear| {
            message.opened = ear.opened;
            row_write(self, &ear.channel, &id, &message)
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
        let Stored { item: event, version } = event;
        let (data, blob) = Data::new(&event.payload);
        let workflow = work.run.map(|run| run.item.workflow);
        let message = Message::of_dispatch(&task.item, self.0.now().await?);
        let message = Message { workflow, opened, data: Some(data), ..message };
        let write = row_write(&self.0, channel, &message.id(version), &message);
        let blobs: Vec<_> = blob.into_iter().collect();
        match self.0.write_with_blobs(run, vec![write], &blobs, work.era, Durability::Durable).await {
            // It is on its way already.
            Err(Error::Backend(StoreError::Conflict { .. })) => Ok(true),
            outcome => outcome.map(|()| true),
        }
    }
}

/// What the workflow yielded: its step ends in the iteration that ends the run.
fn outputs(changes: &Changes) -> Option<Payload> {
    match changes.run().item.status {
        RunStatus::Completed => {}
        RunStatus::Running | RunStatus::Paused | RunStatus::Failed | RunStatus::Canceled => return None,
    }
    let root = changes.steps().iter().find(|put| put.item.id == StepId::root())?;
    let returns = root.item.attributes.returns.iter();
    Some(returns.map(|(name, output)| (name.clone(), output.held.clone())).collect())
}

fn wanted<'a>(ears: &'a [Ear], message: &'a Message) -> impl Iterator<Item = &'a Ear> {
    ears.iter().filter(|ear| ear.wants(message.topic, &message.facet))
}
