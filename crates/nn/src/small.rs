//! What small float networks have in common: weights in one piece, Adam, files.
//!
//! [`crate::mlp`] and [`crate::valuenet`] are such networks. They are far from the speed of
//! [`crate::sparse`] and [`crate::residual`] and do not need it; they are short enough to be read in
//! one go.

mod adam;
mod file;
pub(crate) mod kernel;
mod parameters;

pub use adam::{Adam, AdamConfig};
pub use parameters::{Layout, Parameters};

pub(crate) use file::{decode, encode, read_part};
