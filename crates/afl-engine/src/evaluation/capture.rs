//! `state.statement.capture.Begin`: what the blocks of a step yielded becomes its returns, in order of declaration.

use std::collections::BTreeMap;

use afl_lang::program::Parameter;
use afl_lang::types::TypeRef;

use super::Evaluation;
use super::wants::all;
use super::work::Worked;
use crate::attribute::{Attribute, Fields, Held};
use crate::id::{Segment, StepId};
use crate::plan::{Act, Block, Content, Facet, Node, Plan};
use crate::state::Verdict;
use crate::types::fits;
use crate::value::{Map, Value};

/// How many elements are looked at together, so that a long `foreach` needs little memory.
const ELEMENTS_AT_ONCE: u32 = 1_000;

/// A capture under way.
#[derive(Debug, Default)]
pub(super) struct Fold {
    /// The block it is at, and the element there.
    block: usize,
    element: u32,
    returns: BTreeMap<String, Captured>,
}

#[derive(Debug)]
enum Captured {
    One(Attribute),
    /// What the elements of a `foreach` yielded, in their order.
    Many(Vec<Value>, String),
    /// Attributes of a mixin under its alias.
    Mixin(Map<String, Value>),
}

impl Evaluation {
    pub(super) fn capture(&mut self, id: &StepId, node: Node) -> Worked {
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
        let aliased: Vec<Held> = plan
            .mixins(node)
            .filter_map(|(mixin, _)| self.step(id).attributes.params.get(mixin.alias.as_ref()?))
            .map(|attribute| attribute.held.clone())
            .collect();
        let needs: Vec<_> = aliased.iter().map(|held| self.need_value(held)).collect();
        all(needs)?;
        let mut fold = self.folds.remove(id).unwrap_or_default();
        let done = self.fold(node, &blocks, &mut fold);
        if let Err(stop) = done {
            self.folds.insert(id.clone(), fold);
            return Err(stop);
        }
        for (name, captured) in fold.returns {
            let attribute = match captured {
                Captured::One(attribute) => attribute,
                Captured::Many(values, hint) => {
                    Attribute { held: self.known.hold(Value::Array(values)), type_hint: hint.into() }
                }
                Captured::Mixin(record) => {
                    let whole = Value::Object(self.changed_mixin(id, &name, record));
                    Attribute { held: self.known.hold(whole), type_hint: "Json".into() }
                }
            };
            self.change(id).attributes.returns.insert(name, attribute);
        }
        Ok(Verdict::Advance)
    }

    fn fold(&mut self, node: Node, blocks: &[(StepId, &Block)], fold: &mut Fold) -> Worked<()> {
        let plan = self.plan.clone();
        let facet = plan.facet_of(node).expect("a step with blocks calls a facet");
        while let Some((block_id, block)) = blocks.get(fold.block) {
            self.need_step(block_id)?;
            match &block.content {
                Content::Script(_) => {
                    for (name, attribute) in self.step(block_id).attributes.returns.clone() {
                        fold.returns.insert(name, Captured::One(attribute));
                    }
                }
                Content::Steps | Content::When(_) => {
                    let yields = self.yields_of(block_id, block, &plan);
                    self.need_yields(&yields)?;
                    for yielded in &yields {
                        self.capture_yield(yielded, facet, fold, Collecting::No);
                    }
                }
                Content::Foreach { .. } => {
                    if fold.element == 0 {
                        begin_collecting(&plan, block, facet, fold);
                    }
                    self.fold_elements(block_id, block, facet, fold)?;
                }
            }
            fold.block += 1;
            fold.element = 0;
        }
        Ok(())
    }

    fn fold_elements(&mut self, map: &StepId, block: &Block, facet: &Facet, fold: &mut Fold) -> Worked<()> {
        let plan = self.plan.clone();
        let total = self.step(map).children.as_ref().map_or(0, |children| children.total);
        let places: Vec<u32> = yield_places(&plan, block).collect();
        while fold.element < total && !places.is_empty() {
            let end = total.min(fold.element + ELEMENTS_AT_ONCE);
            let yields: Vec<StepId> = (fold.element..end)
                .map(|at| map.child(Segment::Element(at)))
                .flat_map(|element| places.iter().map(move |place| element.child(Segment::Statement(*place))))
                .collect();
            self.need_yields(&yields)?;
            for yielded in &yields {
                self.capture_yield(yielded, facet, fold, Collecting::Yes);
            }
            for yielded in &yields {
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

    fn need_yields(&mut self, yields: &[StepId]) -> Worked<()> {
        let needs: Vec<_> = yields.iter().map(|id| self.need_step(id)).collect();
        all(needs)?;
        let held = |id: &StepId| self.step(id).attributes.params.values().map(|it| it.held.clone()).collect();
        let held: Vec<Vec<Held>> = yields.iter().map(held).collect();
        let needs: Vec<_> = held.iter().flatten().map(|held| self.need_value(held)).collect();
        Ok(all(needs)?)
    }

    fn capture_yield(&self, yielded: &StepId, facet: &Facet, fold: &mut Fold, how: Collecting) {
        let step = self.step(yielded);
        let node = self.known.steps.get(yielded).expect("a yield that is captured has been read").node;
        let Some(Act::Yield { target, alias, .. }) = self.plan.statement_of(node).map(|it| &it.act) else {
            unreachable!("only yields are captured")
        };
        if let Some(alias) = alias {
            self.capture_mixin(alias, &step.attributes.params, fold);
            return;
        }
        for (name, attribute) in &step.attributes.params {
            let value = self.known.value(&attribute.held);
            let is_own = *target == facet.id;
            let parameter = facet.returns.iter().find(|parameter| parameter.name == *name && is_own);
            match (how, parameter, fold.returns.get_mut(name), value) {
                (Collecting::Yes, Some(parameter), Some(Captured::Many(values, _)), Some(value)) => {
                    self.collect(values, value, &parameter.ty);
                }
                _ => {
                    fold.returns.insert(name.clone(), Captured::One(attribute.clone()));
                }
            }
        }
    }

    /// A yield to an aliased mixin changes single attributes of it.
    fn capture_mixin(&self, alias: &str, params: &Fields, fold: &mut Fold) {
        let captured = fold.returns.entry(alias.to_owned()).or_insert_with(|| Captured::Mixin(Map::new()));
        if let Captured::Mixin(record) = captured {
            for (name, attribute) in params {
                if let Some(value) = self.known.value(&attribute.held) {
                    record.insert(name.clone(), value.clone());
                }
            }
        }
    }

    /// The attributes of a mixin with those that were yielded in their places.
    fn changed_mixin(&self, id: &StepId, alias: &str, yielded: Map<String, Value>) -> Map<String, Value> {
        let before = self.step(id).attributes.params.get(alias);
        let mut record = match before.and_then(|attribute| self.known.value(&attribute.held)) {
            Some(Value::Object(entries)) => entries.clone(),
            Some(_) | None => Map::new(),
        };
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

/// Whether the yield is one of many, of the elements of a `foreach`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Collecting {
    Yes,
    No,
}

fn yield_places<'p>(plan: &'p Plan, block: &'p Block) -> impl Iterator<Item = u32> + 'p {
    let statements = (0..).zip(&block.statements);
    let yields = statements.filter(|(_, at)| matches!(plan.statement(**at).act, Act::Yield { .. }));
    yields.map(|(place, _)| place)
}

/// Lists start empty, so that no element gives an empty one.
fn begin_collecting(plan: &Plan, block: &Block, facet: &Facet, fold: &mut Fold) {
    for place in yield_places(plan, block) {
        let Act::Yield { target, alias: None, args } = &plan.statement(block.statements[place as usize]).act
        else {
            continue;
        };
        let is_list = |parameter: &&Parameter| {
            matches!(parameter.ty, TypeRef::Json) || element_of(&parameter.ty).is_some()
        };
        for arg in args.iter().filter(|_| *target == facet.id) {
            let parameter = facet.returns.iter().find(|parameter| parameter.name == arg.name);
            if let Some(parameter) = parameter.filter(is_list) {
                let captured = Captured::Many(Vec::new(), parameter.ty.to_string());
                fold.returns.insert(arg.name.clone(), captured);
            }
        }
    }
}

fn element_of(ty: &TypeRef) -> Option<&TypeRef> {
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
