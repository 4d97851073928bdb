//! Random programs that hold together.
