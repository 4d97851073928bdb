//! Every limit of the language, in one place; passing one is a diagnostic that names it.

/// Bytes of one source text. Offsets are 32-bit and the tree of a text is many times its size.
pub const MAX_SOURCE_BYTES: usize = 64 << 20;

/// How deep blocks, parentheses, lists and types may nest in one another. The parser, the checker and
/// the loader recurse once or twice a level, so this bounds their stacks.
pub const MAX_NESTING: u32 = 100;

/// How high the tree of one expression may be: operators, brackets and indices on one another. The
/// operands of `++` are one list and count as one. Checker, emitter and loader recurse once a level.
pub const MAX_EXPRESSION_HEIGHT: u32 = 200;

pub const MAX_STATEMENTS_PER_BLOCK: usize = 100_000;

/// Diagnostics reported for one text; a text with more is not AFL.
pub const MAX_DIAGNOSTICS: usize = 1_000;

/// Bytes of one compiled program as JSON. Its index has 32-bit offsets, and this is far from them.
pub const MAX_PROGRAM_BYTES: usize = 1 << 30;

/// How deep brackets may nest in a compiled program as JSON. A block takes four levels (`body`, the
/// block, `steps`, the step) and a list or a map fewer; an operator takes one; a few are around them. So
/// every program within the other limits can be loaded. The loader recurses once a level.
pub const MAX_PROGRAM_NESTING: usize = (4 * MAX_NESTING + MAX_EXPRESSION_HEIGHT + 32) as usize;

/// Places of one kind that one diagnostic shows; the next compilation shows the others.
pub const MAX_LABELS: usize = 8;
