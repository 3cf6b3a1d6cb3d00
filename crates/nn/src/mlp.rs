//! A small policy and value network: 768 inputs, two layers of 128, 4096 moves.
//!
//! The inputs are the features of `sparse768`. Moves are numbered from-square × 64 + to-square,
//! seen from the mover's side. Only the logits of legal moves are computed. [`Trainer`] follows the
//! policy gradient with an entropy bonus and the squared error of the value. Results do not depend
//! on the number of threads: each weight's gradient is summed by one thread in the order of the
//! batch.

mod evaluator;
mod gradient;
mod network;
mod trainer;

pub(crate) use evaluator::MAX_VALUE;
pub use evaluator::{NO_INDEX_LOGIT, NetworkEvaluator};
pub(crate) use gradient::{Goal, Touched, add, add_policy_gradient, mask_inactive};
pub use gradient::{LossWeights, Losses, Sample, Target, gradient, loss};
pub(crate) use network::{CANONICAL, MOVES, dot};
pub use network::{Forward, MlpConfig, MlpConfigError, Network};
pub use trainer::Trainer;
