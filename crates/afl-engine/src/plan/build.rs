//! Builds a plan from a program.

use std::collections::BTreeMap;

use afl_lang::program::{
    AndThenBlock, BlockContent, CallExpr, CatchClause, CatchContent, Expr, FacetDecl, MixinCall, NamedArg,
    Program, QualifiedName, Statement as ProgramStatement, Statements, StepStmt, WhenBlock, YieldStmt,
};

use super::reads::StepNames;
use super::{
    Act, Block, BlockAt, Callee, Facet, FacetAt, Mixin, MixinKind, Plan, PlanCall, PlanCase, PlanContent,
    PlanStatement, StatementAt,
};
use crate::timer::TimerFacet;
use crate::types::Schemas;

pub(super) fn build(program: &Program) -> Plan {
    // Every facet gets its number first, because bodies call in all directions.
    let timers = TimerFacet::ALL.iter().map(|timer| QualifiedName::from(timer.name()));
    let names = program.facets().map(|facet| facet.id.clone()).chain(timers);
    let names = names.zip(0..).map(|(name, at)| (name, FacetAt(at)));
    let plan = Plan {
        version: program.hash().to_string(),
        facets: Vec::new(),
        names: names.collect(),
        blocks: Vec::new(),
        statements: Vec::new(),
        schemas: Schemas::of(program),
    };
    let mut builder = Builder { plan, program };
    for decl in builder.program.facets() {
        let facet = builder.facet(decl);
        builder.plan.facets.push(facet);
    }
    builder.plan.facets.extend(TimerFacet::ALL.iter().map(|timer| timer.facet()));
    builder.plan
}

struct Builder<'p> {
    plan: Plan,
    program: &'p Program,
}

impl<'p> Builder<'p> {
    fn facet(&mut self, decl: &'p FacetDecl) -> Facet {
        Facet {
            id: decl.id.clone(),
            name: decl.name.as_str().into(),
            doc: decl.doc.clone(),
            kind: decl.kind,
            params: decl.params.clone(),
            returns: decl.returns.clone(),
            mixins: self.mixins(&decl.mixins, &StepNames::default()),
            script: decl.script.clone(),
            prompt: decl.prompt.clone(),
            clauses: self.clauses(&decl.body),
            catch: decl.catch.as_ref().map(|catch| self.catch(catch)),
        }
    }

    fn clauses(&mut self, body: &'p [AndThenBlock]) -> Vec<BlockAt> {
        let mut earlier = Vec::new();
        let mut clauses = Vec::new();
        for clause in body {
            let (at, names) = self.clause(clause, &earlier);
            clauses.push(at);
            earlier.push(names);
        }
        clauses
    }

    fn clause(
        &mut self,
        clause: &'p AndThenBlock,
        earlier: &[BTreeMap<&'p str, u32>],
    ) -> (BlockAt, BTreeMap<&'p str, u32>) {
        let outside = StepNames { own: BTreeMap::new(), earlier: earlier.to_vec() };
        let mut statements = Vec::new();
        let (content, own) = match &clause.content {
            BlockContent::Steps(body) => {
                (PlanContent::Steps, self.statements(body, &outside, &mut statements))
            }
            BlockContent::Foreach(foreach, body) => {
                let iterable = outside.reading(&foreach.iterable);
                self.statements(body, &outside, &mut statements);
                (PlanContent::Foreach { variable: foreach.variable.clone(), iterable }, BTreeMap::new())
            }
            BlockContent::When(when) => {
                let cases = self.cases(when, &outside, &mut statements);
                (PlanContent::When(cases), BTreeMap::new())
            }
            BlockContent::Script(script) => (PlanContent::Script(script.clone()), BTreeMap::new()),
        };
        let id = clause.id.as_str().into();
        (self.block(Block { id, content, statements, after: clause.after.clone() }), own)
    }

    fn catch(&mut self, catch: &'p CatchClause) -> BlockAt {
        let outside = StepNames::default();
        let mut statements = Vec::new();
        let content = match &catch.content {
            CatchContent::Steps(body) => {
                self.statements(body, &outside, &mut statements);
                PlanContent::Steps
            }
            CatchContent::When(when) => PlanContent::When(self.cases(when, &outside, &mut statements)),
        };
        self.block(Block { id: catch.id.as_str().into(), content, statements, after: Vec::new() })
    }

    fn cases(
        &mut self,
        when: &'p WhenBlock,
        outside: &StepNames<'p>,
        statements: &mut Vec<StatementAt>,
    ) -> Vec<PlanCase> {
        let mut cases = Vec::new();
        for case in &when.cases {
            let condition = case.condition.as_ref().map(|condition| outside.reading(condition));
            let first = statements.len() as u32;
            self.statements(&case.statements, outside, statements);
            cases.push(PlanCase { condition, statements: first..statements.len() as u32 });
        }
        cases
    }

    /// Appends the statements of one block or case and returns the places of its steps.
    fn statements(
        &mut self,
        body: &'p Statements,
        outside: &StepNames<'p>,
        statements: &mut Vec<StatementAt>,
    ) -> BTreeMap<&'p str, u32> {
        let first = statements.len() as u32;
        let mut names = StepNames { own: BTreeMap::new(), earlier: outside.earlier.clone() };
        for (place, statement) in (first..).zip(&body.steps) {
            if let ProgramStatement::Step(step) = statement {
                names.own.insert(&step.name, place);
            }
        }
        let mut built = Vec::new();
        for statement in &body.steps {
            built.push(match statement {
                ProgramStatement::Step(step) => self.step(step, &names),
                ProgramStatement::Log(log) => {
                    let act = Act::Log(log.args.clone());
                    statement_of(&log.id, "sys.log", act, &log.depends_on, &names, values(&log.args))
                }
                ProgramStatement::Assert(assert) => {
                    let act = Act::Assert(assert.condition.clone());
                    let exprs = [&assert.condition];
                    statement_of(&assert.id, "sys.assert", act, &assert.depends_on, &names, exprs)
                }
            });
        }
        built.extend(body.yields.iter().map(|it| yield_of(it, &names)));
        link(&mut built, first);
        for statement in built {
            statements.push(StatementAt(self.plan.statements.len() as u32));
            self.plan.statements.push(statement);
        }
        names.own
    }

    fn step(&mut self, step: &'p StepStmt, names: &StepNames<'p>) -> PlanStatement {
        let call = PlanCall {
            callee: self.callee(&step.call),
            args: step.call.args.clone(),
            mixins: self.mixins(&step.call.mixins, names),
            clauses: self.clauses(&step.body),
            catch: step.catch.as_ref().map(|catch| self.catch(catch)),
        };
        let exprs = values(&step.call.args);
        statement_of(&step.id, &step.name, Act::Call(call), &step.depends_on, names, exprs)
    }

    fn callee(&self, call: &CallExpr) -> Callee {
        let facet = self.plan.facet_at(&call.target).map(Callee::Facet);
        facet.unwrap_or_else(|| {
            let schema = self.plan.schemas.get(&call.target);
            Callee::Schema(schema.expect("a compiled program declares what it calls").id.clone())
        })
    }

    fn mixins(&self, mixins: &[MixinCall], names: &StepNames<'_>) -> Vec<Mixin> {
        let mixin = |mixin: &MixinCall| {
            let kind = mixin.target.parse().map_or_else(
                |_| {
                    let facet = self.plan.facet_at(&mixin.target);
                    MixinKind::Facet(facet.expect("a compiled program mixes in facets it declares"))
                },
                MixinKind::Policy,
            );
            let reads = names.reads(values(&mixin.args));
            Mixin { kind, alias: mixin.alias.clone(), args: mixin.args.clone(), reads }
        };
        mixins.iter().map(mixin).collect()
    }

    fn block(&mut self, block: Block) -> BlockAt {
        self.plan.blocks.push(block);
        BlockAt(self.plan.blocks.len() as u32 - 1)
    }
}

fn values(args: &[NamedArg]) -> impl Iterator<Item = &Expr> {
    args.iter().map(|arg| &arg.value)
}

fn yield_of(it: &YieldStmt, names: &StepNames<'_>) -> PlanStatement {
    let act = Act::Yield { target: it.target.clone(), alias: it.alias.clone(), args: it.args.clone() };
    let name = it.id.rsplit('/').next().unwrap_or_default();
    statement_of(&it.id, name, act, &it.depends_on, names, values(&it.args))
}

fn statement_of<'e>(
    id: &str,
    name: &str,
    act: Act,
    depends_on: &[String],
    names: &StepNames<'_>,
    exprs: impl IntoIterator<Item = &'e Expr>,
) -> PlanStatement {
    let deps = depends_on.iter().map(|name| names.own[name.as_str()]).collect();
    let reads = names.reads(exprs);
    PlanStatement { id: id.into(), name: name.into(), act, deps, dependants: Vec::new(), reads }
}

/// Gives each statement its dependants. Statements are counted from `first`.
fn link(statements: &mut [PlanStatement], first: u32) {
    for place in 0..statements.len() {
        for dep in statements[place].deps.clone() {
            statements[(dep - first) as usize].dependants.push(first + place as u32);
        }
    }
}
