//! A graph as JSON, for programs that draw it themselves.

use serde::Serialize;

use super::{ClusterKind, Graph, StepSort};

pub(super) fn render(graph: &Graph) -> String {
    let document = JsonGraph {
        workflow: &graph.workflow,
        nodes: graph.nodes.iter().map(|it| node(graph, it)).collect(),
        edges: graph.edges.iter().map(|it| edge(graph, it)).collect(),
        clusters: graph.clusters.iter().map(|it| cluster(graph, it)).collect(),
    };
    serde_json::to_string_pretty(&document).expect("text and lists are JSON") + "\n"
}

#[derive(Serialize)]
struct JsonGraph<'g> {
    workflow: &'g str,
    nodes: Vec<JsonNode<'g>>,
    edges: Vec<JsonEdge<'g>>,
    clusters: Vec<JsonCluster<'g>>,
}

#[derive(Serialize)]
struct JsonNode<'g> {
    id: &'g str,
    kind: &'static str,
    label: &'g str,
    #[serde(skip_serializing_if = "Option::is_none")]
    facet: Option<&'g str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort: Option<StepSort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'g str>,
}

#[derive(Serialize)]
struct JsonEdge<'g> {
    from: &'g str,
    to: &'g str,
    reads: &'g [String],
}

#[derive(Serialize)]
struct JsonCluster<'g> {
    id: &'g str,
    kind: ClusterKind,
    caption: &'g str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'g str>,
}

fn node<'g>(graph: &'g Graph, node: &'g super::GraphNode) -> JsonNode<'g> {
    let (facet, sort) = node.kind.step().unzip();
    let cluster = node.cluster.map(|cluster| &*graph.cluster(cluster).id);
    JsonNode { id: &node.id, kind: node.kind.name(), label: &node.label, facet, sort, cluster }
}

fn edge<'g>(graph: &'g Graph, edge: &'g super::Edge) -> JsonEdge<'g> {
    JsonEdge { from: &graph.node(edge.from).id, to: &graph.node(edge.to).id, reads: &edge.reads }
}

fn cluster<'g>(graph: &'g Graph, cluster: &'g super::Cluster) -> JsonCluster<'g> {
    let parent = cluster.parent.map(|parent| &*graph.cluster(parent).id);
    JsonCluster { id: &cluster.id, kind: cluster.kind, caption: &cluster.caption, parent }
}
