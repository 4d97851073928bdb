//! A facet as its program declares it, for the handler that does its work.

use std::sync::Arc;

use afl_lang::program::{Parameter, placeholders};

use super::{FacetAt, Plan};
use crate::value::{Map, Value, push_text};

/// The declaration of one facet. Clones share the plan.
#[derive(Clone, Debug)]
pub struct FacetDeclaration {
    plan: Arc<Plan>,
    at: FacetAt,
}

/// The `prompt` block of a facet with the values of one call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RenderedPrompt {
    /// `template`, `system`, `model` and others, in source order.
    pub entries: Vec<(String, String)>,
}

impl FacetDeclaration {
    pub fn new(plan: Arc<Plan>, qualified: &str) -> Option<Self> {
        let at = plan.facet_at(qualified)?;
        Some(Self { plan, at })
    }

    pub fn qualified_name(&self) -> &str {
        &self.plan.facet(self.at).id
    }

    pub fn doc(&self) -> Option<&str> {
        self.plan.facet(self.at).doc.as_deref()
    }

    pub fn params(&self) -> &[Parameter] {
        &self.plan.facet(self.at).params
    }

    pub fn returns(&self) -> &[Parameter] {
        &self.plan.facet(self.at).returns
    }

    /// The fields of a schema that a type names.
    pub fn schema_fields(&self, qualified: &str) -> Option<&[Parameter]> {
        self.plan.schemas.get(qualified).map(|schema| &schema.fields[..])
    }

    pub fn schema_doc(&self, qualified: &str) -> Option<&str> {
        self.plan.schemas.get(qualified)?.doc.as_deref()
    }

    /// The `prompt` block, if the facet has one, with the values of a payload in place of its placeholders.
    pub fn prompt(&self, payload: &Map<String, Value>) -> Option<RenderedPrompt> {
        let block = self.plan.facet(self.at).prompt.as_ref()?;
        let entries = block.entries.iter().map(|(key, text)| (key.clone(), render(text, payload)));
        Some(RenderedPrompt { entries: entries.collect() })
    }
}

impl RenderedPrompt {
    pub fn entry(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str())
    }
}

/// Walks the template alone, so that a value with braces stays as it is. A placeholder that the payload has no value for
/// stays too.
fn render(template: &str, payload: &Map<String, Value>) -> String {
    let mut text = String::new();
    let mut done = 0;
    for (start, path) in placeholders(template) {
        let mut words = path.split('.');
        let first = words.next().and_then(|name| payload.get(name));
        if let Some(value) = words.try_fold(first, |value, word| Some(value?.get(word))).flatten() {
            text.push_str(&template[done..start]);
            push_text(&mut text, value);
            done = start + path.len() + 2;
        }
    }
    text.push_str(&template[done..]);
    text
}

#[cfg(test)]
mod tests {
    use afl_lang::Validation;
    use afl_lang::source::Sources;
    use serde_json::json;

    use super::*;

    const PROGRAM: &str = r#"
namespace desk {
    /** A letter. */
    schema Letter { subject: String, pages: Long }
    /** Sorts a letter. */
    event facet Sort(letter: Letter, hint: String?) => (topic: String) prompt {
        system "Answer in {hint} JSON: {\"topic\": 1}"
        template "{letter.subject} has {letter.pages} pages{hint}: {letter}"
    }
}
"#;

    fn declared(facet: &str) -> Option<FacetDeclaration> {
        let program = afl_lang::compile(&Sources::one("desk.afl", PROGRAM), Validation::Require).program;
        FacetDeclaration::new(Arc::new(Plan::new(&program.expect("it compiles"))), facet)
    }

    #[test]
    fn a_declaration_has_names_types_and_doc_comments() {
        let sort = declared("desk.Sort").expect("it is declared");
        assert_eq!((sort.qualified_name(), sort.doc()), ("desk.Sort", Some("Sorts a letter.")));
        let names = |params: &[Parameter]| {
            params.iter().map(|it| format!("{}: {}", it.name, it.ty)).collect::<Vec<_>>()
        };
        assert_eq!(names(sort.params()), ["letter: desk.Letter", "hint: String?"]);
        assert_eq!(names(sort.returns()), ["topic: String"]);
        assert_eq!(
            names(sort.schema_fields("desk.Letter").expect("a schema")),
            ["subject: String", "pages: Long"]
        );
        assert_eq!(sort.schema_doc("desk.Letter"), Some("A letter."));
        assert!(sort.schema_fields("desk.Sort").is_none());
        assert!(declared("desk.Letter").is_none() && declared("afl:script").is_none());
    }

    #[test]
    fn values_with_braces_are_never_expanded() {
        let sort = declared("desk.Sort").expect("it is declared");
        let payload = json!({"letter": {"subject": "{hint} {letter.pages}", "pages": 2}, "hint": "strict"});
        let prompt = sort.prompt(payload.as_object().expect("an object")).expect("it has a prompt");
        assert_eq!(prompt.entry("system"), Some(r#"Answer in strict JSON: {"topic": 1}"#));
        assert_eq!(
            prompt.entry("template"),
            Some(r#"{hint} {letter.pages} has 2 pagesstrict: {"pages":2,"subject":"{hint} {letter.pages}"}"#)
        );
        assert_eq!(prompt.entry("model"), None);
    }
}
