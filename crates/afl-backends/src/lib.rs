//! Backends of the store, one file and one feature each.
