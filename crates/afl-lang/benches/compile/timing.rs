//! Repeating a measurement until it can be trusted.

/// How often a measurement is repeated.
#[derive(Clone, Copy)]
pub(crate) enum Effort {
    /// Until the median is steady.
    Thorough,
    /// Enough to tell a straight line from a parabola.
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
