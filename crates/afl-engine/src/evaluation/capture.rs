//! `state.statement.capture.Begin`: what the blocks of a step yielded becomes its returns, in order of declaration.

use std::collections::BTreeMap;

use afl_lang::program::Parameter;
use afl_lang::types::TypeRef;

use super::Evaluation;
use super::wants::all;
use super::work::{WorkResult, WorkStop};
use crate::attribute::{Attribute, ValueRef};
use crate::id::{Segment, StepId};
use crate::plan::{Act, Block, Node, Plan, PlanContent};
use crate::state::Verdict;
use crate::types::fits;
use crate::value::{Map, Value, ValueRoom};

/// How many elements are looked at together, so that a long `foreach` needs little memory.
const ELEMENTS_AT_ONCE: u32 = 1_000;

/// A capture under way.
#[derive(Debug, Default)]
pub(super) struct Fold {
    /// The block it is at, and the element there.
    block: usize,
    element: u32,
    /// By the alias of a mixin, if the yield went to one, and by name.
    returns: BTreeMap<(Option<String>, String), CapturedReturn>,
    /// For the lists of a `foreach`.
    room: ValueRoom,
}

#[derive(Debug)]
enum CapturedReturn {
    One(Attribute),
    /// The yields of the elements of a `foreach`, in their order.
    Many(Vec<Value>, String),
}

impl Evaluation {
    pub(super) fn capture(&mut self, id: &StepId, node: Node) -> WorkResult {
        let plan = self.plan.clone();
        let catch = plan.catch(node).filter(|_| self.step(id).caught.is_some());
        let blocks: Vec<(StepId, &Block)> = if let Some(catch) = catch {
            vec![(id.child(Segment::Catch), plan.block(catch))]
        } else {
            let clauses = (0..).zip(plan.clauses(node));
            clauses.map(|(at, clause)| (id.child(Segment::Clause(at)), plan.block(*clause))).collect()
        };
        if blocks.is_empty() {
            return Ok(Verdict::Advance);
        }
        let aliased: Vec<ValueRef> = plan
            .mixins(node)
            .filter_map(|(mixin, _)| self.step(id).attributes.params.get(mixin.alias.as_ref()?))
            .map(|attribute| attribute.held.clone())
            .collect();
        self.need_values(&aliased)?;
        let mut fold = self.folds.remove(id).unwrap_or_default();
        match self.fold(id, &blocks, &mut fold) {
            Ok(()) => {}
            Err(WorkStop::Missing) => {
                self.folds.insert(id.clone(), fold);
                return Err(WorkStop::Missing);
            }
            Err(WorkStop::Failed(failure)) => return Err(WorkStop::Failed(failure)),
        }
        let mut mixins: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        for ((alias, name), captured) in fold.returns {
            match (alias, captured) {
                (Some(alias), captured) => {
                    let value = match captured {
                        CapturedReturn::Many(values, _) => Some(Value::Array(values)),
                        CapturedReturn::One(attribute) => {
                            let value = self.known.value(&attribute.held);
                            self.take_room(id, &name, value, &mut fold.room)?;
                            value.cloned()
                        }
                    };
                    mixins.entry(alias).or_default().extend(value.map(|value| (name, value)));
                }
                (None, CapturedReturn::One(attribute)) => {
                    self.change(id).attributes.returns.insert(name, attribute);
                }
                (None, CapturedReturn::Many(values, hint)) => {
                    self.keep_return(id, name, Value::Array(values), &hint);
                }
            }
        }
        for (alias, yielded) in mixins {
            let before = self.step(id).attributes.params.get(&alias);
            let before = before.and_then(|attribute| self.known.value(&attribute.held));
            self.take_room(id, &alias, before, &mut fold.room)?;
            let whole = Value::Object(self.changed_mixin(id, &alias, yielded));
            self.keep_return(id, alias, whole, "Json");
        }
        Ok(Verdict::Advance)
    }

    fn keep_return(&mut self, id: &StepId, name: String, value: Value, type_hint: &str) {
        let attribute = Attribute { held: self.known.hold(value), type_hint: type_hint.into() };
        self.change(id).attributes.returns.insert(name, attribute);
    }

    fn fold(&mut self, id: &StepId, blocks: &[(StepId, &Block)], fold: &mut Fold) -> WorkResult<()> {
        let plan = self.plan.clone();
        while let Some((block_id, block)) = blocks.get(fold.block) {
            self.need_step(block_id)?;
            match &block.content {
                PlanContent::Script(_) => {
                    for (name, attribute) in self.step(block_id).attributes.returns.clone() {
                        fold.returns.insert((None, name), CapturedReturn::One(attribute));
                    }
                }
                PlanContent::Steps | PlanContent::When(_) => {
                    let yields = self.yields_of(block_id, block, &plan);
                    self.need_yields(&yields)?;
                    for yielded in &yields {
                        self.capture_yield(id, yielded, fold, YieldOrigin::Block)?;
                    }
                }
                PlanContent::Foreach { .. } => {
                    if fold.element == 0 {
                        begin_collecting(&plan, block, fold);
                    }
                    self.fold_elements(id, block_id, block, fold)?;
                }
            }
            fold.block += 1;
            fold.element = 0;
        }
        Ok(())
    }

    fn fold_elements(&mut self, id: &StepId, map: &StepId, block: &Block, fold: &mut Fold) -> WorkResult<()> {
        let plan = self.plan.clone();
        let total = self.step(map).children.as_ref().map_or(0, |children| children.total);
        let places: Vec<u32> = yield_places(&plan, block).collect();
        while fold.element < total && !places.is_empty() {
            let end = total.min(fold.element + ELEMENTS_AT_ONCE);
            let yields: Vec<StepId> = (fold.element..end)
                .map(|at| map.child(Segment::Element(at)))
                .flat_map(|element| places.iter().map(move |place| element.child(Segment::Statement(*place))))
                .collect();
            all(yields.iter().map(|yielded| self.need_step(yielded)))?;
            self.check_unread(id, &yields, fold.room)?;
            self.need_yields(&yields)?;
            for yielded in &yields {
                self.capture_yield(id, yielded, fold, YieldOrigin::Element)?;
                self.known.steps.forget(yielded);
            }
            fold.element = end;
        }
        Ok(())
    }

    /// The yields of a block that were created: those of the case that was taken.
    fn yields_of(&self, id: &StepId, block: &Block, plan: &Plan) -> Vec<StepId> {
        let children = self.step(id).children.as_ref();
        let is_done = |place: &u32| children.is_some_and(|children| children.done.contains(*place));
        yield_places(plan, block).filter(is_done).map(|place| id.child(Segment::Statement(place))).collect()
    }

    fn need_yields(&mut self, yields: &[StepId]) -> WorkResult<()> {
        all(yields.iter().map(|id| self.need_step(id)))?;
        let params = yields.iter().flat_map(|id| self.step(id).attributes.params.values());
        let held: Vec<ValueRef> = params.map(|attribute| attribute.held.clone()).collect();
        Ok(self.need_values(&held)?)
    }

    /// Whether the large values of elements can fit together, before they are read.
    fn check_unread(&self, id: &StepId, yields: &[StepId], room: ValueRoom) -> WorkResult<()> {
        let fields = yields.iter().flat_map(|yielded| &self.step(yielded).attributes.params);
        let mut bytes = 0;
        for (name, attribute) in fields {
            bytes += match &attribute.held {
                ValueRef::Blob(blob) => blob.bytes,
                ValueRef::Inline(_) => 0,
            };
            if bytes > room.left() {
                return Err(self.no_room(id, name));
            }
        }
        Ok(())
    }

    fn capture_yield(
        &self,
        id: &StepId,
        yielded: &StepId,
        fold: &mut Fold,
        origin: YieldOrigin,
    ) -> WorkResult<()> {
        let step = self.step(yielded);
        let node = self.known.steps.get(yielded).expect("a yield that is captured has been read").node;
        let Some(Act::Yield { target, alias, .. }) = self.plan.statement_of(node).map(|it| &it.act) else {
            unreachable!("only yields are captured")
        };
        for (name, attribute) in &step.attributes.params {
            let key = (alias.clone(), name.clone());
            let parameter = declared(&self.plan, target, name);
            let value = self.known.value(&attribute.held);
            match (origin, parameter, fold.returns.get_mut(&key), value) {
                (
                    YieldOrigin::Element,
                    Some(parameter),
                    Some(CapturedReturn::Many(values, _)),
                    Some(value),
                ) => {
                    self.take_room(id, name, Some(value), &mut fold.room)?;
                    self.collect(values, value, &parameter.ty);
                }
                _ => {
                    fold.returns.insert(key, CapturedReturn::One(attribute.clone()));
                }
            }
        }
        Ok(())
    }

    /// The attributes of a mixin with those that were yielded in their places.
    fn changed_mixin(&self, id: &StepId, alias: &str, yielded: Map<String, Value>) -> Map<String, Value> {
        let before = self.step(id).attributes.params.get(alias);
        let mut record = self.known.object(before.map(|attribute| &attribute.held));
        record.extend(yielded);
        record
    }

    /// A `T` is appended to a `[T]`, a list of them spliced.
    fn collect(&self, values: &mut Vec<Value>, value: &Value, ty: &TypeRef) {
        let is_element = match element_of(ty) {
            Some(TypeRef::Json) | None => !value.is_array(),
            Some(of) => fits("", value, of, &self.plan.schemas).is_ok(),
        };
        match value {
            Value::Array(elements) if !is_element => values.extend(elements.iter().cloned()),
            single => values.push(single.clone()),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum YieldOrigin {
    Block,
    /// One of the elements of a `foreach`, which all yield.
    Element,
}

fn yield_places<'p>(plan: &'p Plan, block: &'p Block) -> impl Iterator<Item = u32> + 'p {
    let statements = (0..).zip(&block.statements);
    let yields = statements.filter(|(_, at)| matches!(plan.statement(**at).act, Act::Yield { .. }));
    yields.map(|(place, _)| place)
}

/// The attribute that a yield goes to.
pub(super) fn declared<'p>(plan: &'p Plan, target: &str, name: &str) -> Option<&'p Parameter> {
    let facet = plan.facet_named(target)?;
    facet.returns.iter().chain(&facet.params).find(|parameter| parameter.name == name)
}

/// Lists start empty, so that no element gives an empty one.
fn begin_collecting(plan: &Plan, block: &Block, fold: &mut Fold) {
    for place in yield_places(plan, block) {
        let Act::Yield { target, alias, args } = &plan.statement(block.statements[place as usize]).act else {
            continue;
        };
        for arg in args {
            let Some(parameter) = declared(plan, target, &arg.name) else { continue };
            if matches!(parameter.ty, TypeRef::Json) || element_of(&parameter.ty).is_some() {
                let captured = CapturedReturn::Many(Vec::new(), parameter.ty.to_string());
                fold.returns.insert((alias.clone(), arg.name.clone()), captured);
            }
        }
    }
}

/// Of a list, whether it may be null or not.
pub(super) fn element_of(ty: &TypeRef) -> Option<&TypeRef> {
    match ty {
        TypeRef::List(of) => Some(of),
        TypeRef::Nullable(inner) => element_of(inner),
        TypeRef::String
        | TypeRef::Long
        | TypeRef::Int
        | TypeRef::Double
        | TypeRef::Boolean
        | TypeRef::Json
        | TypeRef::Schema(_) => None,
    }
}
