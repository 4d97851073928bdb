//! Programs that pass a limit, too large for a file or an example (F17).

use std::fmt::Write;

use afl_lang::code::Code;
use afl_lang::limits;

pub(crate) struct Large {
    pub(crate) name: &'static str,
    pub(crate) code: Code,
    pub(crate) what: &'static str,
    pub(crate) text: String,
}

pub(crate) fn programs() -> Vec<Large> {
    let steps = (0..=limits::MAX_STATEMENTS_PER_BLOCK).fold(String::new(), |mut steps, number| {
        writeln!(steps, "s{number} = F()").expect("a string takes any text");
        steps
    });
    let depth = limits::MAX_NESTING as usize + 1;
    vec![
        Large {
            name: "afl0008_source_too_large",
            code: Code::SourceTooLarge,
            what: "one space more than a source may have bytes",
            text: " ".repeat(limits::MAX_SOURCE_BYTES + 1),
        },
        Large {
            name: "afl0105_too_deep",
            code: Code::TooDeep,
            what: "a default in more parentheses than may stand in one another",
            text: format!("facet F(x: Long = {}1{})\n", "(".repeat(depth), ")".repeat(depth)),
        },
        Large {
            name: "afl0115_too_many_diagnostics",
            code: Code::TooManyDiagnostics,
            what: "one `§` more than mistakes are shown, each on a line of its own",
            text: "§\n".repeat(limits::MAX_DIAGNOSTICS + 1),
        },
        Large {
            name: "afl0116_too_many_statements",
            code: Code::TooManyStatements,
            what: "a workflow with one step more than a block may have",
            text: format!("facet F()\nworkflow W() andThen {{\n{steps}}}\n"),
        },
    ]
}
