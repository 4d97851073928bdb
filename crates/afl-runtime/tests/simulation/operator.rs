//! An operator who tries again what failed, all of it or a part, at any time.

use afl_engine::id::{RunId, StepId};
use afl_runtime::{Again, Service};
use afl_store::seed::Seeded;

use crate::executor::turn;

pub(crate) struct Operator {
    pub(crate) service: Service,
    pub(crate) run: RunId,
    pub(crate) rng: Seeded,
}

impl Operator {
    pub(crate) async fn live(mut self) {
        loop {
            if self.rng.below(8) == 0 {
                let again = self.choose().await;
                // Often nothing has failed; what the store refuses is tried another time.
                drop(self.service.retry(&self.run, &again).await);
            }
            turn().await;
        }
    }

    /// All that failed, or what failed within one step.
    async fn choose(&mut self) -> Again {
        const SEEN: usize = 1_000;
        if self.rng.below(2) == 0 {
            return Again::Run;
        }
        let Ok(list) = self.service.steps(&self.run, None, None, SEEN).await else { return Again::Run };
        let mut failed: Vec<StepId> =
            list.steps.into_iter().filter(|view| view.step.error.is_some()).map(|view| view.id).collect();
        if failed.is_empty() {
            return Again::Run;
        }
        Again::Step(failed.swap_remove(self.rng.below(failed.len())))
    }
}
