//! The clock that leases and timers are judged by.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use afl_engine::time::Millis;

use crate::backend::ClockJump;

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

    /// The last step ahead of the time that passed, where that is known.
    pub fn jump(&self) -> Option<ClockJump> {
        match self {
            Self::System => None,
            Self::Simulated(clock) => clock.jump(),
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
pub struct SimClock(Arc<SimTime>);

#[derive(Debug)]
struct SimTime {
    now: AtomicI64,
    /// When the last jump was made, and its span; a span of zero for none.
    jumped_at: AtomicI64,
    jumped_by: AtomicI64,
}

impl SimClock {
    pub fn new(start: Millis) -> Self {
        let time = SimTime { now: start.0.into(), jumped_at: 0.into(), jumped_by: 0.into() };
        Self(Arc::new(time))
    }

    pub fn now(&self) -> Millis {
        Millis(self.0.now.load(Ordering::SeqCst))
    }

    /// Time passes.
    pub fn advance(&self, span: Millis) {
        self.0.now.fetch_add(span.0, Ordering::SeqCst);
    }

    /// An operator sets the clock ahead by `span`, or back when it is negative.
    pub fn set_ahead(&self, span: Millis) {
        self.advance(span);
        if span > Millis(0) {
            self.0.jumped_at.store(self.now().0, Ordering::SeqCst);
            self.0.jumped_by.store(span.0, Ordering::SeqCst);
        }
    }

    fn jump(&self) -> Option<ClockJump> {
        let by = Millis(self.0.jumped_by.load(Ordering::SeqCst));
        let at = Millis(self.0.jumped_at.load(Ordering::SeqCst));
        (by > Millis(0)).then_some(ClockJump { at, by })
    }
}
