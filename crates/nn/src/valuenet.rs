//! A small convolutional value network: 13 planes, 64 channels, two residual blocks, a head of 32
//! channels, 128 hidden units, one output between -1 and 1.
//!
//! The inputs are `planes13`; the output is for the side to move. Convolutions are matrix products;
//! [`BatchNetwork`] evaluates many positions at once. Training minimises the squared error with
//! Adam and has the same bits with any number of threads.

mod batch;
mod board;
mod gradient;
mod network;
mod trainer;

pub use batch::{BatchNetwork, BatchScratch};
pub use gradient::{Sample, gradient, loss};
pub use network::{Network, Scratch, ValueNetConfig, ValueNetConfigError};
pub use trainer::Trainer;
