//! Errors that end a training.

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
    /// There are no games to learn from.
    #[error("cannot get games to learn from: {0}")]
    Teacher(String),
    #[error(transparent)]
    SelfPlay(#[from] SelfPlayError),
    /// A setting has changed that the checkpoint depends on.
    #[error(
        "run.toml: {name} is {now}, but the checkpoint of step {step} was made with {then}: set it back, or start another run"
    )]
    Changed { name: String, then: String, now: String, step: u64 },
    /// A file of a checkpoint is missing or has other content than expected.
    #[error("checkpoint {step}: {file}: {message}")]
    State { step: u64, file: &'static str, message: String },
}
