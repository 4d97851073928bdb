//! The placeholders of a prompt: `{name}` and `{name.field}` stand for parameters; any other brace is text.

/// How expressions refer to a parameter, and prompts do not.
const INPUT: &str = "$.";

/// The placeholders of a text, each with the position of its brace. `{$.name}` is one too, which the checker refuses.
pub fn placeholders(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('{').filter_map(|(start, _)| {
        let rest = &text[start + 1..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
        let (name, behind) = rest.split_at(rest.find(|c| !is_part(c))?);
        let begins_word = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_word = |word: &str| word.starts_with(begins_word) && !word.contains('$');
        let path = name.strip_prefix(INPUT).unwrap_or(name);
        (behind.starts_with('}') && path.split('.').all(is_word)).then_some((start, name))
    })
}
