//! Lists of names: parameters, returns, fields and arguments, found fast however many there are.

use std::collections::hash_map::Entry;
use std::ops::Deref;

use rustc_hash::FxHashMap;

use super::ty::Type;
use crate::names::FEW;
use crate::source::FileSpan;
use crate::syntax::ast::ExprSyntax;

/// A parameter, a return or a field.
#[derive(Debug)]
pub(super) struct ParamDef<'a> {
    pub(super) name: &'a str,
    pub(super) ty: Type,
    pub(super) default: Option<&'a ExprSyntax<'a>>,
    pub(super) place: FileSpan,
}

#[derive(Debug, Default)]
pub(super) struct ParamList<'a> {
    list: Vec<ParamDef<'a>>,
    /// Where each name is; used for more than [`FEW`].
    index: FxHashMap<&'a str, usize>,
    /// The positions of those without a default.
    required: Vec<usize>,
}

impl<'a> ParamList<'a> {
    pub(super) fn new(list: Vec<ParamDef<'a>>) -> Self {
        let names = list.iter().enumerate().map(|(at, param)| (param.name, at));
        let index = if list.len() > FEW { names.collect() } else { FxHashMap::default() };
        let without_default = list.iter().enumerate().filter(|(_, param)| param.default.is_none());
        let required = without_default.map(|(at, _)| at).collect();
        Self { list, index, required }
    }

    pub(super) fn named(&self, name: &str) -> Option<&ParamDef<'a>> {
        if self.list.len() <= FEW {
            return self.list.iter().find(|param| param.name == name);
        }
        self.index.get(name).map(|at| &self.list[*at])
    }

    /// Those without a default.
    pub(super) fn required(&self) -> impl Iterator<Item = &ParamDef<'a>> {
        self.required.iter().map(|at| &self.list[*at])
    }
}

impl<'a> Deref for ParamList<'a> {
    type Target = [ParamDef<'a>];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

/// Finds repeated names while a list is gone through.
#[derive(Default)]
pub(super) struct Repeats<'n>(FxHashMap<&'n str, usize>);

impl<'n> Repeats<'n> {
    /// The first of `list` that has the name of the one at `at`, if it is an earlier one. To be asked
    /// for every position in turn.
    pub(super) fn first<'l, T>(
        &mut self,
        list: &'l [T],
        at: usize,
        name: impl Fn(&T) -> &'n str,
    ) -> Option<&'l T> {
        let wanted = name(&list[at]);
        if list.len() <= FEW {
            return list[..at].iter().find(|other| name(other) == wanted);
        }
        match self.0.entry(wanted) {
            Entry::Occupied(first) => Some(&list[*first.get()]),
            Entry::Vacant(place) => {
                place.insert(at);
                None
            }
        }
    }
}
