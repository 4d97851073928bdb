//! `state.facet.initialization.Begin`: the arguments of a step are evaluated and stored.

use std::collections::BTreeMap;

use afl_lang::program::{NamedArg, Parameter, QualifiedName};
use afl_lang::types::TypeRef;

use super::Evaluation;
use super::capture::{declared, element_of};
use super::reader::EvalSite;
use super::work::WorkResult;
use crate::attribute::{Attribute, Fields};
use crate::eval::{NoScope, eval, eval_within, holds};
use crate::failure::FailureKind;
use crate::id::StepId;
use crate::plan::{Act, Callee, ExprRead, Node, PlanCall};
use crate::state::Verdict;
use crate::trace::Trace;
use crate::types::{as_declared, fits};
use crate::value::{Map, Value, ValueRoom};

impl Evaluation {
    pub(super) fn initialize(&mut self, id: &StepId, node: Node) -> WorkResult {
        let plan = self.plan.clone();
        match node {
            // The inputs of a run were checked before it was stored.
            Node::Root(_) => {}
            Node::Mixin(at) => {
                let values = self.mixin_values(id)?;
                let params = self.fields_of(id, &plan.facet(at).params, values)?;
                self.change(id).attributes.params = params;
            }
            Node::Statement(at) => {
                let statement = plan.statement(at);
                let place = Self::place_of_statement(id);
                self.need_reads(&statement.reads, &place)?;
                match &statement.act {
                    Act::Call(call) => self.initialize_call(id, call, &statement.reads, &place)?,
                    Act::Log(args) => {
                        let values = self.values_of(id, args, &statement.reads, &place)?;
                        self.log(id, values);
                    }
                    Act::Assert(condition) => {
                        let holds = holds(condition, &self.reader(&statement.reads, &place));
                        if !holds.map_err(|error| self.failed(id, FailureKind::Evaluation, error))? {
                            let message = format!("`{condition}` does not hold");
                            return Err(self.failed(id, FailureKind::Assertion, message));
                        }
                    }
                    Act::Yield { target, args, .. } => {
                        let values = self.values_of(id, args, &statement.reads, &place)?;
                        let params = self.yielded(id, target, values)?;
                        self.change(id).attributes.params = params;
                    }
                }
            }
            Node::Block(_) | Node::Element(_) => unreachable!("blocks have no arguments"),
        }
        self.join_mixins(id, node)?;
        if let Node::Mixin(_) = node {
            self.follow_call(id)?;
        }
        Ok(Verdict::Advance)
    }

    fn initialize_call(
        &mut self,
        id: &StepId,
        call: &PlanCall,
        reads: &[ExprRead],
        place: &EvalSite,
    ) -> WorkResult<()> {
        let plan = self.plan.clone();
        let values = self.values_of(id, &call.args, reads, place)?;
        match &call.callee {
            Callee::Facet(at) => {
                let params = self.fields_of(id, &plan.facet(*at).params, values)?;
                self.change(id).attributes.params = params;
            }
            Callee::Schema(name) => {
                let returns = self.fields_of(id, plan.schemas.fields(name), values)?;
                self.change(id).attributes.returns = returns;
            }
        }
        Ok(())
    }

    pub(super) fn values_of(
        &self,
        id: &StepId,
        args: &[NamedArg],
        reads: &[ExprRead],
        place: &EvalSite,
    ) -> WorkResult<Map<String, Value>> {
        let mut room = ValueRoom::default();
        let value = |arg: &NamedArg| {
            let value = eval_within(&arg.value, &self.reader(reads, place), &mut room);
            let value = value.map_err(|error| {
                self.failed(id, FailureKind::Evaluation, format!("`{}`: {error}", arg.name))
            })?;
            Ok((arg.name.clone(), value))
        };
        args.iter().map(value).collect()
    }

    /// Values for declared names: defaults filled in, types checked.
    pub(super) fn fields_of(
        &mut self,
        id: &StepId,
        declared: &[Parameter],
        mut values: Map<String, Value>,
    ) -> WorkResult<Fields> {
        let mut fields = BTreeMap::new();
        for parameter in declared {
            let value = match (values.remove(&parameter.name), &parameter.default) {
                (Some(value), _) => value,
                (None, Some(default)) => eval(default, &NoScope)
                    .map_err(|error| self.failed(id, FailureKind::Evaluation, error))?,
                (None, None) => continue,
            };
            let attribute = self.attribute(id, &parameter.name, value, &parameter.ty)?;
            fields.insert(parameter.name.clone(), attribute);
        }
        Ok(fields)
    }

    pub(super) fn attribute(
        &mut self,
        id: &StepId,
        name: &str,
        value: Value,
        ty: &TypeRef,
    ) -> WorkResult<Attribute> {
        fits(name, &value, ty, &self.plan.schemas)
            .map_err(|misfit| self.failed(id, FailureKind::Type, misfit))?;
        let value = as_declared(value, ty, &self.plan.schemas)
            .map_err(|error| self.failed(id, FailureKind::Evaluation, error))?;
        Ok(Attribute { held: self.known.hold(value), type_hint: ty.to_string().into() })
    }

    /// The arguments of a yield, against the attributes of its target. In a `foreach` one element's value may
    /// be an element of the attribute's list.
    fn yielded(
        &mut self,
        id: &StepId,
        target: &QualifiedName,
        values: Map<String, Value>,
    ) -> WorkResult<Fields> {
        let plan = self.plan.clone();
        let is_in_foreach = self.is_in_element(id);
        let mut fields = BTreeMap::new();
        for (name, value) in values {
            let ty = declared(&plan, target, &name).map_or(&TypeRef::Json, |parameter| &parameter.ty);
            let element = element_of(ty).filter(|_| is_in_foreach);
            let ty = element.filter(|of| fits(&name, &value, of, &plan.schemas).is_ok()).unwrap_or(ty);
            let attribute = self.attribute(id, &name, value, ty)?;
            fields.insert(name, attribute);
        }
        Ok(fields)
    }

    fn is_in_element(&self, id: &StepId) -> bool {
        let block = id.parent().and_then(|block| self.known.steps.get(&block));
        block.is_some_and(|block| matches!(block.node, Node::Element(_)))
    }

    fn log(&mut self, id: &StepId, values: Map<String, Value>) {
        let path = self.path_of(id);
        let logged = Trace::Logged { step: id.clone(), path, values: Value::Object(values.clone()) };
        self.traces.push(logged);
        for (name, value) in values {
            let attribute = Attribute { held: self.known.hold(value), type_hint: "Json".into() };
            self.change(id).attributes.params.insert(name, attribute);
        }
    }
}
