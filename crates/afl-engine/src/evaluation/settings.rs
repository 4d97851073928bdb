//! The settings of policies, evaluated.

use std::collections::BTreeSet;

use crate::policy::{
    Policy, PolicyKind, RetryPolicy, are_short, check_name, duration, integer, names_capability,
};
use crate::time::Millis;
use crate::value::{Map, Value};

/// The defaults of `Retry` in the prelude, which programs do not carry.
const BACKOFF_MS: i64 = 1_000;
const FACTOR: f64 = 2.0;
const MAX_BACKOFF_MS: i64 = 60_000;
/// Adds what one mixin says. Settings that are written out were checked by the compiler; these are the computed ones.
pub(super) fn apply(policy: &mut Policy, kind: PolicyKind, args: &Map<String, Value>) -> Result<(), String> {
    match kind {
        PolicyKind::Retry => {
            policy.retry = Some(RetryPolicy {
                max: at_least_one(args, "max", kind)?,
                backoff_ms: Millis(integer(args, "backoff_ms", kind.name())?.unwrap_or(BACKOFF_MS)),
                factor: args.get("factor").and_then(Value::as_f64).unwrap_or(FACTOR),
                max_backoff_ms: Millis(
                    integer(args, "max_backoff_ms", kind.name())?.unwrap_or(MAX_BACKOFF_MS),
                ),
            });
        }
        PolicyKind::Timeout => policy.timeout_ms = Some(duration(args, kind.name())?),
        PolicyKind::AttemptTimeout => policy.attempt_timeout_ms = Some(duration(args, kind.name())?),
        PolicyKind::Heartbeat => policy.heartbeat_ms = Some(duration(args, kind.name())?),
        PolicyKind::Priority => {
            policy.priority = integer(args, "level", kind.name())?.map(|level| level.clamp(0, 100));
        }
        PolicyKind::Limit => policy.limit = Some(at_least_one(args, "concurrency", kind)?),
        PolicyKind::Effect => {
            let effect = args.get("kind").and_then(Value::as_str).unwrap_or_default();
            policy.effect =
                Some(effect.parse().map_err(|unknown| format!("{unknown}: use idempotent, once or pure"))?);
        }
        PolicyKind::TaskList => {
            let name = args.get("name").and_then(Value::as_str).unwrap_or_default();
            check_name(name).map_err(|bad| format!("the `name` of `{kind}` {bad}"))?;
            policy.task_list = Some(name.to_owned());
        }
        PolicyKind::Needs => {
            let needs = capabilities(args, kind)?;
            if !are_short(&needs) {
                return Err(format!("`{kind}` takes fewer or shorter names"));
            }
            policy.needs = needs;
        }
    }
    Ok(())
}

fn capabilities(args: &Map<String, Value>, kind: PolicyKind) -> Result<Vec<String>, String> {
    let given = args.get("capabilities").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let named = given.iter().map(|value| match value.as_str() {
        Some(name) if names_capability(name) => Ok(name.to_owned()),
        Some(_) | None => Err(format!(
            "`{kind}` takes names of letters, digits, `-`, `_`, `.` and `:`, and {value} is none"
        )),
    });
    Ok(named.collect::<Result<BTreeSet<_>, _>>()?.into_iter().collect())
}

fn at_least_one(args: &Map<String, Value>, name: &str, kind: PolicyKind) -> Result<u32, String> {
    let number = integer(args, name, kind.name())?.unwrap_or_default();
    let number = u32::try_from(number).ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{name}` of `{kind}` must be an integer from one up"))
}
