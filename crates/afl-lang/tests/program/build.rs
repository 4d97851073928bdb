//! Programs made by hand from nodes.

use afl_lang::program::{
    AndThenBlock, AssertStmt, BinaryOp, BlockContent, CallExpr, CatchClause, CatchContent, Decl, Expr,
    ExprKind, FacetDecl, FacetKind, ForeachClause, ImplicitDecl, InputRef, InputSource, Location, LogStmt,
    MixinCall, NamedArg, Namespace, Parameter, Program, PromptBlock, SchemaDecl, ScriptBlock, Statement,
    Statements, StepRef, StepStmt, WhenBlock, WhenCase, YieldStmt,
};
use afl_lang::source::FileId;
use afl_lang::types::TypeRef;

pub(crate) fn program(declarations: Vec<Decl>) -> Program {
    Program { declarations, sources: Vec::new() }
}

/// Blocks and steps get their ids and dependencies here.
pub(crate) fn facet(
    kind: FacetKind,
    id: &str,
    params: &[&str],
    returns: &[&str],
    body: Vec<AndThenBlock>,
) -> FacetDecl {
    let mut facet = FacetDecl {
        kind,
        id: id.into(),
        name: id.rsplit('.').next().unwrap_or(id).into(),
        doc: None,
        params: params.iter().map(|written| parameter(written)).collect(),
        returns: returns.iter().map(|written| parameter(written)).collect(),
        mixins: Vec::new(),
        script: None,
        prompt: None,
        body,
        catch: None,
        location: None,
        source: None,
    };
    name_body(id, &mut facet.body, facet.catch.as_mut());
    facet
}

/// `total: Double`, with any type but a nested one.
pub(crate) fn parameter(written: &str) -> Parameter {
    let (name, ty) = written.split_once(": ").expect("a name and a type");
    Parameter { name: name.into(), ty: type_of(ty), default: None }
}

fn type_of(written: &str) -> TypeRef {
    if let Some(of) = written.strip_suffix('?') {
        TypeRef::Nullable(Box::new(type_of(of)))
    } else if let Some(of) = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        TypeRef::List(Box::new(type_of(of)))
    } else {
        TypeRef::builtin(written).unwrap_or_else(|| TypeRef::Schema(written.into()))
    }
}

pub(crate) fn block(steps: Vec<Statement>, yields: Vec<YieldStmt>) -> AndThenBlock {
    and_then(BlockContent::Steps(Statements { steps, yields }))
}

pub(crate) fn foreach(
    variable: &str,
    iterable: Expr,
    steps: Vec<Statement>,
    yields: Vec<YieldStmt>,
) -> AndThenBlock {
    let clause = ForeachClause { variable: variable.into(), iterable };
    and_then(BlockContent::Foreach(clause, Statements { steps, yields }))
}

pub(crate) fn when(cases: Vec<(Option<Expr>, Vec<Statement>, Vec<YieldStmt>)>) -> AndThenBlock {
    and_then(BlockContent::When(when_block(cases)))
}

pub(crate) fn when_block(cases: Vec<(Option<Expr>, Vec<Statement>, Vec<YieldStmt>)>) -> WhenBlock {
    let case = |(condition, steps, yields)| WhenCase {
        id: String::new(),
        condition,
        statements: Statements { steps, yields },
        location: None,
    };
    WhenBlock { cases: cases.into_iter().map(case).collect() }
}

pub(crate) fn and_then(content: BlockContent) -> AndThenBlock {
    AndThenBlock { id: String::new(), content, after: Vec::new(), location: None }
}

pub(crate) fn catch(steps: Vec<Statement>, yields: Vec<YieldStmt>) -> CatchClause {
    let content = CatchContent::Steps(Statements { steps, yields });
    CatchClause { id: String::new(), content, location: None }
}

pub(crate) fn step(name: &str, target: &str, args: &[(&str, Expr)]) -> Statement {
    Statement::Step(step_stmt(name, target, args))
}

pub(crate) fn step_stmt(name: &str, target: &str, args: &[(&str, Expr)]) -> StepStmt {
    StepStmt {
        id: String::new(),
        name: name.into(),
        call: call(target, args),
        body: Vec::new(),
        catch: None,
        depends_on: Vec::new(),
        location: None,
    }
}

pub(crate) fn call(target: &str, args: &[(&str, Expr)]) -> CallExpr {
    CallExpr {
        id: String::new(),
        target: target.into(),
        args: named(args),
        mixins: Vec::new(),
        location: None,
    }
}

pub(crate) fn mixin(target: &str, alias: Option<&str>, args: &[(&str, Expr)]) -> MixinCall {
    MixinCall { target: target.into(), alias: alias.map(Into::into), args: named(args), location: None }
}

pub(crate) fn yields(target: &str, args: &[(&str, Expr)]) -> YieldStmt {
    YieldStmt {
        id: String::new(),
        target: target.into(),
        alias: None,
        args: named(args),
        depends_on: Vec::new(),
        location: None,
    }
}

fn named(args: &[(&str, Expr)]) -> Vec<NamedArg> {
    let arg = |(name, value): &(&str, Expr)| NamedArg {
        name: (*name).into(),
        value: value.clone(),
        implicit: None,
    };
    args.iter().map(arg).collect()
}

pub(crate) fn expr(kind: ExprKind) -> Expr {
    Expr { kind, location: None }
}

pub(crate) fn int(value: i64) -> Expr {
    expr(ExprKind::Int(value))
}

pub(crate) fn text(value: &str) -> Expr {
    expr(ExprKind::String(value.into()))
}

/// `$.a.b` without the dollar.
pub(crate) fn input(path: &str) -> Expr {
    from(InputSource::Owner, path)
}

pub(crate) fn from(source: InputSource, path: &str) -> Expr {
    expr(ExprKind::Input(InputRef { path: split(path), source }))
}

pub(crate) fn read(path: &str) -> Expr {
    expr(ExprKind::Step(StepRef { path: split(path), clause: None }))
}

pub(crate) fn read_clause(clause: u32, path: &str) -> Expr {
    expr(ExprKind::Step(StepRef { path: split(path), clause: Some(clause) }))
}

pub(crate) fn binary(left: Expr, op: BinaryOp, right: Expr) -> Expr {
    expr(ExprKind::Binary(op, Box::new([left, right])))
}

fn split(path: &str) -> Vec<String> {
    path.split('.').filter(|part| !part.is_empty()).map(Into::into).collect()
}

/// Gives the blocks of an owner their ids, and what is in them.
pub(crate) fn name_body(owner: &str, body: &mut [AndThenBlock], catch: Option<&mut CatchClause>) {
    for (at, block) in body.iter_mut().enumerate() {
        block.id = format!("{owner}/{at}");
        match &mut block.content {
            BlockContent::Steps(statements) | BlockContent::Foreach(_, statements) => {
                name_statements(&block.id, statements);
            }
            BlockContent::When(when) => name_when(&block.id, when),
            BlockContent::Script(_) => {}
        }
    }
    if let Some(catch) = catch {
        catch.id = format!("{owner}/catch");
        match &mut catch.content {
            CatchContent::Steps(statements) => name_statements(&catch.id, statements),
            CatchContent::When(when) => name_when(&catch.id, when),
        }
    }
}

fn name_when(owner: &str, when: &mut WhenBlock) {
    for (at, case) in when.cases.iter_mut().enumerate() {
        case.id = format!("{owner}/case{at}");
        name_statements(&case.id, &mut case.statements);
    }
}

fn name_statements(block: &str, statements: &mut Statements) {
    for (at, statement) in statements.steps.iter_mut().enumerate() {
        match statement {
            Statement::Step(step) => {
                step.id = format!("{block}/{}", step.name);
                step.call.id = format!("{}/call", step.id);
                let mixins = step.call.mixins.iter().flat_map(|mixin| &mixin.args);
                step.depends_on = dependencies(step.call.args.iter().chain(mixins).map(|arg| &arg.value));
                name_body(&step.id, &mut step.body, step.catch.as_mut());
            }
            Statement::Log(log) => {
                log.id = format!("{block}/log{at}");
                log.depends_on = dependencies(log.args.iter().map(|arg| &arg.value));
            }
            Statement::Assert(assert) => {
                assert.id = format!("{block}/assert{at}");
                assert.depends_on = dependencies([&assert.condition]);
            }
        }
    }
    for (at, yielded) in statements.yields.iter_mut().enumerate() {
        yielded.id = format!("{block}/yield{at}");
        yielded.depends_on = dependencies(yielded.args.iter().map(|arg| &arg.value));
    }
}

fn dependencies<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for expr in exprs {
        expr.walk(&mut |part| {
            if let ExprKind::Step(StepRef { path, clause: None }) = &part.kind
                && let Some(name) = path.first().filter(|name| !names.contains(name))
            {
                names.push(name.clone());
            }
        });
    }
    names
}

/// A small shop that has about everything a program can have.
pub(crate) fn shop() -> Program {
    let mut pay = facet(
        FacetKind::Event,
        "shop.Pay",
        &["amount: Double", "item: shop.Item"],
        &["transaction: String", "fee: Double?"],
        vec![],
    );
    pay.mixins = vec![mixin("afl.policy.Retry", None, &[("max", int(3))])];
    pay.doc = Some("Takes the money.".into());
    let mut ask = facet(FacetKind::Event, "shop.Ask", &["question: String"], &["answer: String"], vec![]);
    ask.prompt = Some(PromptBlock {
        entries: vec![
            ("system".into(), "You are brief.".into()),
            ("template".into(), "Answer {question}".into()),
        ],
        location: None,
    });
    let mut price =
        facet(FacetKind::Plain, "shop.Price", &["items: [shop.Item]"], &["total: Double"], vec![]);
    price.script =
        Some(ScriptBlock { language: "python".into(), code: "result[\"total\"] = 1".into(), location: None });
    let implicit = ImplicitDecl {
        id: "shop.question".into(),
        name: "question".into(),
        call: call("shop.Ask", &[("question", text("why?"))]),
        location: None,
        source: None,
    };
    let namespace = Namespace {
        name: "shop".into(),
        doc: None,
        uses: vec!["billing".into()],
        declarations: vec![
            Decl::Schema(item_schema()),
            Decl::Facet(pay),
            Decl::Facet(ask),
            Decl::Facet(price),
            Decl::Implicit(implicit),
            Decl::Facet(checkout()),
        ],
        location: None,
        source: Some(FileId(0)),
    };
    let top = facet(FacetKind::Plain, "Value", &["input: Long"], &[], vec![]);
    Program {
        declarations: vec![Decl::Namespace(namespace), Decl::Facet(top)],
        sources: vec!["shop.afl".into(), "value.afl".into()],
    }
}

fn item_schema() -> SchemaDecl {
    let mut fields = vec![parameter("name: String"), parameter("count: Int")];
    fields[1].default = Some(int(1));
    SchemaDecl {
        id: "shop.Item".into(),
        name: "Item".into(),
        doc: Some("What is \"sold\".\nBy the piece.".into()),
        fields,
        location: Some(Location { line: 2, column: 3, end_line: 5, end_column: 4 }),
        source: Some(FileId(0)),
    }
}

fn checkout() -> FacetDecl {
    let mut pay =
        step_stmt("pay", "shop.Pay", &[("amount", read("price.total")), ("item", input("items.0"))]);
    pay.call.location = Some(Location { line: 9, column: 11, end_line: 9, end_column: 40 });
    pay.call.mixins = vec![mixin("afl.policy.Timeout", Some("limit"), &[("seconds", int(5))])];
    pay.catch = Some(catch(
        vec![step("again", "shop.Ask", &[("question", from(InputSource::Caught, "error"))])],
        vec![yields("shop.Pay", &[("transaction", read("again.answer"))])],
    ));
    pay.body = vec![block(vec![], vec![yields("shop.Pay", &[("fee", expr(ExprKind::Double(0.5)))])])];
    let assert = AssertStmt {
        id: String::new(),
        condition: binary(read("price.total"), BinaryOp::Greater, int(0)),
        text: "price.total > 0".into(),
        depends_on: vec![],
        location: None,
    };
    let log = LogStmt {
        id: String::new(),
        args: call("", &[("message", expr(ExprKind::Concat(vec![text("paid "), read("pay.transaction")])))])
            .args,
        depends_on: vec![],
        location: None,
    };
    let first = block(
        vec![
            step("price", "shop.Price", &[("items", input("items"))]),
            Statement::Step(pay),
            Statement::Assert(assert),
            Statement::Log(log),
        ],
        vec![yields("shop.Checkout", &[("total", read("price.total"))])],
    );
    let each = foreach(
        "item",
        input("items"),
        vec![step("value", "Value", &[("input", from(InputSource::Foreach, "item.count"))])],
        vec![yields("shop.Checkout", &[("counts", read("value.input"))])],
    );
    let mut cases = when(vec![
        (Some(binary(read_clause(0, "price.total"), BinaryOp::Less, int(9))), vec![], vec![]),
        (None, vec![step("ask", "shop.Ask", &[])], vec![]),
    ]);
    cases.after = vec![0];
    let mut params = facet(
        FacetKind::Workflow,
        "shop.Checkout",
        &["items: [shop.Item]", "note: Json"],
        &["total: Double", "counts: [Long]"],
        vec![first, each, cases],
    );
    params.params[1].default = Some(expr(ExprKind::Map(vec![
        ("empty".into(), expr(ExprKind::Array(vec![]))),
        ("none".into(), expr(ExprKind::Null)),
    ])));
    params
}
