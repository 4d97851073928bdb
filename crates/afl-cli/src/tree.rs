//! The steps of a run as a tree for people.

use afl_engine::attribute::Fields;
use afl_engine::id::{Segment, StepId};
use afl_engine::object::ObjectType;
use afl_engine::task::Task;
use afl_lang::render::Color;
use afl_runtime::StepView;
use afl_runtime::view::StepStatus;

use crate::color::{self, paint};
use crate::shown::{self, Moment};

/// How much of a step's values stands in its line.
const VALUES_CHARS: usize = 100;

/// A line for each step; blocks show only as indentation.
pub(crate) fn text(views: &[StepView], color: Color) -> String {
    let rows = views.iter().filter(|view| is_shown(&view.id)).map(row);
    let table = shown::table(&["STEP", "STATE", "TOOK", "VALUES"], rows);
    match color {
        Color::Plain => table,
        Color::Ansi => painted(&table, views),
    }
}

fn row(view: &StepView) -> Vec<String> {
    let indent = "  ".repeat(depth(&view.id));
    let took = view.step.ended.map(|ended| shown::span(ended.since(view.step.created))).unwrap_or_default();
    vec![format!("{indent}{}", label(view)), StepStatus::of(view).name().into(), took, remark(view)]
}

/// How many shown steps are above it.
fn depth(id: &StepId) -> usize {
    id.segments().filter(|segment| !matches!(segment, Segment::Clause(_))).count()
}

fn is_shown(id: &StepId) -> bool {
    !matches!(id.split(), Some((_, Segment::Clause(_))))
}

fn label(view: &StepView) -> String {
    match view.id.split() {
        None => view.path.clone(),
        Some((_, Segment::Element(element))) => format!("[{element}]"),
        Some((_, Segment::Catch)) => "catch".into(),
        Some((_, Segment::Mixin(_))) => {
            let mixin = view.path.rfind(MIXIN).map_or(&*view.path, |at| &view.path[at..]);
            mixin.trim_start().to_owned()
        }
        Some((_, Segment::Statement(_) | Segment::Clause(_))) => match view.step.object_type {
            ObjectType::YieldAssignment => format!("yield {}", statement(&view.path)),
            _ => statement(&view.path).to_owned(),
        },
    }
}

/// How paths name a mixin.
const MIXIN: &str = " with ";

/// The statements whose names have a dot.
const SYSTEM: [&str; 2] = ["sys.log", "sys.assert"];

fn statement(path: &str) -> &str {
    let system = SYSTEM.into_iter().find(|system| path.ends_with(system));
    system.unwrap_or_else(|| path.rsplit('.').next().unwrap_or(path))
}

/// The last column: why the step failed, what it waits for, or its values.
fn remark(view: &StepView) -> String {
    let began_here = view.step.error.as_ref().filter(|failure| failure.step == view.id);
    let text = match (StepStatus::of(view), began_here, &view.task) {
        (StepStatus::Failed, Some(failure), _) => failure.message.clone(),
        (StepStatus::Failed | StepStatus::Canceled, ..) => String::new(),
        (StepStatus::Waiting, _, Some(task)) => format!("for an agent that does `{}`", task.name),
        (StepStatus::Working, _, Some(task)) => holder(task),
        (StepStatus::Retrying, _, Some(task)) => retry(task),
        (
            StepStatus::Done
            | StepStatus::Open
            | StepStatus::Waiting
            | StepStatus::Working
            | StepStatus::Retrying,
            ..,
        ) => {
            let attributes = &view.step.attributes;
            let is_empty = attributes.returns.is_empty();
            values(if is_empty { &attributes.params } else { &attributes.returns })
        }
    };
    shown::inert(&shown::cut(&text.replace('\n', " "), VALUES_CHARS))
}

fn holder(task: &Task) -> String {
    match &task.lease {
        Some(lease) => format!("{} does `{}`", lease.owner, task.name),
        None => String::new(),
    }
}

fn retry(task: &Task) -> String {
    let at = task.not_before.map(|at| Moment(at).from(Moment::now())).unwrap_or_default();
    let error = task.error.as_ref().map(|error| format!(" after: {error}")).unwrap_or_default();
    format!("attempt {} {at}{error}", task.attempts + 1)
}

fn values(fields: &Fields) -> String {
    let pairs = fields.iter().map(|(name, attribute)| format!("{name}={}", shown::held(&attribute.held)));
    pairs.collect::<Vec<_>>().join(" ")
}

/// Colours after the columns are laid out, which counts letters.
fn painted(table: &str, views: &[StepView]) -> String {
    let mut lines = table.lines();
    let header = lines.next().map(|line| format!("{line}\n")).unwrap_or_default();
    let shown = views.iter().filter(|view| is_shown(&view.id));
    lines.zip(shown).fold(header, |text, (line, view)| {
        let status = StepStatus::of(view);
        let style = match status {
            StepStatus::Done => color::ADDED,
            StepStatus::Failed | StepStatus::Canceled => color::REMOVED,
            StepStatus::Open | StepStatus::Waiting | StepStatus::Working | StepStatus::Retrying => {
                color::HELP
            }
        };
        let word = format!("  {} ", status.name());
        let line = format!("{line} ");
        let line = line.replacen(&word, &format!("  {} ", paint(status.name(), style, Color::Ansi)), 1);
        text + line.trim_end() + "\n"
    })
}
