//! Common parts of small float networks: weights in one vector, Adam, files, a trainer.
//!
//! [`crate::mlp`], [`crate::conv`] and [`crate::valuenet`] use them. These networks are much slower than
//! [`crate::sparse`] and [`crate::residual`], and short enough to read in one go.

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
