//! AlphaZero's residual network, with our own convolutions for the CPU.
//!
//! [`Weights`] are f32 tensors in the usual order and names. [`Network`] plays with them: batch
//! norm folded in, convolutions by Winograd's F(4×4, 3×3), which cuts the board into exactly four
//! tiles. [`Trainer`] learns the same way, forwards and backwards. Silver et al. 2018, "A general
//! reinforcement learning algorithm".
//!
//! Invariants: a position has the same result in every batch and with any number of threads;
//! training has the same bits with any number of threads; unsafe code stands only in `kernel` and
//! the files below it.

pub(crate) mod average;
mod batch;
pub mod bench;
mod config;
mod evaluator;
mod file;
mod integer;
mod kernel;
mod network;
mod optimiser;
#[cfg(test)]
mod reference;
mod session;
mod squeeze;
mod trainer;
mod weights;
mod winograd;

pub use batch::{Batch, BatchError};
pub use config::{
    Config, ConfigError, MOVES, NORM_EPSILON, NORM_MOMENTUM, VALUE_HIDDEN, ValueHead,
};
pub use evaluator::NetworkEvaluator;
pub(crate) use file::ARCHITECTURE;
pub use file::{decode, encode, load, save};
#[cfg(feature = "burn")]
pub(crate) use file::{decode_parts, encode_parts};
pub use kernel::Kernel;
pub(crate) use kernel::{Floats, LANES, Left, Right, Shape, Tiles};
pub use network::Network;
pub(crate) use network::{End, Layer, TileRoom, packed};
pub use optimiser::Optimiser;
pub(crate) use session::boards_of;
#[cfg(feature = "burn")]
pub(crate) use session::chances;
pub use session::{Outputs, Session, ThreadsError};
#[cfg(feature = "burn")]
pub(crate) use trainer::{FIRST, SECOND};
pub use trainer::{Losses, TrainError, Trainer, TrainingConfig};
pub use weights::{Tensor, Weights};

pub use crate::file::{WeightsError, WeightsInfo};
