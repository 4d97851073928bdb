//! Parts of a level that no line connects, and how they stand side by side.

use super::Point;
use super::level::{GraphLevel, LayoutBox, LevelLink, lay_out_connected};

/// Items and links that hang together, by their places in the level.
#[derive(Default)]
pub(super) struct LevelPart {
    pub(super) items: Vec<usize>,
    pub(super) links: Vec<usize>,
}

/// The parts of a level, in the order of their first items.
pub(super) fn parts(items: usize, links: &[LevelLink]) -> Vec<LevelPart> {
    let mut groups: Vec<usize> = (0..items).collect();
    for link in links {
        let (a, b) = (root(&mut groups, link.from), root(&mut groups, link.to));
        groups[a.max(b)] = a.min(b);
    }
    let mut parts: Vec<LevelPart> = Vec::new();
    let mut part_of = vec![0; items];
    for item in 0..items {
        let first = root(&mut groups, item);
        if first == item {
            part_of[item] = parts.len();
            parts.push(LevelPart::default());
        }
        part_of[item] = part_of[first];
        parts[part_of[item]].items.push(item);
    }
    for (at, link) in links.iter().enumerate() {
        parts[part_of[link.from]].links.push(at);
    }
    parts
}

/// The first item of a group; the way to it is shortened as it is gone.
fn root(groups: &mut [usize], item: usize) -> usize {
    let mut item = item;
    while groups[item] != item {
        groups[item] = groups[groups[item]];
        item = groups[item];
    }
    item
}

impl LevelPart {
    pub(super) fn lay_out(self, items: &[LayoutBox], links: &[LevelLink]) -> (Self, GraphLevel) {
        let own_items: Vec<LayoutBox> = self.items.iter().map(|item| items[*item]).collect();
        let position = |item| self.items.binary_search(&item).expect("a link stays in its part");
        let own_link = |link: &usize| {
            let link = links[*link];
            LevelLink { from: position(link.from), to: position(link.to), ..link }
        };
        let own_links: Vec<LevelLink> = self.links.iter().map(own_link).collect();
        let level = lay_out_connected(&own_items, &own_links);
        (self, level)
    }
}

/// Puts parts side by side, and below one another when a row is full.
pub(super) struct PartShelf {
    full_width: f64,
    next: Point,
    row_height: f64,
}

/// Between two parts.
const GAP: f64 = 40.0;

impl PartShelf {
    /// A shelf on which parts of this area make a picture somewhat wider than high.
    pub(super) fn for_area(area: f64) -> Self {
        Self { full_width: (area * 2.0).sqrt().max(800.0), ..Self::endless() }
    }

    /// A shelf of one row.
    pub(super) fn endless() -> Self {
        Self { full_width: f64::INFINITY, next: Point::default(), row_height: 0.0 }
    }

    /// Where the next part stands.
    pub(super) fn put(&mut self, width: f64, height: f64) -> Point {
        if self.next.x > 0.0 && self.next.x + width > self.full_width {
            self.next = Point { x: 0.0, y: self.next.y + self.row_height + GAP };
            self.row_height = 0.0;
        }
        let place = self.next;
        self.next.x += width + GAP;
        self.row_height = self.row_height.max(height);
        place
    }
}
