//! The results, as tables and as JSON, with the targets beside the figures.

use std::fmt;

use serde_json::{Value, json};

use crate::memory::Load;
use crate::stage::Stage;
use crate::timing::Timing;

/// Lines a second.
const MIN_PARSE_SPEED: f64 = 1_000_000.0;
const MIN_WHOLE_SPEED: f64 = 300_000.0;
/// Time for a line at 100k lines, by that at 10k.
const MAX_GROWTH: f64 = 1.3;
/// Time for an element, by that of a program with a tenth of them. A quadratic path has 10.
const MAX_PATHOLOGICAL_GROWTH: f64 = 2.0;
/// Peak memory by the size of the source.
const MAX_MEMORY: f64 = 40.0;

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) speeds: Vec<Speed>,
    pub(crate) growth: Vec<Growth>,
    pub(crate) memory: Vec<Memory>,
    pub(crate) pathologies: Vec<Pathology>,
}

#[derive(Clone)]
pub(crate) struct Speed {
    pub(crate) stage: Stage,
    pub(crate) lines: usize,
    pub(crate) bytes: usize,
    pub(crate) timing: Timing,
}

pub(crate) struct Growth {
    stage: Stage,
    times: f64,
}

pub(crate) struct Memory {
    pub(crate) load: Load,
    pub(crate) lines: usize,
    pub(crate) times_source: f64,
}

pub(crate) struct Pathology {
    pub(crate) name: &'static str,
    pub(crate) elements: usize,
    pub(crate) timing: Timing,
    pub(crate) growth: f64,
    /// The growth of formatting; a text with mistakes is not formatted.
    pub(crate) format_growth: Option<f64>,
    /// Time for a byte, by that of an ordinary program.
    pub(crate) times_plain: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Met,
    Missed,
}

impl Verdict {
    fn of(met: bool) -> Self {
        if met { Self::Met } else { Self::Missed }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "ok",
            Self::Missed => "MISSED",
        })
    }
}

impl Speed {
    fn target(&self) -> Option<f64> {
        match self.stage {
            Stage::Parse => Some(MIN_PARSE_SPEED),
            Stage::Whole => Some(MIN_WHOLE_SPEED),
            Stage::Check | Stage::Emit | Stage::Document | Stage::Load | Stage::Format => None,
        }
    }

    fn verdict(&self) -> Option<Verdict> {
        self.target().map(|target| Verdict::of(self.lines as f64 / self.timing.best >= target))
    }

    fn json(&self) -> Value {
        json!({
            "stage": self.stage.name(),
            "lines": self.lines,
            "bytes": self.bytes,
            "medianSeconds": self.timing.median,
            "bestSeconds": self.timing.best,
            "linesPerSecond": self.lines as f64 / self.timing.median,
            "bytesPerSecond": self.bytes as f64 / self.timing.median,
            "targetLinesPerSecond": self.target(),
            "met": self.verdict().map(|verdict| verdict == Verdict::Met),
        })
    }
}

impl Growth {
    /// How much longer a line takes in the larger program.
    pub(crate) fn between(smaller: &Speed, larger: &Speed) -> Self {
        let per_line = |speed: &Speed| speed.timing.best / speed.lines as f64;
        Self { stage: larger.stage, times: per_line(larger) / per_line(smaller) }
    }

    fn verdict(&self) -> Verdict {
        Verdict::of(self.times <= MAX_GROWTH)
    }

    fn json(&self) -> Value {
        json!({
            "stage": self.stage.name(),
            "timePerLine100kBy10k": self.times,
            "target": MAX_GROWTH,
            "met": self.verdict() == Verdict::Met,
        })
    }
}

impl Memory {
    fn verdict(&self) -> Verdict {
        Verdict::of(self.times_source < MAX_MEMORY)
    }

    fn json(&self) -> Value {
        json!({
            "load": self.load.name(),
            "lines": self.lines,
            "timesSource": self.times_source,
            "target": MAX_MEMORY,
            "met": self.verdict() == Verdict::Met,
        })
    }
}

impl Pathology {
    fn verdict(&self) -> Verdict {
        let worst = self.format_growth.unwrap_or(0.0).max(self.growth);
        Verdict::of(worst <= MAX_PATHOLOGICAL_GROWTH)
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "elements": self.elements,
            "medianSeconds": self.timing.median,
            "bestSeconds": self.timing.best,
            "growth": self.growth,
            "formatGrowth": self.format_growth,
            "timesPlain": self.times_plain,
            "target": MAX_PATHOLOGICAL_GROWTH,
            "met": self.verdict() == Verdict::Met,
        })
    }
}

impl Report {
    pub(crate) fn json(&self) -> Value {
        json!({
            "speed": self.speeds.iter().map(Speed::json).collect::<Vec<_>>(),
            "growth": self.growth.iter().map(Growth::json).collect::<Vec<_>>(),
            "memory": self.memory.iter().map(Memory::json).collect::<Vec<_>>(),
            "pathological": self.pathologies.iter().map(Pathology::json).collect::<Vec<_>>(),
        })
    }

    fn speed_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>7}  {:<17} {:>9} {:>8} {:>11}  target", "lines", "stage", "ms", "MB/s", "lines/s")?;
        for speed in &self.speeds {
            let (lines, megabytes) = (speed.lines as f64, speed.bytes as f64 / 1e6);
            let median = speed.timing.median;
            write!(
                f,
                "{:>7}  {:<17} {:>9.2} {:>8.1} {:>11.0}",
                speed.lines,
                speed.stage.name(),
                median * 1e3,
                megabytes / median,
                lines / median
            )?;
            match (speed.target(), speed.verdict()) {
                (Some(target), Some(verdict)) => writeln!(f, "  >= {target:.0}: {verdict}")?,
                _ => writeln!(f)?,
            }
        }
        writeln!(f)
    }

    fn growth_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "time for a line, 100k lines by 10k  (target <= {MAX_GROWTH})")?;
        for growth in &self.growth {
            writeln!(f, "  {:<17} {:>5.2}  {}", growth.stage.name(), growth.times, growth.verdict())?;
        }
        writeln!(f)
    }

    fn memory_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "peak memory, times the source  (target < {MAX_MEMORY})")?;
        if self.memory.is_empty() {
            writeln!(f, "  not measured: this system does not report the peak of a process")?;
        }
        for memory in &self.memory {
            let name = memory.load.name();
            let verdict = memory.verdict();
            writeln!(f, "{:>8}  {name:<17} {:>5.1}  {verdict}", memory.lines, memory.times_source)?;
        }
        writeln!(f)
    }

    fn pathology_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "large in one way: parse+check+emit, and format")?;
        writeln!(f, "growth is the time for an element, by that in a program with a tenth of them")?;
        writeln!(
            f,
            "{:<42} {:>7} {:>9} {:>8} {:>7} {:>7}  <= {MAX_PATHOLOGICAL_GROWTH}",
            "elements", "count", "ms", "by plain", "growth", "format"
        )?;
        for one in &self.pathologies {
            let format_growth = one.format_growth.map(|growth| format!("{growth:.2}")).unwrap_or_default();
            writeln!(
                f,
                "{:<42} {:>7} {:>9.2} {:>8.1} {:>7.2} {:>7}  {}",
                one.name,
                one.elements,
                one.timing.median * 1e3,
                one.times_plain,
                one.growth,
                format_growth,
                one.verdict()
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.speeds.is_empty() {
            self.speed_table(f)?;
            self.growth_table(f)?;
            self.memory_table(f)?;
        }
        if !self.pathologies.is_empty() {
            self.pathology_table(f)?;
        }
        Ok(())
    }
}
