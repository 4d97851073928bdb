//! A graph as a Mermaid flowchart, which many pages and editors draw.

use super::{Edge, Graph, GraphNode, Member, NodeKind};

pub(super) fn render(graph: &Graph) -> String {
    let mut lines = vec!["flowchart TD".to_owned()];
    let line = |member: Member, indent: &str| match member {
        Member::Node(node) => format!("{indent}n{}{}", node.0, shape(graph.node(node))),
        Member::Cluster(cluster) => {
            format!("{indent}subgraph c{}[{}]", cluster.0, quoted(&graph.cluster(cluster).caption))
        }
    };
    graph.members().write(None, "  ", &line, "end", &mut lines);
    lines.extend(graph.edges.iter().map(edge));
    lines.extend(STYLES.map(|style| format!("  classDef {style}")));
    lines.join("\n") + "\n"
}

/// Light fills with dark text read on a light and on a dark page.
const STYLES: [&str; 7] = [
    "input fill:#eef1f5,stroke:#7b8794,color:#1f2933",
    "facet fill:#ffffff,stroke:#52606d,color:#1f2933",
    "event fill:#fff4e0,stroke:#b7791f,color:#1f2933",
    "workflow fill:#eee8fb,stroke:#6b46c1,color:#1f2933",
    "schema fill:#e6f6ec,stroke:#2f855a,color:#1f2933",
    "yield fill:#e3f0fb,stroke:#2b6cb0,color:#1f2933",
    "caught fill:#fdecea,stroke:#c53030,color:#1f2933",
];

/// The brackets that give the shape, the text in them, and the class.
fn shape(node: &GraphNode) -> String {
    let label = quoted(&node.label);
    match &node.kind {
        NodeKind::Input | NodeKind::Variable => format!("([{label}]):::input"),
        NodeKind::Step { sort, facet } => {
            let text = quoted(&format!("{}\n{} {facet}", node.label, sort.name()));
            format!("[{text}]:::{}", sort.name())
        }
        NodeKind::Yield => format!("([{label}]):::yield"),
        NodeKind::Choice => format!("{{{label}}}:::input"),
        NodeKind::Caught => format!("([{label}]):::caught"),
        NodeKind::Script => format!("[[{label}]]:::facet"),
        NodeKind::Nothing => format!("({label}):::input"),
    }
}

fn edge(edge: &Edge) -> String {
    let (from, to) = (edge.from.0, edge.to.0);
    if edge.reads.is_empty() {
        format!("  n{from} -.-> n{to}")
    } else {
        format!("  n{from} -->|{}| n{to}", quoted(&edge.label()))
    }
}

/// In quotes Mermaid takes everything but its own entities and markup.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("#quot;"),
            '#' => quoted.push_str("#35;"),
            '<' => quoted.push_str("#lt;"),
            '>' => quoted.push_str("#gt;"),
            '&' => quoted.push_str("#amp;"),
            '`' => quoted.push_str("#96;"),
            '\n' => quoted.push_str("<br/>"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
