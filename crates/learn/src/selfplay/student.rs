//! The seam between the loop of self-play and the network that it trains.

use std::fmt::Debug;

use selfmate_chess::Seed;
pub use selfmate_nn::device::Evaluators;
use selfmate_nn::{Model, residual, sparse};
use selfmate_run::{GameRecord, RecordError};

use super::window::Targets;
use crate::learner::{Hardware, LearnError};

/// The evaluators of a network that came as a file: they play as the student that wrote it.
pub fn evaluators(model: &Model) -> Evaluators {
    match model {
        Model::Sparse(weights) => {
            let network = sparse::Network::new(weights);
            Box::new(move || Box::new(network.clone()))
        }
        Model::Residual(weights) => {
            let network = residual::Network::new(weights);
            Box::new(move || Box::new(residual::NetworkEvaluator::new(&network)))
        }
    }
}

/// Mean losses of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Of the value.
    pub value: f32,
    /// Of the policy.
    pub policy: f32,
    /// The length of the mean gradient, before it was clipped.
    pub gradient_norm: f32,
}

/// A network that learns from games against itself. The same batches make the same network, with
/// any number of threads.
pub trait Student: Sized {
    /// The shape of the network.
    type Shape: PartialEq + Debug;
    /// The settings of its optimiser.
    type Training;
    /// A position with what to say of it.
    type Sample: Send + Sync;
    /// The searches in a game, over a whole run: plans reckon with it.
    const SEARCHES: f64;

    /// A network of random weights.
    fn new(
        shape: &Self::Shape,
        training: &Self::Training,
        seed: Seed,
        hardware: Hardware,
    ) -> Result<Self, LearnError>;

    /// Goes on from a state.
    fn restore(
        state: &[u8],
        training: &Self::Training,
        hardware: Hardware,
    ) -> Result<Self, LearnError>;

    /// The shape that it has.
    fn shape(&self) -> Self::Shape;

    /// Everything needed to go on as if nothing had happened.
    fn state(&self) -> Result<Vec<u8>, LearnError>;

    /// How many batches have been learned.
    fn step(&self) -> u64;

    /// Learns from a batch.
    fn learn(&mut self, batch: &[&Self::Sample], rate: f32) -> Result<Losses, LearnError>;

    /// The network that should play, as a file.
    fn model(&self) -> Result<Vec<u8>, LearnError>;

    /// The same for the searches of self-play.
    fn evaluators(&self) -> Result<Evaluators, LearnError>;

    /// The positions of a stored game.
    fn samples(record: &GameRecord, targets: Targets) -> Result<Vec<Self::Sample>, RecordError>;

    /// The network that should play, as it is to be rated.
    fn network(&self) -> Result<Model, LearnError>;
}
