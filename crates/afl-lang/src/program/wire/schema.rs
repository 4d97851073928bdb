//! Builds the JSON Schema of the format from the same tables that write and read it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::WireValue;

/// The definitions that a schema refers to, by name.
#[derive(Default)]
pub(crate) struct Definitions(BTreeMap<&'static str, Value>);

impl Definitions {
    /// A reference to the type `name`, described when it is first met.
    pub(super) fn define(&mut self, name: &'static str, describe: impl FnOnce(&mut Self) -> Value) -> Value {
        if !self.0.contains_key(name) {
            // A node may contain its own kind; the second visit must find the name taken.
            self.0.insert(name, Value::Null);
            let described = describe(self);
            self.0.insert(name, described);
        }
        json!({"$ref": format!("#/$defs/{name}")})
    }

    pub(super) fn object(
        &mut self,
        name: &'static str,
        describe: impl FnOnce(&mut ObjectShape<'_>),
    ) -> Value {
        self.define(name, |types| types.inline(describe))
    }

    /// The object `name` once more, with another `type`.
    pub(super) fn retagged<T: WireValue>(&mut self, name: &'static str, tag: &'static str) -> Value {
        T::schema(self);
        let mut copy = self.0[name].clone();
        copy["properties"]["type"] = json!({"const": tag});
        self.define(tag, |_| copy)
    }

    pub(super) fn inline(&mut self, describe: impl FnOnce(&mut ObjectShape<'_>)) -> Value {
        let mut shape = ObjectShape { types: self, properties: Map::new(), required: Vec::new() };
        describe(&mut shape);
        let ObjectShape { properties, required, .. } = shape;
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    pub(crate) fn into_value(self) -> Value {
        json!(self.0)
    }
}

pub(crate) struct ObjectShape<'d> {
    types: &'d mut Definitions,
    properties: Map<String, Value>,
    required: Vec<&'static str>,
}

impl ObjectShape<'_> {
    pub(super) fn tag(&mut self, name: &'static str) {
        self.required("type", json!({"const": name}));
    }

    pub(super) fn of<T: WireValue>(&mut self, key: &'static str) {
        let schema = T::schema(self.types);
        match T::when_absent() {
            None => self.required(key, schema),
            Some(_) => self.optional(key, schema),
        }
    }

    pub(super) fn required(&mut self, key: &'static str, schema: Value) {
        self.required.push(key);
        self.optional(key, schema);
    }

    pub(super) fn required_list(&mut self, key: &'static str, item: impl FnOnce(&mut Definitions) -> Value) {
        self.required.push(key);
        self.list(key, item);
    }

    pub(super) fn list(&mut self, key: &'static str, item: impl FnOnce(&mut Definitions) -> Value) {
        let items = item(self.types);
        self.optional(key, json!({"type": "array", "items": items}));
    }

    pub(super) fn optional(&mut self, key: &'static str, schema: Value) {
        self.properties.insert(key.into(), schema);
    }
}
