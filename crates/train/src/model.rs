//! A model that a learner trains.

use std::fmt::Debug;

use selfmate_chess::Seed;
use selfmate_nn::Model;
use selfmate_run::{GameRecord, RecordError};
use selfmate_selfplay::{Evaluators, SelfPlayConfig};

use crate::error::TrainingError;
use crate::learner::{Curves, RoundContext};
use crate::options::Hardware;
use crate::targets::Targets;

/// The file of a checkpoint with the network that plays.
pub const MODEL: &str = "model.safetensors";
/// The file with the optimiser and its own copy of the weights.
pub const TRAINER: &str = "trainer.safetensors";

/// Mean losses of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    pub value: f32,
    pub policy: f32,
    /// The norm of the mean gradient, before clipping.
    pub gradient_norm: f32,
}

/// A network with its optimiser. The same batches make the same network, with any number of threads.
pub trait TrainableModel: Sized {
    type Shape: PartialEq + Debug;
    /// The settings of the optimiser.
    type Training;
    /// A position with its targets.
    type Sample: Send + Sync;
    /// The settings of [`TrainableModel::evaluate`].
    type Evaluation;
    /// The searches of a game, on average over a run: plans are estimated with it.
    const SEARCHES_PER_GAME: f64;

    /// Random weights.
    fn new(
        shape: &Self::Shape,
        training: &Self::Training,
        seed: Seed,
        hardware: Hardware,
    ) -> Result<Self, TrainingError>;

    fn restore(
        state: &[u8],
        training: &Self::Training,
        hardware: Hardware,
    ) -> Result<Self, TrainingError>;

    fn shape(&self) -> Self::Shape;

    /// Everything that [`TrainableModel::restore`] needs.
    fn state(&self) -> Result<Vec<u8>, TrainingError>;

    /// The number of batches learned.
    fn step(&self) -> u64;

    fn learn(&mut self, batch: &[&Self::Sample], rate: f32) -> Result<Losses, TrainingError>;

    /// The network that plays. It may be an average of the weights in training.
    fn model(&self) -> Result<Model, TrainingError>;

    /// The same network as a file.
    fn model_file(&self) -> Result<Vec<u8>, TrainingError>;

    /// The same network for the searches of self-play.
    fn evaluators(&self) -> Result<Evaluators, TrainingError>;

    /// The positions of a stored game with their targets.
    fn samples(record: &GameRecord, targets: Targets) -> Result<Vec<Self::Sample>, RecordError>;

    /// Evaluates the model after a round, in a way of its own; `None` when it has none, when none is
    /// due or when there was no time for it.
    fn evaluate(
        &self,
        _config: &Self::Evaluation,
        _selfplay: &SelfPlayConfig,
        _context: &mut RoundContext<'_>,
    ) -> Result<Option<Curves>, TrainingError> {
        Ok(None)
    }
}
