//! A small convolutional policy and value network for endings: 9 planes, 4096 moves.
//!
//! The inputs are `planes_krk` and the moves `from_to4096`, both as White sees the board; the value is
//! for the side to move. The policy has one raw logit for each pair of squares, and only those of
//! legal moves are computed. With skip connections the blocks are residual ones. The loss is that of
//! [`crate::mlp`]. Training has the same bits with any number of threads; [`NetworkEvaluator`]
//! convolves by Winograd's method, which differs in the last places.

mod evaluator;
mod gradient;
mod network;
mod trainer;
mod trunk;

pub use evaluator::NetworkEvaluator;
pub use gradient::{Sample, gradient, loss};
pub use network::{ConvConfig, ConvConfigError, Forward, Network};
pub use trainer::Trainer;
