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
    /// From `fn` to the body.
    pub(crate) signature: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TypeItem {
    pub(crate) name: String,
    /// Counted from one.
    pub(crate) line: usize,
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
            let body = code[at..].find('{').map_or(end, |brace| at + brace);
            let length = line_of(code, end) - line + 1;
            functions.push(Function { name, line, length, signature: code[at..body].to_owned() });
        }
    }
    functions
}

const MODULE_KEYWORDS: &[&str] = &["mod"];
const TYPE_KEYWORDS: &[&str] = &["struct", "enum", "union", "trait", "type"];

/// The types that a module has, those in inline modules and in calls of macros too.
///
/// Types in functions and the associated types of traits are left out: no other module can name them.
pub(super) fn types(code: &str) -> Vec<TypeItem> {
    let mut types = Vec::new();
    // For each open brace: does it belong to a module or a macro's call?
    let mut scopes: Vec<bool> = Vec::new();
    let mut head_start = 0;
    for (at, letter) in code.char_indices() {
        let is_item_end = matches!(letter, '{' | '}' | ';');
        if !is_item_end {
            continue;
        }
        let head = &code[head_start..at];
        if scopes.iter().all(|is_module| *is_module)
            && let Some((offset, name)) = type_name(head)
        {
            types.push(TypeItem { name: name.to_owned(), line: line_of(code, head_start + offset) });
        }
        match letter {
            '{' => scopes.push(opens_module(head)),
            '}' => drop(scopes.pop()),
            _ => {}
        }
        head_start = at + 1;
    }
    types
}

/// The type that an item's head declares, with the offset of its keyword.
fn type_name(head: &str) -> Option<(usize, &str)> {
    let mut words = words(head).skip_while(|(_, word)| !TYPE_KEYWORDS.contains(word));
    let (offset, _) = words.next()?;
    let (name_offset, name) = words.next()?;
    let is_variable = head[..name_offset].ends_with('$');
    // A head that has more before the keyword is an expression or a signature.
    let before = head[..offset].rsplit(']').next().unwrap_or_default().trim();
    let is_declaration = before.is_empty() || before.starts_with("pub") || before.starts_with("unsafe");
    (is_declaration && !is_variable).then_some((offset, name))
}

fn opens_module(head: &str) -> bool {
    let is_macro_call = head.trim_end().ends_with('!');
    is_macro_call || words(head).any(|(_, word)| MODULE_KEYWORDS.contains(&word))
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find(is_word)?;
        let end = text[start..].find(|letter| !is_word(letter)).map_or(text.len(), |length| start + length);
        from = end;
        Some((start, &text[start..end]))
    })
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

pub(super) fn line_of(code: &str, at: usize) -> usize {
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
    fn a_modules_types_are_found() {
        let code = "#[derive(A)]\npub(crate) struct One { a: u8 }\nstruct Two(u8);\npub mod m {\n    enum Three<T> {}\n    pub type Four = u8;\n}\nnames! {\n    pub enum Five { A }\n}\npub trait Six: Seven {\n    type Eight;\n    fn f() { struct Nine; }\n}\n";
        let found = types(code);
        let found: Vec<_> = found.iter().map(|found| (found.name.as_str(), found.line)).collect();
        assert_eq!(found, [("One", 2), ("Two", 3), ("Three", 5), ("Four", 6), ("Five", 9), ("Six", 11)]);
    }

    #[test]
    fn a_type_that_a_macro_will_declare_is_not_counted() {
        assert_eq!(
            types("macro_rules! m { ($name:ident) => { pub struct $name; }; }\npub type $name = u8;"),
            []
        );
    }

    #[test]
    fn test_code_is_found_by_its_attribute() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n}\n#[cfg(test)]\nuse b;\nfn c() {}";
        assert_eq!(test_lines(code), [2..=4, 5..=6]);
    }
}
