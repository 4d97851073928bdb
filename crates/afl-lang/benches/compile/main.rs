//! How fast AFL is parsed, checked, emitted and formatted, and in how much memory.
//!
//! Prints tables; with `--json` one JSON object. A target is judged by the best repetition, because other
//! work on the machine only ever slows one down; the tables show the median.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench reads the clock, and starts itself again to measure memory"
)]
#![expect(clippy::cast_precision_loss, reason = "figures for people need no 52 bits")]

mod memory;
#[path = "../../tests/generate/pathological.rs"]
mod pathological;
mod report;
#[path = "../../tests/generate/sized.rs"]
mod sized;
mod stage;
mod timing;

use std::env;

use pathological::Shape;
use report::{Growth, Memory, Pathology, Report, Speed};
use stage::{Input, Stage};
use timing::{Effort, Timing};

/// Lines of the generated programs; the last two give the growth.
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// The word that asks for these alone; any other is a part of the name of a pathological program.
const SIZED: &str = "sized";

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["--peak", load, ..] = words[..] {
        memory::run_child(load);
        return;
    }
    // Cargo adds `--bench`; a word chooses a part.
    let report = match words.iter().find(|word| !word.starts_with("--")) {
        None => Report { pathologies: pathologies(""), ..measure_sized() },
        Some(&SIZED) => measure_sized(),
        Some(name) => Report { pathologies: pathologies(name), ..Report::default() },
    };
    if words.contains(&"--json") {
        println!("{}", report.json());
    } else {
        print!("{report}");
    }
}

fn measure_sized() -> Report {
    let speeds: Vec<Vec<Speed>> = SIZES.iter().map(|lines| speeds(&sized::program(*lines))).collect();
    let [.., smaller, larger] = &speeds[..] else { unreachable!("there are three sizes") };
    let growth = smaller.iter().zip(larger).map(|(smaller, larger)| Growth::between(smaller, larger));
    let growth = growth.collect();
    let memory = SIZES[1..].iter().flat_map(|lines| memory(&sized::program(*lines))).collect();
    Report { speeds: speeds.concat(), growth, memory, pathologies: Vec::new() }
}

fn speeds(text: &str) -> Vec<Speed> {
    let input = Input::new(text);
    let lines = text.lines().count();
    let speed = |stage: Stage| {
        let timing = timing::repeat(Effort::Thorough, || input.time(stage));
        Speed { stage, lines, bytes: text.len(), timing }
    };
    Stage::ALL.iter().map(|stage| speed(*stage)).collect()
}

fn memory(text: &str) -> Vec<Memory> {
    let Some(before) = memory::peak_of_child(memory::Load::Nothing, text) else { return Vec::new() };
    let measure = |load: memory::Load| {
        let bytes = memory::peak_of_child(load, text)?.saturating_sub(before);
        Some(Memory { load, lines: text.lines().count(), times_source: bytes as f64 / text.len() as f64 })
    };
    [memory::Load::Program, memory::Load::Document].into_iter().filter_map(measure).collect()
}

fn pathologies(filter: &str) -> Vec<Pathology> {
    let plain = sized::program(SIZES[1]);
    let plain_per_byte = brief(&plain, Stage::Whole).best / plain.len() as f64;
    let chosen = |shape: &&Shape| shape.name.contains(filter);
    let measure = |shape: &Shape, format_growth: Option<f64>| {
        let text = (shape.text)(shape.elements);
        let (timing, growth) = growth(shape, Stage::Whole);
        let times_plain = timing.best / text.len() as f64 / plain_per_byte;
        Pathology { name: shape.name, elements: shape.elements, timing, growth, format_growth, times_plain }
    };
    let legal = pathological::LEGAL.iter().filter(chosen);
    let legal = legal.map(|shape| measure(shape, Some(growth(shape, Stage::Format).1)));
    let broken = pathological::BROKEN.iter().filter(chosen).map(|shape| measure(shape, None));
    legal.chain(broken).collect()
}

/// The time of a stage, and how much longer an element takes than in a program with a tenth of them.
fn growth(shape: &Shape, stage: Stage) -> (Timing, f64) {
    let smaller = brief(&(shape.text)(shape.elements / 10), stage);
    let timing = brief(&(shape.text)(shape.elements), stage);
    (timing, timing.best / smaller.best / 10.0)
}

fn brief(text: &str, stage: Stage) -> Timing {
    let input = Input::new(text);
    timing::repeat(Effort::Brief, || input.time(stage))
}
