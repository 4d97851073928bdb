//! Nothing in a picture covers anything else.

use super::*;
use crate::source::Sources;
use crate::{Validation, compile, graph};

struct FixedSizes;

impl DrawingSizes for FixedSizes {
    fn node(&self, node: NodeId) -> (f64, f64) {
        (60.0 + f64::from(node.0 % 5) * 20.0, 40.0)
    }

    fn caption(&self, _: ClusterId) -> f64 {
        150.0
    }

    fn label(&self, edge: usize) -> f64 {
        [0.0, 50.0, 120.0][edge % 3]
    }
}

fn check(text: &str, workflow: &str) {
    let program = compile(&Sources::one("main.afl", text), Validation::Require).program.expect("a program");
    let graph = graph::of(&program, Some(workflow)).expect("a graph");
    let layout = lay_out(&graph, &FixedSizes);
    let node_boxes = layout.nodes.iter().zip(&graph.nodes).map(|(rect, node)| (rect, node.cluster));
    let cluster_boxes = layout.clusters.iter().zip(&graph.clusters).map(|(rect, it)| (rect, it.parent));
    let boxes: Vec<(&Rect, Option<ClusterId>)> = node_boxes.chain(cluster_boxes).collect();
    let page = Rect { at: Point::default(), width: layout.width, height: layout.height };
    for (at, (rect, parent)) in boxes.iter().enumerate() {
        let around = parent.map_or(&page, |parent| &layout.clusters[parent.0 as usize]);
        assert!(contains(around, rect), "{rect:?} leaves {around:?}");
        for (other, its_parent) in &boxes[..at] {
            assert!(parent != its_parent || !overlap(rect, other), "{rect:?} covers {other:?}");
        }
    }
    for (edge, route) in graph.edges.iter().zip(&layout.edges) {
        let (from, to) = (&layout.nodes[edge.from.0 as usize], &layout.nodes[edge.to.0 as usize]);
        let [first, .., last] = &route.points[..] else { panic!("{edge:?} is no line") };
        assert_eq!((first.y, last.y), (from.at.y + from.height, to.at.y));
        assert!(route.points.windows(2).all(|pair| pair[0].y <= pair[1].y), "{edge:?} goes up");
        for (node, rect) in graph.nodes.iter().zip(&layout.nodes) {
            let is_hit = route.points.iter().any(|point| is_inside(rect, *point));
            assert!(!is_hit, "{edge:?} runs through {}", node.id);
        }
    }
}

fn contains(outer: &Rect, inner: &Rect) -> bool {
    outer.at.x <= inner.at.x
        && outer.at.y <= inner.at.y
        && inner.at.x + inner.width <= outer.at.x + outer.width
        && inner.at.y + inner.height <= outer.at.y + outer.height
}

fn overlap(a: &Rect, b: &Rect) -> bool {
    a.at.x < b.at.x + b.width
        && b.at.x < a.at.x + a.width
        && a.at.y < b.at.y + b.height
        && b.at.y < a.at.y + a.height
}

fn is_inside(rect: &Rect, point: Point) -> bool {
    rect.at.x < point.x
        && point.x < rect.at.x + rect.width
        && rect.at.y < point.y
        && point.y < rect.at.y + rect.height
}

macro_rules! programs {
    ($($name:ident $workflow:literal;)*) => {$(
        #[test]
        fn $name() {
            check(include_str!(concat!("../../../tests/graph/programs/", stringify!($name), ".afl")), $workflow);
        }
    )*};
}

programs! {
    chain "Read";
    fan "Checkout";
    foreach "Forecast";
    when "Triage";
    catch "Publish";
    nested "Outer";
    forty "Forty";
}

#[test]
fn a_line_past_too_many_layers_takes_no_lanes() {
    let steps: Vec<String> = (1..2_000).map(|at| format!("s{at} = V(x = s{}.x + $.x)", at - 1)).collect();
    let steps = steps.join("\n");
    let text = format!("facet V(x: Long) workflow W(x: Long) andThen {{ s0 = V(x = $.x)\n {steps} }}");
    let program = compile(&Sources::one("main.afl", text), Validation::Require).program.expect("a program");
    let graph = graph::of(&program, None).expect("a graph");
    let points: usize = lay_out(&graph, &FixedSizes).edges.iter().map(|route| route.points.len()).sum();
    assert!(points < 4 * graph.edges.len());
}
