//! `afl why`: what a run waits for, and what to do about it.

use std::collections::BTreeSet;
use std::fmt::Write;

use afl_engine::evaluation::SCRIPT_EVENT;
use afl_engine::id::StepId;
use afl_engine::task::DEFAULT_TASK_LIST;
use afl_lang::render::Color;
use afl_runtime::view::{Blocked, BlockedStep, WhyReport};
use afl_runtime::{ChainLink, Error, NotFound, On, Wait, Why, WhyReason};
use clap::Args;

use crate::color::{self, paint};
use crate::decide::{self, Undecided};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::outcome::sentence;
use crate::output;
use crate::shell::word;
use crate::shown::{self, Moment};
use crate::states;
use crate::store::{self, IfMissing};

const EXAMPLES: &str = "\
Examples:
  afl why 06ebz                   show what a run waits for
  afl why 06ebz 'Pay.items[3]'    show it for one step and the steps within it";

/// Show what a run or a step waits for, and what to do about it
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
    let service = options.store.open(IfMissing::Refuse).await?;
    let id = service.find(&options.run).await?;
    let within = match &options.step {
        Some(step) => match service.find_step(&id, step).await {
            Err(error @ Error::NotFound(NotFound::Step { .. })) => {
                let blocked = service.blocked(&id, step).await?.ok_or(error)?;
                return tell_blocked(options, &blocked);
            }
            found => found?,
        },
        None => StepId::root(),
    };
    let report = service.why_report(&id, &within).await?;
    if options.json {
        output::view(&report)?;
    } else {
        output::data(&text(&report, &options.store, color))?;
    }
    Ok(Exit::Fine)
}

/// A step that has not begun, then what keeps it from beginning.
fn tell_blocked(options: &Options, blocked: &Blocked) -> Result<Exit, Failure> {
    if options.json {
        output::view(blocked)?;
        return Ok(Exit::Fine);
    }
    let mut text = String::new();
    for BlockedStep { path, reads } in &blocked.steps {
        match &reads[..] {
            [] => writeln!(text, "{path} has not begun: its block has not come to it"),
            reads => writeln!(text, "{path} has not begun: it reads {}", reads.join(", ")),
        }
        .expect(ANY_TEXT);
    }
    let mut above = Vec::new();
    for wait in blocked.open.iter().flat_map(|why| &why.waits) {
        text.push_str(&open_end(wait, &mut above));
    }
    output::data(&text)?;
    Ok(Exit::Fine)
}

fn text(report: &WhyReport, store: &store::Options, color: Color) -> String {
    let why = &report.why;
    let mut text = format!("run {} of {} {}\n", why.run, why.workflow, because(&why.reason));
    let waits = match why.reason {
        WhyReason::Completed | WhyReason::Canceled => &[][..],
        WhyReason::Failed(_)
        | WhyReason::Held
        | WhyReason::Canceling
        | WhyReason::Evaluating
        | WhyReason::Waiting
        | WhyReason::Stalled => &why.waits[..],
    };
    let mut above: Vec<String> = Vec::new();
    for wait in waits {
        text.push_str(&open_end(wait, &mut above));
    }
    let told = waits.len() as u64;
    if !waits.is_empty() && why.waiting > told {
        writeln!(text, "… and {} more", why.waiting - told).expect(ANY_TEXT);
    }
    if let Some(next) = why.next {
        writeln!(text, "something happens by itself {}", Moment(next).from(Moment::now())).expect(ANY_TEXT);
    }
    for advice in advice(report, store) {
        writeln!(text, "{} {advice}", paint("help:", color::HELP, color)).expect(ANY_TEXT);
    }
    text
}

const ANY_TEXT: &str = "a string takes any text";

fn because(reason: &WhyReason) -> String {
    match reason {
        WhyReason::Completed => "is complete, so it waits for nothing".into(),
        WhyReason::Failed(failure) => shown::headline(&format!("failed: {failure}")),
        WhyReason::Canceled => "was canceled".into(),
        WhyReason::Held => "is held: a person paused it".into(),
        WhyReason::Canceling => "is being canceled".into(),
        WhyReason::Evaluating => "has steps that are ready, and no process drives it".into(),
        WhyReason::Waiting => "waits:".into(),
        WhyReason::Stalled => {
            "is stalled: nothing is open and nothing will wake it, which must not be".into()
        }
    }
}

/// The chain from the workflow down to the step, then the reason. The links in `above` are printed already.
fn open_end(wait: &Wait, above: &mut Vec<String>) -> String {
    let mut text = String::new();
    // A block has the path of the step it belongs to.
    let mut links: Vec<&ChainLink> = wait.chain.iter().collect();
    links.dedup_by(|block, owner| block.path == owner.path);
    if let On::Failure(_) | On::Decision { .. } = wait.on {
        links.pop();
    }
    above.truncate(links.iter().zip(&*above).take_while(|(link, told)| link.path == **told).count());
    for link in &links[above.len()..] {
        let indent = "  ".repeat(above.len() + 1);
        writeln!(text, "{indent}{} {}", link.path, states::phrase(link.state)).expect(ANY_TEXT);
        above.push(link.path.clone());
    }
    let indent = "  ".repeat(above.len() + 1);
    match &wait.on {
        On::Failure(failure) | On::Decision { failure, .. } => {
            let failure = shown::inert(&failure.to_string()).replace('\n', &format!("\n{indent}  "));
            writeln!(text, "{indent}{failure}")
        }
        on @ (On::Agent { .. } | On::Holder { .. } | On::Retry { .. } | On::Driver) => {
            writeln!(text, "{indent}{}", sentence(on))
        }
    }
    .expect(ANY_TEXT);
    text
}

fn advice(report: &WhyReport, store: &store::Options) -> Vec<String> {
    let WhyReport { why, unserved } = report;
    let command = |verb: &str| store.command(&format!("{verb} {}", why.run));
    let mut advice: Vec<String> = Vec::new();
    match &why.reason {
        WhyReason::Failed(_) => {
            advice.extend(decisions(why, &store.flag()));
            if advice.is_empty() || why.waits.iter().any(|wait| matches!(wait.on, On::Failure(_))) {
                advice.push(format!("repair the cause, then {}", command("retry")));
            }
        }
        WhyReason::Held | WhyReason::Evaluating | WhyReason::Canceling => {
            advice.push(format!("{} continues it", command("resume")));
        }
        WhyReason::Stalled => advice.push(format!("{} lists the damage", store.command("doctor"))),
        WhyReason::Waiting => {
            advice.extend(decisions(why, &store.flag()));
            let others = why.waits.iter().filter(|wait| !matches!(wait.on, On::Decision { .. }));
            for wait in others {
                let one = match &wait.on {
                    On::Agent { name, list, needs, .. } if unserved.contains(name) => {
                        serve(name, list, needs, store)
                    }
                    On::Agent { needs, .. } if !needs.is_empty() => {
                        format!("{} (`--capability {}`)", wait.on.advice(), needs.join(" --capability "))
                    }
                    On::Driver => format!("{}, as `afl run` does", wait.on.advice()),
                    on => on.advice(),
                };
                if !advice.contains(&one) {
                    advice.push(one);
                }
            }
            let resume = store.command(&format!("resume {} --handlers DIR{}", why.run, capabilities(why)));
            advice.push(format!("{resume} does the work here, with `--mock FILE` it answers from a file"));
        }
        WhyReason::Completed | WhyReason::Canceled => {}
    }
    advice
}

/// The capabilities that the agent needs.
fn capabilities(why: &Why) -> String {
    let needs = why.waits.iter().filter_map(|wait| match &wait.on {
        On::Agent { needs, .. } => Some(needs),
        On::Holder { .. } | On::Retry { .. } | On::Driver | On::Failure(_) | On::Decision { .. } => None,
    });
    let needs: BTreeSet<&String> = needs.flatten().collect();
    let mut text = String::new();
    for need in needs {
        write!(text, " --capability {need}").expect(ANY_TEXT);
    }
    text
}

fn decisions(why: &Why, flag: &str) -> Vec<String> {
    let undecided = why.waits.iter().filter_map(|wait| match &wait.on {
        On::Decision { must_return, .. } => {
            Some(Undecided { run: &why.run, path: &wait.path, must_return: must_return.clone() })
        }
        On::Agent { .. } | On::Holder { .. } | On::Retry { .. } | On::Driver | On::Failure(_) => None,
    });
    undecided.take(decide::TOLD).map(|undecided| undecided.advice(flag)).collect()
}

/// How to get an agent for work that none online takes.
fn serve(facet: &str, list: &str, needs: &[String], store: &store::Options) -> String {
    let mut agent = "agent".to_owned();
    let mut agents = "no agent that is online".to_owned();
    if list != DEFAULT_TASK_LIST {
        write!(agent, " --task-list {}", word(list)).expect(ANY_TEXT);
        write!(agents, " for the task list `{list}`").expect(ANY_TEXT);
    }
    for need in needs {
        write!(agent, " --capability {need}").expect(ANY_TEXT);
        write!(agents, " with `{need}`").expect(ANY_TEXT);
    }
    if facet == SCRIPT_EVENT {
        return format!("{agents} runs scripts: start {}", store.command(&agent));
    }
    format!(
        "{agents} has a handler for `{facet}`: register one with {} and start {}",
        store.command(&format!("handlers register {facet} MODULE")),
        store.command(&agent)
    )
}
