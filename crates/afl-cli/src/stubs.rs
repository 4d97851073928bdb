//! Python functions for the event facets of a program, with their types, to be filled in.

use std::collections::BTreeMap;

use afl_lang::program::{FacetDecl, FacetKind, Parameter, Program, QualifiedName};
use afl_lang::types::TypeRef;

/// Of `typing`, as far as the stubs use them.
const TYPING: [&str; 3] = ["Any", "List", "Optional"];

/// Nothing when the program has no event facets.
pub(crate) fn python(program: &Program) -> Option<String> {
    let facets: Vec<&FacetDecl> = program.facets_of(FacetKind::Event).collect();
    if facets.is_empty() {
        return None;
    }
    let schemas = program.schemas().map(|schema| &schema.id);
    let names = PythonNames::of(schemas.chain(facets.iter().map(|facet| &facet.id)));
    let mut text = String::new();
    for schema in program.schemas() {
        text.push_str(&typed(&names.of_schema(&schema.id), schema.doc.as_deref(), &schema.fields, &names));
    }
    for facet in facets {
        text.push_str(&function(facet, &names));
    }
    Some(head(&text) + &text)
}

fn head(text: &str) -> String {
    let used = TYPING.into_iter().filter(|name| text.contains(name));
    let typing: Vec<&str> = used.chain(["TypedDict"]).collect();
    format!(
        "\"\"\"Handlers of event facets.\"\"\"\n\nfrom typing import {}\n\nfrom agentflow import Context, handler\n",
        typing.join(", ")
    )
}

/// Short names in Python, unless two declarations share one.
struct PythonNames {
    uses: BTreeMap<String, usize>,
}

impl PythonNames {
    fn of<'p>(ids: impl Iterator<Item = &'p QualifiedName>) -> Self {
        let mut uses = BTreeMap::new();
        for id in ids {
            *uses.entry(class(short(id))).or_default() += 1;
        }
        Self { uses }
    }

    fn of_schema(&self, id: &str) -> String {
        let name = class(short(id));
        if self.uses.get(&name).is_some_and(|uses| *uses > 1) { class(id) } else { name }
    }
}

fn short(id: &str) -> &str {
    id.rsplit('.').next().unwrap_or(id)
}

/// `shop.orderLine` as `ShopOrderLine`.
fn class(id: &str) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        first + letters.as_str()
    };
    id.split('.').map(capital).collect()
}

/// `ProcessPayment` as `process_payment`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut before_small = false;
    for letter in name.chars() {
        if letter.is_uppercase() && before_small {
            snake.push('_');
        }
        before_small = letter.is_lowercase() || letter.is_numeric();
        snake.extend(if letter == '.' { '_' } else { letter }.to_lowercase());
    }
    if KEYWORDS.contains(&&*snake) { snake + "_" } else { snake }
}

/// The keywords of Python, which cannot name a function.
const KEYWORDS: [&str; 34] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "handler", "if", "import", "in", "is", "lambda", "match",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

fn function(facet: &FacetDecl, names: &PythonNames) -> String {
    let name = names.of_schema(&facet.id);
    let input = typed(&format!("{name}Input"), None, &facet.params, names);
    let result = typed(&format!("{name}Result"), None, &facet.returns, names);
    let function = if name == class(short(&facet.id)) { snake(short(&facet.id)) } else { snake(&facet.id) };
    let (id, doc) = (&facet.id, doc(facet.doc.as_deref()));
    format!(
        "{input}{result}\n\n@handler(\"{id}\")\ndef {function}(payload: {name}Input, ctx: Context) -> {name}Result:\n\
         {doc}    raise NotImplementedError(\"{id}\")\n"
    )
}

/// With the form of a call, which allows every name as a key.
fn typed(name: &str, comment: Option<&str>, fields: &[Parameter], names: &PythonNames) -> String {
    let entry = |field: &Parameter| format!("\n    \"{}\": {},", field.name, python_type(&field.ty, names));
    let entries: String = fields.iter().map(entry).collect();
    let end = if fields.is_empty() { "" } else { "\n" };
    format!("\n\n{}{name} = TypedDict(\"{name}\", {{{entries}{end}}})\n", remark(comment))
}

fn python_type(ty: &TypeRef, names: &PythonNames) -> String {
    match ty {
        TypeRef::String => "str".into(),
        TypeRef::Long | TypeRef::Int => "int".into(),
        TypeRef::Double => "float".into(),
        TypeRef::Boolean => "bool".into(),
        TypeRef::Json => "Any".into(),
        // In quotes, because schemas may be declared later or contain one another.
        TypeRef::Schema(name) => format!("\"{}\"", names.of_schema(name)),
        TypeRef::List(of) => format!("List[{}]", python_type(of, names)),
        TypeRef::Nullable(of) => format!("Optional[{}]", python_type(of, names)),
    }
}

fn remark(comment: Option<&str>) -> String {
    let lines = comment.unwrap_or_default().lines();
    lines.fold(String::new(), |text, line| text + format!("# {}", line.trim()).trim_end() + "\n")
}

fn doc(comment: Option<&str>) -> String {
    let Some(comment) = comment else { return String::new() };
    let safe = comment.trim().replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    let lines: Vec<&str> = safe.lines().map(str::trim).collect();
    match &lines[..] {
        [one] if !one.ends_with('"') => format!("    \"\"\"{one}\"\"\"\n"),
        lines => format!("    \"\"\"{}\n    \"\"\"\n", lines.join("\n    ")),
    }
}
