//! Checks that a loaded program holds together: every name in it leads somewhere.
//!
//! The compiler has checked much more; this keeps a damaged or hand-made program from failing a run
//! half-way.

use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    AndThenBlock, BlockContent, CallExpr, CatchClause, CatchContent, Decl, Expr, ExprKind, FacetDecl,
    LoadError, MixinCall, NamedArg, Parameter, Program, Statement, Statements, StepRef, StepStmt, WhenBlock,
};
use crate::names::NameSet;
use crate::ring::rings;
use crate::types::TypeRef;

/// The thing that a name in a program refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Referent {
    Facet,
    Schema,
    Implicit,
    Step,
}

impl fmt::Display for Referent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Facet => "facet",
            Self::Schema => "schema",
            Self::Implicit => "implicit",
            Self::Step => "step",
        })
    }
}

/// The namespace whose declarations every program has without containing them.
const PRELUDE: &str = "afl.policy.";
/// The event facets that every program has without containing them.
pub const TIME_FACETS: [&str; 2] = ["afl.time.Wait", "afl.time.Until"];

type CheckResult = Result<(), LoadError>;

pub(super) fn check(program: &Program) -> CheckResult {
    let mut names = DeclaredNames::default();
    program.walk().try_for_each(|decl| names.collect(decl))?;
    program.walk().try_for_each(|decl| names.check_decl(decl))
}

#[derive(Default)]
struct DeclaredNames<'p> {
    facets: FxHashSet<&'p str>,
    schemas: FxHashSet<&'p str>,
    implicits: FxHashSet<&'p str>,
}

/// The steps that a statement or an expression can read.
#[derive(Clone, Copy)]
struct ReadScope<'s, 'p> {
    /// The id of the node that is checked.
    at: &'p str,
    block: Option<ReadableBlock<'s, 'p>>,
    /// Of the owner's clauses, those that come earlier.
    clauses: &'s [FxHashSet<&'p str>],
}

/// The steps of the block around a statement, and those that it waits for.
#[derive(Clone, Copy)]
struct ReadableBlock<'s, 'p> {
    steps: &'s FxHashSet<&'p str>,
    awaited: &'s NameSet<'p, String>,
}

impl<'p> DeclaredNames<'p> {
    fn collect(&mut self, decl: &'p Decl) -> CheckResult {
        let (id, is_new) = match decl {
            Decl::Namespace(_) => return Ok(()),
            Decl::Facet(facet) => (&facet.id, self.facets.insert(&facet.id)),
            Decl::Schema(schema) => (&schema.id, self.schemas.insert(&schema.id)),
            Decl::Implicit(implicit) => (&implicit.id, self.implicits.insert(&implicit.id)),
        };
        let is_both = self.facets.contains(&**id) && self.schemas.contains(&**id);
        if is_new && !is_both { Ok(()) } else { Err(inconsistent(id, "it is declared twice")) }
    }

    fn check_decl(&self, decl: &'p Decl) -> CheckResult {
        match decl {
            Decl::Namespace(_) => Ok(()),
            Decl::Facet(facet) => self.check_facet(facet),
            Decl::Schema(schema) => self.check_parameters(&schema.id, &schema.fields),
            Decl::Implicit(implicit) => self.check_call(&implicit.call, outside(&implicit.id)),
        }
    }

    fn check_facet(&self, facet: &'p FacetDecl) -> CheckResult {
        self.check_parameters(&facet.id, &facet.params)?;
        self.check_parameters(&facet.id, &facet.returns)?;
        self.check_mixins(&facet.mixins, outside(&facet.id))?;
        self.check_body(&facet.body, facet.catch.as_ref())
    }

    fn check_parameters(&self, at: &'p str, parameters: &'p [Parameter]) -> CheckResult {
        for parameter in parameters {
            if let Some(schema) = schema_of(&parameter.ty)
                && !self.schemas.contains(schema)
            {
                return Err(dangling(at, Referent::Schema, schema));
            }
            parameter.default.iter().try_for_each(|default| check_expr(default, outside(at)))?;
        }
        Ok(())
    }

    fn check_body(&self, body: &'p [AndThenBlock], catch: Option<&'p CatchClause>) -> CheckResult {
        let clauses: Vec<_> = body.iter().map(steps_of).collect();
        for (at, block) in body.iter().enumerate() {
            if block.after.iter().any(|earlier| *earlier as usize >= at) {
                return Err(inconsistent(&block.id, "it waits for a clause that is not an earlier one"));
            }
            self.check_block(block, &clauses[..at])?;
        }
        catch.map_or(Ok(()), |catch| {
            let scope = outside(&catch.id);
            match &catch.content {
                CatchContent::Steps(statements) => self.check_statements(&catch.id, statements, scope),
                CatchContent::When(when) => self.check_when(&catch.id, when, scope),
            }
        })
    }

    fn check_block(&self, block: &'p AndThenBlock, clauses: &[FxHashSet<&'p str>]) -> CheckResult {
        let scope = ReadScope { at: &block.id, block: None, clauses };
        match &block.content {
            BlockContent::Steps(statements) => self.check_statements(&block.id, statements, scope),
            BlockContent::Foreach(foreach, statements) => {
                check_expr(&foreach.iterable, scope)?;
                self.check_statements(&block.id, statements, scope)
            }
            BlockContent::When(when) => self.check_when(&block.id, when, scope),
            BlockContent::Script(_) => Ok(()),
        }
    }

    fn check_when(&self, at: &'p str, when: &'p WhenBlock, scope: ReadScope<'_, 'p>) -> CheckResult {
        let default = when.cases.iter().position(|case| case.condition.is_none());
        if default.is_none_or(|default| default + 1 != when.cases.len()) {
            return Err(inconsistent(at, "the last case of a `when`, and no other, has no condition"));
        }
        for case in &when.cases {
            case.condition.iter().try_for_each(|condition| check_expr(condition, scope))?;
            self.check_statements(&case.id, &case.statements, scope)?;
        }
        Ok(())
    }

    /// `around` has the names that can be read outside the block.
    fn check_statements(
        &self,
        at: &'p str,
        statements: &'p Statements,
        around: ReadScope<'_, 'p>,
    ) -> CheckResult {
        let steps = step_names(statements);
        if steps.len() < statements.calls().count() {
            return Err(inconsistent(at, "two of its steps have one name"));
        }
        for statement in &statements.steps {
            let (at, depends_on) = match statement {
                Statement::Step(step) => (&step.id, &step.depends_on),
                Statement::Log(log) => (&log.id, &log.depends_on),
                Statement::Assert(assert) => (&assert.id, &assert.depends_on),
            };
            let awaited = awaited(at, depends_on, &steps)?;
            let scope =
                ReadScope { at, block: Some(ReadableBlock { steps: &steps, awaited: &awaited }), ..around };
            match statement {
                Statement::Step(step) => {
                    self.check_call(&step.call, scope)?;
                    self.check_body(&step.body, step.catch.as_ref())?;
                }
                Statement::Log(log) => self.check_args(&log.args, scope)?,
                Statement::Assert(assert) => check_expr(&assert.condition, scope)?,
            }
        }
        for yielded in &statements.yields {
            self.check_target(&yielded.target, &yielded.id)?;
            let awaited = awaited(&yielded.id, &yielded.depends_on, &steps)?;
            let block = Some(ReadableBlock { steps: &steps, awaited: &awaited });
            self.check_args(&yielded.args, ReadScope { at: &yielded.id, block, ..around })?;
        }
        match ring(statements) {
            None => Ok(()),
            Some(step) => Err(inconsistent(at, &format!("its step `{step}` waits for itself"))),
        }
    }

    fn check_call(&self, call: &'p CallExpr, scope: ReadScope<'_, 'p>) -> CheckResult {
        self.check_target(&call.target, scope.at)?;
        self.check_args(&call.args, scope)?;
        self.check_mixins(&call.mixins, scope)
    }

    fn check_mixins(&self, mixins: &'p [MixinCall], scope: ReadScope<'_, 'p>) -> CheckResult {
        mixins.iter().try_for_each(|mixin| {
            self.check_target(&mixin.target, scope.at)?;
            self.check_args(&mixin.args, scope)
        })
    }

    fn check_args(&self, args: &'p [NamedArg], scope: ReadScope<'_, 'p>) -> CheckResult {
        args.iter().try_for_each(|arg| {
            if let Some(implicit) = &arg.implicit
                && !self.implicits.contains(&**implicit)
            {
                return Err(dangling(scope.at, Referent::Implicit, implicit));
            }
            check_expr(&arg.value, scope)
        })
    }

    fn check_target(&self, target: &'p str, at: &str) -> CheckResult {
        let is_declared = self.facets.contains(target) || self.schemas.contains(target);
        if is_declared || target.starts_with(PRELUDE) || TIME_FACETS.contains(&target) {
            Ok(())
        } else {
            Err(dangling(at, Referent::Facet, target))
        }
    }
}

/// Where no step can be read.
fn outside<'s, 'p: 's>(at: &'p str) -> ReadScope<'s, 'p> {
    ReadScope { at, block: None, clauses: &[] }
}

/// The steps that later clauses can read: those of a loop are many at once, those of a case its own.
fn steps_of(block: &AndThenBlock) -> FxHashSet<&str> {
    match &block.content {
        BlockContent::Steps(statements) => step_names(statements),
        BlockContent::Foreach(..) | BlockContent::When(_) | BlockContent::Script(_) => FxHashSet::default(),
    }
}

fn step_names(statements: &Statements) -> FxHashSet<&str> {
    statements.calls().map(|step| step.name.as_str()).collect()
}

fn schema_of(ty: &TypeRef) -> Option<&str> {
    match ty {
        TypeRef::Schema(name) => Some(name),
        TypeRef::List(of) | TypeRef::Nullable(of) => schema_of(of),
        TypeRef::String
        | TypeRef::Long
        | TypeRef::Int
        | TypeRef::Double
        | TypeRef::Boolean
        | TypeRef::Json => None,
    }
}

fn awaited<'p>(
    at: &str,
    depends_on: &'p [String],
    steps: &FxHashSet<&str>,
) -> Result<NameSet<'p, String>, LoadError> {
    match depends_on.iter().find(|name| !steps.contains(name.as_str())) {
        None => Ok(NameSet::new(depends_on, String::as_str)),
        Some(unknown) => Err(dangling(at, Referent::Step, unknown)),
    }
}

fn check_expr(expr: &Expr, scope: ReadScope<'_, '_>) -> CheckResult {
    let mut result = Ok(());
    expr.walk(&mut |part| {
        if let ExprKind::Step(step) = &part.kind
            && result.is_ok()
        {
            result = check_reference(step, scope);
        }
    });
    result
}

fn check_reference(step: &StepRef, scope: ReadScope<'_, '_>) -> CheckResult {
    let name = step.path.first().ok_or_else(|| inconsistent(scope.at, "a reference names no step"))?;
    let steps = match step.clause {
        None => scope.block.map(|block| block.steps),
        Some(clause) => scope.clauses.get(clause as usize),
    };
    if !steps.is_some_and(|steps| steps.contains(&**name)) {
        return Err(dangling(scope.at, Referent::Step, name));
    }
    if step.clause.is_none() && !scope.block.is_some_and(|block| block.awaited.has(name)) {
        return Err(inconsistent(scope.at, &format!("it reads `{name}` without waiting for it")));
    }
    Ok(())
}

fn dangling(at: &str, referent: Referent, name: &str) -> LoadError {
    LoadError::Dangling { at: at.into(), referent, name: name.into() }
}

fn inconsistent(at: &str, problem: &str) -> LoadError {
    LoadError::Inconsistent { at: at.into(), problem: problem.into() }
}

/// A step that waits for itself, if only through others. Names that are no steps are passed over.
fn ring(statements: &Statements) -> Option<&str> {
    let steps: Vec<&StepStmt> = statements.calls().collect();
    let index: FxHashMap<&str, u32> = steps.iter().zip(0..).map(|(step, at)| (&*step.name, at)).collect();
    let reads = |step: &&StepStmt| {
        step.depends_on.iter().filter_map(|name| index.get(name.as_str()).copied()).collect()
    };
    let edges: Vec<Vec<u32>> = steps.iter().map(reads).collect();
    rings(&edges).first().map(|ring| &*steps[ring[0] as usize].name)
}
