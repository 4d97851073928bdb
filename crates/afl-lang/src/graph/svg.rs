//! A graph as a picture that needs no other program.

use super::layout::{self, DrawingSizes, GraphLayout, Point, Rect, Route};
use super::{Cluster, ClusterId, ClusterKind, Edge, Graph, GraphNode, NodeId, NodeKind};
use crate::program::shortened;

pub(super) fn render(graph: &Graph) -> String {
    let layout = layout::lay_out(graph, &Sizes(graph));
    let GraphLayout { width, height, .. } = layout;
    let title = escaped(&format!("Data flow of {}", graph.workflow));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         {ARROW}\n<rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n"
    );
    for (cluster, rect) in graph.clusters.iter().zip(&layout.clusters) {
        out += &draw_cluster(cluster, rect);
    }
    for (edge, route) in graph.edges.iter().zip(&layout.edges) {
        out += &draw_line(edge, route);
    }
    for (node, rect) in graph.nodes.iter().zip(&layout.nodes) {
        out += &draw_node(node, rect);
    }
    // Texts last: no line may cross one out.
    for (cluster, rect) in graph.clusters.iter().zip(&layout.clusters) {
        out += &draw_caption(cluster, rect);
    }
    for (edge, route) in graph.edges.iter().zip(&layout.edges) {
        out += &draw_label(graph, edge, route);
    }
    out + "</svg>\n"
}

const STYLE: &str = "
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2933}
.page{fill:#ffffff}
.node rect,.node path{fill:#ffffff;stroke:#52606d}
.node .name{font-size:13px;font-weight:600}
.node .facet{font-size:11px;fill:#52606d}
.input rect,.variable rect,.choice path{fill:#eef1f5;stroke:#7b8794}
.event rect{fill:#fff4e0;stroke:#b7791f}
.workflow rect{fill:#eee8fb;stroke:#6b46c1}
.schema rect{fill:#e6f6ec;stroke:#2f855a}
.yield rect{fill:#e3f0fb;stroke:#2b6cb0}
.caught rect{fill:#fdecea;stroke:#c53030}
.nothing rect{stroke-dasharray:3 3;stroke:#9aa5b1}
.nothing .name{font-weight:400;fill:#52606d}
.cluster{fill:#7b8794;fill-opacity:.06;stroke:#9aa5b1;stroke-dasharray:5 3}
.catch{fill:#c53030;stroke:#c53030;stroke-opacity:.5}
.line{fill:none;stroke:#7b8794;stroke-width:1.2}
.starts{stroke-dasharray:4 3}
.head{fill:#7b8794}
.label{font-size:11px;fill:#3e4c59;stroke:#ffffff;stroke-width:4px;stroke-linejoin:round;paint-order:stroke}
@media (prefers-color-scheme:dark){
text{fill:#e4e7eb}
.page{fill:#16191d}
.node rect,.node path{fill:#22262c;stroke:#9aa5b1}
.node .facet,.nothing .name{fill:#9aa5b1}
.input rect,.variable rect,.choice path{fill:#2b3038;stroke:#7b8794}
.event rect{fill:#3a2d14;stroke:#d69e2e}
.workflow rect{fill:#2c2442;stroke:#9f7aea}
.schema rect{fill:#1a3325;stroke:#48bb78}
.yield rect{fill:#182d40;stroke:#4299e1}
.caught rect{fill:#3d1f1f;stroke:#fc8181}
.line{stroke:#9aa5b1}
.head{fill:#9aa5b1}
.label{fill:#cbd2d9;stroke:#16191d}
}
";

const ARROW: &str = "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" \
                     markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">\
                     <path class=\"head\" d=\"M0 0.5L8 4L0 7.5Z\"/></marker></defs>";

/// Widths of the fonts in [`STYLE`]: monospaced, so that no font need be asked.
const NAME_CHAR: f64 = 7.85;
const SMALL_CHAR: f64 = 6.65;

struct Sizes<'g>(&'g Graph);

impl DrawingSizes for Sizes<'_> {
    fn node(&self, node: NodeId) -> (f64, f64) {
        let node = self.0.node(node);
        let name = width(&node.label, NAME_CHAR);
        match detail(node) {
            Some(detail) => (name.max(width(&detail, SMALL_CHAR)) + 28.0, 44.0),
            None => (name + 30.0, 28.0),
        }
    }

    fn caption(&self, cluster: ClusterId) -> f64 {
        width(&self.0.cluster(cluster).caption, SMALL_CHAR)
    }

    fn label(&self, edge: usize) -> f64 {
        let label = label(self.0, &self.0.edges[edge]);
        label.map_or(0.0, |label| width(&label, SMALL_CHAR) + 6.0)
    }
}

/// The second line of a node.
fn detail(node: &GraphNode) -> Option<String> {
    node.kind.step().map(|(facet, sort)| shortened(&format!("{} {facet}", sort.name())))
}

/// The label of an edge; nothing where its source node says the same.
fn label(graph: &Graph, edge: &Edge) -> Option<String> {
    let label = shortened(&edge.label());
    (!label.is_empty() && label != graph.node(edge.from).label).then_some(label)
}

/// How wide a text is, in whole pixels; letters far from the Latin ones may take two columns.
fn width(text: &str, column: f64) -> f64 {
    let columns = |character| if character < '\u{1100}' || character == '…' { 1.0 } else { 2.0 };
    (text.chars().map(columns).sum::<f64>() * column).ceil()
}

fn draw_cluster(cluster: &Cluster, rect: &Rect) -> String {
    let class = if cluster.kind == ClusterKind::Catch { "cluster catch" } else { "cluster" };
    let Rect { at: Point { x, y }, width, height } = rect;
    format!("<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"10\"/>\n")
}

fn draw_caption(cluster: &Cluster, rect: &Rect) -> String {
    let (x, y) = (rect.at.x + 12.0, rect.at.y + 18.0);
    format!("<text class=\"label\" x=\"{x}\" y=\"{y}\">{}</text>\n", escaped(&cluster.caption))
}

fn draw_node(node: &GraphNode, rect: &Rect) -> String {
    let class = node.kind.step().map_or(node.kind.name(), |(_, sort)| sort.name());
    let centre = rect.at.x + rect.width / 2.0;
    let text = |class: &str, y: f64, text: &str| {
        let y = rect.at.y + y;
        let text = escaped(text);
        format!("<text class=\"{class}\" x=\"{centre}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>")
    };
    let texts = match detail(node) {
        Some(detail) => text("name", 18.5, &node.label) + &text("facet", 34.5, &detail),
        None => text("name", 18.5, &node.label),
    };
    let tip = escaped(&node.id);
    format!("<g class=\"node {class}\"><title>{tip}</title>{}{texts}</g>\n", outline(node, rect))
}

fn outline(node: &GraphNode, rect: &Rect) -> String {
    let Rect { at: Point { x, y }, width, height } = rect;
    let radius = match node.kind {
        NodeKind::Choice => {
            let (right, bottom, middle) = (x + width, y + height, y + height / 2.0);
            let (left_edge, right_edge) = (x + 12.0, right - 12.0);
            return format!(
                "<path d=\"M{left_edge} {y}H{right_edge}L{right} {middle}L{right_edge} {bottom}H{left_edge}\
                 L{x} {middle}Z\"/>"
            );
        }
        NodeKind::Input | NodeKind::Variable | NodeKind::Yield | NodeKind::Caught => 14,
        NodeKind::Step { .. } | NodeKind::Script | NodeKind::Nothing => 6,
    };
    format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\"/>")
}

/// A curve through the points that leaves and enters every layer straight down.
fn draw_line(edge: &Edge, route: &Route) -> String {
    let [first, ..] = &route.points[..] else { return String::new() };
    let segments: String =
        route.points.windows(2).map(|pair| segment(pair[0], pair[1], route.label)).collect();
    let class = if edge.reads.is_empty() { "line starts" } else { "line" };
    format!("<path class=\"{class}\" d=\"M{} {}{segments}\" marker-end=\"url(#head)\"/>\n", first.x, first.y)
}

fn segment(from: Point, to: Point, label: Option<Point>) -> String {
    let Point { x, y } = to;
    let is_straight = |other: Point| (other.x - from.x).abs() < 0.5;
    if label.is_some_and(|label| is_straight(label) && from.y < label.y && label.y < y) {
        // The label stands in a gap of the line.
        format!("M{x} {y}")
    } else if is_straight(to) {
        format!("V{y}")
    } else {
        let middle = f64::midpoint(from.y, y);
        format!("C{} {middle} {x} {middle} {x} {y}", from.x)
    }
}

fn draw_label(graph: &Graph, edge: &Edge, route: &Route) -> String {
    match (label(graph, edge), route.label) {
        (Some(label), Some(Point { x, y })) => {
            let (y, label) = (y + 4.0, escaped(&label));
            format!("<text class=\"label\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>\n")
        }
        _ => String::new(),
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to write most control characters.
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}
