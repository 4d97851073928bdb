//! A graph in the language of Graphviz.

use super::{Edge, Graph, GraphNode, Member, NodeKind, StepSort};

pub(super) fn render(graph: &Graph) -> String {
    let mut lines = vec![
        format!("digraph {} {{", quoted(&graph.workflow)),
        "  node [fontname=\"monospace\" fontsize=11 shape=box style=\"rounded,filled\" fillcolor=white]"
            .into(),
        "  edge [fontname=\"monospace\" fontsize=10 color=\"#52606d\"]".into(),
        "  fontname=\"monospace\" fontsize=11 color=\"#9aa5b1\"".into(),
    ];
    let line = |member: Member, indent: &str| match member {
        Member::Node(node) => format!("{indent}n{} [{}]", node.0, attributes(graph.node(node))),
        Member::Cluster(cluster) => {
            let (id, label) = (cluster.0, quoted(&graph.cluster(cluster).caption));
            format!("{indent}subgraph cluster_{id} {{\n{indent}  label={label}\n{indent}  style=rounded")
        }
    };
    graph.members().write(None, "  ", &line, "}", &mut lines);
    lines.extend(graph.edges.iter().map(edge));
    lines.push("}".into());
    lines.join("\n") + "\n"
}

fn attributes(node: &GraphNode) -> String {
    let label = quoted(&node.label);
    match &node.kind {
        NodeKind::Input | NodeKind::Variable => format!("label={label} shape=oval fillcolor=\"#eef1f5\""),
        NodeKind::Step { sort, facet } => {
            let label = quoted(&format!("{}\n{} {facet}", node.label, sort.name()));
            format!("label={label} fillcolor=\"{}\"", colour(*sort))
        }
        NodeKind::Yield => format!("label={label} shape=oval fillcolor=\"#e3f0fb\""),
        NodeKind::Choice => format!("label={label} shape=diamond style=filled fillcolor=\"#eef1f5\""),
        NodeKind::Caught => format!("label={label} shape=oval fillcolor=\"#fdecea\""),
        NodeKind::Script => format!("label={label} shape=note style=filled"),
        NodeKind::Nothing => format!("label={label} shape=plaintext"),
    }
}

fn colour(sort: StepSort) -> &'static str {
    match sort {
        StepSort::Facet => "#ffffff",
        StepSort::Event => "#fff4e0",
        StepSort::Workflow => "#eee8fb",
        StepSort::Schema => "#e6f6ec",
    }
}

fn edge(edge: &Edge) -> String {
    let (from, to) = (edge.from.0, edge.to.0);
    if edge.reads.is_empty() {
        format!("  n{from} -> n{to} [style=dashed]")
    } else {
        format!("  n{from} -> n{to} [label={}]", quoted(&edge.label()))
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
