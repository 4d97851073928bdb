//! Stand-ins for event facets, from a file: the format of the conformance cases.

use std::collections::BTreeMap;
use std::path::Path;

use afl_agents::handler::{self, Call, Object};
use afl_engine::failure::FailureKind;
use afl_engine::value::{Map, Value};
use afl_lang::program::{FacetKind, Program, QualifiedName};
use afl_lang::suggest::closest;
use serde::Deserialize;

use crate::failure::Failure;
use crate::input::Input;
use crate::json_text;

/// The contents of a mock file: handlers alone, or a whole case with its workflow and inputs.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Mock {
    file: String,
    handlers: BTreeMap<String, MockHandler>,
    pub(crate) workflow: Option<String>,
    pub(crate) inputs: Option<Map<String, Value>>,
}

/// The stand-in for one facet.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MockHandler {
    Returns(Map<String, Value>),
    Error(String),
    /// Copies parameters into returns.
    Echo(BTreeMap<String, String>),
    /// Picks the answer by a parameter's value.
    Table {
        key: String,
        rows: BTreeMap<String, Map<String, Value>>,
    },
    /// One for each attempt, the last one for all that follow.
    Sequence(Vec<MockHandler>),
}

/// The handlers of a program's event facets, by whole names.
pub(crate) type MockHandlers = BTreeMap<QualifiedName, MockHandler>;

/// The parts of a conformance case that a mock uses.
#[derive(Deserialize)]
struct MockCase {
    #[serde(default)]
    handlers: BTreeMap<String, Value>,
    #[serde(default)]
    workflow: Option<String>,
    #[serde(default)]
    inputs: Option<Map<String, Value>>,
}

/// Only a case has these.
const OF_A_CASE: [&str; 3] = ["handlers", "inputs", "expect"];

impl Mock {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let file = path.display().to_string();
        Self::parse(file.clone(), &Input::File(path.to_owned()).read()?)
            .map_err(|reason| Failure::BadMock { name: file, reason })
    }

    fn parse(file: String, text: &str) -> Result<Self, String> {
        let wrong = |error: serde_json::Error| error.to_string();
        let value = Value::Object(json_text::parse_object(text).map_err(|error| error.to_string())?);
        let case = if OF_A_CASE.iter().any(|name| value.get(name).is_some()) {
            serde_json::from_value::<MockCase>(value).map_err(wrong)?
        } else {
            MockCase { handlers: serde_json::from_value(value).map_err(wrong)?, workflow: None, inputs: None }
        };
        let mut handlers = BTreeMap::new();
        for (name, handler) in case.handlers {
            let handler = serde_json::from_value(handler).map_err(|error| format!("`{name}`: {error}"))?;
            handlers.insert(name, handler);
        }
        Ok(Self { file, handlers, workflow: case.workflow, inputs: case.inputs })
    }

    /// Which facets of a program are answered. A short name stands for a facet that no other shares it with.
    pub(crate) fn handlers_of(&self, program: &Program) -> Result<MockHandlers, Failure> {
        let events = program.facets_of(FacetKind::Event);
        let facets: Vec<QualifiedName> = events.map(|facet| facet.id.clone()).collect();
        let mut handlers = MockHandlers::new();
        for (name, handler) in &self.handlers {
            let fits = |facet: &&QualifiedName| ***facet == **name || facet.rsplit('.').next() == Some(name);
            let exact = facets.iter().find(|facet| ***facet == **name);
            let fitting: Vec<&QualifiedName> = facets.iter().filter(fits).collect();
            match (exact, &fitting[..]) {
                (Some(facet), _) | (None, &[facet]) => {
                    handlers.insert(facet.clone(), handler.clone());
                }
                (None, []) => return Err(self.unknown_facet(name, &facets)),
                (None, several) => {
                    let facets = several.iter().map(|facet| format!("`{facet}`")).collect();
                    return Err(Failure::AmbiguousMock {
                        file: self.file.clone(),
                        name: name.clone(),
                        facets,
                    });
                }
            }
        }
        Ok(handlers)
    }

    fn unknown_facet(&self, name: &str, facets: &[QualifiedName]) -> Failure {
        let short_names = facets.iter().filter_map(|facet| facet.rsplit('.').next());
        let closest = closest(name, facets.iter().map(|facet| &**facet).chain(short_names));
        Failure::UnknownMock {
            file: self.file.clone(),
            name: name.to_owned(),
            closest: closest.map(str::to_owned),
        }
    }
}

impl MockHandler {
    pub(crate) fn handle(&self, call: &Call) -> Result<Object, handler::HandlerFailure> {
        let before = usize::try_from(call.context.facts().answered).unwrap_or(usize::MAX);
        self.answer(&call.payload, before).map_err(|message| {
            handler::HandlerFailure::new(handler::HandlerFailureKind::Error, message)
                .with("type", FailureKind::Event.name())
        })
    }

    /// The answer to an attempt; `before` is how many were answered before it.
    fn answer(&self, payload: &Map<String, Value>, before: usize) -> Result<Map<String, Value>, String> {
        let parameter = |name: &String| {
            payload.get(name).ok_or_else(|| format!("the mock reads `{name}`, which is no parameter"))
        };
        match self {
            Self::Returns(result) => Ok(result.clone()),
            Self::Error(message) => Err(message.clone()),
            Self::Echo(copies) => {
                copies.iter().map(|(name, from)| Ok((name.clone(), parameter(from)?.clone()))).collect()
            }
            Self::Table { key, rows } => {
                let value = parameter(key)?;
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                rows.get(&text).cloned().ok_or_else(|| format!("the mock has no row for `{text}`"))
            }
            Self::Sequence(handlers) => {
                let handler = handlers.get(before).or(handlers.last());
                handler.ok_or("the mock's sequence is empty")?.answer(payload, before)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(handler: &Value, before: usize) -> Result<Value, String> {
        let handler: MockHandler = serde_json::from_value(handler.clone()).unwrap();
        let payload = json!({"n": 2, "who": "Ada"});
        handler.answer(payload.as_object().unwrap(), before).map(Value::Object)
    }

    #[test]
    fn a_handler_answers_by_its_kind() {
        assert_eq!(check(&json!({"returns": {"a": 1}}), 0), Ok(json!({"a": 1})));
        assert_eq!(check(&json!({"error": "no"}), 0), Err("no".into()));
        assert_eq!(check(&json!({"echo": {"name": "who"}}), 0), Ok(json!({"name": "Ada"})));
        let table = json!({"table": {"key": "n", "rows": {"2": {"a": "two"}}}});
        assert_eq!(check(&table, 0), Ok(json!({"a": "two"})));
        let sequence = json!({"sequence": [{"error": "no"}, {"returns": {}}]});
        assert_eq!([0, 1, 5].map(|before| check(&sequence, before).is_ok()), [false, true, true]);
    }

    #[test]
    fn a_file_holds_handlers_or_a_whole_case() {
        let parse = |value: Value| Mock::parse("mock.json".into(), &value.to_string());
        let handlers = parse(json!({"Ask": {"error": "no"}})).unwrap();
        assert_eq!((handlers.handlers.len(), handlers.workflow, handlers.inputs), (1, None, None));
        let case = parse(json!({"workflow": "W", "inputs": {"n": 1}, "expect": {}})).unwrap();
        assert_eq!((case.handlers.len(), case.workflow.as_deref()), (0, Some("W")));
        assert!(parse(json!({"Ask": {"answers": {}}})).unwrap_err().starts_with("`Ask`: unknown variant"));
        assert_eq!(parse(json!([1])), Err("it is JSON, but no object".into()));
    }

    #[test]
    fn a_mock_that_does_not_fit_says_so() {
        assert_eq!(
            check(&json!({"echo": {"a": "b"}}), 0),
            Err("the mock reads `b`, which is no parameter".into())
        );
        let table = json!({"table": {"key": "n", "rows": {}}});
        assert_eq!(check(&table, 0), Err("the mock has no row for `2`".into()));
    }
}
