//! AlphaZero's residual network, with our own convolutions for the CPU.
//!
//! [`Weights`] are f32 tensors with the usual order and names. [`Network`] is prepared for
//! inference: batch norm is folded in, and convolutions use Winograd's F(4×4, 3×3), which divides
//! the board into exactly four tiles. [`Trainer`] uses the same method forwards and backwards.
//! Silver et al. 2018, "A general reinforcement learning algorithm".
//!
//! Invariants: a position has the same result in every batch and with any number of threads;
//! training has the same bits with any number of threads; unsafe code is only in `kernel` and the
//! files below it.

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
pub use config::{Config, ConfigError, MOVES, NORM_EPSILON, NORM_MOMENTUM, ValueHead};
pub use evaluator::NetworkEvaluator;
pub(crate) use file::ARCHITECTURE;
pub use file::{decode, encode, load};
#[cfg(feature = "burn")]
pub(crate) use file::{decode_parts, encode_parts};
pub use kernel::Kernel;
pub(crate) use kernel::{Floats, LANES, Left, Right, Shape, Tiles};
pub use network::Network;
pub(crate) use network::{End, Layer, TileScratch, packed};
pub use optimiser::Optimiser;
pub(crate) use session::boards_of;
#[cfg(feature = "burn")]
pub(crate) use session::wdl_of_outputs;
pub use session::{Outputs, Session, ThreadsError};
#[cfg(feature = "burn")]
pub(crate) use trainer::{FIRST, SECOND};
pub use trainer::{Losses, TrainError, Trainer, TrainingConfig};
pub use weights::{Tensor, Weights};

pub use crate::file::{WeightsError, WeightsInfo};
