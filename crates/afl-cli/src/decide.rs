//! Failed tasks whose work must happen at most once and may have happened: the commands by which a person decides.

use afl_engine::id::RunId;
use afl_engine::task::Task;
use afl_runtime::Service;

use crate::failure::Failure;
use crate::output;
use crate::shell::word;
use crate::shown;

/// How many are shown in full; a person decides the others the same way.
pub(crate) const TOLD: usize = 3;

/// Prints advice for those among some tasks.
pub(crate) async fn advise(
    service: &Service,
    tasks: impl IntoIterator<Item = &Task>,
    flag: &str,
) -> Result<(), Failure> {
    for undecided in UncertainStep::among(service, tasks).await? {
        output::say(&format!("help: {}\n", undecided.advice(flag)));
    }
    Ok(())
}

/// A step whose work may have happened.
pub(crate) struct UncertainStep<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) path: &'a str,
    /// The fields that a result must have.
    pub(crate) must_return: Vec<String>,
}

impl<'a> UncertainStep<'a> {
    /// Those among some tasks, the first ones.
    pub(crate) async fn among(
        service: &Service,
        tasks: impl IntoIterator<Item = &'a Task>,
    ) -> Result<Vec<Self>, Failure> {
        let mut undecided = Vec::new();
        for task in tasks.into_iter().filter(|task| task.needs_decision()).take(TOLD) {
            let must_return = service.must_return(&task.workflow_id, &task.name).await?;
            undecided.push(Self { run: &task.workflow_id, path: &task.path, must_return });
        }
        Ok(undecided)
    }

    /// The open question, and the three commands, ready to be copied.
    pub(crate) fn advice(&self, flag: &str) -> String {
        let of_step = format!("{} {}{flag}", self.run, word(self.path));
        let fields: Vec<String> = self.must_return.iter().map(|name| format!("\"{name}\": …")).collect();
        let result = word(&format!("{{{}}}", fields.join(", ")));
        let commands = [
            (format!("afl task done {of_step} --result {result}"), "it happened, with this result"),
            (format!("afl task retry {of_step}"), "it did not happen: do it now"),
            (format!("afl task fail {of_step}"), "give it up"),
        ];
        let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or_default();
        let path = shown::inert(self.path);
        let lines = commands.map(|(command, when)| format!("\n  {command:<width$}   {when}"));
        format!("find out whether the work of {path} happened, then say so:{}", lines.concat())
    }
}
