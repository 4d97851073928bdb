//! Short and qualified names to declarations.

use rustc_hash::FxHashMap;

use super::Checker;
use super::table::{DefId, NamespaceId, Sort, TOP_LEVEL};
use super::ty::Type;
use crate::code::Code;
use crate::source::Span;
use crate::syntax::ast::{ItemSyntax, NAMELESS, QName, TypeExpr, TypeKind, Use};
use crate::types::TypeRef;

/// Where short names are looked up: the namespace around a declaration and what it imports.
#[derive(Clone, Debug)]
pub(super) struct NameScope {
    pub(super) namespace: NamespaceId,
    /// As written, repeats included.
    uses: Vec<(NamespaceId, Span)>,
    pub(super) imported: FxHashMap<NamespaceId, Import>,
    /// An import was reported: short names may be missing because of it.
    incomplete: bool,
}

/// Whether anything of an imported namespace is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Import {
    Used,
    Unused,
}

impl Default for NameScope {
    fn default() -> Self {
        let imported = FxHashMap::default();
        Self { namespace: TOP_LEVEL, uses: Vec::new(), imported, incomplete: false }
    }
}

/// How many meanings of a name a message lists.
const MAX_SHOWN: usize = 4;

/// The result of a look-up.
enum LookupResult {
    One(DefId),
    Several(Vec<DefId>),
    None,
}

impl<'a> Checker<'a> {
    /// The scope of the declarations among `items`; imports of unknown namespaces are reported.
    pub(super) fn scope_of(&mut self, namespace: &str, items: &'a [ItemSyntax<'a>]) -> NameScope {
        let namespace = self.table.namespace(namespace).unwrap_or(TOP_LEVEL);
        let mut scope = NameScope { namespace, ..NameScope::default() };
        for item in items {
            let ItemSyntax::Use(Use { namespace, span }) = item else { continue };
            if let Some(namespace) = self.table.namespace(&namespace.text) {
                scope.uses.push((namespace, *span));
                scope.imported.insert(namespace, Import::Unused);
            } else {
                scope.incomplete = true;
                self.unknown_namespace(namespace);
            }
        }
        scope
    }

    /// Makes a known scope the current one.
    pub(super) fn enter_scope(&mut self, index: usize) {
        self.scope_index = index;
        self.scope = std::mem::take(&mut self.scopes[index]);
    }

    /// Puts the current scope back; it has recorded which of its imports are used.
    pub(super) fn leave_scope(&mut self) {
        self.scopes[self.scope_index] = std::mem::take(&mut self.scope);
    }

    fn unknown_namespace(&mut self, name: &QName<'a>) {
        if self.is_lost(name) {
            return;
        }
        let close = self.closest(&name.text, self.table.namespace_names());
        let message = format!("there is no namespace `{}`", name.text);
        let help = match (close, self.namespace_of(name)) {
            (_, Some(namespace)) => format!("`{}` is not a namespace; write `use {namespace}`", name.text),
            (Some(close), None) => format!("did you mean `{close}`?"),
            (None, None) => "give the file that declares it to the same command".to_owned(),
        };
        self.report(Code::UnknownNamespace, name.span, message, |d| d.help(help));
    }

    /// The namespace of the facet or schema of this full name.
    fn namespace_of<'n>(&self, name: &'n QName<'a>) -> Option<&'n str> {
        let (namespace, member) = name.text.rsplit_once('.')?;
        self.table.member(self.table.namespace(namespace)?, member)?;
        Some(namespace)
    }

    /// Reports the imports of the current scope that nothing used.
    pub(super) fn check_imports(&mut self) {
        let is_unused = |(id, _): &(NamespaceId, Span)| self.scope.imported[id] == Import::Unused;
        let unused: Vec<_> = self.scope.uses.iter().copied().filter(is_unused).collect();
        for (namespace, span) in unused {
            let message = format!("nothing of `{}` is used here", self.table.namespace_name(namespace));
            self.report(Code::UnusedImport, span, message, |d| d.help("remove this line"));
        }
    }

    fn is_lost(&self, name: &QName<'_>) -> bool {
        name.is_missing()
            || self.lost.contains(NAMELESS)
            || name.text.split('.').any(|part| self.lost.contains(part))
    }

    /// Like [`resolve`](Self::resolve), for names that have been reported before.
    pub(super) fn resolve_again(&mut self, name: &QName<'a>) -> Option<DefId> {
        match self.look_up(&name.text) {
            LookupResult::One(id) => Some(id),
            LookupResult::Several(_) | LookupResult::None => None,
        }
    }

    /// The facet or schema of this name; reports an unknown or ambiguous name.
    pub(super) fn resolve(&mut self, name: &QName<'a>) -> Option<DefId> {
        self.resolve_or(name, |_| {
            "declare it, or give the file that declares it to the same command".to_owned()
        })
    }

    /// Like [`resolve`](Self::resolve), with a help for an unknown name that is close to no other.
    pub(super) fn resolve_or(
        &mut self,
        name: &QName<'a>,
        help: impl FnOnce(&Self) -> String,
    ) -> Option<DefId> {
        match self.look_up(&name.text) {
            LookupResult::One(id) => Some(id),
            LookupResult::Several(ids) => {
                self.ambiguous(name, &ids);
                None
            }
            LookupResult::None => {
                let help = help(self);
                self.unknown(name, Code::UnknownFacet, "facet", help);
                None
            }
        }
    }

    fn look_up(&mut self, name: &str) -> LookupResult {
        if let Some((namespace, member)) = name.rsplit_once('.') {
            let Some(namespace) = self.table.namespace(namespace) else { return LookupResult::None };
            self.mark_used(namespace);
            return self.table.member(namespace, member).map_or(LookupResult::None, LookupResult::One);
        }
        if let Some(id) = self.table.member(self.scope.namespace, name) {
            return LookupResult::One(id);
        }
        match self.table.anywhere(name) {
            [] => LookupResult::None,
            [only] => self.found_one(*only),
            [_, _, ..] => self.choose(name),
        }
    }

    /// Which of several declarations of this name is meant.
    fn choose(&mut self, name: &str) -> LookupResult {
        let near = self.near(name);
        for id in &near {
            self.mark_used(self.table[*id].namespace);
        }
        match near[..] {
            [] => {}
            [only] => return LookupResult::One(only),
            _ => return LookupResult::Several(near),
        }
        let (prelude, anywhere): (Vec<DefId>, Vec<DefId>) =
            self.table.anywhere(name).iter().partition(|id| self.table.is_of_prelude(**id));
        match (&anywhere[..], &prelude[..]) {
            ([id], _) | ([], [id]) => LookupResult::One(*id),
            ([], _) => LookupResult::None,
            _ => LookupResult::Several(anywhere),
        }
    }

    /// The declarations of this name that are imported or stand at the top level, in source order. Goes
    /// through the shorter of the two lists, because either may be long.
    fn near(&self, name: &str) -> Vec<DefId> {
        let several = self.table.anywhere(name);
        let imported = &self.scope.imported;
        if several.len() <= imported.len() {
            let is_near = |namespace| namespace == TOP_LEVEL || imported.contains_key(&namespace);
            return several.iter().copied().filter(|id| is_near(self.table[*id].namespace)).collect();
        }
        let namespaces = imported.keys().copied().filter(|id| *id != TOP_LEVEL).chain([TOP_LEVEL]);
        let mut near: Vec<DefId> = namespaces.filter_map(|id| self.table.member(id, name)).collect();
        near.sort_unstable();
        near
    }

    fn found_one(&mut self, id: DefId) -> LookupResult {
        self.mark_used(self.table[id].namespace);
        LookupResult::One(id)
    }

    /// An import counts as used when anything reaches into its namespace, by a short name or a whole one.
    pub(super) fn mark_used(&mut self, namespace: NamespaceId) {
        if let Some(import) = self.scope.imported.get_mut(&namespace) {
            *import = Import::Used;
        }
    }

    fn ambiguous(&mut self, name: &QName<'a>, ids: &[DefId]) {
        let shown = &ids[..ids.len().min(MAX_SHOWN)];
        let names: Vec<String> = shown.iter().map(|id| format!("`{}`", self.table[*id].id)).collect();
        let others = match ids.len() - shown.len() {
            0 => String::new(),
            count => format!(" or {count} others"),
        };
        let message = format!("`{}` could be {}{others}", name.text, names.join(" or "));
        let places: Vec<_> = shown.iter().map(|id| self.table[*id].place).collect();
        let help = format!("write the one you mean in full, such as {}", names[0]);
        self.report(Code::AmbiguousName, name.span, message, |d| {
            d.related_all(places, "declared here").help(help)
        });
    }

    fn unknown(&mut self, name: &QName<'a>, code: Code, noun: &str, otherwise: String) {
        if self.is_lost(name) {
            return;
        }
        let message = format!("there is no {noun} `{}`", name.text);
        let close = self.suggestion(name, code);
        if close.is_none() && self.scope.incomplete && !name.text.contains('.') {
            return;
        }
        self.report(code, name.span, message, |d| d.help(close.unwrap_or(otherwise)));
    }

    fn suggestion(&self, name: &QName<'a>, code: Code) -> Option<String> {
        let wanted = |sort: Sort| code != Code::UnknownType || sort == Sort::Schema;
        let defs = || self.table.defs().filter(|def| wanted(def.sort));
        let last = name.last();
        // The right name in the wrong place is a better guess than a similar one.
        let is_qualified = name.text.contains('.');
        let mut elsewhere = self.table.anywhere(last).iter().map(|id| &self.table[*id]);
        let elsewhere = elsewhere.find(|def| is_qualified && wanted(def.sort)).map(|def| def.id.to_string());
        let builtins = if code == Code::UnknownType { &TypeRef::BUILTINS[..] } else { &[] };
        let similar = || self.closest(last, defs().map(|def| def.name).chain(builtins.iter().copied()));
        let close = elsewhere.or_else(|| similar().map(str::to_owned));
        close
            .map(|close| format!("did you mean `{close}`?"))
            .or_else(|| common_type(code, last).map(str::to_owned))
    }

    /// The type that `written` names; reports an unknown name.
    pub(super) fn resolve_type(&mut self, written: &'a TypeExpr<'a>) -> Type {
        let ty = match &written.kind {
            TypeKind::Broken => Type::Broken,
            TypeKind::List(of) => Type::list(self.resolve_type(of)),
            TypeKind::Name(name) => self.named_type(name),
        };
        if written.nullable { Type::nullable(ty) } else { ty }
    }

    fn named_type(&mut self, name: &QName<'a>) -> Type {
        match TypeRef::builtin(&name.text) {
            Some(TypeRef::String) => return Type::String,
            Some(TypeRef::Long) => return Type::Long,
            Some(TypeRef::Int) => return Type::Int,
            Some(TypeRef::Double) => return Type::Double,
            Some(TypeRef::Boolean) => return Type::Boolean,
            Some(TypeRef::Json) => return Type::Json,
            Some(TypeRef::Schema(_) | TypeRef::List(_) | TypeRef::Nullable(_)) | None => {}
        }
        match self.look_up(&name.text) {
            LookupResult::One(id) if self.table[id].sort == Sort::Schema => Type::Schema(id),
            LookupResult::One(id) => {
                let def = &self.table[id];
                let message = format!("`{}` is {}, not a type", name.text, def.sort.described());
                let place = def.place;
                self.report(Code::NotAType, name.span, message, |d| {
                    d.related(place, "declared here").help("a type is a builtin or a `schema`")
                });
                Type::Broken
            }
            LookupResult::Several(ids) => {
                self.ambiguous(name, &ids);
                Type::Broken
            }
            LookupResult::None => {
                let help = format!(
                    "types are {} and the names of schemas",
                    TypeRef::BUILTINS.map(|name| format!("`{name}`")).join(", ")
                );
                self.unknown(name, Code::UnknownType, "type", help);
                Type::Broken
            }
        }
    }
}

/// Names of our types in other languages.
fn common_type(code: Code, name: &str) -> Option<&'static str> {
    if code != Code::UnknownType {
        return None;
    }
    Some(match name.to_ascii_lowercase().as_str() {
        "str" | "text" | "char" | "date" | "datetime" | "timestamp" | "uuid" => "write `String`",
        "integer" | "i64" | "i32" | "number" => "write `Long`, or `Double` for fractions",
        "float" | "f64" | "decimal" => "write `Double`",
        "bool" => "write `Boolean`",
        "any" | "object" | "map" | "dict" => "write `Json`",
        "list" | "array" => "write a list as `[Type]`",
        _ => return None,
    })
}
