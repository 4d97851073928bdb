//! The kinds of stored steps.

use crate::state::Path;
use crate::wire::wire_enum;

wire_enum! {
    /// The kinds of document 003, "Object Types".
    pub enum ObjectType ("object type") {
        /// A step that calls a facet.
        VariableAssignment = "VariableAssignment",
        YieldAssignment = "YieldAssignment",
        SchemaInstantiation = "SchemaInstantiation",
        Workflow = "Workflow",
        AndThen = "AndThen",
        /// A `foreach`.
        AndMap = "AndMap",
        /// A `when`.
        AndMatch = "AndMatch",
        /// A mixin.
        Facet = "Facet",
        Before = "Before",
        After = "After",
        Block = "Block",
    }
}

impl ObjectType {
    /// The way through the states (document 003, `create_state_changer`).
    pub const fn path(self) -> Path {
        match self {
            Self::VariableAssignment | Self::Workflow | Self::Facet | Self::Before | Self::After => {
                Path::Statement
            }
            Self::YieldAssignment => Path::Yield,
            Self::SchemaInstantiation => Path::Schema,
            Self::AndThen | Self::AndMap | Self::AndMatch | Self::Block => Path::Block,
        }
    }

    pub const fn is_block(self) -> bool {
        matches!(self, Self::AndThen | Self::AndMap | Self::AndMatch | Self::Block)
    }

    /// A schema's instance is none: it has no phase that a statement has beyond its arguments.
    pub const fn is_statement(self) -> bool {
        matches!(self, Self::VariableAssignment | Self::YieldAssignment)
    }
}
