//! A small convolutional value network: 13 planes, 64 channels, two residual blocks, a head of 32
//! channels, 128 hidden units, one output between -1 and 1. Blocks have one or two convolutions;
//! batch norm is optional.
//!
//! The inputs are `planes13`; the output is for the side to move. Convolutions are matrix products;
//! [`BatchNetwork`] evaluates many positions at once. Training minimises the squared error with
//! Adam and has the same bits with any number of threads.

mod batch;
mod batch_norm;
pub(crate) mod board;
mod gradient;
mod network;
mod trainer;

pub use batch::{BatchNetwork, BatchScratch};
pub use gradient::{Sample, loss};
pub use network::{Network, Scratch, StoredShape, ValueNetConfig, ValueNetConfigError};
pub use trainer::Trainer;
