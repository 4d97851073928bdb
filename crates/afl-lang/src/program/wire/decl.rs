//! The JSON form of declarations.

use serde_json::{Value, json};

use super::write::WirePurpose;
use super::{
    Definitions, Field, Json, JsonWriter, ObjectReader, ObjectShape, WireError, WireValue, codec, nodes,
};
use crate::program::{
    Decl, FacetDecl, FacetKind, ImplicitDecl, MixinCall, Namespace, QualifiedName, SchemaDecl,
};

/// The keys beside `declarations` that repeat the declarations of one `type`, in the order they are written.
pub(crate) const CATEGORIES: [(&str, &str); 6] = [
    ("namespaces", "Namespace"),
    ("facets", "FacetDecl"),
    ("eventFacets", "EventFacetDecl"),
    ("workflows", "WorkflowDecl"),
    ("implicits", "ImplicitDecl"),
    ("schemas", "SchemaDecl"),
];

nodes! {
    Namespace as "Namespace" {
        name via NameAndId, doc, uses, declarations via MemberList, location, source: "sourceId"
    }
    FacetDecl {
        kind, id, name, doc, params, returns, mixins via Signatures, script, prompt, body, catch, location,
        source: "sourceId"
    }
    SchemaDecl as "SchemaDecl" { id, name, doc, fields, location, source: "sourceId" }
    ImplicitDecl as "ImplicitDecl" { id, name, call, location, source: "sourceId" }
}

impl Decl {
    fn tag(&self) -> &'static str {
        match self {
            Self::Namespace(_) => "Namespace",
            Self::Facet(facet) => facet.kind.tag(),
            Self::Schema(_) => "SchemaDecl",
            Self::Implicit(_) => "ImplicitDecl",
        }
    }
}

impl WireValue for Decl {
    fn write(&self, out: &mut JsonWriter<'_>) {
        match self {
            Self::Namespace(namespace) => namespace.write(out),
            Self::Facet(facet) => facet.write(out),
            Self::Schema(schema) => schema.write(out),
            Self::Implicit(implicit) => implicit.write(out),
        }
    }

    fn read(json: Json<'_>) -> Result<Self, WireError> {
        match &*json.tag()? {
            "Namespace" => Namespace::read(json).map(Self::Namespace),
            "ImplicitDecl" => ImplicitDecl::read(json).map(Self::Implicit),
            "SchemaDecl" => SchemaDecl::read(json).map(Self::Schema),
            tag if FacetKind::from_tag(tag).is_some() => FacetDecl::read(json).map(Self::Facet),
            other => Err(WireError::new(format!("`{other}` is not a declaration"))),
        }
    }

    fn schema(types: &mut Definitions) -> Value {
        types.define("Decl", |types| json!({"oneOf": CATEGORIES.map(|(_, tag)| category_schema(tag, types))}))
    }
}

fn category_schema(tag: &'static str, types: &mut Definitions) -> Value {
    match tag {
        "Namespace" => Namespace::schema(types),
        "ImplicitDecl" => ImplicitDecl::schema(types),
        "SchemaDecl" => SchemaDecl::schema(types),
        _ => types.retagged::<FacetDecl>("FacetDecl", tag),
    }
}

/// Writes the declarations in source order, and again by category.
pub(super) fn write_declarations(declarations: &[Decl], out: &mut JsonWriter<'_>) {
    out.key("declarations");
    let extents = out.list(declarations, |out, decl| out.record(|out| decl.write(out)));
    if out.form.purpose == WirePurpose::Canonical {
        return;
    }
    for (key, tag) in CATEGORIES {
        let is_member = |(decl, extent): (&Decl, _)| (decl.tag() == tag).then_some(extent);
        let members: Vec<_> = declarations.iter().zip(&extents).filter_map(is_member).collect();
        if !members.is_empty() {
            out.key(key);
            out.list(&members, |out, extent| out.repeat(extent));
        }
    }
}

pub(super) fn declarations_schema(shape: &mut ObjectShape<'_>) {
    shape.required_list("declarations", Decl::schema);
    for (key, tag) in CATEGORIES {
        shape.list(key, |types| category_schema(tag, types));
    }
}

/// The declarations of a namespace.
struct MemberList;

impl MemberList {
    fn write_field(declarations: &[Decl], _: &'static str, out: &mut JsonWriter<'_>) {
        write_declarations(declarations, out);
    }

    fn read_field(key: &'static str, fields: &mut ObjectReader<'_>) -> Result<Vec<Decl>, WireError> {
        let members = fields.take_with(key, |list| {
            list.list(|json| match Decl::read(json)? {
                Decl::Namespace(_) => Err(WireError::new("a namespace stands in no other")),
                member => Ok(member),
            })
        })?;
        // Only now: an object without declarations is no namespace, whatever its id.
        let (id, name): (QualifiedName, QualifiedName) = (fields.take("id")?, fields.take("name")?);
        if id == name {
            return Ok(members);
        }
        Err(WireError::new(format!("the id of a namespace is its name, not `{id}`")))
    }

    fn describe(_: &'static str, shape: &mut ObjectShape<'_>, _: fn(&Namespace) -> &Vec<Decl>) {
        declarations_schema(shape);
    }
}

/// The name of a namespace is its id too.
struct NameAndId;

impl NameAndId {
    fn write_field(name: &QualifiedName, key: &'static str, out: &mut JsonWriter<'_>) {
        name.write_field("id", out);
        name.write_field(key, out);
    }

    fn read_field(key: &'static str, fields: &mut ObjectReader<'_>) -> Result<QualifiedName, WireError> {
        fields.take::<QualifiedName>("id")?;
        fields.take(key)
    }

    fn describe(key: &'static str, shape: &mut ObjectShape<'_>, _: fn(&Namespace) -> &QualifiedName) {
        shape.of::<QualifiedName>("id");
        shape.of::<QualifiedName>(key);
    }
}

/// The mixins of a declaration; they have another `type` than those of a call.
struct Signatures;

impl Signatures {
    const TAG: &str = "MixinSig";

    fn write_field(mixins: &[MixinCall], key: &'static str, out: &mut JsonWriter<'_>) {
        if !mixins.is_empty() {
            out.key(key);
            out.list(mixins, |out, mixin| mixin.write_as(Some(Self::TAG), out));
        }
    }

    fn read_field(key: &'static str, fields: &mut ObjectReader<'_>) -> Result<Vec<MixinCall>, WireError> {
        fields.list(key, |mixin| MixinCall::read_as(Some(Self::TAG), mixin))
    }

    fn describe(key: &'static str, shape: &mut ObjectShape<'_>, _: fn(&FacetDecl) -> &Vec<MixinCall>) {
        shape.list(key, |types| types.retagged::<MixinCall>("MixinCall", Self::TAG));
    }
}

impl FacetKind {
    fn tag(self) -> &'static str {
        match self {
            Self::Plain => "FacetDecl",
            Self::Event => "EventFacetDecl",
            Self::Workflow => "WorkflowDecl",
        }
    }

    fn from_tag(tag: &str) -> Option<Self> {
        [Self::Plain, Self::Event, Self::Workflow].into_iter().find(|kind| kind.tag() == tag)
    }
}

/// The `type` of a facet says its kind.
impl Field for FacetKind {
    fn write_field(&self, _: &'static str, out: &mut JsonWriter<'_>) {
        out.tag(self.tag());
    }

    fn read_field(_: &'static str, fields: &mut ObjectReader<'_>) -> Result<Self, WireError> {
        fields.take_with("type", |tag| {
            let tag = tag.text()?;
            Self::from_tag(&tag).ok_or_else(|| WireError::new(format!("`{tag}` is not a facet")))
        })
    }

    fn describe(_: &'static str, shape: &mut ObjectShape<'_>) {
        shape.tag(Self::Plain.tag());
    }
}
