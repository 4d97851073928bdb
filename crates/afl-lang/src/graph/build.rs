//! Makes the graph of a workflow.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Cluster, ClusterId, ClusterKind, Edge, Graph, GraphNode, NodeId, NodeKind, StepSort};
use crate::program::{
    AndThenBlock, BlockContent, CatchClause, CatchContent, Decl, Expr, ExprKind, FacetDecl, FacetKind,
    ForeachClause, InputRef, InputSource, Program, Statements, StepRef, StepStmt, TIME_FACETS, WhenBlock,
    YieldStmt, shortened,
};

pub(super) fn graph(program: &Program, workflow: &FacetDecl) -> Graph {
    let timers = TIME_FACETS.map(|name| (name, StepSort::Event));
    let sorts = program.walk().filter_map(sort_of).chain(timers).collect();
    let graph =
        Graph { workflow: workflow.id.clone(), nodes: Vec::new(), edges: Vec::new(), clusters: Vec::new() };
    let mut builder = GraphBuilder { sorts, graph, edges: FxHashMap::default() };
    let inputs = workflow.params.iter().map(|param| {
        let label = format!("$.{}", param.name);
        (&*param.name, builder.node(format!("{}/{label}", workflow.id), NodeKind::Input, label, None))
    });
    let owner = GraphOwner::Workflow(inputs.collect());
    builder.body(&workflow.body, &GraphScope::new(&owner));
    if let Some(catch) = &workflow.catch {
        builder.catch(catch, &GraphScope::new(&owner));
    }
    builder.graph
}

fn sort_of(decl: &Decl) -> Option<(&str, StepSort)> {
    match decl {
        Decl::Facet(facet) => {
            let sort = match facet.kind {
                FacetKind::Plain => StepSort::Facet,
                FacetKind::Event => StepSort::Event,
                FacetKind::Workflow => StepSort::Workflow,
            };
            Some((&facet.id, sort))
        }
        Decl::Schema(schema) => Some((&schema.id, StepSort::Schema)),
        Decl::Namespace(_) | Decl::Implicit(_) => None,
    }
}

struct GraphBuilder<'p> {
    sorts: FxHashMap<&'p str, StepSort>,
    graph: Graph,
    /// The index of the edge between two nodes; all attributes that flow between them share it.
    edges: FxHashMap<(NodeId, NodeId), usize>,
}

/// The meaning of `$` in a block.
enum GraphOwner<'p> {
    Workflow(FxHashMap<&'p str, NodeId>),
    Step(NodeId),
}

type Steps<'p> = Rc<FxHashMap<&'p str, NodeId>>;

/// The names that a statement can read.
#[derive(Clone)]
struct GraphScope<'o, 'p> {
    owner: &'o GraphOwner<'p>,
    cluster: Option<ClusterId>,
    /// The variables of the loops around, the innermost last.
    variables: Vec<(&'p str, NodeId)>,
    caught: Option<NodeId>,
    steps: Steps<'p>,
    clauses: Vec<Steps<'p>>,
}

impl<'o, 'p> GraphScope<'o, 'p> {
    fn new(owner: &'o GraphOwner<'p>) -> Self {
        Self {
            owner,
            cluster: None,
            variables: Vec::new(),
            caught: None,
            steps: Steps::default(),
            clauses: Vec::new(),
        }
    }

    fn inside(&self, opened: OpenCluster) -> Self {
        Self { cluster: Some(opened.cluster), ..self.clone() }
    }
}

/// A cluster and where its nodes and edges begin.
#[derive(Clone, Copy)]
struct OpenCluster {
    cluster: ClusterId,
    first_node: usize,
    first_edge: usize,
}

impl<'p> GraphBuilder<'p> {
    fn node(&mut self, id: String, kind: NodeKind, label: String, cluster: Option<ClusterId>) -> NodeId {
        self.graph.nodes.push(GraphNode { id, kind, label, cluster });
        NodeId(self.graph.nodes.len() as u32 - 1)
    }

    fn cluster(
        &mut self,
        id: &str,
        kind: ClusterKind,
        caption: String,
        scope: &GraphScope<'_, 'p>,
    ) -> OpenCluster {
        let opened = OpenCluster {
            cluster: ClusterId(self.graph.clusters.len() as u32),
            first_node: self.graph.nodes.len(),
            first_edge: self.graph.edges.len(),
        };
        self.graph.clusters.push(Cluster { id: id.into(), kind, caption, parent: scope.cluster });
        opened
    }

    fn edge(&mut self, from: NodeId, to: NodeId, read: Option<String>) {
        let at = *self.edges.entry((from, to)).or_insert_with(|| {
            self.graph.edges.push(Edge { from, to, reads: Vec::new() });
            self.graph.edges.len() - 1
        });
        let reads = &mut self.graph.edges[at].reads;
        reads.extend(read.filter(|read| !reads.contains(read)));
    }

    fn body(&mut self, body: &'p [AndThenBlock], scope: &GraphScope<'_, 'p>) {
        let mut scope = scope.clone();
        for block in body {
            let readable = match &block.content {
                BlockContent::Steps(statements) => self.statements(statements, &scope),
                BlockContent::Foreach(foreach, statements) => {
                    self.foreach(&block.id, foreach, statements, &scope);
                    Steps::default()
                }
                BlockContent::When(when) => {
                    self.when(&block.id, when, &scope);
                    Steps::default()
                }
                BlockContent::Script(script) => {
                    let label = format!("script {}", script.language);
                    self.node(block.id.clone(), NodeKind::Script, label, scope.cluster);
                    Steps::default()
                }
            };
            scope.clauses.push(readable);
        }
    }

    fn foreach(
        &mut self,
        id: &str,
        foreach: &'p ForeachClause,
        statements: &'p Statements,
        scope: &GraphScope<'_, 'p>,
    ) {
        let caption = format!("foreach {} in {}", foreach.variable, shortened(&foreach.iterable.to_string()));
        let cluster = self.cluster(id, ClusterKind::Foreach, caption, scope);
        let mut inside = scope.inside(cluster);
        let label = foreach.variable.clone();
        let variable = self.node(format!("{id}/{label}"), NodeKind::Variable, label, inside.cluster);
        self.reads(&foreach.iterable, variable, scope);
        inside.variables.push((&foreach.variable, variable));
        self.statements(statements, &inside);
        self.start(variable, cluster);
    }

    fn when(&mut self, id: &str, when: &'p WhenBlock, scope: &GraphScope<'_, 'p>) {
        let cluster = self.cluster(id, ClusterKind::When, "when".into(), scope);
        let inside = scope.inside(cluster);
        let choice = self.node(format!("{id}/when"), NodeKind::Choice, "when".into(), inside.cluster);
        for case in &when.cases {
            let condition =
                case.condition.as_ref().map_or_else(|| "_".into(), |it| shortened(&it.to_string()));
            let caption = format!("case {condition}");
            let cluster = self.cluster(&case.id, ClusterKind::Case, caption, &inside);
            case.condition.iter().for_each(|condition| self.reads(condition, choice, scope));
            self.statements(&case.statements, &inside.inside(cluster));
            if self.graph.nodes.len() == cluster.first_node {
                let inside = Some(cluster.cluster);
                self.node(format!("{}/nothing", case.id), NodeKind::Nothing, "nothing".into(), inside);
            }
            self.start(choice, cluster);
        }
    }

    fn catch(&mut self, catch: &'p CatchClause, scope: &GraphScope<'_, 'p>) {
        let cluster = self.cluster(&catch.id, ClusterKind::Catch, "catch".into(), scope);
        let mut inside = scope.inside(cluster);
        let caught =
            self.node(format!("{}/error", catch.id), NodeKind::Caught, "error".into(), inside.cluster);
        if let GraphOwner::Step(step) = scope.owner {
            self.edge(*step, caught, None);
        }
        inside.caught = Some(caught);
        match &catch.content {
            CatchContent::Steps(statements) => {
                self.statements(statements, &inside);
            }
            CatchContent::When(when) => self.when(&format!("{}/when", catch.id), when, &inside),
        }
        self.start(caught, cluster);
    }

    /// Adds the statements of a block and gives the steps among them.
    fn statements(&mut self, statements: &'p Statements, scope: &GraphScope<'_, 'p>) -> Steps<'p> {
        // All nodes before any edge: a step may read one that is written further down.
        let named = statements.calls().map(|step| (&*step.name, self.step(step, scope)));
        let scope = GraphScope { steps: Rc::new(named.collect()), ..scope.clone() };
        for step in statements.calls() {
            self.step_edges(step, &scope);
        }
        for yielded in &statements.yields {
            self.yielded(yielded, &scope);
        }
        scope.steps
    }

    fn step(&mut self, step: &'p StepStmt, scope: &GraphScope<'_, 'p>) -> NodeId {
        let target = &step.call.target;
        let sort = self.sorts.get(&**target).copied().unwrap_or(StepSort::Facet);
        let kind = NodeKind::Step { sort, facet: target.clone() };
        self.node(step.id.clone(), kind, step.name.clone(), scope.cluster)
    }

    fn step_edges(&mut self, step: &'p StepStmt, scope: &GraphScope<'_, 'p>) {
        let node = scope.steps[&*step.name];
        let mixed_in = step.call.mixins.iter().flat_map(|mixin| &mixin.args);
        for arg in step.call.args.iter().chain(mixed_in) {
            self.reads(&arg.value, node, scope);
        }
        let owner = GraphOwner::Step(node);
        let inside = GraphScope {
            cluster: scope.cluster,
            variables: scope.variables.clone(),
            ..GraphScope::new(&owner)
        };
        if !step.body.is_empty() {
            let caption = format!("inside {}", step.name);
            let cluster = self.cluster(&format!("{}/body", step.id), ClusterKind::Block, caption, &inside);
            self.body(&step.body, &inside.inside(cluster));
            self.start(node, cluster);
        }
        if let Some(catch) = &step.catch {
            self.catch(catch, &inside);
        }
    }

    fn yielded(&mut self, yielded: &'p YieldStmt, scope: &GraphScope<'_, 'p>) {
        let names: Vec<&str> = yielded.args.iter().map(|arg| &*arg.name).collect();
        let prefix = yielded.alias.as_ref().map(|alias| format!("{alias}.")).unwrap_or_default();
        let label = shortened(&format!("yield {prefix}{}", names.join(", ")));
        let node = self.node(yielded.id.clone(), NodeKind::Yield, label, scope.cluster);
        for arg in &yielded.args {
            self.reads(&arg.value, node, scope);
        }
    }

    /// Adds an edge for each reference in `expr`, which `node` evaluates.
    fn reads(&mut self, expr: &'p Expr, node: NodeId, scope: &GraphScope<'_, 'p>) {
        let mut found = Vec::new();
        expr.walk(&mut |part| match &part.kind {
            ExprKind::Input(input) => found.extend(read_input(input, scope)),
            ExprKind::Step(step) => found.extend(read_step(step, scope)),
            _ => {}
        });
        for (from, read) in found {
            self.edge(from, node, Some(read));
        }
    }

    /// Lets `from` start what nothing else in the cluster starts.
    fn start(&mut self, from: NodeId, opened: OpenCluster) {
        let Graph { nodes, edges, .. } = &self.graph;
        let is_member = |node: NodeId| nodes[node.0 as usize].cluster == Some(opened.cluster);
        let inner = edges[opened.first_edge..].iter();
        let inner = inner.filter(|edge| edge.from == from || is_member(edge.from));
        let started: FxHashSet<NodeId> = inner.map(|edge| edge.to).collect();
        let roots: Vec<NodeId> = (opened.first_node as u32..nodes.len() as u32)
            .map(NodeId)
            .filter(|node| is_member(*node) && *node != from && !started.contains(node))
            .collect();
        for root in roots {
            self.edge(from, root, None);
        }
    }
}

fn read_input<'p>(input: &'p InputRef, scope: &GraphScope<'_, 'p>) -> Vec<(NodeId, String)> {
    let read = input.to_string();
    let name = input.path.first().map(String::as_str);
    let sources: Vec<NodeId> = match (input.source, scope.owner, name) {
        (InputSource::Owner, GraphOwner::Workflow(inputs), Some(name)) => {
            inputs.get(name).copied().into_iter().collect()
        }
        (InputSource::Owner, GraphOwner::Workflow(inputs), None) => {
            let mut all: Vec<NodeId> = inputs.values().copied().collect();
            all.sort_unstable();
            all
        }
        (InputSource::Owner, GraphOwner::Step(step), _) => vec![*step],
        (InputSource::Foreach, _, name) => {
            let is_it = |(variable, _): &&(&str, NodeId)| Some(*variable) == name;
            scope.variables.iter().rev().find(is_it).map(|(_, node)| *node).into_iter().collect()
        }
        (InputSource::Caught, _, _) => scope.caught.into_iter().collect(),
    };
    sources.into_iter().map(|source| (source, read.clone())).collect()
}

fn read_step<'p>(step: &'p StepRef, scope: &GraphScope<'_, 'p>) -> Option<(NodeId, String)> {
    let steps = match step.clause {
        None => &scope.steps,
        Some(clause) => scope.clauses.get(clause as usize)?,
    };
    let node = steps.get(step.path.first()?.as_str())?;
    Some((*node, step.path.join(".")))
}
