//! Rings in a graph: nodes that lead back to themselves.

use rustc_hash::{FxHashMap, FxHashSet};

/// One ring for each group of nodes that can reach one another, the node that comes first at its start.
///
/// `edges[n]` are the nodes that `n` leads to. Tarjan's algorithm with a stack of its own: a chain may
/// be as long as a block.
pub(crate) fn rings(edges: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let count = edges.len();
    let (order, low, is_open) = (vec![UNSEEN; count], vec![0; count], vec![false; count]);
    let mut search = Search { edges, order, low, is_open, ..Search::default() };
    for node in 0..edges.len() as u32 {
        if search.order[node as usize] == UNSEEN {
            search.visit(node);
        }
    }
    search.rings.sort_unstable();
    search.rings
}

const UNSEEN: u32 = u32::MAX;

#[derive(Default)]
struct Search<'e> {
    edges: &'e [Vec<u32>],
    order: Vec<u32>,
    low: Vec<u32>,
    open: Vec<u32>,
    is_open: Vec<bool>,
    next: u32,
    rings: Vec<Vec<u32>>,
}

impl Search<'_> {
    fn visit(&mut self, root: u32) {
        // Each entry: a node, and how many of its edges have been followed.
        let mut path: Vec<(u32, usize)> = vec![(root, 0)];
        self.enter(root);
        while let Some((node, followed)) = path.last_mut() {
            let node = *node;
            if let Some(target) = self.edges[node as usize].get(*followed).copied() {
                *followed += 1;
                if self.order[target as usize] == UNSEEN {
                    self.enter(target);
                    path.push((target, 0));
                } else if self.is_open[target as usize] {
                    self.low[node as usize] = self.low[node as usize].min(self.order[target as usize]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                self.low[*parent as usize] = self.low[*parent as usize].min(self.low[node as usize]);
            }
            if self.low[node as usize] == self.order[node as usize] {
                self.close(node);
            }
        }
    }

    fn enter(&mut self, node: u32) {
        self.order[node as usize] = self.next;
        self.low[node as usize] = self.next;
        self.next += 1;
        self.open.push(node);
        self.is_open[node as usize] = true;
    }

    /// Takes the group of `node` off the stack, and keeps it if it is a ring.
    fn close(&mut self, node: u32) {
        let start =
            self.open.iter().rposition(|open| *open == node).expect("a node stays open until it is closed");
        let group = self.open.split_off(start);
        for member in &group {
            self.is_open[*member as usize] = false;
        }
        if group.len() > 1 || self.edges[node as usize].contains(&node) {
            self.rings.push(self.ring_through(&group));
        }
    }

    /// A shortest ring through the first member of a group.
    fn ring_through(&self, group: &[u32]) -> Vec<u32> {
        let first = group.iter().copied().min().expect("a group has members");
        let members: FxHashSet<u32> = group.iter().copied().collect();
        let mut came_from: FxHashMap<u32, u32> = FxHashMap::default();
        let mut queue = std::collections::VecDeque::from([first]);
        while let Some(node) = queue.pop_front() {
            for target in self.edges[node as usize].iter().copied().filter(|target| members.contains(target))
            {
                if target == first {
                    let mut ring: Vec<u32> =
                        std::iter::successors(Some(node), |at| came_from.get(at).copied()).collect();
                    ring.reverse();
                    return ring;
                }
                came_from.entry(target).or_insert_with(|| {
                    queue.push_back(target);
                    node
                });
            }
        }
        unreachable!("every member of a group reaches every other")
    }
}
