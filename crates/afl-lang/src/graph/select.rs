//! Finds the workflow that is meant.

use crate::program::{FacetDecl, FacetKind, Program};
use crate::suggest::closest;

/// Why there is no graph.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GraphError {
    #[error("the program has no workflow")]
    NoWorkflow,
    #[error("the program has several workflows: say which of {} is meant", list(candidates))]
    SeveralWorkflows { candidates: Vec<String> },
    #[error("there is no workflow `{name}`: {}", advice(suggestion.as_deref(), candidates))]
    UnknownWorkflow { name: String, suggestion: Option<String>, candidates: Vec<String> },
    #[error("`{name}` is the name of several workflows: say which of {} is meant", list(candidates))]
    AmbiguousWorkflow { name: String, candidates: Vec<String> },
}

pub(super) fn workflow<'p>(program: &'p Program, name: Option<&str>) -> Result<&'p FacetDecl, GraphError> {
    let workflows: Vec<_> = program.facets_of(FacetKind::Workflow).collect();
    let Some(name) = name else {
        return match workflows[..] {
            [] => Err(GraphError::NoWorkflow),
            [one] => Ok(one),
            _ => Err(GraphError::SeveralWorkflows { candidates: ids(&workflows) }),
        };
    };
    if let Some(exact) = workflows.iter().find(|workflow| *workflow.id == *name) {
        return Ok(exact);
    }
    let short: Vec<_> = workflows.iter().copied().filter(|workflow| workflow.name == name).collect();
    match short[..] {
        [one] => Ok(one),
        [] => Err(unknown(name, &workflows)),
        _ => Err(GraphError::AmbiguousWorkflow { name: name.into(), candidates: ids(&short) }),
    }
}

fn unknown(name: &str, workflows: &[&FacetDecl]) -> GraphError {
    let names = workflows.iter().flat_map(|workflow| [&*workflow.id, &workflow.name]);
    let suggestion = closest(name, names).map(Into::into);
    GraphError::UnknownWorkflow { name: name.into(), suggestion, candidates: ids(workflows) }
}

fn ids(workflows: &[&FacetDecl]) -> Vec<String> {
    workflows.iter().map(|workflow| workflow.id.to_string()).collect()
}

fn advice(suggestion: Option<&str>, candidates: &[String]) -> String {
    match suggestion {
        Some(suggestion) => format!("did you mean `{suggestion}`?"),
        None if candidates.is_empty() => "the program has none".into(),
        None => format!("the program has {}", list(candidates)),
    }
}

/// How many names a message lists; a program may have thousands.
const LISTED: usize = 8;

fn list(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    match names.len().checked_sub(LISTED) {
        None | Some(0) => shown.join(", "),
        Some(more) => format!("{} and {more} more", shown.join(", ")),
    }
}
