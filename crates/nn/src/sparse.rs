//! The network of the `zero` learner: made for CPUs, evaluated in about a microsecond.
//!
//! [`Weights`] are the f32 masters, [`Network`] plays with them in integers, [`Trainer`] improves
//! them. The hidden layer sums one row of weights for each feature that is on; the value head
//! looks at all of it, the policy head takes one dot product for each legal move.

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
pub use file::{WeightsError, WeightsInfo, decode, encode, encode_for_play, load, save};
pub use float::{FloatNetwork, FloatOutput, evaluate};
pub use kernel::Kernel;
pub use network::Network;
pub use sample::{Sample, SampleError};
pub use static_evaluator::NetworkStaticEvaluator;
pub use trainer::{Losses, TrainError, Trainer, TrainerConfig};
pub use weights::Weights;
