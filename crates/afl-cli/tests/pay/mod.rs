//! A program with one event facet, and a handler that takes as long as a test wants.

use std::path::Path;

pub(crate) const PROGRAM: &str = "
event facet Charge(item: String) => (receipt: String)

workflow Pay(item: String) => (receipt: String) andThen {
    charge = Charge(item = $.item)
    yield Pay(receipt = charge.receipt)
}
";

/// A handler that reports its start by a statement of Python, and waits for the file `go`.
pub(crate) fn slow(folder: &Path, tell: &str) -> String {
    let folder = folder.canonicalize().expect("it is there");
    SLOW.replace("TELL", tell).replace("FOLDER", folder.to_str().expect("it is text"))
}

const SLOW: &str = r#"
import os, time
from agentflow import handler

@handler("Charge")
def charge(payload):
    TELL
    while not os.path.exists("FOLDER/go"):
        time.sleep(0.01)
    return {"receipt": "slow"}
"#;
