//! The command line as a user meets it: each case holds commands and what they print.
//!
//! `TRYCMD=overwrite cargo test -p afl-cli --test cmd` writes the current output.

// covers: RT-W1-a
#[test]
fn commands_print_what_the_cases_say() {
    trycmd::TestCases::new().case("tests/cmd/*.md").case("tests/cmd/*.toml");
}
