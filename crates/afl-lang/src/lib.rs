//! AFL from text to a checked program.
