//! The data flow of a workflow: what reads what, as a picture or as data.
//!
//! A graph shows the workflow's own blocks and the blocks written at its steps. The bodies of the facets
//! it calls are pictures of their own.

mod build;
mod dot;
mod json;
mod layout;
mod mermaid;
mod select;
mod svg;

use serde::Serialize;

use crate::program::{Program, QualifiedName};
pub use select::GraphError;

/// The graph of one workflow: by its qualified or its short name, or the only one there is.
pub fn of(program: &Program, workflow: Option<&str>) -> Result<Graph, GraphError> {
    let workflow = select::workflow(program, workflow)?;
    Ok(build::graph(program, workflow))
}

/// How a graph is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphFormat {
    Mermaid,
    Dot,
    Json,
    Svg,
}

impl Graph {
    /// The same graph gives the same bytes.
    pub fn render(&self, format: GraphFormat) -> String {
        match format {
            GraphFormat::Mermaid => mermaid::render(self),
            GraphFormat::Dot => dot::render(self),
            GraphFormat::Json => json::render(self),
            GraphFormat::Svg => svg::render(self),
        }
    }

    pub fn node(&self, node: NodeId) -> &GraphNode {
        &self.nodes[node.0 as usize]
    }

    pub fn cluster(&self, cluster: ClusterId) -> &Cluster {
        &self.clusters[cluster.0 as usize]
    }

    fn members(&self) -> ByCluster<Member> {
        let mut members = ByCluster::new(self);
        for (at, node) in self.nodes.iter().enumerate() {
            members.of_mut(node.cluster).push(Member::Node(NodeId(at as u32)));
        }
        for (at, cluster) in self.clusters.iter().enumerate() {
            members.of_mut(cluster.parent).push(Member::Cluster(ClusterId(at as u32)));
        }
        members
    }
}

/// Things of each cluster, then those outside all.
struct ByCluster<T>(Vec<Vec<T>>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Member {
    Node(NodeId),
    Cluster(ClusterId),
}

impl ByCluster<Member> {
    /// Writes a line for each member of a cluster; behind those of a cluster in it, a line with `end`.
    fn write(
        &self,
        of: Option<ClusterId>,
        indent: &str,
        line: &impl Fn(Member, &str) -> String,
        end: &str,
        lines: &mut Vec<String>,
    ) {
        for member in self.of(of) {
            lines.push(line(*member, indent));
            if let Member::Cluster(cluster) = member {
                self.write(Some(*cluster), &format!("{indent}  "), line, end, lines);
                lines.push(format!("{indent}{end}"));
            }
        }
    }
}

impl<T: Clone> ByCluster<T> {
    fn new(graph: &Graph) -> Self {
        Self(vec![Vec::new(); graph.clusters.len() + 1])
    }

    fn of(&self, cluster: Option<ClusterId>) -> &[T] {
        &self.0[self.position(cluster)]
    }

    fn of_mut(&mut self, cluster: Option<ClusterId>) -> &mut Vec<T> {
        let position = self.position(cluster);
        &mut self.0[position]
    }

    fn position(&self, cluster: Option<ClusterId>) -> usize {
        cluster.map_or(self.0.len() - 1, |cluster| cluster.0 as usize)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    pub workflow: QualifiedName,
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<Edge>,
    /// A cluster comes after the one around it.
    pub clusters: Vec<Cluster>,
}

/// An index into [`Graph::nodes`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// An index into [`Graph::clusters`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClusterId(pub u32);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GraphNode {
    /// The path of what it stands for, as in the compiled program.
    pub id: String,
    pub kind: NodeKind,
    /// `price`, `$.items`, `yield total`
    pub label: String,
    pub cluster: Option<ClusterId>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// A parameter of the workflow.
    Input,
    Step {
        sort: StepSort,
        facet: QualifiedName,
    },
    Yield,
    /// The variable of a `foreach`.
    Variable,
    /// Where a `when` chooses its case.
    Choice,
    /// The error that a `catch` handles.
    Caught,
    Script,
    /// Stands in a case that has no statements.
    Nothing,
}

impl NodeKind {
    /// The facet that a step calls, and its sort.
    fn step(&self) -> Option<(&str, StepSort)> {
        if let Self::Step { sort, facet } = self { Some((facet, *sort)) } else { None }
    }

    /// One word, for styles and for JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Step { .. } => "step",
            Self::Yield => "yield",
            Self::Variable => "variable",
            Self::Choice => "choice",
            Self::Caught => "caught",
            Self::Script => "script",
            Self::Nothing => "nothing",
        }
    }
}

/// The sort of facet that a step calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepSort {
    Facet,
    Event,
    Workflow,
    Schema,
}

impl StepSort {
    pub fn name(self) -> &'static str {
        match self {
            Self::Facet => "facet",
            Self::Event => "event",
            Self::Workflow => "workflow",
            Self::Schema => "schema",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    pub from: NodeId,
    pub to: NodeId,
    /// The attributes that flow, such as `price.total`; none where one node only starts the other.
    pub reads: Vec<String>,
}

impl Edge {
    /// The attributes on one line.
    fn label(&self) -> String {
        self.reads.join(", ")
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cluster {
    pub id: String,
    pub kind: ClusterKind,
    /// `foreach item in $.items`, `case _`
    pub caption: String,
    pub parent: Option<ClusterId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClusterKind {
    /// A block written at a step.
    Block,
    Foreach,
    When,
    Case,
    Catch,
}
