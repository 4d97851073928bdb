//! `afl explain`: the long form of a diagnostic.

use afl_lang::code::Code;
use afl_lang::suggest;
use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  afl explain AFL0303  read about a value of the wrong type
  afl explain          list all codes";

/// Explain a diagnostic, with a wrong and a right example
///
/// Without a code, list all codes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The code that stands in brackets behind `error` or `warning`, such as AFL0303
    code: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    match &options.code {
        Some(text) if options.json => output::data(&json(&ExplainEntry::long(find(text)?))),
        Some(text) => output::data(find(text)?.explanation()),
        None if options.json => {
            let all: Vec<ExplainEntry> = Code::ALL.iter().copied().map(ExplainEntry::short).collect();
            output::data(&json(&all))
        }
        None => output::lines(&Code::ALL.iter().copied().map(row).collect::<Vec<_>>()),
    }
}

fn find(text: &str) -> Result<Code, Failure> {
    // The number alone is enough.
    let by_number = || Code::parse(&format!("AFL{text:0>4}"));
    Code::parse(text).or_else(by_number).ok_or_else(|| {
        let closest = suggest::closest(text, Code::ALL.iter().map(|code| code.text()));
        Failure::UnknownCode { code: text.to_owned(), closest }
    })
}

fn row(code: Code) -> String {
    format!("{}  {:<7}  {}", code.text(), code.severity().name(), code.title())
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("strings are always JSON") + "\n"
}

#[derive(Serialize)]
struct ExplainEntry {
    code: &'static str,
    severity: &'static str,
    title: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<&'static str>,
}

impl ExplainEntry {
    fn short(code: Code) -> Self {
        let (title, severity) = (code.title(), code.severity().name());
        Self { code: code.text(), severity, title, explanation: None }
    }

    fn long(code: Code) -> Self {
        Self { explanation: Some(code.explanation()), ..Self::short(code) }
    }
}
