//! A set of names, found fast however many there are.

use rustc_hash::FxHashSet;

/// Up to so many names a search is as fast as a set.
pub(crate) const FEW: usize = 16;

/// The names of some things.
pub(crate) enum NameSet<'n, T> {
    Few(&'n [T], fn(&T) -> &str),
    Many(FxHashSet<&'n str>),
}

impl<'n, T> NameSet<'n, T> {
    pub(crate) fn new(things: &'n [T], name: fn(&T) -> &str) -> Self {
        if things.len() <= FEW {
            return Self::Few(things, name);
        }
        Self::Many(things.iter().map(name).collect())
    }

    pub(crate) fn has(&self, wanted: &str) -> bool {
        match self {
            Self::Few(things, name) => things.iter().any(|thing| name(thing) == wanted),
            Self::Many(names) => names.contains(wanted),
        }
    }
}
