//! Every limit of the language, in one place; passing one is a diagnostic that names it.

/// Bytes of one source text. Offsets are 32-bit and the tree of a text is many times its size.
pub const MAX_SOURCE_BYTES: usize = 64 << 20;

/// How deep blocks, parentheses, lists and types may nest in one another. The parser, the checker and
/// the loader recurse once or twice a level, so this bounds their stacks.
pub const MAX_NESTING: u32 = 128;

/// How many operators may hang on one another on the left, as in `a + b + c`. `++` is exempt: its
/// operands are one list.
pub const MAX_OPERATOR_CHAIN: u32 = 256;

/// Statements of one block.
pub const MAX_STATEMENTS_PER_BLOCK: usize = 100_000;

/// Diagnostics reported for one text; a text with more is not AFL.
pub const MAX_DIAGNOSTICS: usize = 1_000;
