//! A small convolutional network that says who will win: 13 planes, 64 channels, two residual
//! blocks, a head of 32 channels, 128 hidden units, one number between -1 and 1.
//!
//! The planes are `planes13`; the number is the mover's. Convolutions are products of matrices; [`BatchNetwork`]
//! does many positions at once.
//! Training is the squared error with Adam; the gradient is checked against finite differences and
//! has the same bits with any number of threads.

mod batch;
mod board;
mod gradient;
mod network;
mod trainer;

pub use batch::{BatchNetwork, BatchScratch};
pub use gradient::{Sample, gradient, loss};
pub use network::{Network, Scratch, ValueNetConfig, ValueNetConfigError};
pub use trainer::Trainer;
