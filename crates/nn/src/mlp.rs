//! A small policy network with a value beside it: 768 inputs, two layers of 128, 4096 moves.
//!
//! Inputs are the features of `sparse768`, moves are numbered from-square × 64 + to-square as the
//! mover sees the board. Only the logits of legal moves are ever computed. [`Trainer`] follows the
//! policy gradient with an entropy bonus, and the squared error of the value; its gradient is
//! checked against finite differences. The same bits with any number of threads: each weight's
//! gradient is added up by one thread in the order of the batch.

mod evaluator;
mod gradient;
mod network;
mod trainer;

pub use evaluator::NetworkEvaluator;
pub use gradient::{LossWeights, Losses, Sample, Target, gradient, loss};
pub(crate) use network::CANONICAL;
pub use network::{Forward, MlpConfig, MlpConfigError, Network};
pub use trainer::Trainer;
