//! The texts that the parser accepts, and its recovery after mistakes; meaning is tested with the checker.

use super::*;

fn errors(text: &str) -> Vec<String> {
    let parsed = parse(FileId(0), text);
    parsed.diagnostics.iter().map(|d| format!("{} {}", d.code.text(), d.message)).collect()
}

#[test]
fn nothing_makes_it_fail() {
    let deep = |open: &str, close: &str| {
        format!(
            "facet C(v: Json)\nworkflow W() andThen {{ a = C(v = {}1{}) }}",
            open.repeat(10_000),
            close.repeat(10_000)
        )
    };
    for text in [
        deep("(", ")"),
        deep("[", "]"),
        deep("-", ""),
        deep("#{a: ", "}"),
        "(".repeat(10_000),
        "{[(".repeat(5_000),
    ] {
        assert!(!errors(&text).is_empty());
    }
    let blocks = format!("workflow W() {}", "andThen { a = F() ".repeat(10_000));
    assert!(errors(&blocks).iter().any(|error| error.starts_with("AFL0105")));
    let types = format!("facet F(a: {}Long", "[".repeat(10_000));
    assert!(errors(&types).iter().any(|error| error.starts_with("AFL0105")));
    let sum = format!("facet F(a: Long = 1{})", " + 1".repeat(10_000));
    assert!(errors(&sum).iter().any(|error| error.starts_with("AFL0105")));
    let joined = format!("facet F(a: String = \"\"{})", " ++ 1".repeat(10_000));
    assert_eq!(errors(&joined), [] as [String; 0]);
}

#[test]
fn every_prefix_of_a_program_gives_a_tree() {
    let text = include_str!("../../../../../conformance/syntax_layout_mix.afl");
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        parse(FileId(0), &text[..end]);
    }
}
