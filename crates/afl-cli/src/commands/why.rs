//! `afl why`: what a run waits for, and what to do about it.

use std::collections::BTreeSet;

use afl_engine::evaluation::SCRIPT_EVENT;
use afl_engine::id::StepId;
use afl_engine::task::DEFAULT_TASK_LIST;
use afl_lang::render::Color;
use afl_runtime::view::{BlockedChain, BlockedStep, WhyReport};
use afl_runtime::{ChainLink, Error, NotFound, On, Wait, Why, WhyReason};
use clap::Args;

use crate::color::{self, paint};
use crate::decide::{self, UncertainStep};
use crate::failure::Failure;
use crate::outcome::sentence;
use crate::output;
use crate::shell::word;
use crate::shown::{self, Moment};
use crate::states;
use crate::store::{self, IfMissing, ObjectOptions};

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
    #[command(flatten)]
    object: ObjectOptions,
}

pub(crate) async fn run(options: &Options, color: Color) -> Result<(), Failure> {
    let service = options.object.store.open(IfMissing::Refuse).await?;
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
    if options.object.json {
        return output::view(&report);
    }
    output::lines(&text(&report, &options.object.store, color))
}

/// A step that has not begun, then what keeps it from beginning.
fn tell_blocked(options: &Options, blocked: &BlockedChain) -> Result<(), Failure> {
    if options.object.json {
        return output::view(blocked);
    }
    let step = |BlockedStep { path, reads }: &BlockedStep| match &reads[..] {
        [] => format!("{path} has not begun: its block has not come to it"),
        reads => format!("{path} has not begun: it reads {}", reads.join(", ")),
    };
    let mut lines: Vec<String> = blocked.steps.iter().map(step).collect();
    lines.extend(open_ends(blocked.open.iter().flat_map(|why| &why.waits)));
    output::lines(&lines)
}

fn text(report: &WhyReport, store: &store::Options, color: Color) -> Vec<String> {
    let why = &report.why;
    let mut lines = vec![format!("run {} of {} {}", why.run, why.workflow, because(&why.reason))];
    let waits = match why.reason {
        WhyReason::Completed | WhyReason::Canceled => &[][..],
        WhyReason::Failed(_)
        | WhyReason::Held
        | WhyReason::Quarantined(_)
        | WhyReason::Canceling
        | WhyReason::Evaluating
        | WhyReason::Waiting
        | WhyReason::Stalled => &why.waits[..],
    };
    lines.extend(open_ends(waits));
    let told = waits.len() as u64;
    if !waits.is_empty() && why.waiting > told {
        lines.push(format!("… and {} more", why.waiting - told));
    }
    if let Some(next) = why.next {
        lines.push(format!("something happens by itself {}", Moment(next).from(Moment::now())));
    }
    let help = paint("help:", color::HELP, color);
    lines.extend(advice(report, store).iter().map(|advice| format!("{help} {advice}")));
    lines
}

fn because(reason: &WhyReason) -> String {
    match reason {
        WhyReason::Completed => "is complete, so it waits for nothing".into(),
        WhyReason::Failed(failure) => shown::headline(&format!("failed: {failure}")),
        WhyReason::Canceled => "was canceled".into(),
        WhyReason::Held => "is held: a person paused it".into(),
        WhyReason::Quarantined(quarantine) => {
            shown::headline(&format!("is quarantined: {}", quarantine.reason))
        }
        WhyReason::Canceling => "is being canceled".into(),
        WhyReason::Evaluating => "has steps that are ready, and no process drives it".into(),
        WhyReason::Waiting => "waits:".into(),
        WhyReason::Stalled => {
            "is stalled: nothing is open and nothing will wake it, which must not be".into()
        }
    }
}

/// The chains from the workflow down to each open step, then the reason. A link that chains share is printed once.
fn open_ends<'w>(waits: impl IntoIterator<Item = &'w Wait>) -> Vec<String> {
    let (mut lines, mut above) = (Vec::new(), Vec::<&str>::new());
    for wait in waits {
        // A block has the path of the step it belongs to.
        let mut chain: Vec<&ChainLink> = wait.chain.iter().collect();
        chain.dedup_by(|block, owner| block.path == owner.path);
        if let On::Failure(_) | On::Decision { .. } = wait.on {
            chain.pop();
        }
        above.truncate(chain.iter().zip(&above).take_while(|(link, told)| link.path == **told).count());
        for link in chain.split_off(above.len()) {
            let indent = "  ".repeat(above.len() + 1);
            lines.push(format!("{indent}{} {}", link.path, states::phrase(link.state)));
            above.push(&link.path);
        }
        let indent = "  ".repeat(above.len() + 1);
        lines.push(match &wait.on {
            On::Failure(failure) | On::Decision { failure, .. } => {
                let failure = shown::inert(&failure.to_string()).replace('\n', &format!("\n{indent}  "));
                format!("{indent}{failure}")
            }
            On::Agent { .. } | On::Holder { .. } | On::Retry { .. } | On::Timer { .. } | On::Driver => {
                format!("{indent}{}", sentence(wait))
            }
        });
    }
    lines
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
        WhyReason::Quarantined(_) => {
            advice.push(format!("{} tries it again, {} ends it", command("resume"), command("cancel")));
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

fn capabilities(why: &Why) -> String {
    let needs = why.waits.iter().filter_map(|wait| match &wait.on {
        On::Agent { needs, .. } => Some(needs),
        On::Holder { .. }
        | On::Retry { .. }
        | On::Timer { .. }
        | On::Driver
        | On::Failure(_)
        | On::Decision { .. } => None,
    });
    let needs: BTreeSet<&String> = needs.flatten().collect();
    needs.into_iter().flat_map(|need| [" --capability ", need]).collect()
}

fn decisions(why: &Why, flag: &str) -> Vec<String> {
    let undecided = why.waits.iter().filter_map(|wait| match &wait.on {
        On::Decision { must_return, .. } => {
            Some(UncertainStep { run: &why.run, path: &wait.path, must_return: must_return.clone() })
        }
        On::Agent { .. }
        | On::Holder { .. }
        | On::Retry { .. }
        | On::Timer { .. }
        | On::Driver
        | On::Failure(_) => None,
    });
    undecided.take(decide::TOLD).map(|undecided| undecided.advice(flag)).collect()
}

/// How to get an agent for work that none online takes.
fn serve(facet: &str, list: &str, needs: &[String], store: &store::Options) -> String {
    let mut words = vec![("agent".to_owned(), "no agent that is online".to_owned())];
    if list != DEFAULT_TASK_LIST {
        words.push((format!(" --task-list {}", word(list)), format!(" for the task list `{list}`")));
    }
    words.extend(needs.iter().map(|need| (format!(" --capability {need}"), format!(" with `{need}`"))));
    let (agent, agents): (String, String) = words.into_iter().unzip();
    let start = format!("start {}", store.command(&agent));
    if facet == SCRIPT_EVENT {
        return format!("{agents} runs scripts: {start}");
    }
    let register = store.command(&format!("handlers register {facet} MODULE"));
    format!("{agents} has a handler for `{facet}`: register one with {register} and {start}")
}
