//! The interfaces of a trainable model: for any learner, and for learning by self-play.

use std::fmt::Debug;

use selfmate_chess::Seed;
use selfmate_nn::Model;
use selfmate_run::{GameRecord, RecordError};
use selfmate_selfplay::{Evaluators, SelfPlayConfig};

use crate::error::TrainingError;
use crate::final_phase::Selection;
use crate::learner::{Curves, RoundContext};
use crate::options::Hardware;
use crate::targets::Targets;

/// The checkpoint file of a network that plays and that [`Model::decode`] reads.
pub const MODEL: &str = "model.safetensors";
/// The checkpoint file of the optimiser and the weights in training.
pub const TRAINER: &str = "trainer.safetensors";

/// Mean losses of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    pub value: f32,
    pub policy: f32,
    /// The norm of the mean gradient, before clipping.
    pub gradient_norm: f32,
}

/// A network with its optimiser. The same batches give the same network, with any number of
/// threads.
pub trait TrainableModel: Sized {
    type Shape: PartialEq + Debug;
    /// The settings of the optimiser.
    type Training;
    /// A position with its targets.
    type Sample: Send + Sync;
    /// The checkpoint file of the network that plays. Its name tells which player reads it.
    const FILE: &'static str = MODEL;

    /// Starts with random weights.
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

    /// The input of [`TrainableModel::restore`].
    fn state(&self) -> Result<Vec<u8>, TrainingError>;

    /// The number of batches so far.
    fn step(&self) -> u64;

    fn learn(&mut self, batch: &[&Self::Sample], rate: f32) -> Result<Losses, TrainingError>;

    /// The content of [`TrainableModel::FILE`]. It may be an average of the weights in training.
    fn model_file(&self) -> Result<Vec<u8>, TrainingError>;

    /// The same network as evaluators of positions.
    fn evaluators(&self) -> Result<Evaluators, TrainingError>;

    /// The recorded positions of a game with their targets.
    fn samples(record: &GameRecord, targets: Targets) -> Result<Vec<Self::Sample>, RecordError>;
}

/// A model that [`crate::SelfPlayLearner`] trains.
pub trait SelfPlayModel: TrainableModel {
    /// The settings of [`SelfPlayModel::evaluate`].
    type Evaluation;
    /// The mean number of searches per game over a run, to estimate plans.
    const SEARCHES_PER_GAME: f64;

    /// The samples of a game for the final phase. By default those of all its positions.
    fn selected_samples(
        record: &GameRecord,
        targets: Targets,
        _selection: Selection,
    ) -> Result<Vec<Self::Sample>, RecordError> {
        Self::samples(record, targets)
    }

    /// The network that plays.
    fn model(&self) -> Result<Model, TrainingError>;

    /// The model's own evaluation after a round; `None` when it has none, when none is due or when
    /// there was no time.
    fn evaluate(
        &self,
        _config: &Self::Evaluation,
        _selfplay: &SelfPlayConfig,
        _context: &mut RoundContext<'_>,
    ) -> Result<Option<Curves>, TrainingError> {
        Ok(None)
    }
}
