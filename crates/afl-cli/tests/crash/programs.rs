//! The programs that are struck: together they have every construct of the language. Their facets' answers stand
//! here once, by the facet's name.

use afl_engine::evaluation::SCRIPT_EVENT;
use afl_engine::value::{Map, Value};
use afl_runtime::agent::Claim;
use afl_store::backend::Limits;
use serde_json::json;

#[derive(Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) workflow: &'static str,
    pub(crate) inputs: fn() -> Value,
    /// How much the store takes at once, where that is less than it could.
    pub(crate) limits: Option<Limits>,
    pub(crate) end: End,
}

/// The end of the run, whatever strikes it.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Outputs(fn() -> Value),
    /// The path of the step that failed first.
    FailedAt(&'static str),
}

/// An evaluation may write half of a batch: a `foreach` of some elements takes several commits.
const FEW_WRITES: Limits = Limits { batch_writes: 80, batch_bytes: 1 << 20, body_bytes: 1 << 16 };
/// A value of some KiB is kept in pieces, which are written before the commit that refers to it.
const SMALL_BODIES: Limits = Limits { batch_writes: 1_000, batch_bytes: 1 << 16, body_bytes: 5_000 };

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "blocks",
        text: include_str!("programs/blocks.afl"),
        workflow: "Blocks",
        inputs: || json!({}),
        limits: None,
        end: End::Outputs(|| {
            json!({
                "out": "answer to nested!", "twice": -6, "host": "db1", "pick": "answer to small",
                "rest": ["l", 2.5, false, null, {"right": 2}], "note": "none",
            })
        }),
    },
    Program {
        name: "foreach",
        text: include_str!("programs/foreach.afl"),
        workflow: "Each",
        inputs: || json!({"xs": ["a", "b"], "prices": {"k": 1}}),
        limits: None,
        end: End::Outputs(|| {
            let names = ["aa1", "aa2", "bb1", "bb2"].map(|name| format!("answer to {name}"));
            json!({"names": names, "keys": ["answer to k"], "last": "b", "nothing": []})
        }),
    },
    Program {
        name: "catches",
        text: include_str!("programs/catches.afl"),
        workflow: "Catches",
        inputs: || json!({}),
        limits: None,
        end: End::Outputs(|| {
            json!({
                "one": "caught Busy", "two": "caught no answer", "three": "answer to again",
                "firm": "firm no answer", "share": -1.0,
            })
        }),
    },
    Program {
        name: "mixins",
        text: include_str!("programs/mixins.afl"),
        workflow: "Mixins",
        inputs: || json!({}),
        limits: None,
        end: End::Outputs(|| {
            json!({
                "seal": "answer to mixed@7", "at": 7, "id": "track ttrack beside",
                "stamp": "answer to aliased@8", "who": "annsender", "total": 2, "ok": "sent hi",
            })
        }),
    },
    Program {
        name: "scripts",
        text: include_str!("programs/scripts.afl"),
        workflow: "Scripts",
        inputs: || json!({"text": "psst"}),
        limits: None,
        end: End::Outputs(|| {
            json!({
                "loud": "PSST", "louder": "PSSTPSSTPSST", "told": "told psst!",
                "said": "sum of psst, title of psst, review of psst",
            })
        }),
    },
    Program {
        name: "policies",
        text: include_str!("programs/policies.afl"),
        workflow: "Policies",
        inputs: || json!({"xs": ["x", "y"]}),
        limits: None,
        end: End::Outputs(|| {
            json!({
                "m": 3, "slow": "answer to slow", "gpu": "answer to gpu",
                "few": ["answer to x", "answer to y"],
            })
        }),
    },
    Program {
        name: "once",
        text: include_str!("programs/once.afl"),
        workflow: "Once",
        inputs: || json!({}),
        limits: None,
        end: End::Outputs(
            || json!({"receipts": ["receipt for 5", "receipt for 6"], "quick": "answer to quick"}),
        ),
    },
    Program {
        name: "fails",
        text: include_str!("programs/fails.afl"),
        workflow: "Fails",
        inputs: || json!({}),
        limits: None,
        end: End::FailedAt("Fails.bad"),
    },
    Program {
        name: "large",
        text: include_str!("programs/large.afl"),
        workflow: "Large",
        inputs: || json!({"text": "x".repeat(LARGE)}),
        limits: Some(SMALL_BODIES),
        end: End::Outputs(|| {
            let whole = format!("{0}-{0}!", "x".repeat(LARGE));
            let parts = ["a", "b"].map(|part| part.repeat(LARGE));
            json!({"whole": whole, "parts": parts, "same": true})
        }),
    },
    Program {
        name: "wide",
        text: include_str!("programs/wide.afl"),
        workflow: "Wide",
        inputs: || json!({"xs": (0..WIDE).collect::<Vec<_>>()}),
        limits: Some(FEW_WRITES),
        end: End::Outputs(|| {
            let element = |n| if n % 30 == 0 { format!("answer to element {n}") } else { "n".to_owned() };
            json!({"all": (0..WIDE).map(element).collect::<Vec<_>>()})
        }),
    },
];

const LARGE: usize = 4_500;
const WIDE: i64 = 60;

pub(crate) fn named(name: &str) -> &'static Program {
    PROGRAMS.iter().find(|program| program.name == name).expect("a program has this name")
}

pub(crate) type Answer = Result<Map<String, Value>, String>;

/// The answer of an agent or the language host to a piece of work.
pub(crate) fn answer(claim: &Claim) -> Answer {
    let text = |name: &str| claim.payload[name].as_str().unwrap_or_default();
    let short = claim.task.name.rsplit('.').next().expect("a split has a last part");
    let result = match short {
        SCRIPT_EVENT => {
            let text = claim.payload["params"]["text"].as_str().unwrap_or_default();
            json!({"loud": text.to_uppercase()})
        }
        "Ask" | "Firm" if text("q").starts_with("fail") => return Err("no answer".to_owned()),
        "Ask" => json!({"a": format!("answer to {}", text("q"))}),
        "Flaky" if claim.task.attempts == 0 => return Err("busy".to_owned()),
        "Flaky" => json!({"m": 3}),
        "Track" => json!({"id": format!("track {}", text("k"))}),
        "Send" => json!({"ok": format!("sent {}", text("text"))}),
        "Tell" => json!({"a": format!("told {}", text("text"))}),
        "Sum" => json!({"a": format!("sum of {}, ", text("text"))}),
        "Title" => json!({"a": format!("title of {}, ", text("text"))}),
        "Review" => json!({"a": format!("review of {}", text("text"))}),
        "Charge" => json!({"receipt": format!("receipt for {}", claim.payload["amount"])}),
        "Grow" => {
            let parts = ["a", "b"].map(|part| part.repeat(LARGE / 2));
            json!({"text": format!("{}!", text("text")), "parts": parts})
        }
        other => unreachable!("no program has {other}"),
    };
    Ok(result.as_object().expect("a map").clone())
}
