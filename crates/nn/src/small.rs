//! What small float networks have in common: weights in one piece, Adam, files, a trainer.
//!
//! [`crate::mlp`] and [`crate::valuenet`] are such networks. They are far from the speed of
//! [`crate::sparse`] and [`crate::residual`] and do not need it; they are short enough to be read in
//! one go.

mod adam;
mod file;
pub(crate) mod kernel;
mod network;
mod parameters;
mod trainer;

pub use adam::{Adam, AdamConfig};
pub use network::{Network, Shape};
pub use parameters::{Layout, Parameters};
pub use trainer::{TrainError, Trainer};

use file::{encode, read_part};
