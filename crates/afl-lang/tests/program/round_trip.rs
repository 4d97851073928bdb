//! A program reads back as it was written.
