//! The network of the `zero` learner: made for CPUs, evaluated in about a microsecond.
//!
//! [`Weights`] are the f32 master weights, [`Network`] evaluates positions with integers, and
//! [`Trainer`] trains the weights. The hidden layer sums one row of weights per active feature. The
//! value head uses the whole layer; the policy head computes one dot product per legal move.

mod accumulator;
pub mod bench;
mod config;
mod file;
mod float;
mod gradient;
mod kernel;
mod network;
mod optimiser;
mod sample;
mod static_evaluator;
mod trainer;
mod weights;

pub use config::{ConfigError, SparseConfig, ValueHead};
pub use file::{WeightsError, WeightsInfo, decode, encode, encode_for_play, load};
pub use float::{FloatNetwork, FloatOutput, evaluate};
pub use kernel::Kernel;
pub use network::Network;
pub use sample::{Sample, SampleError};
pub use static_evaluator::NetworkStaticEvaluator;
pub use trainer::{Losses, TrainError, Trainer, TrainerConfig};
pub use weights::Weights;
