//! Random programs that hold together.

use afl_lang::program::{
    AndThenBlock, AssertStmt, BinaryOp, BlockContent, CallExpr, CatchClause, CatchContent, Decl, Expr,
    ExprKind, FacetDecl, FacetKind, ForeachClause, ImplicitDecl, InputRef, InputSource, Location, LogStmt,
    MixinCall, NamedArg, Namespace, Parameter, Program, PromptBlock, SchemaDecl, ScriptBlock, Statement,
    Statements, StepRef, StepStmt, UnaryOp, WhenBlock, WhenCase, YieldStmt,
};
use afl_lang::source::FileId;
use afl_lang::types::TypeRef;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Every facet is `n.F0` to `n.F3`, every schema `n.S0` or `n.S1`, every implicit `n.I0`; a block with
/// k steps names them `s0` to `s(k-1)`.
pub(crate) fn program() -> impl Strategy<Value = Program> {
    let facets = vec(facet(), 4);
    let schemas = vec((doc(), vec(parameter(), 0..3), location(), source()), 2);
    let parts = (facets, schemas, call(&Scope::default()), location(), source(), doc());
    parts.prop_map(|(facets, schemas, call, location, source, doc)| {
        let facets = facets.into_iter().enumerate().map(|(at, facet)| {
            Decl::Facet(FacetDecl { id: format!("n.F{at}").into(), name: format!("F{at}"), ..facet })
        });
        let schemas = schemas.into_iter().enumerate().map(|(at, (doc, fields, location, source))| {
            let (id, name) = (format!("n.S{at}").into(), format!("S{at}"));
            Decl::Schema(SchemaDecl { id, name, doc, fields, location, source })
        });
        let implicit = ImplicitDecl { id: "n.I0".into(), name: "I0".into(), call, location, source };
        let mut declarations: Vec<Decl> = facets.chain(schemas).collect();
        // Half stand in the namespace, half at the top: their names do not depend on that here.
        let inside = declarations.split_off(3);
        let namespace = Namespace {
            name: "n".into(),
            doc,
            uses: vec!["m".into()],
            declarations: inside,
            location,
            source,
        };
        declarations.extend([Decl::Namespace(namespace), Decl::Implicit(implicit)]);
        Program { declarations, sources: vec!["a.afl".into(), "b \"c\".afl".into()] }
    })
}

/// How many steps can be read: in the block, and in each earlier clause.
#[derive(Clone, Debug, Default)]
struct Scope {
    block: usize,
    clauses: Vec<usize>,
}

impl Scope {
    fn with_steps(&self, block: usize) -> Self {
        Self { block, clauses: self.clauses.clone() }
    }
}

fn facet() -> impl Strategy<Value = FacetDecl> {
    let kind = prop::sample::select(vec![FacetKind::Plain, FacetKind::Event, FacetKind::Workflow]);
    let head = (kind, doc(), vec(parameter(), 0..3), vec(parameter(), 0..2), mixins(&Scope::default()));
    let prompt = (vec((text(), text()), 0..3), location());
    let prompt = prompt.prop_map(|(entries, location)| PromptBlock { entries, location });
    let tail = (option::of(script()), option::of(prompt), body(2), location(), source());
    (head, tail).prop_map(|(head, (script, prompt, (body, catch), location, source))| {
        let (kind, doc, params, returns, mixins) = head;
        let (id, name) = ("".into(), String::new());
        FacetDecl {
            kind,
            id,
            name,
            doc,
            params,
            returns,
            mixins,
            script,
            prompt,
            body,
            catch,
            location,
            source,
        }
    })
}

/// The blocks of an owner and its `catch`; `depth` more levels may follow.
fn body(depth: u32) -> BoxedStrategy<(Vec<AndThenBlock>, Option<CatchClause>)> {
    let sorts = prop::sample::select(vec![Sort::Plain, Sort::Foreach, Sort::When, Sort::Script]);
    vec((sorts, 0..3_usize), 0..3)
        .prop_flat_map(move |sorts| {
            // Only the steps of a plain block can be read later.
            let readable = |(sort, size): &(Sort, usize)| if *sort == Sort::Plain { *size } else { 0 };
            let readable: Vec<usize> = sorts.iter().map(readable).collect();
            let block = |(at, (sort, size)): (usize, &(Sort, usize))| {
                block(depth, *sort, &Scope { block: *size, clauses: readable[..at].to_vec() })
            };
            let blocks: Vec<_> = sorts.iter().enumerate().map(block).collect();
            (blocks, option::of(catch(depth)))
        })
        .boxed()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    Plain,
    Foreach,
    When,
    Script,
}

fn block(depth: u32, sort: Sort, scope: &Scope) -> BoxedStrategy<AndThenBlock> {
    let around = scope.with_steps(0);
    let content = match sort {
        Sort::Plain => statements(depth, scope).prop_map(BlockContent::Steps).boxed(),
        Sort::Foreach => (text(), expr(&around), statements(depth, scope))
            .prop_map(|(variable, iterable, statements)| {
                BlockContent::Foreach(ForeachClause { variable, iterable, location: None }, statements)
            })
            .boxed(),
        Sort::When => when(depth, &around).prop_map(BlockContent::When).boxed(),
        Sort::Script => script().prop_map(BlockContent::Script).boxed(),
    };
    let after: Vec<u32> = (0..scope.clauses.len() as u32).collect();
    (text(), content, prop::sample::subsequence(after.clone(), 0..=after.len()), location())
        .prop_map(|(id, content, after, location)| AndThenBlock { id, content, after, location })
        .boxed()
}

fn catch(depth: u32) -> BoxedStrategy<CatchClause> {
    let content = prop_oneof![
        statements(depth, &Scope::default().with_steps(1)).prop_map(CatchContent::Steps),
        when(depth, &Scope::default()).prop_map(CatchContent::When),
    ];
    (text(), content, location())
        .prop_map(|(id, content, location)| CatchClause { id, content, location })
        .boxed()
}

fn when(depth: u32, around: &Scope) -> BoxedStrategy<WhenBlock> {
    let inside = around.with_steps(1);
    let case = (text(), option::of(expr(around)), statements(depth, &inside), location());
    vec(case, 1..3)
        .prop_map(|cases| {
            let last = cases.len() - 1;
            let case = |(at, (id, condition, statements, location))| {
                let given = Expr { kind: ExprKind::Boolean(true), location: None };
                let condition = (at < last).then(|| Option::<Expr>::unwrap_or(condition, given));
                WhenCase { id, condition, statements, location }
            };
            WhenBlock { cases: cases.into_iter().enumerate().map(case).collect(), location: None }
        })
        .boxed()
}

fn statements(depth: u32, scope: &Scope) -> BoxedStrategy<Statements> {
    // A step reads only those before it, so none waits for itself.
    let steps: Vec<_> = (0..scope.block).map(|at| step(depth, at, &scope.with_steps(at))).collect();
    let log = (text(), args(scope), depends_on(scope), location());
    let log = log.prop_map(|(id, args, depends_on, location)| {
        Statement::Log(LogStmt { id, args, depends_on, location })
    });
    let assert = (text(), expr(scope), depends_on(scope), location());
    let assert = assert.prop_map(|(id, condition, depends_on, location)| {
        Statement::Assert(AssertStmt { id, condition, depends_on, location })
    });
    let yielded = (text(), target(), option::of(text()), args(scope), depends_on(scope), location());
    let yielded = yielded.prop_map(|(id, target, alias, args, depends_on, location)| YieldStmt {
        id,
        target: target.into(),
        alias,
        args,
        depends_on,
        location,
    });
    (steps, vec(prop_oneof![log, assert], 0..2), vec(yielded, 0..2))
        .prop_map(|(mut steps, others, yields)| {
            steps.extend(others);
            Statements { steps, yields }
        })
        .boxed()
}

fn step(depth: u32, at: usize, scope: &Scope) -> BoxedStrategy<Statement> {
    let body = if depth == 0 { Just((vec![], None)).boxed() } else { body(depth - 1) };
    (text(), call(scope), body, depends_on(scope), location())
        .prop_map(move |(id, call, (body, catch), depends_on, location)| {
            let name = format!("s{at}");
            Statement::Step(StepStmt { id, name, call, body, catch, depends_on, location })
        })
        .boxed()
}

/// All that a statement may read.
fn depends_on(scope: &Scope) -> impl Strategy<Value = Vec<String>> + use<> {
    Just((0..scope.block).map(|at| format!("s{at}")).collect())
}

fn call(scope: &Scope) -> impl Strategy<Value = CallExpr> + use<> {
    (text(), target(), args(scope), mixins(scope), location()).prop_map(
        |(id, target, args, mixins, location)| CallExpr { id, target: target.into(), args, mixins, location },
    )
}

fn mixins(scope: &Scope) -> impl Strategy<Value = Vec<MixinCall>> + use<> {
    let mixin = (target(), option::of(text()), args(scope), location());
    let mixin = mixin.prop_map(|(target, alias, args, location)| MixinCall {
        target: target.into(),
        alias,
        args,
        location,
    });
    vec(mixin, 0..2)
}

fn args(scope: &Scope) -> impl Strategy<Value = Vec<NamedArg>> + use<> {
    let arg = (text(), expr(scope), option::of(Just("n.I0".into())));
    vec(arg.prop_map(|(name, value, implicit)| NamedArg { name, value, implicit }), 0..3)
}

fn target() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["n.F0", "n.F1", "n.F2", "n.F3", "n.S0", "n.S1", "afl.policy.Retry"])
}

fn parameter() -> impl Strategy<Value = Parameter> {
    (text(), type_ref(), option::of(expr(&Scope::default()))).prop_map(|(name, ty, default)| Parameter {
        name,
        ty,
        default,
    })
}

fn type_ref() -> impl Strategy<Value = TypeRef> {
    let schema = prop::sample::select(vec!["n.S0", "n.S1"]).prop_map(|name| TypeRef::Schema(name.into()));
    let builtin = prop::sample::select(TypeRef::BUILTINS.to_vec());
    let builtin = builtin.prop_map(|name| TypeRef::builtin(name).expect("a builtin"));
    prop_oneof![builtin, schema].prop_recursive(3, 3, 1, |inner| {
        inner.prop_flat_map(|of| match of {
            nullable @ TypeRef::Nullable(_) => Just(TypeRef::List(Box::new(nullable))).boxed(),
            of => {
                prop_oneof![Just(TypeRef::List(Box::new(of.clone()))), Just(TypeRef::Nullable(Box::new(of))),]
                    .boxed()
            }
        })
    })
}

fn script() -> impl Strategy<Value = ScriptBlock> {
    (text(), text(), location()).prop_map(|(language, code, location)| ScriptBlock {
        language,
        code,
        location,
    })
}

fn expr(scope: &Scope) -> BoxedStrategy<Expr> {
    let kind = prop_oneof![
        text().prop_map(ExprKind::String),
        any::<i64>().prop_map(ExprKind::Int),
        any::<f64>().prop_filter("finite", |it| it.is_finite()).prop_map(ExprKind::Double),
        any::<bool>().prop_map(ExprKind::Boolean),
        Just(ExprKind::Null),
        input(),
        step_ref(scope),
    ];
    located(kind).prop_recursive(3, 8, 3, |inner| located(compound(inner))).boxed()
}

fn compound(inner: BoxedStrategy<Expr>) -> impl Strategy<Value = ExprKind> {
    let pair = (inner.clone(), inner.clone()).prop_map(|(a, b)| Box::new([a, b]));
    let binary = prop::sample::select(BinaryOp::ALL);
    let unary = prop::sample::select(UnaryOp::ALL).prop_filter("not compiled", |op| op.is_compiled());
    prop_oneof![
        vec(inner.clone(), 0..3).prop_map(ExprKind::Array),
        vec((text(), inner.clone()), 0..3).prop_map(ExprKind::Map),
        vec(inner.clone(), 2..4).prop_map(ExprKind::Concat),
        (binary, pair.clone()).prop_map(|(op, parts)| ExprKind::Binary(op, parts)),
        (unary, inner).prop_map(|(op, operand)| ExprKind::Unary(op, Box::new(operand))),
        pair.prop_map(ExprKind::Index),
    ]
}

fn located(kind: impl Strategy<Value = ExprKind> + 'static) -> BoxedStrategy<Expr> {
    (kind, location()).prop_map(|(kind, location)| Expr { kind, location }).boxed()
}

fn input() -> impl Strategy<Value = ExprKind> {
    let sources = vec![InputSource::Owner, InputSource::Foreach, InputSource::Caught];
    (vec(text(), 0..3), prop::sample::select(sources))
        .prop_map(|(path, source)| ExprKind::Input(InputRef { path, source }))
}

/// A reference to a step that there is; a null where there is none.
fn step_ref(scope: &Scope) -> impl Strategy<Value = ExprKind> + use<> {
    let own = (0..scope.block).map(|at| (None, at));
    let clauses = scope.clauses.iter().enumerate();
    let earlier = clauses.flat_map(|(clause, steps)| (0..*steps).map(move |at| (Some(clause as u32), at)));
    let choices: Vec<_> = own.chain(earlier).collect();
    (any::<prop::sample::Index>(), vec(text(), 0..2)).prop_map(move |(pick, rest)| {
        if choices.is_empty() {
            return ExprKind::Null;
        }
        let (clause, at) = choices[pick.index(choices.len())];
        let path = std::iter::once(format!("s{at}")).chain(rest).collect();
        ExprKind::Step(StepRef { path, clause })
    })
}

/// Any text at all: quotes, control characters and the far planes too.
fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..4).prop_map(|chars| chars.into_iter().collect())
}

fn doc() -> impl Strategy<Value = Option<String>> {
    option::of(text())
}

fn location() -> impl Strategy<Value = Option<Location>> {
    let location = any::<(u32, u32, u32, u32)>().prop_map(|(line, column, end_line, end_column)| Location {
        line,
        column,
        end_line,
        end_column,
    });
    option::of(location)
}

fn source() -> impl Strategy<Value = Option<FileId>> {
    option::of((0..2_u32).prop_map(FileId))
}
