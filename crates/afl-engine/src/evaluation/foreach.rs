//! `foreach`: one block for each element.

use super::work::WorkResult;
use super::{Evaluation, MAX_ELEMENTS};
use crate::attribute::Attribute;
use crate::children::Children;
use crate::eval::eval;
use crate::failure::FailureKind;
use crate::id::{Segment, StepId};
use crate::plan::{Block, PlanContent};
use crate::state::Verdict;
use crate::value::{Value, ValueKind};

impl Evaluation {
    pub(super) fn begin_map(&mut self, id: &StepId, block: &Block) -> WorkResult<()> {
        let elements = self.elements(id, block)?;
        let total = elements.len() as u32;
        self.check_depth(id, Segment::Element(total))?;
        self.elements.insert(id.clone(), elements);
        self.change(id).children = Some(Children::of(total));
        Ok(())
    }

    pub(super) fn continue_map(&mut self, id: &StepId, block: &Block) -> WorkResult {
        let children = self.step(id).children.as_ref().expect("a `foreach` counts its elements");
        let (first, total) = (children.created, children.total);
        if first < total {
            if !self.hold_back(id) {
                self.create_elements(id, block, first, total)?;
            }
            return Ok(Verdict::Wait);
        }
        self.elements.remove(id);
        self.settled(id)
    }

    fn create_elements(&mut self, id: &StepId, block: &Block, first: u32, total: u32) -> WorkResult<()> {
        let PlanContent::Foreach { variable, .. } = &block.content else {
            unreachable!("called for a `foreach`")
        };
        let mut elements = match self.elements.remove(id) {
            Some(elements) => elements,
            None => self.elements(id, block)?,
        };
        let end = total.min(first + self.created_at_once() as u32);
        for at in first..end {
            self.create(id, Segment::Element(at))?;
            let value = std::mem::take(&mut elements[at as usize]);
            let attribute = Attribute { held: self.known.hold(value), type_hint: "Json".into() };
            let element = self.change(&id.child(Segment::Element(at)));
            element.attributes.params.insert(variable.clone(), attribute);
        }
        self.elements.insert(id.clone(), elements);
        let children = self.children_of(id);
        children.created = end;
        children.open += end - first;
        if end < total {
            self.activate(id.clone());
        }
        Ok(())
    }

    /// The elements of the iterable: those of a list, the keys of a map, none for null.
    fn elements(&mut self, id: &StepId, block: &Block) -> WorkResult<Vec<Value>> {
        let PlanContent::Foreach { iterable, .. } = &block.content else {
            unreachable!("called for a `foreach`")
        };
        let place = Self::place_in_block(id);
        self.need_reads(&iterable.reads, &place)?;
        let value = eval(&iterable.expr, &self.reader(&iterable.reads, &place));
        let elements = match value.map_err(|error| self.failed(id, FailureKind::Evaluation, error))? {
            Value::Array(elements) => elements,
            Value::Object(entries) => entries.into_iter().map(|(key, _)| Value::String(key)).collect(),
            Value::Null => Vec::new(),
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                let found = ValueKind::of(&other);
                let message = format!("`foreach` takes a list or a map, but `{}` is {found}", iterable.expr);
                return Err(self.failed(id, FailureKind::Type, message));
            }
        };
        if elements.len() > MAX_ELEMENTS {
            let message = format!(
                "`foreach` takes at most {MAX_ELEMENTS} elements, and there are {}: split the list",
                elements.len()
            );
            return Err(self.failed(id, FailureKind::Limit, message));
        }
        Ok(elements)
    }
}
