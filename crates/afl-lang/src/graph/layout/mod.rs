//! Places a graph on a plane: layers from top to bottom, no two boxes over one another.
//!
//! Every cluster is laid out by itself and is one box to the level around it. Nothing inside a cluster can
//! be read outside, so edges only lead in: each comes through a *port* at the top of the cluster, and
//! has its own lane in every layer it passes.

mod layer;
mod level;
mod order;
mod part;
mod place;

use rustc_hash::FxHashMap;

use super::{ByCluster, ClusterId, ClusterKind, Graph, Member, NodeId};
use level::{GraphLevel, LayoutBox, LevelLink, Pin};

/// Everything in pixels; the origin is the top left corner.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Rect {
    pub(super) at: Point,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The sizes of nodes, labels and captions.
pub(super) trait DrawingSizes {
    fn node(&self, node: NodeId) -> (f64, f64);

    /// How wide the caption of a cluster is.
    fn caption(&self, cluster: ClusterId) -> f64;

    /// How wide the label of an edge is; 0 for none.
    fn label(&self, edge: usize) -> f64;
}

/// Where everything is. Nodes, clusters and edges are in the order of the graph.
pub(super) struct GraphLayout {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) nodes: Vec<Rect>,
    pub(super) clusters: Vec<Rect>,
    pub(super) edges: Vec<Route>,
}

/// A line, or its part in one level.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    pub(super) points: Vec<Point>,
    /// The centre of the label.
    pub(super) label: Option<Point>,
}

/// Around the whole picture.
const EDGE_OF_PAGE: f64 = 20.0;
/// Between the border of a cluster and its contents.
const PADDING: f64 = 16.0;
/// Between the upper border of a cluster and its contents; the caption stands there.
const CAPTION: f64 = 28.0;

pub(super) fn lay_out(graph: &Graph, measure: &impl DrawingSizes) -> GraphLayout {
    let planner = Planner::new(graph, measure);
    let plan = planner.plan(None);
    let mut layout = GraphLayout {
        width: plan.level.width + 2.0 * EDGE_OF_PAGE,
        height: plan.level.height + 2.0 * EDGE_OF_PAGE,
        nodes: vec![Rect::default(); graph.nodes.len()],
        clusters: vec![Rect::default(); graph.clusters.len()],
        edges: vec![Route::default(); graph.edges.len()],
    };
    planner.unfold(&plan, Point { x: EDGE_OF_PAGE, y: EDGE_OF_PAGE }, &mut layout);
    layout
}

/// The layout of one cluster, seen from its inside.
struct ClusterPlan {
    level: GraphLevel,
    /// With the border; where the caption is wide there is more room than the level takes.
    width: f64,
    /// The first items of the level; its ports follow.
    members: Vec<Member>,
    /// The edge that each line of the level is a part of, in rising order.
    edges: Vec<usize>,
    inner: FxHashMap<ClusterId, ClusterPlan>,
}

impl ClusterPlan {
    fn height(&self) -> f64 {
        CAPTION + self.level.height + PADDING
    }

    /// Where the level begins, from the upper left corner of the border.
    fn inside(&self) -> Point {
        Point { x: ((self.width - self.level.width) / 2.0).round(), y: CAPTION }
    }

    /// Where on the border an edge comes in, from the left.
    fn port(&self, edge: usize) -> f64 {
        let line = self.edges.binary_search(&edge).expect("the edge leads in here");
        self.inside().x + self.level.lines[line].points[0].x
    }
}

struct Planner<'g, M> {
    graph: &'g Graph,
    measure: &'g M,
    members: ByCluster<Member>,
    /// The edges that start in each cluster, or come in through its border.
    edges: ByCluster<usize>,
}

impl<'g, M: DrawingSizes> Planner<'g, M> {
    fn new(graph: &'g Graph, measure: &'g M) -> Self {
        let mut edges = ByCluster::new(graph);
        for (at, edge) in graph.edges.iter().enumerate() {
            let outermost = graph.node(edge.from).cluster;
            let mut cluster = graph.node(edge.to).cluster;
            edges.of_mut(cluster).push(at);
            while let Some(inner) = cluster.filter(|_| cluster != outermost) {
                cluster = graph.cluster(inner).parent;
                edges.of_mut(cluster).push(at);
            }
        }
        Self { graph, measure, members: graph.members(), edges }
    }

    /// Lays out the contents of a cluster, from the innermost outwards.
    fn plan(&self, cluster: Option<ClusterId>) -> ClusterPlan {
        let members = self.members.of(cluster).to_vec();
        let mut inner = FxHashMap::default();
        for member in &members {
            if let Member::Cluster(cluster) = member {
                inner.insert(*cluster, self.plan(Some(*cluster)));
            }
        }
        let edges = self.edges.of(cluster).to_vec();
        let (items, links) = self.problem(cluster, &members, &edges, &inner);
        let level = level::lay_out(&items, &links);
        let caption = cluster.map_or(0.0, |cluster| self.measure.caption(cluster));
        ClusterPlan { width: level.width.max(caption) + 2.0 * PADDING, level, members, edges, inner }
    }

    /// The boxes and lines of a cluster. An edge from outside begins at a port of its own.
    fn problem(
        &self,
        cluster: Option<ClusterId>,
        members: &[Member],
        edges: &[usize],
        inner: &FxHashMap<ClusterId, ClusterPlan>,
    ) -> (Vec<LayoutBox>, Vec<LevelLink>) {
        let mut items: Vec<LayoutBox> = members.iter().map(|member| self.item(*member, inner)).collect();
        let item_of: FxHashMap<Member, usize> =
            members.iter().enumerate().map(|(at, member)| (*member, at)).collect();
        let mut links = Vec::with_capacity(edges.len());
        for at in edges {
            let edge = &self.graph.edges[*at];
            let to = self.member_with(edge.to, cluster);
            let entry = match to {
                Member::Node(_) => None,
                Member::Cluster(cluster) => Some(inner[&cluster].port(*at)),
            };
            let (from, label_width) = if let Some(from) = item_of.get(&Member::Node(edge.from)) {
                (*from, self.measure.label(*at))
            } else {
                items.push(LayoutBox { width: 1.0, height: 0.0, pin: Pin::Top });
                (items.len() - 1, 0.0)
            };
            links.push(LevelLink { from, to: item_of[&to], entry, label_width });
        }
        (items, links)
    }

    fn item(&self, member: Member, inner: &FxHashMap<ClusterId, ClusterPlan>) -> LayoutBox {
        match member {
            Member::Node(node) => {
                let (width, height) = self.measure.node(node);
                LayoutBox { width, height, pin: Pin::Free }
            }
            Member::Cluster(cluster) => {
                let (width, height) = (inner[&cluster].width, inner[&cluster].height());
                // The first true case is taken: a reader must see them in their order.
                let is_case = self.graph.cluster(cluster).kind == ClusterKind::Case;
                LayoutBox { width, height, pin: if is_case { Pin::InTurn } else { Pin::Free } }
            }
        }
    }

    /// Which member of `cluster` is, or holds, the node.
    fn member_with(&self, node: NodeId, cluster: Option<ClusterId>) -> Member {
        let mut member = Member::Node(node);
        let mut around = self.graph.node(node).cluster;
        while let Some(inner) = around.filter(|_| around != cluster) {
            member = Member::Cluster(inner);
            around = self.graph.cluster(inner).parent;
        }
        member
    }

    /// Writes down where everything of a plan is, given where its inside begins.
    fn unfold(&self, plan: &ClusterPlan, origin: Point, layout: &mut GraphLayout) {
        let moved = |point: &Point| Point { x: point.x + origin.x, y: point.y + origin.y };
        // A line's outer part comes first; the plan of the inner cluster appends to it.
        for (edge, line) in plan.edges.iter().zip(&plan.level.lines) {
            let route = &mut layout.edges[*edge];
            route.points.extend(line.points.iter().map(moved));
            route.label = route.label.or(line.label.as_ref().map(moved));
        }
        for (member, corner) in plan.members.iter().zip(&plan.level.items) {
            let at = moved(corner);
            match member {
                Member::Node(node) => {
                    let (width, height) = self.measure.node(*node);
                    layout.nodes[node.0 as usize] = Rect { at, width, height };
                }
                Member::Cluster(cluster) => {
                    let inner = &plan.inner[cluster];
                    let (width, height) = (inner.width, inner.height());
                    layout.clusters[cluster.0 as usize] = Rect { at, width, height };
                    let Point { x, y } = inner.inside();
                    self.unfold(inner, Point { x: at.x + x, y: at.y + y }, layout);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
