//! Rings: steps that wait for one another, and facets that call themselves without end.

use rustc_hash::FxHashMap;

use super::Checker;
use super::table::DefId;
use crate::code::Code;
use crate::source::FileSpan;

/// One ring for each group of nodes that can reach one another, the node that comes first at its start.
///
/// `edges[n]` are the nodes that `n` leads to. Tarjan's algorithm with a stack of its own: a chain may
/// be as long as a block.
pub(super) fn rings(edges: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut search = Search {
        edges,
        order: vec![UNSEEN; edges.len()],
        low: vec![0; edges.len()],
        open: Vec::new(),
        is_open: vec![false; edges.len()],
        next: 0,
        rings: Vec::new(),
    };
    for node in 0..edges.len() as u32 {
        if search.order[node as usize] == UNSEEN {
            search.visit(node);
        }
    }
    search.rings.sort_unstable();
    search.rings
}

const UNSEEN: u32 = u32::MAX;

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
        let members: rustc_hash::FxHashSet<u32> = group.iter().copied().collect();
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

/// Which facets enter which, but for calls under a `when`: those can end.
#[derive(Default)]
pub(super) struct CallGraph {
    calls: FxHashMap<DefId, Vec<(DefId, FileSpan)>>,
    pub(super) caller: Option<DefId>,
    /// How many `when` are around the current call.
    pub(super) whens: u32,
}

impl CallGraph {
    pub(super) fn note(&mut self, callee: DefId, place: FileSpan) {
        if let (Some(caller), 0) = (self.caller, self.whens) {
            self.calls.entry(caller).or_default().push((callee, place));
        }
    }
}

impl Checker<'_> {
    pub(super) fn check_recursion(&mut self) {
        let ids: Vec<DefId> = self.table.ids().collect();
        let callees = |caller: &DefId| self.calls.calls.get(caller).map_or(&[][..], Vec::as_slice);
        let edges: Vec<Vec<u32>> =
            ids.iter().map(|id| callees(id).iter().map(|(to, _)| to.0).collect()).collect();
        let mut reports = Vec::new();
        for ring in rings(&edges) {
            let names: Vec<&str> = ring.iter().map(|at| self.table[ids[*at as usize]].name).collect();
            let first = ids[ring[0] as usize];
            let second = ids[ring[1 % ring.len()] as usize];
            let call = callees(&first).iter().find(|(to, _)| *to == second);
            let (_, place) = call.expect("a ring follows calls");
            reports.push((*place, format!("{} → {}", names.join(" → "), names[0])));
        }
        for (place, path) in reports {
            self.file = place.file;
            let message = format!("this call never ends: {path}");
            self.report(Code::Recursion, place.span, message, |d| {
                d.help("put a `when` between, so that one case does not call again, or do without this call")
            });
        }
    }
}
