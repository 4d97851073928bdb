//! Short and qualified names to declarations.

use super::Checker;
use super::hint::listed;
use super::table::{DefId, NamespaceId, Sort, TOP_LEVEL};
use super::ty::Type;
use crate::code::Code;
use crate::source::Span;
use crate::syntax::ast::{Item, QName, TypeExpr, TypeKind, Use};
use crate::types::TypeRef;

/// Where short names are looked up: the namespace around a declaration and what it imports.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) namespace: NamespaceId,
    pub(super) uses: Vec<Import>,
    /// An import was reported: short names may be missing because of it.
    incomplete: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Import {
    pub(super) namespace: NamespaceId,
    span: Span,
    used: bool,
}

impl Default for Scope {
    fn default() -> Self {
        Self { namespace: TOP_LEVEL, uses: Vec::new(), incomplete: false }
    }
}

/// What a look-up found.
enum Found {
    One(DefId),
    Several(Vec<DefId>),
    None,
}

impl<'a> Checker<'a> {
    /// The scope of the declarations among `items`; imports of unknown namespaces are reported.
    pub(super) fn scope_of(&mut self, namespace: &str, items: &'a [Item<'a>]) -> Scope {
        let namespace = self.table.namespace(namespace).unwrap_or(TOP_LEVEL);
        let mut scope = Scope { namespace, ..Scope::default() };
        for item in items {
            let Item::Use(Use { namespace, span }) = item else { continue };
            if let Some(namespace) = self.table.namespace(&namespace.text) {
                scope.uses.push(Import { namespace, span: *span, used: false });
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

    /// Puts the current scope back, with what is now known to be used of its imports.
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
        for import in self.scope.uses.clone() {
            if !import.used {
                let message =
                    format!("nothing of `{}` is used here", self.table.namespace_name(import.namespace));
                self.report(Code::UnusedImport, import.span, message, |d| d.help("remove this line"));
            }
        }
    }

    fn is_lost(&self, name: &QName<'_>) -> bool {
        name.is_missing() || name.text.split('.').any(|part| self.lost.contains(part))
    }

    /// Like [`resolve`](Self::resolve), for names that have been reported before.
    pub(super) fn resolve_again(&mut self, name: &QName<'a>) -> Option<DefId> {
        match self.look_up(&name.text) {
            Found::One(id) => Some(id),
            Found::Several(_) | Found::None => None,
        }
    }

    /// The facet or schema of this name; what is unknown or ambiguous is reported.
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
            Found::One(id) => Some(id),
            Found::Several(ids) => {
                self.ambiguous(name, &ids);
                None
            }
            Found::None => {
                let help = help(self);
                self.unknown(name, Code::UnknownFacet, "facet", help);
                None
            }
        }
    }

    fn look_up(&mut self, name: &str) -> Found {
        if let Some((namespace, member)) = name.rsplit_once('.') {
            let Some(namespace) = self.table.namespace(namespace) else { return Found::None };
            self.mark_used(namespace);
            return self.table.member(namespace, member).map_or(Found::None, Found::One);
        }
        if let Some(id) = self.table.member(self.scope.namespace, name) {
            return Found::One(id);
        }
        let mut near: Vec<DefId> = Vec::new();
        for import in &mut self.scope.uses {
            if let Some(id) = self.table.member(import.namespace, name) {
                import.used = true;
                if !near.contains(&id) {
                    near.push(id);
                }
            }
        }
        near.extend(self.table.member(TOP_LEVEL, name));
        if let [id] = near[..] {
            return Found::One(id);
        }
        if !near.is_empty() {
            return Found::Several(near);
        }
        let (policies, anywhere): (Vec<DefId>, Vec<DefId>) =
            self.table.anywhere(name).iter().partition(|id| self.table[**id].sort == Sort::Policy);
        match (&anywhere[..], &policies[..]) {
            ([id], _) | ([], [id]) => Found::One(*id),
            ([], _) => Found::None,
            _ => Found::Several(anywhere),
        }
    }

    /// An import counts as used when anything reaches into its namespace, by a short name or a whole one.
    pub(super) fn mark_used(&mut self, namespace: NamespaceId) {
        for import in self.scope.uses.iter_mut().filter(|import| import.namespace == namespace) {
            import.used = true;
        }
    }

    fn ambiguous(&mut self, name: &QName<'a>, ids: &[DefId]) {
        let names: Vec<String> = ids.iter().map(|id| format!("`{}`", self.table[*id].id)).collect();
        let message = format!("`{}` could be {}", name.text, names.join(" or "));
        let places: Vec<_> = ids.iter().map(|id| self.table[*id].place).collect();
        let help = format!("write the one you mean in full, such as {}", names[0]);
        self.report(Code::AmbiguousName, name.span, message, |mut d| {
            for place in places {
                d = d.related(place, "declared here");
            }
            d.help(help)
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
        let elsewhere =
            defs().find(|def| name.text.contains('.') && def.name == last).map(|def| def.id.to_string());
        let builtins = if code == Code::UnknownType { &TypeRef::BUILTINS[..] } else { &[] };
        let similar = || self.closest(last, defs().map(|def| def.name).chain(builtins.iter().copied()));
        let close = elsewhere.or_else(|| similar().map(str::to_owned));
        close
            .map(|close| format!("did you mean `{close}`?"))
            .or_else(|| common_type(code, last).map(str::to_owned))
    }

    /// The type that `written` names; what is unknown is reported.
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
            Found::One(id) if self.table[id].sort == Sort::Schema => Type::Schema(id),
            Found::One(id) => {
                let def = &self.table[id];
                let message = format!("`{}` is {}, not a type", name.text, def.sort.described());
                let place = def.place;
                self.report(Code::NotAType, name.span, message, |d| {
                    d.related(place, "declared here").help("a type is a builtin or a `schema`")
                });
                Type::Broken
            }
            Found::Several(ids) => {
                self.ambiguous(name, &ids);
                Type::Broken
            }
            Found::None => {
                let help = format!("a type is {} or a `schema`", listed(&TypeRef::BUILTINS));
                self.unknown(name, Code::UnknownType, "type", help);
                Type::Broken
            }
        }
    }
}

/// What other languages call our types.
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
