//! The canonical text of a program. There are no options.
//!
//! Only blanks, line ends, separators and trailing commas change, and `uses` becomes `use`. Literals and
//! scripts stay as they were written, byte for byte.
//!
//! - Four blanks of indentation, lines of at most 100 columns where they can be broken.
//! - Blank lines of the user stay, several become one; none stands at the edge of a block. Declarations
//!   that span lines, and namespaces, have a blank line around them.
//! - A list in brackets is on one line, or has a line for each element and a trailing comma. If its
//!   only element is a list, a map or a string that spans lines, their brackets share their lines.
//! - A signature that is too long breaks its parameters, then its returns; only its returns if those
//!   need several lines anyway.
//! - Mixins, and a script on one line, that do not fit behind a call or a signature have a line each.
//!   The next clause begins a line: `andThen {` stands below the declaration's first letter and its
//!   block is indented once.
//! - A long expression breaks before all operators of its lowest precedence.
//! - A block of one simple statement, or a schema, that was written on one line stays there if it fits.
//! - A comment on its own line stays on its own line, one behind something stays behind it. A comment
//!   that needs the rest of its line breaks the lists around it.

mod block;
mod comments;
mod entries;
mod expr;
mod item;
mod layout;
mod list;
mod printer;
mod render;

use crate::diagnostic::Diagnostic;
use crate::source::FileId;
use crate::syntax;
use printer::Printer;

/// The canonical text, or the errors of a text that does not parse.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let parsed = syntax::parse(FileId::default(), text);
    let errors: Vec<_> = parsed.diagnostics.into_iter().filter(Diagnostic::is_error).collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut printer = Printer::new(text, &parsed.tree);
    printer.file(&parsed.tree);
    Ok(printer.layout.finish())
}
