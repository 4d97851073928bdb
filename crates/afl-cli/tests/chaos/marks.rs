//! The marks that handlers left outside the engine: a line for each call.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use afl_runtime::RunId;

use crate::orders::{FAILING, ONCE};

/// How often each piece of work was done, by its idempotency key.
pub(crate) struct Marks(BTreeMap<String, Piece>);

struct Piece {
    facet: String,
    times: usize,
}

impl Marks {
    pub(crate) fn read(path: &Path) -> Self {
        let mut marks: BTreeMap<String, Piece> = BTreeMap::new();
        for line in std::fs::read_to_string(path).expect("handlers worked").lines() {
            let (facet, key) = line.split_once(' ').unwrap_or_else(|| panic!("half a mark: {line}"));
            let piece =
                marks.entry(key.to_owned()).or_insert_with(|| Piece { facet: facet.to_owned(), times: 0 });
            assert_eq!(piece.facet, facet, "two facets have the key {key}");
            piece.times += 1;
        }
        Self(marks)
    }

    /// Of one run: its keys begin with its id.
    fn of<'a>(&'a self, run: &RunId) -> impl Iterator<Item = &'a Piece> {
        let start = format!("{run}/");
        self.0
            .range(start.clone()..)
            .take_while(move |(key, _)| key.starts_with(&start))
            .map(|(_, piece)| piece)
    }

    pub(crate) fn marked_steps(&self, run: &RunId) -> usize {
        self.of(run).count()
    }

    /// How often the work of the run was done that may be done once only.
    pub(crate) fn once(&self, run: &RunId) -> usize {
        self.of(run).filter(|piece| piece.facet == ONCE).map(|piece| piece.times).sum()
    }

    pub(crate) fn runs(&self) -> BTreeSet<&str> {
        self.0.keys().filter_map(|key| key.split_once('/')).map(|(run, _)| run).collect()
    }

    /// Work that was done more than once, though nothing of it failed.
    pub(crate) fn repeated(&self) -> usize {
        self.0.values().filter(|piece| piece.times > 1 && piece.facet != FAILING).count()
    }
}
