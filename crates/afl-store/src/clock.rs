//! The clock that leases and timers are judged by.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use afl_engine::time::Millis;

#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The clock of this machine.
    #[default]
    System,
    Simulated(SimClock),
}

impl Clock {
    pub fn now(&self) -> Millis {
        match self {
            Self::System => system_now(),
            Self::Simulated(clock) => clock.now(),
        }
    }
}

fn system_now() -> Millis {
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(span) => span.into(),
        Err(before) => Millis(i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |span| -span)),
    }
}

/// A clock that only its owner advances; its clones show the same time.
#[derive(Clone, Debug)]
pub struct SimClock(Arc<AtomicI64>);

impl SimClock {
    pub fn new(start: Millis) -> Self {
        Self(Arc::new(AtomicI64::new(start.0)))
    }

    pub fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }

    /// Goes on by `span`, or back when it is negative.
    pub fn advance(&self, span: Millis) {
        self.0.fetch_add(span.0, Ordering::SeqCst);
    }
}
