//! The attributes that the expressions of a run read.

use afl_lang::program::InputSource;

use super::Evaluation;
use super::known::KnownRecords;
use super::wants::{MissingRecord, all};
use crate::attribute::Fields;
use crate::eval::{Root, Scope};
use crate::failure::StepFailure;
use crate::id::{Segment, StepId};
use crate::plan::{ExprRead, Node, PlanContent};
use crate::step::Step;
use crate::value::Value;

#[derive(Clone, Debug)]
pub(super) struct EvalSite {
    /// The step that `$` is.
    pub(super) owner: StepId,
    /// The block whose steps it can name, and whose `foreach` variables it sees; the owner when it has none.
    pub(super) block: StepId,
}

/// Answers references once everything they need is at hand.
pub(super) struct Reader<'e> {
    evaluation: &'e Evaluation,
    place: &'e EvalSite,
    reads: &'e [ExprRead],
    caught: Option<[Value; 2]>,
}

impl Evaluation {
    /// The place of a statement's expressions.
    pub(super) fn place_of_statement(id: &StepId) -> EvalSite {
        let block = id.parent().expect("a statement stands in a block");
        Self::place_in_block(&block)
    }

    /// The place of expressions in a block, or of a block's own.
    pub(super) fn place_in_block(block: &StepId) -> EvalSite {
        let (above, segment) = block.split().expect("a block has an owner");
        let owner = match segment {
            Segment::Element(_) => above.parent().expect("a block has an owner"),
            Segment::Clause(_) | Segment::Catch | Segment::Mixin(_) | Segment::Statement(_) => above,
        };
        EvalSite { owner, block: block.clone() }
    }

    /// Asks for all that an expression at this place reads.
    pub(super) fn need_reads(&mut self, reads: &[ExprRead], place: &EvalSite) -> Result<(), MissingRecord> {
        all(reads.iter().map(|read| self.need_read(read, place)))
    }

    fn need_read(&mut self, read: &ExprRead, place: &EvalSite) -> Result<(), MissingRecord> {
        let (id, attribute) = match read {
            ExprRead::Owner(attribute) => (place.owner.clone(), attribute.as_deref()),
            ExprRead::Caught => (place.owner.clone(), None),
            ExprRead::Foreach(variable) => match self.element_of(variable, place) {
                Some(element) => (element, Some(variable.as_str())),
                None => return Ok(()),
            },
            ExprRead::Step(step) => (sibling(place, step.clause, step.statement), step.attribute.as_deref()),
        };
        self.need_step(&id)?;
        let Some(step) = self.known.step(&id) else { return Ok(()) };
        let attributes = [&step.attributes.params, &step.attributes.returns];
        let read: Vec<_> = match attribute {
            Some(name) => attributes.into_iter().filter_map(|fields| fields.get(name)).collect(),
            None => attributes.into_iter().flat_map(Fields::values).collect(),
        };
        let values: Vec<_> = read.into_iter().map(|attribute| attribute.held.clone()).collect();
        self.need_values(&values)
    }

    /// The block of the element that a `foreach` variable stands for here.
    fn element_of(&self, variable: &str, place: &EvalSite) -> Option<StepId> {
        let mut at = Some(place.block.clone());
        while let Some(id) = at {
            let (above, segment) = id.split()?;
            if matches!(segment, Segment::Element(_))
                && let Some(Node::Element(block)) = self.plan.locate(self.workflow, &id)
                && let PlanContent::Foreach { variable: own, .. } = &self.plan.block(block).content
                && own == variable
            {
                return Some(id);
            }
            at = Some(above);
        }
        None
    }

    /// The scope of an expression at this place, after [`Self::need_reads`].
    pub(super) fn reader<'e>(&'e self, reads: &'e [ExprRead], place: &'e EvalSite) -> Reader<'e> {
        let caught = reads.contains(&ExprRead::Caught).then(|| {
            let caught = self.known.step(&place.owner).and_then(|owner| owner.caught.as_ref());
            let text =
                |text: fn(&StepFailure) -> &str| caught.map_or(Value::Null, |failure| text(failure).into());
            [text(|failure| &failure.message), text(|failure| &failure.kind)]
        });
        Reader { evaluation: self, place, reads, caught }
    }
}

impl Reader<'_> {
    fn known(&self) -> &KnownRecords {
        &self.evaluation.known
    }

    fn step(&self, root: Root<'_>) -> Option<&Step> {
        match root {
            Root::Input(InputSource::Owner | InputSource::Caught) => self.known().step(&self.place.owner),
            Root::Input(InputSource::Foreach) => None,
            Root::Step { name, clause } => {
                let read = self.reads.iter().find_map(|read| match read {
                    ExprRead::Step(read) if read.name == name && read.clause == clause => Some(read),
                    ExprRead::Step(_) | ExprRead::Owner(_) | ExprRead::Foreach(_) | ExprRead::Caught => None,
                })?;
                self.known().step(&sibling(self.place, clause, read.statement))
            }
        }
    }

    /// A step shows its returns before its parameters; to its own blocks it shows its parameters first.
    fn layers<'s>(root: Root<'_>, step: &'s Step) -> [&'s Fields; 2] {
        let attributes = &step.attributes;
        match root {
            Root::Input(_) => [&attributes.params, &attributes.returns],
            Root::Step { .. } => [&attributes.returns, &attributes.params],
        }
    }
}

impl Scope for Reader<'_> {
    fn attribute(&self, root: Root<'_>, name: &str) -> Option<&Value> {
        match root {
            Root::Input(InputSource::Caught) => {
                let [error, kind] = self.caught.as_ref()?;
                // The compiler admits these two names.
                Some(if name.ends_with("_type") { kind } else { error })
            }
            Root::Input(InputSource::Foreach) => {
                let element = self.known().step(&self.evaluation.element_of(name, self.place)?)?;
                self.known().value(&element.attributes.params.get(name)?.held)
            }
            Root::Input(InputSource::Owner) | Root::Step { .. } => {
                let layers = Self::layers(root, self.step(root)?);
                let attribute = layers.iter().find_map(|fields| fields.get(name))?;
                self.known().value(&attribute.held)
            }
        }
    }

    fn record(&self, root: Root<'_>) -> Vec<(&str, &Value)> {
        let Some(step) = self.step(root) else { return Vec::new() };
        let [first, second] = Self::layers(root, step);
        let hidden = |name: &String| first.contains_key(name);
        let attributes = second.iter().filter(|(name, _)| !hidden(name)).chain(first);
        attributes
            .filter_map(|(name, attribute)| Some((name.as_str(), self.known().value(&attribute.held)?)))
            .collect()
    }
}

fn sibling(place: &EvalSite, clause: Option<u32>, statement: u32) -> StepId {
    let block = match clause {
        None => place.block.clone(),
        Some(clause) => place.owner.child(Segment::Clause(clause)),
    };
    block.child(Segment::Statement(statement))
}
