//! The Python texts that are part of the binary.

use serde_json::{Value, json};

use super::MAX_RESULT_BYTES;
use crate::handler::Object;

/// The program that starts the interpreter; everything else comes over the link.
pub(super) const BOOT: &str = include_str!("boot.py");
const CHANNEL: &str = include_str!("channel.py");
/// The program that runs handlers.
pub(super) const HOST: &str = include_str!("host.py");
/// The program that runs one `script` block.
pub(super) const SCRIPT: &str = concat!(include_str!("cage.py"), include_str!("script.py"));

macro_rules! package {
    ($($name:literal => $file:literal,)+) => {
        &[$(($name, include_str!(concat!("../../../../../python/agentflow/", $file))),)+]
    };
}

/// The package `agentflow`, as handlers import it.
const PACKAGE: &[(&str, &str)] = package! {
    "agentflow" => "__init__.py",
    "agentflow.__main__" => "__main__.py",
    "agentflow.context" => "context.py",
    "agentflow.decorate" => "decorate.py",
    "agentflow.dispatch" => "dispatch.py",
    "agentflow.result" => "result.py",
    "agentflow.testing" => "testing.py",
};

/// The first frame: what a process runs, with the settings of that program.
pub(super) fn hello(program: &str, settings: Object) -> Value {
    let package: Object =
        PACKAGE.iter().map(|(name, text)| ((*name).to_owned(), Value::from(*text))).collect();
    let mut hello = settings;
    hello.extend([
        ("channel".to_owned(), json!(CHANNEL)),
        ("program".to_owned(), json!(program)),
        ("package".to_owned(), Value::Object(package)),
        ("max_bytes".to_owned(), json!(MAX_RESULT_BYTES)),
    ]);
    Value::Object(hello)
}
