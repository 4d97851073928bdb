//! The rendering of texts that are hard to show.

use std::ops::Range;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::{Color, github, human, json};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::source::{FileId, FileSpan, Source, Sources, Span};

fn place(file: u32, range: Range<usize>) -> FileSpan {
    FileSpan { file: FileId(file), span: Span::new(range.start as u32, range.end as u32) }
}

/// The place of `part` in the only text.
fn at(sources: &Sources, part: &str) -> FileSpan {
    let start = sources.get(FileId(0)).text.find(part).expect("the part is in the text");
    place(0, start..start + part.len())
}

fn wrong(place: FileSpan) -> Diagnostic {
    Diagnostic::new(Code::WrongType, place, "this is wrong")
}

/// Trailing spaces are taken off, since an editor would.
fn shown(sources: &Sources, diagnostic: Diagnostic) -> String {
    let text = human(sources, &[diagnostic], Color::Plain);
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_empty_text_can_be_marked() {
    let sources = Sources::one("a.afl", "");
    assert_snapshot!(shown(&sources, wrong(place(0, 0..0))), @"
    error[AFL0303]: this is wrong
     --> a.afl:1:1
      |
    1 |
      | ^
    ");
}

#[test]
fn the_end_of_the_text_can_be_marked() {
    let sources = Sources::one("a.afl", "facet A(\n");
    let diagnostic = wrong(place(0, 9..9)).related(place(0, 7..8), "opened here");
    assert_snapshot!(shown(&sources, diagnostic), @"
    error[AFL0303]: this is wrong
     --> a.afl:2:1
      |
    1 | facet A(
      |        - opened here
    2 |
      | ^
    ");
    let sources = Sources::one("a.afl", "facet A(");
    assert_snapshot!(shown(&sources, wrong(place(0, 8..8))), @"
    error[AFL0303]: this is wrong
     --> a.afl:1:9
      |
    1 | facet A(
      |         ^
    ");
}

#[test]
fn tabs_line_breaks_and_wide_characters_keep_the_marks_in_place() {
    let sources = Sources::one("a.afl", "// é\r\n\tx = \"日本\" + $.y\r\n");
    assert_snapshot!(shown(&sources, wrong(at(&sources, "$.y"))), @r#"
    error[AFL0303]: this is wrong
     --> a.afl:2:13
      |
    2 |     x = "日本" + $.y
      |                  ^^^
    "#);
    assert_snapshot!(shown(&sources, wrong(at(&sources, "\r\n"))), @r#"
    error[AFL0303]: this is wrong
     --> a.afl:1:5
      |
    1 | // é
      |     ^
    "#);
}

// F22: a diagnostic cannot steer the terminal.
#[test]
fn control_characters_of_the_terminal_are_replaced() {
    let sources = Sources::one("a\u{1b}[31m.afl", "x \u{1b}[2J \u{202e} y");
    let diagnostic = Diagnostic::new(Code::WrongType, at(&sources, "y"), "no \u{1b}[2J here")
        .help("no \u{202e} here\neither");
    assert_snapshot!(shown(&sources, diagnostic), @"
    error[AFL0303]: no �[2J here
     --> a�[31m.afl:1:10
      |
    1 | x ␛[2J � y
      |          ^
      |
      = help: no � here
              either
    ");
}

#[test]
fn a_long_line_is_cut_around_the_marks() {
    let text = format!("{}$.first{}$.second{}", "é".repeat(500_000), " + 1".repeat(200), "x".repeat(500_000));
    let sources = Sources::one("a.afl", text);
    let diagnostic = wrong(at(&sources, "$.first")).related(at(&sources, "$.second"), "and here");
    assert_snapshot!(shown(&sources, diagnostic), @"
    error[AFL0303]: this is wrong
     --> a.afl:1:500001
      |
    1 | ...éééééééééééééééééééé$.first + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 ...
      |                        ^^^^^^^
      |
     ::: a.afl:1:500808
      |
    1 | ... + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1$.secondxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...
      |                                            -------- and here
    ");
    let whole = place(0, 0..sources.0[0].text.len());
    assert_snapshot!(shown(&sources, wrong(whole)), @"
    error[AFL0303]: this is wrong
     --> a.afl:1:1
      |
    1 | éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé...
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    ");
}

#[test]
fn a_long_message_is_cut_in_its_middle() {
    let sources = Sources::one("a.afl", "x");
    let name = "日本".repeat(100_000);
    let diagnostic =
        Diagnostic::new(Code::UnknownFacet, place(0, 0..1), format!("there is no `{name}` here"));
    let diagnostic = diagnostic.related(place(0, 0..1), &name).help(format!("did you mean `{name}x`?"));
    let longest = human(&sources, &[diagnostic], Color::Plain).lines().map(str::len).max();
    assert!(longest < Some(400), "{longest:?}");
}

#[test]
fn a_place_of_many_lines_is_marked_on_its_first() {
    let sources = Sources::one("a.afl", "x = {\n".to_owned() + &"  y\n".repeat(20) + "}\n");
    assert_snapshot!(shown(&sources, wrong(place(0, 4..87))), @"
    error[AFL0303]: this is wrong
     --> a.afl:1:5
      |
    1 | x = {
      |     ^
    ");
}

#[test]
fn a_label_far_away_has_an_excerpt_of_its_own() {
    let sources = Sources::one("a.afl", format!("first\n{}last\n", "\n".repeat(100)));
    let diagnostic = wrong(at(&sources, "last")).related(at(&sources, "first"), "first declared here");
    assert_snapshot!(shown(&sources, diagnostic), @"
    error[AFL0303]: this is wrong
       --> a.afl:102:1
        |
    102 | last
        | ^^^^
        |
       ::: a.afl:1:1
        |
      1 | first
        | ----- first declared here
    ");
}

#[test]
fn a_label_in_another_file_has_an_excerpt_of_its_own() {
    let sources = Sources(vec![Source::new("a.afl", "here"), Source::new("b.afl", "\nthere")]);
    let diagnostic = wrong(place(0, 0..4)).related(place(1, 1..6), "because of this").help("change it");
    assert_snapshot!(shown(&sources, diagnostic), @"
    error[AFL0303]: this is wrong
     --> a.afl:1:1
      |
    1 | here
      | ^^^^
      |
     ::: b.afl:2:1
      |
    2 | there
      | ----- because of this
      |
      = help: change it
    ");
}

#[test]
fn json_counts_characters_and_has_every_label() {
    let sources = Sources(vec![Source::new("a.afl", "日本 x\ny"), Source::new("b.afl", "there")]);
    let diagnostics = [
        wrong(place(0, 7..10)).related(place(1, 0..5), "because of this"),
        Diagnostic::new(Code::UnusedImport, place(1, 0..5), "this is doubtful").help("leave it out"),
    ];
    assert_snapshot!(json(&sources, &diagnostics), @r#"
    {
      "diagnostics": [
        {
          "code": "AFL0303",
          "severity": "error",
          "message": "this is wrong",
          "help": null,
          "file": "a.afl",
          "line": 1,
          "column": 4,
          "endLine": 2,
          "endColumn": 2,
          "labels": [
            {
              "message": "because of this",
              "file": "b.afl",
              "line": 1,
              "column": 1,
              "endLine": 1,
              "endColumn": 6
            }
          ]
        },
        {
          "code": "AFL0210",
          "severity": "warning",
          "message": "this is doubtful",
          "help": "leave it out",
          "file": "b.afl",
          "line": 1,
          "column": 1,
          "endLine": 1,
          "endColumn": 6,
          "labels": []
        }
      ]
    }
    "#);
}

#[test]
fn workflow_commands_escape_their_terminators() {
    let sources = Sources::one("a,b:c%.afl", "x\ny");
    let diagnostics = [
        Diagnostic::new(Code::WrongType, place(0, 0..1), "100% wrong: a, b").help("one\r\ntwo"),
        Diagnostic::new(Code::UnusedImport, place(0, 0..3), "over two lines"),
    ];
    assert_snapshot!(github(&sources, &diagnostics), @"
    ::error file=a%2Cb%3Ac%25.afl,line=1,col=1,endLine=1,endColumn=2,title=AFL0303::100%25 wrong: a, b%0Ahelp: one%0D%0Atwo
    ::warning file=a%2Cb%3Ac%25.afl,line=1,endLine=2,title=AFL0210::over two lines
    ");
}

#[test]
fn colour_is_added_only_where_it_is_asked_for() {
    let sources = Sources::one("a.afl", "x");
    let diagnostics = [wrong(place(0, 0..1)).help("change it")];
    assert!(human(&sources, &diagnostics, Color::Ansi).contains("\u{1b}["));
    assert!(!human(&sources, &diagnostics, Color::Plain).contains('\u{1b}'));
    assert_eq!(human(&sources, &[], Color::Ansi), "");
}

fn any_place(text: &str, from: usize, to: usize) -> FileSpan {
    let boundaries: Vec<_> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let (a, b) = (boundaries[from % boundaries.len()], boundaries[to % boundaries.len()]);
    place(0, a.min(b)..a.max(b))
}

proptest! {
    // 20,000 cases held once; a few guard against a change.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_place_in_any_text_can_be_shown(
        text in "([ -~]|[\r\n\t]|é|日|\u{1b}|\u{200d}){0,600}",
        ends in prop::array::uniform4(0..1000_usize),
    ) {
        let sources = Sources::one("a.afl", text.clone());
        let diagnostic = wrong(any_place(&text, ends[0], ends[1]))
            .related(any_place(&text, ends[2], ends[3]), "and here");
        let diagnostics = [diagnostic];
        let shown = human(&sources, &diagnostics, Color::Plain);
        prop_assert!(!shown.contains('\x1b'), "an escape sequence in {shown}");
        prop_assert_eq!(github(&sources, &diagnostics).lines().count(), 1);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json(&sources, &diagnostics)).is_ok());
    }
}
