//! `afl why`: what a run waits for, and what to do about it.

use std::fmt::Write;

use afl_engine::id::StepId;
use afl_lang::render::Color;
use afl_runtime::{Link, Reason, Wait, Why};
use clap::Args;

use crate::color::{self, paint};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::outcome::sentence;
use crate::output;
use crate::shown::Moment;
use crate::states;
use crate::store::{self, Missing};

const EXAMPLES: &str = "\
Examples:
  afl why 06ebz                   tell what a run waits for
  afl why 06ebz 'Pay.items[3]'    tell it of one step and what is within it";

/// Tell what a run or a step waits for, and what to do about it
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The run, by its id or the beginning of it
    run: String,
    /// The step, by its path as `afl show` prints it, or by its id
    step: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: store::Options,
}

pub(crate) async fn run(options: &Options, color: Color) -> Result<Exit, Failure> {
    let service = options.store.open(Missing::Refuse).await?;
    let id = service.find(&options.run).await?;
    let within = match &options.step {
        Some(step) => service.find_step(&id, step).await?,
        None => StepId::root(),
    };
    let why = service.why_within(&id, &within).await?;
    if options.json {
        output::json(&why)?;
    } else {
        output::data(&text(&why, &options.store.flag(), color))?;
    }
    Ok(Exit::Fine)
}

fn text(why: &Why, flag: &str, color: Color) -> String {
    let mut text = format!("run {} of {} {}\n", why.run, why.workflow, because(&why.reason));
    for wait in &why.waits {
        text.push_str(&open_end(wait));
    }
    let told = why.waits.len() as u64;
    if why.waiting > told {
        writeln!(text, "… and {} more", why.waiting - told).expect("a string takes any text");
    }
    if let Some(next) = why.next {
        writeln!(text, "something happens by itself {}", Moment(next).from(Moment::now()))
            .expect("a string takes any text");
    }
    for advice in advice(why, flag) {
        writeln!(text, "{} {advice}", paint("help:", color::HELP, color)).expect("a string takes any text");
    }
    text
}

fn because(reason: &Reason) -> String {
    match reason {
        Reason::Completed => "is complete, so it waits for nothing".into(),
        Reason::Failed(failure) => format!("failed: {failure}"),
        Reason::Canceled => "was canceled".into(),
        Reason::Held => "is held: somebody paused it".into(),
        Reason::Canceling => "is being canceled".into(),
        Reason::Evaluating => "has steps that can go on at once, and nobody drives it".into(),
        Reason::Waiting => "waits:".into(),
        Reason::Stalled => "is stalled: nothing is open and nothing will wake it, which must not be".into(),
    }
}

/// The chain from the workflow down to the step, then what it waits for.
fn open_end(wait: &Wait) -> String {
    let mut text = String::new();
    let mut told: Option<&Link> = None;
    let mut depth = 1;
    for link in &wait.chain {
        // A block has the path of the step it belongs to.
        if told.is_some_and(|told| told.path == link.path) {
            continue;
        }
        let indent = "  ".repeat(depth);
        writeln!(text, "{indent}{} {}", link.path, states::phrase(link.state))
            .expect("a string takes any text");
        told = Some(link);
        depth += 1;
    }
    let indent = "  ".repeat(depth);
    writeln!(text, "{indent}{}", sentence(&wait.on)).expect("a string takes any text");
    text
}

fn advice(why: &Why, flag: &str) -> Vec<String> {
    let run = &why.run;
    let mut advice: Vec<String> = Vec::new();
    match &why.reason {
        Reason::Failed(_) => advice.push(format!("repair the cause, then `afl retry {run}{flag}`")),
        Reason::Held | Reason::Evaluating | Reason::Canceling => {
            advice.push(format!("`afl resume {run}{flag}` goes on with it"));
        }
        Reason::Stalled => advice.push(format!("`afl doctor{flag}` tells what is wrong")),
        Reason::Waiting => {
            for wait in &why.waits {
                let one = wait.on.advice();
                if !advice.contains(&one) {
                    advice.push(one);
                }
            }
            advice.push(format!("`afl resume {run} --mock FILE{flag}` answers from a file"));
        }
        Reason::Completed | Reason::Canceled => {}
    }
    advice
}
