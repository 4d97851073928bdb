//! Finds functions and test code in the code layer of a file by matching braces.

use std::ops::RangeInclusive;

use super::layers::is_word;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of `fn`, counted from one.
    pub(crate) line: usize,
    /// From the line of `fn` to the line of the closing brace, both counted.
    pub(crate) length: usize,
}

/// All functions with a body, those in tests, traits and macros too.
pub(super) fn functions(code: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        // `r#fn` is a name.
        if code[..at].ends_with(|before| is_word(before) || before == '#') {
            continue;
        }
        let after = code[at + 3..].trim_start();
        let name: String = after.chars().take_while(|letter| is_word(*letter) || *letter == '$').collect();
        if let Some((End::Body, end)) = item_end(code, at)
            && !name.is_empty()
        {
            let line = line_of(code, at);
            functions.push(Function { name, line, length: line_of(code, end) - line + 1 });
        }
    }
    functions
}

/// The lines of each item that is compiled for tests only.
pub(super) fn test_lines(code: &str) -> Vec<RangeInclusive<usize>> {
    ["#[cfg(test", "#[cfg(all(test"]
        .into_iter()
        .flat_map(|attribute| code.match_indices(attribute))
        .map(|(at, _)| {
            let end = item_end(code, at).map_or(at, |(_, end)| end);
            line_of(code, at)..=line_of(code, end)
        })
        .collect()
}

#[derive(Clone, Copy)]
enum End {
    Body,
    Semicolon,
}

/// Where the item that starts at `start` ends: at the brace that closes its body, or at its semicolon.
fn item_end(code: &str, start: usize) -> Option<(End, usize)> {
    let mut groups = 0_usize;
    let mut braces = 0_usize;
    for (offset, letter) in code[start..].char_indices() {
        let at = start + offset;
        match letter {
            '(' | '[' => groups += 1,
            ')' | ']' => groups = groups.checked_sub(1)?,
            '{' => braces += 1,
            '}' => {
                braces = braces.checked_sub(1)?;
                if braces == 0 && groups == 0 {
                    return Some((End::Body, at));
                }
            }
            ';' if braces == 0 && groups == 0 => return Some((End::Semicolon, at)),
            _ => {}
        }
    }
    None
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str, expected: &[(&str, usize, usize)]) {
        let found = functions(code);
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.length)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_function_reaches_from_its_name_to_its_closing_brace() {
        check("\npub fn a(\n    x: [u8; 2],\n) {\n    { x }\n}\nfn b() {}\n", &[("a", 2, 5), ("b", 7, 1)]);
    }

    #[test]
    fn a_nested_function_counts_for_itself_and_for_its_outer_one() {
        check("fn a() {\n    fn b() {\n    }\n}", &[("a", 1, 4), ("b", 2, 2)]);
    }

    #[test]
    fn a_declaration_a_type_and_a_raw_name_are_no_functions() {
        check("trait T { fn a(&self); }\ntype F = fn (u8);\nlet r#fn = 1;", &[]);
    }

    #[test]
    fn test_code_is_found_by_its_attribute() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n}\n#[cfg(test)]\nuse b;\nfn c() {}";
        assert_eq!(test_lines(code), [2..=4, 5..=6]);
    }
}
