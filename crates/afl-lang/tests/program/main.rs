//! The compiled program: written, read, hashed and described.

mod build;
mod emit;
mod load;
mod random;
mod round_trip;
mod schema;
