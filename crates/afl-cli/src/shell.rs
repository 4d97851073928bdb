//! Quotes text that a user copies into a shell.

pub(crate) fn word(text: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-/@:%+,".contains(character);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
