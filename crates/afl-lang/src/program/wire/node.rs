//! The JSON form of blocks, statements and calls.

use serde_json::Value;

use super::{Definitions, Fields, Json, Malformed, Shape, Wire, Writer, object};
use crate::program::{
    AndThenBlock, AssertStmt, BlockContent, CallExpr, CatchClause, CatchContent, ForeachClause, LogStmt,
    MixinCall, NamedArg, Parameter, PromptBlock, ScriptBlock, Statement, Statements, StepStmt, WhenBlock,
    WhenCase, YieldStmt,
};

object!(Parameter { name: "name", ty: "type", default: "default" });
object!(NamedArg { name: "name", value: "value", implicit: "implicit" });
object!(StepStmt as "StepStmt" {
    id: "id",
    name: "name",
    call: "call",
    body: "body",
    catch: "catch",
    depends_on: "dependsOn",
    location: "location",
});
object!(LogStmt as "LogStmt" { id: "id", args: "args", depends_on: "dependsOn", location: "location" });
object!(AssertStmt as "AssertStmt" {
    id: "id",
    condition: "condition",
    depends_on: "dependsOn",
    location: "location",
});
object!(YieldStmt as "YieldStmt" {
    id: "id",
    target: "target",
    alias: "alias",
    args: "args",
    depends_on: "dependsOn",
    location: "location",
});
object!(CallExpr as "CallExpr" {
    id: "id",
    target: "target",
    args: "args",
    mixins: "mixins",
    location: "location",
});
object!(ForeachClause as "ForeachClause" { variable: "variable", iterable: "iterable", location: "location" });
object!(WhenBlock as "WhenBlock" { cases: "cases", location: "location" });
object!(PromptBlock as "PromptBlock" { entries: "entries", location: "location" });
object!(ScriptBlock as "ScriptBlock" { language: "language", code: "code", location: "location" });

impl Wire for AndThenBlock {
    fn write(&self, out: &mut Writer<'_>) {
        out.object(|out| {
            out.tag("AndThenBlock");
            out.field("id", &self.id);
            out.field("after", &self.after);
            match &self.content {
                BlockContent::Steps(statements) => write_statements(out, statements),
                BlockContent::Foreach(foreach, statements) => {
                    out.field("foreach", foreach);
                    write_statements(out, statements);
                }
                BlockContent::When(when) => out.field("when", when),
                BlockContent::Script(script) => out.field("script", script),
            }
            out.field("location", &self.location);
        });
    }

    fn read(json: Json<'_>) -> Result<Self, Malformed> {
        let mut fields = json.object()?;
        fields.tag("AndThenBlock")?;
        let id = fields.take("id")?;
        let after = fields.take("after")?;
        let content = read_content(&mut fields)?;
        let block = Self { id, content, after, location: fields.take("location")? };
        fields.finish()?;
        Ok(block)
    }

    fn schema(types: &mut Definitions) -> Value {
        types.object("AndThenBlock", |shape| {
            shape.tag("AndThenBlock");
            shape.field("id", |block: &Self| &block.id);
            shape.field("after", |block: &Self| &block.after);
            shape.of::<Option<ForeachClause>>("foreach");
            statements_schema(shape);
            shape.of::<Option<WhenBlock>>("when");
            shape.of::<Option<ScriptBlock>>("script");
            shape.field("location", |block: &Self| &block.location);
        })
    }
}

fn read_content(fields: &mut Fields<'_>) -> Result<BlockContent, Malformed> {
    if let Some(when) = fields.take("when")? {
        return Ok(BlockContent::When(when));
    }
    if let Some(script) = fields.take("script")? {
        return Ok(BlockContent::Script(script));
    }
    let foreach: Option<ForeachClause> = fields.take("foreach")?;
    let statements = read_statements(fields)?;
    Ok(match foreach {
        Some(foreach) => BlockContent::Foreach(foreach, statements),
        None => BlockContent::Steps(statements),
    })
}

impl Wire for WhenCase {
    fn write(&self, out: &mut Writer<'_>) {
        out.object(|out| {
            out.tag("WhenCase");
            out.field("id", &self.id);
            out.field("condition", &self.condition);
            write_statements(out, &self.statements);
            out.field("location", &self.location);
        });
    }

    fn read(json: Json<'_>) -> Result<Self, Malformed> {
        let mut fields = json.object()?;
        fields.tag("WhenCase")?;
        let case = Self {
            id: fields.take("id")?,
            condition: fields.take("condition")?,
            statements: read_statements(&mut fields)?,
            location: fields.take("location")?,
        };
        fields.finish()?;
        Ok(case)
    }

    fn schema(types: &mut Definitions) -> Value {
        types.object("WhenCase", |shape| {
            shape.tag("WhenCase");
            shape.field("id", |case: &Self| &case.id);
            shape.field("condition", |case: &Self| &case.condition);
            statements_schema(shape);
            shape.field("location", |case: &Self| &case.location);
        })
    }
}

impl Wire for CatchClause {
    fn write(&self, out: &mut Writer<'_>) {
        out.object(|out| {
            out.tag("CatchClause");
            out.field("id", &self.id);
            match &self.content {
                CatchContent::Steps(statements) => write_statements(out, statements),
                CatchContent::When(when) => out.field("when", when),
            }
            out.field("location", &self.location);
        });
    }

    fn read(json: Json<'_>) -> Result<Self, Malformed> {
        let mut fields = json.object()?;
        fields.tag("CatchClause")?;
        let id = fields.take("id")?;
        let content = match fields.take("when")? {
            Some(when) => CatchContent::When(when),
            None => CatchContent::Steps(read_statements(&mut fields)?),
        };
        let catch = Self { id, content, location: fields.take("location")? };
        fields.finish()?;
        Ok(catch)
    }

    fn schema(types: &mut Definitions) -> Value {
        types.object("CatchClause", |shape| {
            shape.tag("CatchClause");
            shape.field("id", |catch: &Self| &catch.id);
            statements_schema(shape);
            shape.of::<Option<WhenBlock>>("when");
            shape.field("location", |catch: &Self| &catch.location);
        })
    }
}

fn write_statements(out: &mut Writer<'_>, statements: &Statements) {
    out.field("steps", &statements.steps);
    out.field("yields", &statements.yields);
}

fn read_statements(fields: &mut Fields<'_>) -> Result<Statements, Malformed> {
    Ok(Statements { steps: fields.take("steps")?, yields: fields.take("yields")? })
}

fn statements_schema(shape: &mut Shape<'_>) {
    shape.field("steps", |statements: &Statements| &statements.steps);
    shape.field("yields", |statements: &Statements| &statements.yields);
}

impl Wire for Statement {
    fn write(&self, out: &mut Writer<'_>) {
        match self {
            Self::Step(step) => step.write(out),
            Self::Log(log) => log.write(out),
            Self::Assert(assert) => assert.write(out),
        }
    }

    fn read(json: Json<'_>) -> Result<Self, Malformed> {
        match &*json.tag()? {
            "StepStmt" => StepStmt::read(json).map(Self::Step),
            "LogStmt" => LogStmt::read(json).map(Self::Log),
            "AssertStmt" => AssertStmt::read(json).map(Self::Assert),
            other => Err(Malformed::new(format!("`{other}` is not a statement"))),
        }
    }

    fn schema(types: &mut Definitions) -> Value {
        types.choice("Statement", &[StepStmt::schema, LogStmt::schema, AssertStmt::schema])
    }
}

impl Wire for MixinCall {
    fn write(&self, out: &mut Writer<'_>) {
        self.write_as(MixinTag::Call, out);
    }

    fn read(json: Json<'_>) -> Result<Self, Malformed> {
        Self::read_as(MixinTag::Call, json)
    }

    fn schema(types: &mut Definitions) -> Value {
        Self::schema_as(MixinTag::Call, types)
    }
}

/// What a mixin is called: it depends on where it stands.
#[derive(Clone, Copy)]
pub(super) enum MixinTag {
    Signature,
    Call,
}

impl MixinTag {
    fn name(self) -> &'static str {
        match self {
            Self::Signature => "MixinSig",
            Self::Call => "MixinCall",
        }
    }
}

impl MixinCall {
    pub(super) fn write_as(&self, tag: MixinTag, out: &mut Writer<'_>) {
        out.object(|out| {
            out.tag(tag.name());
            out.field("target", &self.target);
            out.field("alias", &self.alias);
            out.field("args", &self.args);
            out.field("location", &self.location);
        });
    }

    pub(super) fn read_as(tag: MixinTag, json: Json<'_>) -> Result<Self, Malformed> {
        let mut fields = json.object()?;
        fields.tag(tag.name())?;
        let mixin = Self {
            target: fields.take("target")?,
            alias: fields.take("alias")?,
            args: fields.take("args")?,
            location: fields.take("location")?,
        };
        fields.finish()?;
        Ok(mixin)
    }

    pub(super) fn schema_as(tag: MixinTag, types: &mut Definitions) -> Value {
        types.object(tag.name(), |shape| {
            shape.tag(tag.name());
            shape.field("target", |mixin: &Self| &mixin.target);
            shape.field("alias", |mixin: &Self| &mixin.alias);
            shape.field("args", |mixin: &Self| &mixin.args);
            shape.field("location", |mixin: &Self| &mixin.location);
        })
    }
}
