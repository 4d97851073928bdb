//! The examples of the README are true.

use afl_lang::render::{self, Color};
use afl_lang::source::Sources;
use afl_lang::{Validation, compile};

const README: &str = include_str!("../../../README.md");

/// The code blocks of a language, in order.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    README.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn every_program_compiles_without_a_word() {
    let programs = blocks("afl");
    assert!(programs.len() >= 3);
    for program in programs {
        let compiled = compile(&Sources::one("README.afl", program), Validation::Require);
        assert_eq!(compiled.diagnostics, [], "{program}");
        assert_eq!(afl_lang::format::format(program).as_deref(), Ok(program));
    }
}

#[test]
fn the_message_is_the_one_that_is_printed() {
    let program = blocks("afl")[2].replace("draft = Summarise", "draft = Sumarise");
    let sources = Sources::one("desk.afl", program);
    let compiled = compile(&sources, Validation::Require);
    let message = render::human(&sources, &compiled.diagnostics, Color::Plain);
    let shown = blocks("text")[0].split_once('\n').unwrap().1;
    assert_eq!(message.trim_end(), shown.trim_end());
}
