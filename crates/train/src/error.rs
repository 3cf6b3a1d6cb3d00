//! Why a training cannot go on.

use selfmate_arena::MatchError;
use selfmate_nn::sparse::{TrainError, WeightsError};
use selfmate_nn::{DeviceError, residual, small};
use selfmate_run::{RecordError, RunError};
use selfmate_search::PlayerError;
use selfmate_search::memory::MemoryError;
use selfmate_selfplay::SelfPlayError;

use crate::config_error::ConfigError;

#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Game(#[from] RecordError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Train(#[from] TrainError),
    #[error(transparent)]
    Small(#[from] small::TrainError),
    #[error(transparent)]
    Residual(#[from] residual::TrainError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Batch(#[from] residual::BatchError),
    #[error(transparent)]
    Weights(#[from] WeightsError),
    #[error(transparent)]
    Match(#[from] MatchError),
    #[error(transparent)]
    Player(#[from] PlayerError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// There is nothing to learn from.
    #[error("the teacher cannot teach: {0}")]
    Teacher(String),
    #[error(transparent)]
    SelfPlay(#[from] SelfPlayError),
    /// `run.toml` was changed in a way that the checkpoint cannot follow.
    #[error(
        "run.toml: {name} is {now}, but the checkpoint of step {step} was made with {then}: set it back, or start another run"
    )]
    Changed {
        /// The setting.
        name: String,
        /// Its value when the checkpoint was made.
        then: String,
        /// Its value now.
        now: String,
        /// The checkpoint.
        step: u64,
    },
    /// A checkpoint that holds something else than a learner's state.
    #[error("checkpoint {step}: {file}: {message}")]
    State {
        /// The checkpoint.
        step: u64,
        /// The file.
        file: &'static str,
        /// What is wrong.
        message: String,
    },
}
