//! Lays out one level: opaque boxes, and the lines between them.

use super::order::{self, Links};
use super::part::{LevelPart, PartShelf, parts};
use super::place::{self, VertexSpace};
use super::{Point, Route, layer};

#[derive(Clone, Copy, Debug)]
pub(super) struct LayoutBox {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) pin: Pin,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pin {
    /// A port on the upper border.
    Top,
    /// To the right of those that come before it and are in turn, too.
    InTurn,
    Free,
}

/// A line between two items.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelLink {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Where on the upper border it arrives, if not where there is room; from the left.
    pub(super) entry: Option<f64>,
    pub(super) label_width: f64,
}

/// A vertex that another is linked with, and where on its width the line meets it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbour {
    pub(super) vertex: usize,
    pub(super) share: f64,
}

pub(super) struct GraphLevel {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The upper left corner of each item.
    pub(super) items: Vec<Point>,
    pub(super) lines: Vec<Route>,
}

/// Between two boxes of a layer.
const BOX_MARGIN: f64 = 28.0;
/// Between a line and its neighbours.
const LANE_MARGIN: f64 = 14.0;
const LABEL_HEIGHT: f64 = 14.0;
/// Above and below a label.
const LABEL_GAP: f64 = 16.0;
/// Between two layers of boxes without labels.
const LAYER_GAP: f64 = 40.0;
/// Below the ports on a border.
const PORT_GAP: f64 = 14.0;
/// Between the ends of two lines at one box.
const END_GAP: f64 = 18.0;
/// Lanes in one level. Beyond, long lines go straight: no reader follows so many.
const MAX_LANES: usize = 40_000;

pub(super) fn lay_out_connected(items: &[LayoutBox], links: &[LevelLink]) -> GraphLevel {
    let net = Net::new(items, links);
    let centres = place::centres(&net.layers, &net.links, &net.bodies, &net.lanes(items));
    let rows = net.rows(items);
    let corner = |item: usize| Point {
        x: (centres[item] - items[item].width / 2.0).round(),
        y: rows[net.layer_of[item]].top,
    };
    let corners: Vec<Point> = (0..items.len()).map(corner).collect();
    let right = |vertex: usize| centres[vertex] + net.bodies[vertex].width / 2.0;
    GraphLevel {
        width: (0..net.bodies.len()).map(right).fold(0.0, f64::max).ceil(),
        height: rows.last().map_or(0.0, |row| row.bottom),
        lines: net.lines(items, links, &corners, &centres, &rows),
        items: corners,
    }
}

/// Lays out each connected part by itself, so that a high box does not stretch the other parts.
pub(super) fn lay_out(items: &[LayoutBox], links: &[LevelLink]) -> GraphLevel {
    let mut level = GraphLevel {
        width: 0.0,
        height: 0.0,
        items: vec![Point::default(); items.len()],
        lines: vec![Route::default(); links.len()],
    };
    let parts: Vec<(LevelPart, GraphLevel)> =
        parts(items.len(), links).into_iter().map(|part| part.lay_out(items, links)).collect();
    let has_ports = items.iter().any(|item| item.pin == Pin::Top);
    let area = parts.iter().map(|(_, level)| level.width * level.height).sum();
    // Ports stand on the upper border, which only the first row touches.
    let mut shelf = if has_ports { PartShelf::endless() } else { PartShelf::for_area(area) };
    for (part, inner) in parts {
        let origin = shelf.put(inner.width, inner.height);
        let moved = |point: Point| Point { x: point.x + origin.x, y: point.y + origin.y };
        for (item, corner) in part.items.into_iter().zip(inner.items) {
            level.items[item] = moved(corner);
        }
        for (link, line) in part.links.into_iter().zip(inner.lines) {
            let points = line.points.into_iter().map(moved).collect();
            level.lines[link] = Route { points, label: line.label.map(moved) };
        }
        level.width = level.width.max(origin.x + inner.width);
        level.height = level.height.max(origin.y + inner.height);
    }
    level
}

/// From where to where a layer reaches.
#[derive(Clone, Copy)]
struct Row {
    top: f64,
    bottom: f64,
}

/// Items and the lanes of lines. Boxes stand in the even layers, labels in the odd ones between.
struct Net {
    layers: Vec<Vec<usize>>,
    /// By vertex; the items are the first vertices.
    layer_of: Vec<usize>,
    bodies: Vec<VertexSpace>,
    links: Links,
    /// The vertices of each link, from its start to its end.
    chains: Vec<Vec<usize>>,
}

impl Net {
    fn new(items: &[LayoutBox], links: &[LevelLink]) -> Self {
        let mut layer_of: Vec<usize> =
            layer::assign(items, links).into_iter().map(|layer| 2 * layer).collect();
        let mut bodies: Vec<VertexSpace> =
            items.iter().map(|item| VertexSpace { width: item.width, ..BOX }).collect();
        for (item, body) in items.iter().zip(&mut bodies) {
            if item.pin == Pin::Top {
                *body = LANE;
            }
        }
        let spans = links.iter().map(|link| layer_of[link.to] - layer_of[link.from]);
        let has_lanes = spans.sum::<usize>() <= MAX_LANES;
        let mut chains = Vec::with_capacity(links.len());
        for link in links {
            let mut chain = vec![link.from];
            let passed = layer_of[link.from] + 1..layer_of[link.to];
            let lane = if passed.len() == 1 { SHORT_LANE } else { LANE };
            for layer in passed.filter(|_| has_lanes) {
                chain.push(bodies.len());
                let is_label = layer + 1 == layer_of[link.to];
                let label_width = if is_label { link.label_width } else { 0.0 };
                bodies.push(VertexSpace { width: lane.width.max(label_width), ..lane });
                layer_of.push(layer);
            }
            chain.push(link.to);
            chains.push(chain);
        }
        let mut layers = vec![Vec::new(); layer_of.iter().max().map_or(0, |last| last + 1)];
        for (vertex, layer) in layer_of.iter().enumerate() {
            layers[*layer].push(vertex);
        }
        let links = neighbours(&chains, links, &bodies);
        order::sort(&mut layers, &links, |layer| put_in_turn(layer, items));
        Self { layers, layer_of, bodies, links, chains }
    }

    /// The part of each chain that is only a line.
    fn lanes(&self, items: &[LayoutBox]) -> Vec<&[usize]> {
        let first = |chain: &[usize]| usize::from(items[chain[0]].pin != Pin::Top);
        self.chains.iter().map(|chain| &chain[first(chain)..chain.len() - 1]).collect()
    }

    fn rows(&self, items: &[LayoutBox]) -> Vec<Row> {
        let mut top = 0.0;
        let row = |at| {
            let row = Row { top, bottom: top + self.height(at, items) };
            top = row.bottom + self.gap_below(at, items);
            row
        };
        (0..self.layers.len()).map(row).collect()
    }

    fn height(&self, layer: usize, items: &[LayoutBox]) -> f64 {
        match (is_label_layer(layer), self.has_labels(layer)) {
            (true, true) => LABEL_HEIGHT,
            (true, false) => 0.0,
            (false, _) => self.boxes(layer, items).map(|item| item.height).fold(0.0, f64::max),
        }
    }

    /// The space between two layers of boxes is one gap above and one below the labels.
    fn gap_below(&self, layer: usize, items: &[LayoutBox]) -> f64 {
        let (boxes, labels) = (layer & !1, layer | 1);
        if self.has_labels(labels) {
            LABEL_GAP
        } else if self.boxes(boxes, items).all(|item| item.pin == Pin::Top) {
            PORT_GAP / 2.0
        } else {
            LAYER_GAP / 2.0
        }
    }

    fn boxes<'i>(&self, layer: usize, items: &'i [LayoutBox]) -> impl Iterator<Item = &'i LayoutBox> {
        self.layers[layer].iter().filter_map(|vertex| items.get(*vertex))
    }

    fn has_labels(&self, layer: usize) -> bool {
        let layer = self.layers.get(layer).into_iter().flatten();
        layer.into_iter().any(|vertex| is_label_layer(self.layer_of[*vertex]) && self.is_label(*vertex))
    }

    fn is_label(&self, vertex: usize) -> bool {
        self.bodies[vertex].width > LANE.width
    }

    /// The lines, each through its lanes.
    fn lines(
        &self,
        items: &[LayoutBox],
        links: &[LevelLink],
        corners: &[Point],
        centres: &[f64],
        rows: &[Row],
    ) -> Vec<Route> {
        let starts = self.ends(items, centres, |chain| (chain[0], chain[1]));
        let ends = self.ends(items, centres, |chain| (chain[chain.len() - 1], chain[chain.len() - 2]));
        let line = |(at, chain): (usize, &Vec<usize>)| {
            let link = &links[at];
            let start = Point { x: starts[at], y: corners[link.from].y + items[link.from].height };
            let below = Point { x: starts[at], y: rows[self.layer_of[link.from]].bottom };
            let x = link.entry.map_or(ends[at], |entry| corners[link.to].x + entry);
            let lanes = &chain[1..chain.len() - 1];
            let through = lanes.iter().flat_map(|lane| {
                let Row { top, bottom } = rows[self.layer_of[*lane]];
                [top, bottom].map(|y| Point { x: centres[*lane].round(), y })
            });
            let mut points = vec![start, below];
            points.extend(through);
            points.push(Point { x, y: corners[link.to].y });
            points.dedup();
            let label = lanes.last().filter(|lane| self.is_label(**lane)).map(|lane| {
                let Row { top, bottom } = rows[self.layer_of[*lane]];
                Point { x: centres[*lane].round(), y: f64::midpoint(top, bottom) }
            });
            Route { points, label }
        };
        self.chains.iter().enumerate().map(line).collect()
    }

    /// Where each line meets its item: side by side, in the order in which they come. `end` picks the
    /// item and the vertex next to it.
    fn ends(&self, items: &[LayoutBox], centres: &[f64], end: fn(&[usize]) -> (usize, usize)) -> Vec<f64> {
        let mut at_item: Vec<Vec<(f64, usize)>> = vec![Vec::new(); items.len()];
        for (link, chain) in self.chains.iter().enumerate() {
            let (item, next) = end(chain);
            at_item[item].push((centres[next], link));
        }
        let mut ends = vec![0.0; self.chains.len()];
        for (item, mut lines) in at_item.into_iter().enumerate() {
            lines.sort_by(|a, b| a.0.total_cmp(&b.0));
            let gaps = f64::from(lines.len().saturating_sub(1) as u32);
            let gap = END_GAP.min((items[item].width - END_GAP).max(0.0) / gaps.max(1.0));
            for (at, (_, link)) in lines.into_iter().enumerate() {
                ends[link] = (centres[item] + (f64::from(at as u32) - gaps / 2.0) * gap).round();
            }
        }
        ends
    }
}

/// A line in a layer that it only passes.
const LANE: VertexSpace = VertexSpace { width: 1.0, margin: LANE_MARGIN, weight: 8.0, firmness: 1.0 };

/// The only lane of a line: there is nothing to straighten, so long lines go around it.
const SHORT_LANE: VertexSpace = VertexSpace { firmness: 10.0, ..LANE };

/// A box; its width is another.
const BOX: VertexSpace = VertexSpace { width: 0.0, margin: BOX_MARGIN, weight: 1.0, firmness: 30.0 };

fn is_label_layer(layer: usize) -> bool {
    layer % 2 == 1
}

fn put_in_turn(layer: &mut [usize], items: &[LayoutBox]) {
    let is_in_turn = |vertex: &usize| items.get(*vertex).is_some_and(|item| item.pin == Pin::InTurn);
    let mut sorted: Vec<usize> = layer.iter().copied().filter(is_in_turn).collect();
    sorted.sort_unstable();
    let places = layer.iter_mut().filter(|vertex| is_in_turn(vertex));
    places.zip(sorted).for_each(|(place, vertex)| *place = vertex);
}

fn neighbours(chains: &[Vec<usize>], links: &[LevelLink], bodies: &[VertexSpace]) -> Links {
    let mut above = vec![Vec::new(); bodies.len()];
    let mut below = vec![Vec::new(); bodies.len()];
    for (chain, link) in chains.iter().zip(links) {
        for pair in chain.windows(2) {
            let entry = link.entry.filter(|_| pair[1] == link.to);
            let share = entry.map_or(0.5, |entry| entry / bodies[pair[1]].width);
            above[pair[1]].push(Neighbour { vertex: pair[0], share: 0.5 });
            below[pair[0]].push(Neighbour { vertex: pair[1], share });
        }
    }
    Links { above, below }
}
