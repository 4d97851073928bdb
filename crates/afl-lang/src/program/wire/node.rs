//! The JSON form of blocks, statements and calls.

use serde_json::{Value, json};

use super::{
    Definitions, Field, Json, JsonWriter, ObjectReader, ObjectShape, WireError, WireValue, codec, nodes,
};
use crate::program::{
    AndThenBlock, AssertStmt, BlockContent, CallExpr, CatchClause, CatchContent, ForeachClause, Location,
    LogStmt, MixinCall, NamedArg, Parameter, PromptBlock, ScriptBlock, Statement, Statements, StepStmt,
    WhenBlock, WhenCase, YieldStmt,
};

nodes! {
    Location { line, column, end_line: "endLine", end_column: "endColumn" }
    Parameter { name, ty: "type", default }
    NamedArg { name, value, implicit }
    StepStmt as "StepStmt" { id, name, call, body, catch, depends_on: "dependsOn", location }
    LogStmt as "LogStmt" { id, args, depends_on: "dependsOn", location }
    AssertStmt as "AssertStmt" { id, condition, depends_on: "dependsOn", location }
    YieldStmt as "YieldStmt" { id, target, alias, args, depends_on: "dependsOn", location }
    CallExpr as "CallExpr" { id, target, args, mixins, location }
    MixinCall as "MixinCall" { target, alias, args, location }
    AndThenBlock as "AndThenBlock" { id, after, content, location }
    ForeachClause as "ForeachClause" { variable, iterable, location }
    WhenBlock as "WhenBlock" { cases, location }
    WhenCase as "WhenCase" { id, condition, statements, location }
    CatchClause as "CatchClause" { id, content, location }
    PromptBlock as "PromptBlock" { entries, location }
    ScriptBlock as "ScriptBlock" { language, code, location }
}

impl Field for Statements {
    fn write_field(&self, _: &'static str, out: &mut JsonWriter<'_>) {
        self.steps.write_field("steps", out);
        self.yields.write_field("yields", out);
    }

    fn read_field(_: &'static str, fields: &mut ObjectReader<'_>) -> Result<Self, WireError> {
        Ok(Self { steps: fields.take("steps")?, yields: fields.take("yields")? })
    }

    fn describe(_: &'static str, shape: &mut ObjectShape<'_>) {
        shape.of::<Vec<Statement>>("steps");
        shape.of::<Vec<YieldStmt>>("yields");
    }
}

/// The kinds differ by a key that only one of them has.
impl Field for BlockContent {
    fn write_field(&self, key: &'static str, out: &mut JsonWriter<'_>) {
        match self {
            Self::Steps(statements) => statements.write_field(key, out),
            Self::Foreach(foreach, statements) => {
                foreach.write_field("foreach", out);
                statements.write_field(key, out);
            }
            Self::When(when) => when.write_field("when", out),
            Self::Script(script) => script.write_field("script", out),
        }
    }

    fn read_field(key: &'static str, fields: &mut ObjectReader<'_>) -> Result<Self, WireError> {
        if let Some(when) = fields.take("when")? {
            return Ok(Self::When(when));
        }
        if let Some(script) = fields.take("script")? {
            return Ok(Self::Script(script));
        }
        let foreach: Option<ForeachClause> = fields.take("foreach")?;
        let statements = Statements::read_field(key, fields)?;
        Ok(match foreach {
            Some(foreach) => Self::Foreach(foreach, statements),
            None => Self::Steps(statements),
        })
    }

    fn describe(key: &'static str, shape: &mut ObjectShape<'_>) {
        shape.of::<Option<ForeachClause>>("foreach");
        Statements::describe(key, shape);
        shape.of::<Option<WhenBlock>>("when");
        shape.of::<Option<ScriptBlock>>("script");
    }
}

impl Field for CatchContent {
    fn write_field(&self, key: &'static str, out: &mut JsonWriter<'_>) {
        match self {
            Self::Steps(statements) => statements.write_field(key, out),
            Self::When(when) => when.write_field("when", out),
        }
    }

    fn read_field(key: &'static str, fields: &mut ObjectReader<'_>) -> Result<Self, WireError> {
        Ok(match fields.take("when")? {
            Some(when) => Self::When(when),
            None => Self::Steps(Statements::read_field(key, fields)?),
        })
    }

    fn describe(key: &'static str, shape: &mut ObjectShape<'_>) {
        Statements::describe(key, shape);
        shape.of::<Option<WhenBlock>>("when");
    }
}

impl WireValue for Statement {
    fn write(&self, out: &mut JsonWriter<'_>) {
        match self {
            Self::Step(step) => step.write(out),
            Self::Log(log) => log.write(out),
            Self::Assert(assert) => assert.write(out),
        }
    }

    fn read(json: Json<'_>) -> Result<Self, WireError> {
        match &*json.tag()? {
            "StepStmt" => StepStmt::read(json).map(Self::Step),
            "LogStmt" => LogStmt::read(json).map(Self::Log),
            "AssertStmt" => AssertStmt::read(json).map(Self::Assert),
            other => Err(WireError::new(format!("`{other}` is not a statement"))),
        }
    }

    fn schema(types: &mut Definitions) -> Value {
        let kinds = [StepStmt::schema, LogStmt::schema, AssertStmt::schema];
        types.define("Statement", |types| json!({"oneOf": kinds.map(|kind| kind(types))}))
    }
}
