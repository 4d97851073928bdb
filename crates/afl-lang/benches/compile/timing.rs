//! Measuring time, and repeating it until it can be trusted.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Counts the CPU time of this thread; where the system does not report it, the wall-clock time.
pub(crate) struct Clock {
    computed: Option<Duration>,
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { computed: computed(), started: Instant::now() }
    }

    pub(crate) fn seconds(&self) -> f64 {
        let passed = self.started.elapsed();
        let computed = computed().zip(self.computed).map(|(now, before)| now.saturating_sub(before));
        computed.unwrap_or(passed).as_secs_f64()
    }
}

/// The time that this thread has computed so far.
fn computed() -> Option<Duration> {
    // The system books the time when it turns to another thread, so let it.
    thread::yield_now();
    let booked = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    booked.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// How often a measurement is repeated.
#[derive(Clone, Copy)]
pub(crate) enum Effort {
    /// Until the median is steady.
    Thorough,
    /// Enough to distinguish a straight line from a parabola.
    Brief,
}

impl Effort {
    /// The fewest and the most repetitions, and the seconds after which no more is begun.
    fn bounds(self) -> (usize, usize, f64) {
        match self {
            Self::Thorough => (7, 200, 1.5),
            Self::Brief => (2, 10, 0.2),
        }
    }
}

/// Seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) best: f64,
    pub(crate) median: f64,
}

pub(crate) fn repeat(effort: Effort, mut measure: impl FnMut() -> f64) -> Timing {
    let (fewest, most, enough) = effort.bounds();
    let mut seconds = Vec::new();
    while seconds.len() < fewest || seconds.len() < most && seconds.iter().sum::<f64>() < enough {
        seconds.push(measure());
    }
    seconds.sort_by(f64::total_cmp);
    Timing { best: seconds[0], median: seconds[seconds.len() / 2] }
}
