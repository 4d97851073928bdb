//! Mixins: policies, further parameters, and facets with work of their own.

use super::Evaluation;
use super::reader::EvalSite;
use super::settings;
use super::wants::all;
use super::work::WorkResult;
use crate::attribute::{Attribute, Fields, ValueRef};
use crate::children::Children;
use crate::failure::FailureKind;
use crate::id::{Segment, StepId};
use crate::plan::{Facet, Mixin, MixinKind, MixinScope, Node, Plan};
use crate::policy::PolicyKind;
use crate::state::Verdict;
use crate::value::{Map, Value, ValueRoom};

/// When a mixin that has work of its own does it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MixinPhase {
    /// Its blocks, before the step's event.
    Blocks,
    /// Its event, with the step's.
    Event,
}

impl Evaluation {
    /// Policies are noted; other mixins give the step their parameters, which override none.
    pub(super) fn join_mixins(&mut self, id: &StepId, node: Node) -> WorkResult<()> {
        let plan = self.plan.clone();
        for (mixin, scope) in plan.mixins(node) {
            let place = Self::place_of_mixin(id, scope);
            self.need_reads(&mixin.reads, &place)?;
            let values = self.values_of(id, &mixin.args, &mixin.reads, &place)?;
            if is_overridden(&plan, node, mixin, scope) {
                continue;
            }
            match mixin.kind {
                MixinKind::Policy(kind) => self.set_policy(id, kind, &values)?,
                MixinKind::Facet(at) => {
                    let fields = self.fields_of(id, &plan.facet(at).params, values)?;
                    self.join(id, mixin, fields)?;
                }
            }
        }
        Ok(())
    }

    fn set_policy(&mut self, id: &StepId, kind: PolicyKind, values: &Map<String, Value>) -> WorkResult<()> {
        let mut policy = self.step(id).policy.clone();
        let applied = settings::apply(&mut policy, kind, values);
        applied.map_err(|message| self.failed(id, FailureKind::Type, message))?;
        self.change(id).policy = policy;
        Ok(())
    }

    /// The policies of a call are those of all the work that its step sends out, the events of its mixins too.
    pub(super) fn follow_call(&mut self, id: &StepId) -> WorkResult<()> {
        let plan = self.plan.clone();
        let (container, _) = id.split().expect("a mixin has a step");
        let node = self.known.steps.get(&container).expect("a container has been read").node;
        for (mixin, scope) in plan.mixins(node) {
            if let (MixinKind::Policy(kind), MixinScope::Call) = (mixin.kind, scope) {
                let place = Self::place_of_mixin(&container, scope);
                self.need_reads(&mixin.reads, &place)?;
                let values = self.values_of(id, &mixin.args, &mixin.reads, &place)?;
                self.set_policy(id, kind, &values)?;
            }
        }
        Ok(())
    }

    fn place_of_mixin(id: &StepId, scope: MixinScope) -> EvalSite {
        match scope {
            MixinScope::Call => Self::place_of_statement(id),
            MixinScope::Signature => EvalSite { owner: id.clone(), block: id.clone() },
        }
    }

    /// Attributes of a mixin become parameters of the step, under the alias if there is one.
    fn join(&mut self, id: &StepId, mixin: &Mixin, fields: Fields) -> WorkResult<()> {
        let Some(alias) = &mixin.alias else {
            let params = &mut self.change(id).attributes.params;
            for (name, attribute) in fields {
                params.entry(name).or_insert(attribute);
            }
            return Ok(());
        };
        let earlier = self.step(id).attributes.params.get(alias).map(|attribute| attribute.held.clone());
        let values: Vec<ValueRef> =
            fields.values().map(|field| &field.held).chain(&earlier).cloned().collect();
        self.need_values(&values)?;
        let joined = values.iter().filter_map(|held| self.known.value(held));
        self.take_room(id, alias, joined, &mut ValueRoom::default())?;
        let mut record = self.known.object(earlier.as_ref());
        for (name, attribute) in &fields {
            let value = self.known.value(&attribute.held).expect("it has just been asked for");
            record.insert(name.clone(), value.clone());
        }
        let attribute = Attribute { held: self.known.hold(Value::Object(record)), type_hint: "Json".into() };
        self.change(id).attributes.params.insert(alias.clone(), attribute);
        Ok(())
    }

    /// The arguments of a mixin for the step that does its work.
    pub(super) fn mixin_values(&mut self, id: &StepId) -> WorkResult<Map<String, Value>> {
        let plan = self.plan.clone();
        let (container, segment) = id.split().expect("a mixin has a step");
        let node = self.known.steps.get(&container).expect("a container has been read").node;
        let (mixin, scope) = plan.mixins(node).nth(segment.place() as usize).expect("it is in the program");
        let place = Self::place_of_mixin(&container, scope);
        self.need_reads(&mixin.reads, &place)?;
        self.values_of(id, &mixin.args, &mixin.reads, &place)
    }

    pub(super) fn begin_mixins(&mut self, id: &StepId, node: Node) -> WorkResult {
        self.check_mixins(id, node, MixinPhase::Blocks)?;
        self.start_mixins(id, node, MixinPhase::Blocks)?;
        Ok(Verdict::Advance)
    }

    pub(super) fn continue_mixins(&mut self, id: &StepId) -> WorkResult {
        if self.step(id).children.is_none() {
            return Ok(Verdict::Advance);
        }
        self.settled(id)
    }

    pub(super) fn capture_mixins(&mut self, id: &StepId, node: Node) -> WorkResult {
        self.take_mixins(id, node, MixinPhase::Blocks)?;
        Ok(Verdict::Advance)
    }

    /// Whether there is room for the steps of the mixins, to be asked before anything is begun.
    pub(super) fn check_mixins(&self, id: &StepId, node: Node, phase: MixinPhase) -> WorkResult<()> {
        let last = working(&self.plan, node, phase).pop();
        last.map_or(Ok(()), |place| self.check_depth(id, Segment::Mixin(place)))
    }

    /// Creates the steps of the mixins that work in this phase.
    pub(super) fn start_mixins(&mut self, id: &StepId, node: Node, phase: MixinPhase) -> WorkResult<()> {
        let places = working(&self.plan, node, phase);
        if places.is_empty() {
            return Ok(());
        }
        let total = places.len() as u32;
        self.change(id).children = Some(Children { open: total, ..Children::of(total) });
        for place in places {
            self.create(id, Segment::Mixin(place))?;
        }
        Ok(())
    }

    /// Gives the results of the mixins of this phase to the step.
    pub(super) fn take_mixins(&mut self, id: &StepId, node: Node, phase: MixinPhase) -> WorkResult<()> {
        let plan = self.plan.clone();
        let places = working(&plan, node, phase);
        all(places.iter().map(|place| self.need_step(&id.child(Segment::Mixin(*place)))))?;
        for place in places {
            let worker = self.step(&id.child(Segment::Mixin(place)));
            let returns = worker.attributes.returns.clone();
            let values: Vec<ValueRef> = returns.values().map(|attribute| attribute.held.clone()).collect();
            self.need_values(&values)?;
            let (mixin, _) = plan.mixins(node).nth(place as usize).expect("it is in the program");
            self.join(id, mixin, returns)?;
        }
        if self.step(id).children.is_some() {
            self.change(id).children = None;
        }
        Ok(())
    }
}

/// A call's mixin wins over the signature's mixin of the same name.
fn is_overridden(plan: &Plan, node: Node, mixin: &Mixin, scope: MixinScope) -> bool {
    let is_same = |other: &Mixin| match mixin.kind {
        MixinKind::Policy(_) => other.kind == mixin.kind,
        MixinKind::Facet(_) => other.kind == mixin.kind && other.alias == mixin.alias,
    };
    scope == MixinScope::Signature
        && plan.mixins(node).any(|(other, scope)| scope == MixinScope::Call && is_same(other))
}

fn working(plan: &Plan, node: Node, phase: MixinPhase) -> Vec<u32> {
    let works = |facet: &Facet| match phase {
        MixinPhase::Event => facet.is_event(),
        MixinPhase::Blocks => !facet.is_event() && (!facet.clauses.is_empty() || facet.script.is_some()),
    };
    let works = |mixin: &Mixin| match mixin.kind {
        MixinKind::Facet(at) => works(plan.facet(at)),
        MixinKind::Policy(_) => false,
    };
    (0..).zip(plan.mixins(node)).filter(|(_, (mixin, _))| works(mixin)).map(|(place, _)| place).collect()
}
