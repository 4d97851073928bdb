//! Handlers that are part of the agent, for examples and for trying things out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time;

use super::{HandlerSpec, Host, HostedHandler};
use crate::handler::{Call, Context, Handler, HandlerFailure, Object, Outcome, Progress};
use crate::http::HttpClient;

pub(super) struct BuiltinHost(pub(super) Arc<HttpClient>);

struct BuiltinHandler {
    builtin: Builtin,
    http: Arc<HttpClient>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Builtin {
    /// Returns its payload.
    Echo,
    /// Waits `ms` milliseconds and returns them.
    Sleep,
    /// Fails with `message`.
    Fail,
    /// Gets `url`; returns `status` and `body`, which is JSON if it can be read as such.
    HttpGet,
    /// Returns as `value` what `path` (`a.b[0]`) leads to in `value`.
    JsonPick,
}

const ALL: &[(&str, Builtin)] = &[
    ("echo", Builtin::Echo),
    ("sleep", Builtin::Sleep),
    ("fail", Builtin::Fail),
    ("http.get", Builtin::HttpGet),
    ("json.pick", Builtin::JsonPick),
];
const BEAT: Duration = Duration::from_secs(1);

impl Host for BuiltinHost {
    fn schemes(&self) -> &'static [(&'static str, &'static str)] {
        &[("builtin", "`builtin:name`")]
    }

    fn parse(self: Arc<Self>, spec: HandlerSpec<'_>) -> Result<Box<dyn HostedHandler>, String> {
        let Some((_, builtin)) = ALL.iter().find(|(name, _)| *name == spec.rest_of_uri()) else {
            let names: Vec<_> = ALL.iter().map(|(name, _)| *name).collect();
            return Err(format!("names no built-in handler: they are {}", names.join(", ")));
        };
        Ok(Box::new(BuiltinHandler { builtin: *builtin, http: self.0.clone() }))
    }
}

#[async_trait]
impl Handler for BuiltinHandler {
    async fn run(&self, call: Call) -> Outcome {
        let Call { payload, context, .. } = call;
        match self.builtin {
            Builtin::Echo => Ok(payload),
            Builtin::Sleep => sleep(&payload, &context).await,
            Builtin::Fail => {
                let message = payload.get("message").and_then(Value::as_str).unwrap_or("failed as asked");
                Err(HandlerFailure::error(message))
            }
            Builtin::HttpGet => self.http.get(text(&payload, "url")?).await,
            Builtin::JsonPick => pick(&payload),
        }
    }
}

#[async_trait]
impl HostedHandler for BuiltinHandler {
    async fn check(&self) -> Result<(), HandlerFailure> {
        Ok(())
    }
}

impl fmt::Debug for BuiltinHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BuiltinHandler").field(&self.builtin).finish()
    }
}

async fn sleep(payload: &Object, context: &Context) -> Result<Object, HandlerFailure> {
    let ms = payload
        .get("ms")
        .and_then(Value::as_u64)
        .ok_or_else(|| missing("ms", "a whole number of milliseconds"))?;
    let mut left = Duration::from_millis(ms);
    while !left.is_zero() {
        let nap = left.min(BEAT);
        time::sleep(nap).await;
        left -= nap;
        context.progress(Progress { fraction: None, message: format!("{} ms left", left.as_millis()) });
    }
    Ok(Object::from_iter([("ms".to_owned(), json!(ms))]))
}

fn pick(payload: &Object) -> Result<Object, HandlerFailure> {
    let path = text(payload, "path")?;
    let mut value = payload.get("value").ok_or_else(|| missing("value", "the value to look into"))?;
    for key in path.split(['.', '[', ']']).filter(|key| !key.is_empty()) {
        let inner = match value {
            Value::Object(object) => object.get(key),
            Value::Array(list) => key.parse().ok().and_then(|index: usize| list.get(index)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        value = inner
            .ok_or_else(|| HandlerFailure::error(format!("there is no `{key}` on the path `{path}`")))?;
    }
    Ok(Object::from_iter([("value".to_owned(), value.clone())]))
}

fn text<'a>(payload: &'a Object, name: &str) -> Result<&'a str, HandlerFailure> {
    payload.get(name).and_then(Value::as_str).ok_or_else(|| missing(name, "a text"))
}

fn missing(name: &str, expected: &str) -> HandlerFailure {
    HandlerFailure::invalid_input(format!("the payload needs `{name}`, {expected}")).not_done()
}
