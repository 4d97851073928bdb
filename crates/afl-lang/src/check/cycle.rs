//! Rings: steps that wait for one another, and facets that call themselves without end.

use rustc_hash::FxHashMap;

use super::Checker;
use super::table::DefId;
use crate::code::Code;
use crate::ring::rings;
use crate::source::FileSpan;

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
