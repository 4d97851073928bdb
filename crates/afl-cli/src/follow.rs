//! Drives one run in the foreground until it rests; a crew does its tasks as far as it can.

use std::time::Duration;

use afl_engine::id::RunId;
use afl_engine::run::{Control, Run};
use afl_engine::time::Millis;
use afl_runtime::{Service, Where, Work};
use tokio::time::sleep;

use crate::crew::Crew;
use crate::failure::Failure;
use crate::hands::{GLANCE, Hands};
use crate::progress::{Progress, Watcher};
use crate::stop::{Signal, Stop};

/// Why the foreground has nothing more to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    Ended,
    /// For work that nobody here can do.
    Waiting,
    /// An operator holds it.
    Held,
    Stopped(Signal),
}

pub(crate) struct Follower<'a> {
    pub(crate) service: &'a Service,
    pub(crate) run: &'a RunId,
    pub(crate) crew: &'a Crew,
    pub(crate) progress: &'a Progress,
    pub(crate) stop: &'a Stop,
}

impl Follower<'_> {
    pub(crate) async fn to_rest(&self) -> Result<(Rest, Run), Failure> {
        let watcher = Watcher::new(self.service, self.run, self.progress);
        // What a process that died left behind.
        self.service.sweep_once().await?;
        let mut hands = Hands::new(self.service, self.run, self.crew, self.progress);
        let rested = loop {
            match self.one_round(&mut hands).await {
                Ok(None) => {}
                Ok(Some(rest)) => break Ok(rest),
                Err(failure) => break Err(failure),
            }
        };
        hands.put_down().await;
        drop(watcher);
        Ok((rested?, self.service.run(self.run).await?))
    }

    /// Results of the mock come in together, so what happens does not depend on how fast this process is.
    async fn one_round(&self, hands: &mut Hands<'_>) -> Result<Option<Rest>, Failure> {
        let run = self.service.run(self.run).await?;
        match run.control {
            _ if run.status.is_terminal() => return Ok(Some(Rest::Ended)),
            Control::Hold => return Ok(Some(Rest::Held)),
            Control::Go | Control::Cancel => {}
        }
        let round = self.crew.mock.answer(self.service, self.run, self.progress, self.stop).await?;
        if !round.arrivals.is_empty() {
            hands.look_again();
            return self.drive(&Work { run: self.run.clone(), arrivals: round.arrivals }).await;
        }
        let found = self.service.look(&Where::Everywhere).await?;
        if let Some(found) = found.work.iter().find(|found| found.work.run == *self.run) {
            hands.look_again();
            return self.drive(&found.work).await;
        }
        if !self.stop.is_asked() {
            hands.take_up().await?;
        }
        let next = [round.next, hands.next].into_iter().flatten().min();
        match next {
            _ if hands.is_busy() => self.wait_for(hands).await,
            Some(at) => {
                hands.look_again();
                self.wait_until(at).await
            }
            None if self.stop.is_asked() => Ok(Some(Rest::Stopped(self.stop.asked().await))),
            None => Ok(Some(Rest::Waiting)),
        }
    }

    async fn drive(&self, work: &Work) -> Result<Option<Rest>, Failure> {
        tokio::select! {
            driven = self.service.drive_once(work) => driven.map(drop)?,
            // Whatever is not committed yet is evaluated again by whoever goes on.
            signal = self.stop.asked() => return Ok(Some(Rest::Stopped(signal))),
        }
        Ok(None)
    }

    /// Until a task is done, or others may have done something.
    async fn wait_for(&self, hands: &mut Hands<'_>) -> Result<Option<Rest>, Failure> {
        tokio::select! {
            done = hands.one_done() => done?,
            () = sleep(GLANCE) => {
                self.service.sweep_once().await?;
                hands.look_again();
            }
            signal = self.stop.asked() => return Ok(Some(Rest::Stopped(signal))),
        }
        Ok(None)
    }

    async fn wait_until(&self, at: Millis) -> Result<Option<Rest>, Failure> {
        let now = self.service.now().await?;
        let wait = u64::try_from(at.since(now).0).unwrap_or(0);
        tokio::select! {
            () = sleep(Duration::from_millis(wait)) => {}
            signal = self.stop.asked() => return Ok(Some(Rest::Stopped(signal))),
        }
        self.service.sweep_once().await?;
        Ok(None)
    }
}
