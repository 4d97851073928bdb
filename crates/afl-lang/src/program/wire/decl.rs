//! The JSON form of declarations.

use serde_json::{Value, json};

use super::node::MixinTag;
use super::write::Categories;
use super::{Definitions, Json, Malformed, Shape, Wire, Writer, object};
use crate::program::{Decl, FacetDecl, FacetKind, ImplicitDecl, MixinCall, Namespace, Qualified, SchemaDecl};

/// A kind of declaration, as the keys beside `declarations` sort them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Category {
    Namespaces,
    Facets,
    EventFacets,
    Workflows,
    Implicits,
    Schemas,
}

/// In the order they are written.
pub(crate) const CATEGORIES: [Category; 6] = [
    Category::Namespaces,
    Category::Facets,
    Category::EventFacets,
    Category::Workflows,
    Category::Implicits,
    Category::Schemas,
];

impl Category {
    pub(crate) fn of(decl: &Decl) -> Self {
        match decl {
            Decl::Namespace(_) => Self::Namespaces,
            Decl::Facet(FacetDecl { kind: FacetKind::Plain, .. }) => Self::Facets,
            Decl::Facet(FacetDecl { kind: FacetKind::Event, .. }) => Self::EventFacets,
            Decl::Facet(FacetDecl { kind: FacetKind::Workflow, .. }) => Self::Workflows,
            Decl::Schema(_) => Self::Schemas,
            Decl::Implicit(_) => Self::Implicits,
        }
    }

    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Facets => "facets",
            Self::EventFacets => "eventFacets",
            Self::Workflows => "workflows",
            Self::Implicits => "implicits",
            Self::Schemas => "schemas",
        }
    }

    fn schema(self, types: &mut Definitions) -> Value {
        match self {
            Self::Namespaces => Namespace::schema(types),
            Self::Facets => facet_schema(FacetKind::Plain, types),
            Self::EventFacets => facet_schema(FacetKind::Event, types),
            Self::Workflows => facet_schema(FacetKind::Workflow, types),
            Self::Implicits => ImplicitDecl::schema(types),
            Self::Schemas => SchemaDecl::schema(types),
        }
    }
}

/// Writes the declarations in source order, and again by category.
pub(super) fn write_declarations(declarations: &[Decl], out: &mut Writer<'_>) {
    out.key("declarations");
    let extents = out.list(declarations, |out, decl| out.record(|out| decl.write(out)));
    if out.form.categories == Categories::Strip {
        return;
    }
    for category in CATEGORIES {
        let is_member = |(decl, extent)| (Category::of(decl) == category).then_some(extent);
        let members: Vec<_> = declarations.iter().zip(&extents).filter_map(is_member).collect();
        if !members.is_empty() {
            out.key(category.key());
            out.list(&members, |out, extent| out.repeat(extent));
        }
    }
}

pub(super) fn declarations_schema(shape: &mut Shape<'_>) {
    shape.required_list("declarations", Decl::schema);
    for category in CATEGORIES {
        shape.list(category.key(), |types| category.schema(types));
    }
}

impl Wire for Decl {
    fn write(&self, out: &mut Writer<'_>) {
        match self {
            Self::Namespace(namespace) => namespace.write(out),
            Self::Facet(facet) => write_facet(facet, out),
            Self::Schema(schema) => schema.write(out),
            Self::Implicit(implicit) => implicit.write(out),
        }
    }

    fn read(json: Json<'_>) -> Result<Self, Malformed> {
        match &*json.tag()? {
            "Namespace" => Namespace::read(json).map(Self::Namespace),
            "FacetDecl" => read_facet(FacetKind::Plain, json).map(Self::Facet),
            "EventFacetDecl" => read_facet(FacetKind::Event, json).map(Self::Facet),
            "WorkflowDecl" => read_facet(FacetKind::Workflow, json).map(Self::Facet),
            "ImplicitDecl" => ImplicitDecl::read(json).map(Self::Implicit),
            "SchemaDecl" => SchemaDecl::read(json).map(Self::Schema),
            other => Err(Malformed::new(format!("`{other}` is not a declaration"))),
        }
    }

    fn schema(types: &mut Definitions) -> Value {
        types.define("Decl", |types| json!({"oneOf": CATEGORIES.map(|category| category.schema(types))}))
    }
}

impl Wire for Namespace {
    fn write(&self, out: &mut Writer<'_>) {
        out.object(|out| {
            out.tag("Namespace");
            out.field("id", &self.name);
            out.field("name", &self.name);
            out.doc(self.doc.as_ref());
            out.field("uses", &self.uses);
            write_declarations(&self.declarations, out);
            out.field("location", &self.location);
            out.field("sourceId", &self.source);
        });
    }

    fn read(json: Json<'_>) -> Result<Self, Malformed> {
        let mut fields = json.object()?;
        fields.tag("Namespace")?;
        let id: Qualified = fields.take("id")?;
        let namespace = Self {
            name: fields.take("name")?,
            doc: fields.take("doc")?,
            uses: fields.take("uses")?,
            declarations: fields.take_with("declarations", |list| list.list(read_member))?,
            location: fields.take("location")?,
            source: fields.take("sourceId")?,
        };
        fields.finish()?;
        if id != namespace.name {
            return Err(Malformed::new(format!("the id of a namespace is its name, not `{id}`")));
        }
        Ok(namespace)
    }

    fn schema(types: &mut Definitions) -> Value {
        types.object("Namespace", |shape| {
            shape.tag("Namespace");
            shape.field("id", |namespace: &Self| &namespace.name);
            shape.field("name", |namespace: &Self| &namespace.name);
            shape.field("doc", |namespace: &Self| &namespace.doc);
            shape.field("uses", |namespace: &Self| &namespace.uses);
            declarations_schema(shape);
            shape.field("location", |namespace: &Self| &namespace.location);
            shape.field("sourceId", |namespace: &Self| &namespace.source);
        })
    }
}

fn read_member(json: Json<'_>) -> Result<Decl, Malformed> {
    match Decl::read(json)? {
        Decl::Namespace(_) => Err(Malformed::new("a namespace stands in no other")),
        member => Ok(member),
    }
}

fn facet_tag(kind: FacetKind) -> &'static str {
    match kind {
        FacetKind::Plain => "FacetDecl",
        FacetKind::Event => "EventFacetDecl",
        FacetKind::Workflow => "WorkflowDecl",
    }
}

fn write_facet(facet: &FacetDecl, out: &mut Writer<'_>) {
    out.object(|out| {
        out.tag(facet_tag(facet.kind));
        out.field("id", &facet.id);
        out.field("name", &facet.name);
        out.doc(facet.doc.as_ref());
        out.field("params", &facet.params);
        out.field("returns", &facet.returns);
        if !facet.mixins.is_empty() {
            out.key("mixins");
            out.list(&facet.mixins, |out, mixin| mixin.write_as(MixinTag::Signature, out));
        }
        out.field("script", &facet.script);
        out.field("prompt", &facet.prompt);
        out.field("body", &facet.body);
        out.field("catch", &facet.catch);
        out.field("location", &facet.location);
        out.field("sourceId", &facet.source);
    });
}

fn read_facet(kind: FacetKind, json: Json<'_>) -> Result<FacetDecl, Malformed> {
    let mut fields = json.object()?;
    fields.tag(facet_tag(kind))?;
    let facet = FacetDecl {
        kind,
        id: fields.take("id")?,
        name: fields.take("name")?,
        doc: fields.take("doc")?,
        params: fields.take("params")?,
        returns: fields.take("returns")?,
        mixins: fields.list("mixins", |mixin| MixinCall::read_as(MixinTag::Signature, mixin))?,
        script: fields.take("script")?,
        prompt: fields.take("prompt")?,
        body: fields.take("body")?,
        catch: fields.take("catch")?,
        location: fields.take("location")?,
        source: fields.take("sourceId")?,
    };
    fields.finish()?;
    Ok(facet)
}

fn facet_schema(kind: FacetKind, types: &mut Definitions) -> Value {
    types.object(facet_tag(kind), |shape| {
        shape.tag(facet_tag(kind));
        shape.field("id", |facet: &FacetDecl| &facet.id);
        shape.field("name", |facet: &FacetDecl| &facet.name);
        shape.field("doc", |facet: &FacetDecl| &facet.doc);
        shape.field("params", |facet: &FacetDecl| &facet.params);
        shape.field("returns", |facet: &FacetDecl| &facet.returns);
        shape.list("mixins", |types| MixinCall::schema_as(MixinTag::Signature, types));
        shape.field("script", |facet: &FacetDecl| &facet.script);
        shape.field("prompt", |facet: &FacetDecl| &facet.prompt);
        shape.field("body", |facet: &FacetDecl| &facet.body);
        shape.field("catch", |facet: &FacetDecl| &facet.catch);
        shape.field("location", |facet: &FacetDecl| &facet.location);
        shape.field("sourceId", |facet: &FacetDecl| &facet.source);
    })
}

impl Wire for SchemaDecl {
    fn write(&self, out: &mut Writer<'_>) {
        out.object(|out| {
            out.tag("SchemaDecl");
            out.field("id", &self.id);
            out.field("name", &self.name);
            out.doc(self.doc.as_ref());
            out.field("fields", &self.fields);
            out.field("location", &self.location);
            out.field("sourceId", &self.source);
        });
    }

    fn read(json: Json<'_>) -> Result<Self, Malformed> {
        let mut fields = json.object()?;
        fields.tag("SchemaDecl")?;
        let schema = Self {
            id: fields.take("id")?,
            name: fields.take("name")?,
            doc: fields.take("doc")?,
            fields: fields.take("fields")?,
            location: fields.take("location")?,
            source: fields.take("sourceId")?,
        };
        fields.finish()?;
        Ok(schema)
    }

    fn schema(types: &mut Definitions) -> Value {
        types.object("SchemaDecl", |shape| {
            shape.tag("SchemaDecl");
            shape.field("id", |schema: &Self| &schema.id);
            shape.field("name", |schema: &Self| &schema.name);
            shape.field("doc", |schema: &Self| &schema.doc);
            shape.field("fields", |schema: &Self| &schema.fields);
            shape.field("location", |schema: &Self| &schema.location);
            shape.field("sourceId", |schema: &Self| &schema.source);
        })
    }
}

object!(ImplicitDecl as "ImplicitDecl" {
    id: "id",
    name: "name",
    call: "call",
    location: "location",
    source: "sourceId",
});
