//! A driver that does one round for each call, for a simulation or a program with a loop of its own.

use crate::drive::Others;
use crate::error::Error;
use crate::find_work::{RunWithWork, WorkScan};
use crate::scheduler::RunScheduler;
use crate::service::Service;

/// Keeps evaluators from one round to the next, as [`Service::serve`] does.
#[derive(Debug)]
pub struct Rounds {
    service: Service,
    scheduler: RunScheduler,
}

impl Rounds {
    pub fn new(service: Service) -> Self {
        Self { service, scheduler: RunScheduler::default() }
    }

    /// Sweeps, looks at everything, and drives all that was found. Says how many runs were driven.
    ///
    /// A damaged run is skipped, and [`Service::doctor`] reports it; the others advance.
    pub async fn turn(&mut self) -> Result<usize, Error> {
        if self.scheduler.is_busy() {
            // The caller dropped the last round before its end.
            self.scheduler = RunScheduler::default();
        }
        self.service.queue.sweep_once().await?;
        for RunWithWork { work, .. } in self.service.find_work(&WorkScan::Everywhere).await?.work {
            self.scheduler.note(work);
        }
        let mut driven = 0;
        while let Some((work, hot)) = self.scheduler.next() {
            match self.service.drive(&work, hot, Others::Ignore).await {
                Ok(done) => {
                    driven += 1;
                    self.scheduler.done(&work.run, done);
                }
                Err(error) => {
                    self.scheduler.abandon(&work.run);
                    if !error.is_damage() {
                        return Err(error);
                    }
                }
            }
        }
        Ok(driven)
    }
}

impl Service {
    /// One round without a driver.
    pub async fn turn(&self) -> Result<usize, Error> {
        Rounds::new(self.clone()).turn().await
    }
}
