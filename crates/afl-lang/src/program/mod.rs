//! The compiled program: every name resolved, every default and dependency in place.
//!
//! This is what a run is pinned to. The nodes follow the documents' names (`StepStmt`, `AndThenBlock`,
//! …) so that their readers find what they know. [`emit`](Program::emit) writes them as JSON and
//! [`load`] reads them; `wire` holds their form.

mod emit;
mod expr;
mod hash;
mod load;
mod node;
mod placeholder;
mod validate;
mod walk;
mod wire;
mod written;

pub use emit::{Document, Emit, Provenance};
pub use expr::{BinaryOp, Expr, ExprKind, InputRef, InputSource, StepRef, UnaryOp};
pub use hash::{NotAHash, ProgramHash};
pub use load::{LoadError, load};
pub use node::*;
pub use placeholder::placeholders;
pub use validate::{Referent, TIME_FACETS};
pub use wire::document::json_schema;
pub use wire::{JsonLayout, Locations};
pub use written::{cut, shortened};
