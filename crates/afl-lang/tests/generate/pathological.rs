//! Programs that are large in one way only: each would show a path whose time grows faster than its text (F17).

use std::fmt::Write as _;

use afl_lang::limits::MAX_NESTING;

/// A family of programs, larger with the number of elements.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// The usual number of elements.
    pub(crate) elements: usize,
    pub(crate) text: fn(usize) -> String,
}

/// Many of one thing.
pub(crate) const MANY: usize = 20_000;

/// Programs without a mistake.
pub(crate) const LEGAL: &[Shape] = &[
    Shape { name: "steps of a block", elements: MANY, text: steps },
    Shape { name: "facets of a namespace", elements: MANY, text: facets },
    Shape { name: "links of a chain of references", elements: MANY, text: chain },
    Shape { name: "links of a chain, backwards", elements: MANY, text: backward_chain },
    Shape { name: "clauses that read clause 0", elements: MANY, text: clauses },
    Shape { name: "clauses read by the last", elements: MANY, text: clauses_read_by_the_last },
    Shape { name: "arguments of a call", elements: MANY, text: arguments },
    Shape { name: "calls of a facet with many defaults", elements: MANY, text: many_defaults },
    Shape { name: "fields of a schema", elements: MANY, text: fields },
    Shape { name: "fields of a map that fits a schema", elements: MANY, text: fitting_map },
    Shape { name: "returns of a facet", elements: MANY, text: returns },
    Shape { name: "implicits", elements: MANY, text: implicits },
    Shape { name: "arguments from an implicit", elements: MANY, text: implicit_arguments },
    Shape { name: "namespaces with an implicit for one facet", elements: MANY, text: implicit_namespaces },
    Shape { name: "imports of a namespace", elements: MANY, text: imports },
    Shape { name: "mixins of a call", elements: MANY, text: mixins },
    Shape { name: "elements of an array", elements: 100_000, text: array },
    Shape { name: "operands of a concatenation", elements: 100_000, text: concatenation },
    Shape { name: "segments of a spaced name", elements: MANY, text: spaced_name },
    Shape { name: "entries of a prompt", elements: MANY, text: prompt_entries },
    Shape { name: "braces in a template", elements: MANY, text: template_braces },
    Shape { name: "scripts among comments", elements: MANY, text: scripts },
    Shape { name: "scripts whose braces do not match", elements: MANY, text: odd_scripts },
    Shape { name: "loops nested to the limit", elements: 100, text: nested_loops },
    Shape { name: "documented parameters", elements: MANY, text: documented },
    Shape { name: "steps on a line that is not ASCII", elements: MANY, text: one_line },
];

/// Programs with as many mistakes as elements, or with one that reaches far.
pub(crate) const BROKEN: &[Shape] = &[
    Shape { name: "statements that are none", elements: MANY, text: not_statements },
    Shape { name: "unknown facets among many", elements: MANY, text: unknown_facets },
    Shape { name: "unknown steps among many", elements: MANY, text: unknown_steps },
    Shape { name: "unknown fields of a wide schema", elements: MANY, text: unknown_fields },
    Shape { name: "steps of one name", elements: MANY, text: one_name },
    Shape { name: "steps in a ring", elements: MANY, text: ring },
    Shape { name: "facets in a ring", elements: MANY, text: recursion },
    Shape { name: "open comments", elements: MANY, text: |n| "/* a\n".repeat(n) },
    Shape { name: "open text blocks", elements: MANY, text: |n| "\"\"\" a \\\n".repeat(n) },
    Shape { name: "open strings", elements: MANY, text: |n| "\\\" a\n".repeat(n) },
    Shape { name: "open scripts", elements: MANY, text: |n| "facet F() script {\n".repeat(n) },
    Shape { name: "open blocks", elements: MANY, text: |n| "facet F() andThen {\n".repeat(n) },
    Shape { name: "open parentheses", elements: MANY, text: |n| in_argument(&"(".repeat(n)) },
    Shape { name: "open brackets", elements: MANY, text: |n| in_argument(&"[".repeat(n)) },
    Shape { name: "signs", elements: MANY, text: |n| in_argument(&"-".repeat(n)) },
    Shape { name: "indices of indices", elements: MANY, text: |n| in_argument(&"a[".repeat(n)) },
    Shape { name: "operators in a row", elements: MANY, text: |n| in_argument(&"1 + ".repeat(n)) },
    Shape { name: "comparisons in a row", elements: MANY, text: |n| in_argument(&"1 < ".repeat(n)) },
    Shape { name: "characters that are no AFL", elements: MANY, text: |n| "§ a".repeat(n) },
    Shape { name: "closing braces", elements: MANY, text: |n| "}".repeat(n) },
];

/// `head`, then `part` for every number below `n`, then `tail`.
fn assemble(
    head: &str,
    n: usize,
    part: impl Fn(&mut String, usize) -> std::fmt::Result,
    tail: &str,
) -> String {
    let mut text = head.to_owned();
    for at in 0..n {
        part(&mut text, at).expect("a string takes everything");
    }
    text.push_str(tail);
    text
}

const VALUE: &str = "facet Value(x: Long)\n";

fn in_argument(expr: &str) -> String {
    format!("{VALUE}workflow W() andThen {{\n    a = Value(x = {expr})\n}}\n")
}

fn steps(n: usize) -> String {
    let head = format!("{VALUE}workflow W(n: Long) andThen {{\n");
    assemble(&head, n, |out, at| writeln!(out, "    s{at} = Value(x = $.n + {at})"), "}\n")
}

fn facets(n: usize) -> String {
    let part = |out: &mut String, at: usize| writeln!(out, "    facet F{at}(x: Long, y: String = \"a\")");
    assemble("namespace a.b {\n", n, part, "}\n")
}

fn chain(n: usize) -> String {
    let head = format!("{VALUE}workflow W() andThen {{\n    s0 = Value(x = 1)\n");
    let part = |out: &mut String, at: usize| writeln!(out, "    s{} = Value(x = s{at}.x + 1)", at + 1);
    assemble(&head, n, part, "}\n")
}

fn backward_chain(n: usize) -> String {
    let head = format!("{VALUE}workflow W() andThen {{\n");
    let part = |out: &mut String, at: usize| writeln!(out, "    s{at} = Value(x = s{}.x + 1)", at + 1);
    assemble(&head, n, part, &format!("    s{n} = Value(x = 1)\n}}\n"))
}

fn clauses(n: usize) -> String {
    let head = format!("{VALUE}workflow W() andThen {{ first = Value(x = 1) }}\n");
    assemble(&head, n, |out, at| writeln!(out, "andThen {{ s{at} = Value(x = first.x) }}"), "")
}

fn clauses_read_by_the_last(n: usize) -> String {
    let head = format!("{VALUE}workflow W()\n");
    let clauses = assemble(&head, n, |out, at| writeln!(out, "andThen {{ s{at} = Value(x = {at}) }}"), "");
    let part = |out: &mut String, at: usize| writeln!(out, "    t{at} = Value(x = s{at}.x)");
    assemble(&format!("{clauses}andThen {{\n"), n, part, "}\n")
}

fn params(n: usize, default: &str) -> String {
    assemble("", n, |out, at| writeln!(out, "    p{at}: Long{default},"), "")
}

fn arguments(n: usize) -> String {
    let head = format!("facet F(\n{})\nworkflow W() andThen {{\n    a = F(\n", params(n, ""));
    assemble(&head, n, |out, at| writeln!(out, "        p{at} = {at},"), "    )\n}\n")
}

fn many_defaults(n: usize) -> String {
    let head = format!("facet F(\n{})\nworkflow W() andThen {{\n", params(n, " = 1"));
    assemble(&head, n, |out, at| writeln!(out, "    s{at} = F(p{at} = 2)"), "}\n")
}

fn schema(n: usize) -> String {
    assemble("schema S {\n", n, |out, at| writeln!(out, "    f{at}: Long"), "}\n")
}

fn fields(n: usize) -> String {
    let head = format!("{}{VALUE}workflow W(s: S) andThen {{\n", schema(n));
    assemble(&head, n, |out, at| writeln!(out, "    s{at} = Value(x = $.s.f{at})"), "}\n")
}

fn fitting_map(n: usize) -> String {
    let head = format!("{}facet T(s: S)\nworkflow W() andThen {{\n    t = T(s = #{{\n", schema(n));
    assemble(&head, n, |out, at| writeln!(out, "        f{at}: {at},"), "    })\n}\n")
}

fn returns(n: usize) -> String {
    let yields = assemble("", n, |out, at| writeln!(out, "        p{at} = {at},"), "");
    let returns = params(n, "");
    let head = format!(
        "{VALUE}facet R() => (\n{returns}) andThen {{\n    yield R(\n{yields}    )\n}}\n\
         workflow W() andThen {{\n    r = R()\n"
    );
    assemble(&head, n, |out, at| writeln!(out, "    s{at} = Value(x = r.p{at})"), "}\n")
}

fn implicits(n: usize) -> String {
    assemble("", n, |out, at| writeln!(out, "facet F{at}(x: Long)\nimplicit i{at} = F{at}(x = {at})"), "")
}

fn implicit_arguments(n: usize) -> String {
    let head = format!("facet F(\n{})\nworkflow W() andThen {{ a = F() }}\nimplicit i = F(\n", params(n, ""));
    assemble(&head, n, |out, at| writeln!(out, "    p{at} = {at},"), ")\n")
}

fn implicit_namespaces(n: usize) -> String {
    let part = |out: &mut String, at: usize| {
        writeln!(
            out,
            "namespace n{at} {{ implicit i = Value(x = {at}) workflow W() andThen {{ a = Value() }} }}"
        )
    };
    assemble(VALUE, n, part, "")
}

fn imports(n: usize) -> String {
    let namespaces = assemble("", n, |out, at| writeln!(out, "namespace n{at} {{ facet F{at}() }}"), "");
    let uses = assemble("", n, |out, at| writeln!(out, "    use n{at}"), "");
    let head = format!("{namespaces}namespace all {{\n{uses}    workflow W() andThen {{\n");
    assemble(&head, n, |out, at| writeln!(out, "        s{at} = F{at}()"), "    }\n}\n")
}

fn mixins(n: usize) -> String {
    let head = format!("{VALUE}facet F()\nworkflow W() andThen {{\n    a = F()\n");
    assemble(&head, n, |out, at| writeln!(out, "        with Value(x = {at}) as m{at}"), "}\n")
}

fn array(n: usize) -> String {
    let head = "facet F(list: [Long])\nworkflow W() andThen {\n    a = F(list = [";
    assemble(head, n, |out, at| write!(out, "{at}, "), "])\n}\n")
}

fn concatenation(n: usize) -> String {
    let head = "facet F(text: String)\nworkflow W() andThen {\n    a = F(text = \"\"";
    assemble(head, n, |out, at| write!(out, " ++ {at}"), ")\n}\n")
}

fn spaced_name(n: usize) -> String {
    assemble("namespace a", n, |out, at| write!(out, " . b{at}"), " { facet F() }\n")
}

fn prompt_entries(n: usize) -> String {
    let head = "event facet F() prompt {\n    template \"a\"\n";
    assemble(head, n, |out, at| writeln!(out, "    key{at} \"value\""), "}\n")
}

fn template_braces(n: usize) -> String {
    format!("event facet F() prompt {{ template \"{}\" }}\n", "{ ".repeat(n))
}

fn scripts(n: usize) -> String {
    let part = |out: &mut String, at: usize| {
        writeln!(out, "// {at}\nfacet F{at}() script {{ result[\"a\"] = {{1: 2}} }}")
    };
    assemble("", n, part, "")
}

/// Read as Python, no script ends; read as braces, every one does.
fn odd_scripts(n: usize) -> String {
    assemble("", n, |out, at| writeln!(out, "facet F{at}() script {{ a = {{ '}}' }}"), "")
}

/// Workflows, each with loops in one another.
fn nested_loops(n: usize) -> String {
    // The body of the workflow and the list of the innermost loop are levels too.
    let depth = MAX_NESTING as usize - 2;
    let opening = |out: &mut String, at: usize| {
        writeln!(out, "s = Value(x = v{at}) andThen foreach v{} in [v{at}] {{", at + 1)
    };
    let loops = assemble("", depth, opening, &"}".repeat(depth));
    let part = |out: &mut String, at: usize| {
        writeln!(out, "workflow W{at}() andThen foreach v0 in [1] {{\n{loops}}}")
    };
    assemble(VALUE, n, part, "")
}

fn documented(n: usize) -> String {
    let docs = assemble("/**\n", n, |out, at| writeln!(out, " * @param p{at} one"), " */\n");
    format!("{docs}facet F(\n{})\n", params(n, ""))
}

fn one_line(n: usize) -> String {
    let head = format!("{VALUE}workflow W() andThen {{ /* é */ ");
    assemble(&head, n, |out, at| write!(out, "s{at} = Value(x = {at}) "), "}\n")
}

fn not_statements(n: usize) -> String {
    assemble("workflow W() andThen {\n", n, |out, at| writeln!(out, "    let x{at}"), "}\n")
}

fn unknown_facets(n: usize) -> String {
    let facets = facets(n);
    let part = |out: &mut String, at: usize| writeln!(out, "    s{at} = G{at}(x = 1)");
    assemble(&format!("{facets}workflow W() andThen {{\n"), n, part, "}\n")
}

fn unknown_steps(n: usize) -> String {
    let head = format!("{VALUE}workflow W() andThen {{\n");
    assemble(&head, n, |out, at| writeln!(out, "    s{at} = Value(x = t{at}.x)"), "}\n")
}

fn unknown_fields(n: usize) -> String {
    let head = format!("{}{VALUE}workflow W(s: S) andThen {{\n", schema(n));
    assemble(&head, n, |out, at| writeln!(out, "    s{at} = Value(x = $.s.g{at})"), "}\n")
}

fn one_name(n: usize) -> String {
    let head = format!("{VALUE}workflow W() andThen {{\n");
    assemble(&head, n, |out, at| writeln!(out, "    s = Value(x = {at})"), "}\n")
}

fn ring(n: usize) -> String {
    let head = format!("{VALUE}workflow W() andThen {{\n");
    let part = |out: &mut String, at: usize| writeln!(out, "    s{at} = Value(x = s{}.x)", (at + 1) % n);
    assemble(&head, n, part, "}\n")
}

fn recursion(n: usize) -> String {
    let part =
        |out: &mut String, at: usize| writeln!(out, "facet F{at}() andThen {{ a = F{}() }}", (at + 1) % n);
    assemble("", n, part, "")
}
