//! What all learners have in common: how they are called, how they end, how they fail.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selfmate_arena::MatchError;
use selfmate_nn::sparse::{TrainError, WeightsError};
use selfmate_nn::{Device, DeviceError, residual, small};
use selfmate_run::{Budget, RecordError, Run, RunError};
use selfmate_search::PlayerError;
use selfmate_search::memory::MemoryError;

use crate::alphazero::AlphaZero;
use crate::clone::Imitator;
use crate::config::{ConfigError, RunConfig, Settings};
use crate::endgame::{Endgame, LogError};
use crate::evolve::Evolve;
use crate::qlearn::QLearn;
use crate::reinforce::Reinforce;
use crate::selfplay::{Source, Threads};
use crate::tune::Tune;
use crate::value::Value;
use crate::watch::Watch;
use crate::zero::Zero;
use crate::{rounds, selfplay};

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The budget is spent.
    Finished,
    /// It was told to stop.
    Stopped,
    /// There is nothing more to learn, for this reason.
    Done(String),
    /// The guards gave up, for this reason.
    Collapsed(String),
}

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// The run folder cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A stored game that cannot be played again.
    #[error(transparent)]
    Game(#[from] RecordError),
    /// The config cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The network cannot learn.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A small network cannot learn.
    #[error(transparent)]
    Small(#[from] small::TrainError),
    /// The residual network cannot learn.
    #[error(transparent)]
    Residual(#[from] residual::TrainError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A position that no residual network can learn from.
    #[error(transparent)]
    Batch(#[from] residual::BatchError),
    /// Weights cannot be written or read.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The rating games cannot be played.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// Somebody whose moves are needed does not move.
    #[error(transparent)]
    Player(#[from] PlayerError),
    /// There is not enough memory for the settings.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// There is nothing to learn from.
    #[error("the teacher cannot teach: {0}")]
    Teacher(String),
    /// A game of an ending that cannot be one.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Games cannot be had from where they should come from.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
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

/// Trains until the budget is spent or `stop` is set, from the last checkpoint if there is one.
pub fn train(
    run: &mut Run,
    config: &RunConfig,
    budget: Budget,
    threads: usize,
    stop: &Arc<AtomicBool>,
    watch: &mut dyn Watch,
) -> Result<End, LearnError> {
    let hardware = Hardware { threads, device: Device::Cpu };
    let session = Session { seed: config.seed, budget, hardware, stop };
    train_from(run, &config.settings, &session, &mut Threads(threads), watch)
}

/// As [`train`], with games of self-play from this source; learners that play none against
/// themselves have no use for it.
pub fn train_from(
    run: &mut Run,
    settings: &Settings,
    session: &Session<'_>,
    source: &mut dyn Source,
    watch: &mut dyn Watch,
) -> Result<End, LearnError> {
    let trained = match settings {
        Settings::Zero(config) => selfplay::train::<Zero>(run, config, session, source, watch),
        Settings::AlphaZero(config) => {
            selfplay::train::<AlphaZero>(run, config, session, source, watch)
        }
        Settings::QLearn(config) => rounds::train::<QLearn>(run, config, session, source, watch),
        Settings::Evolve(config) => rounds::train::<Evolve>(run, config, session, source, watch),
        Settings::Tune(config) => rounds::train::<Tune>(run, config, session, source, watch),
        Settings::Reinforce(config) => {
            rounds::train::<Reinforce>(run, config, session, source, watch)
        }
        Settings::Value(config) => rounds::train::<Value>(run, config, session, source, watch),
        Settings::Endgame(config) => rounds::train::<Endgame>(run, config, session, source, watch),
        Settings::Clone(config) => {
            rounds::train::<Imitator<Zero>>(run, config, session, source, watch)
        }
        Settings::CloneResidual(config) => {
            rounds::train::<Imitator<AlphaZero>>(run, config, session, source, watch)
        }
    };
    // Where the whole folder is gone, the file that was missed first says too little.
    trained.map_err(|error| run.check_present().err().map_or(error, LearnError::from))
}

/// What a network learns with. Threads change nothing but the speed; devices round differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// Threads to use.
    pub threads: usize,
    /// Where residual networks are; other networks have no choice.
    pub device: Device,
}

/// One call of a learner: what does not belong to the run's config.
pub struct Session<'a> {
    /// The root of all randomness.
    pub seed: u64,
    /// When to stop.
    pub budget: Budget,
    /// What to learn with.
    pub hardware: Hardware,
    /// Ends the training when set.
    pub stop: &'a Arc<AtomicBool>,
}
