//! The interface of a learner: the part of a training that differs between methods.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use selfmate_chess::Seed;
use selfmate_nn::Model;
use selfmate_run::{Alarm, Checkpoint, Run};
use selfmate_selfplay::{
    CancelToken, GameSource, GenerationJob, LocalThreads, PlayLimits, PlayedGeneration, Stage,
    Status, Watch, play_generation,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config::{RatingConfig, SavingConfig};
use crate::error::TrainingError;
use crate::options::{End, Hardware};

/// A way to learn, in rounds.
///
/// A round depends only on the seed and on earlier rounds, not on time or the number of threads. So
/// a killed run continues from its last checkpoint and computes the lost rounds again, with the same
/// result. The only exception is how many games `clone` gathers within a time budget.
pub trait Learner: Sized {
    type Config;

    /// The files of its checkpoints.
    const FILES: &'static [&'static str];
    /// The files that only training needs; they are removed from old checkpoints.
    const TRAINING_FILES: &'static [&'static str];
    /// Settings that a checkpoint depends on. They cannot be changed in an existing run.
    const FIXED_SETTINGS: &'static [&'static str] = &["network"];
    /// Whether a budget of games ends the training; false if games are only gathered at the start.
    const ENDS_BY_GAMES: bool = true;

    fn saving(config: &Self::Config) -> SavingConfig;

    /// When the model is rated against built-in players, if at all.
    fn rating(_config: &Self::Config) -> Option<&RatingConfig> {
        None
    }

    fn new(config: &Self::Config, seed: Seed, hardware: Hardware) -> Result<Self, TrainingError>;

    /// Restores a checkpoint that has all of [`Learner::FILES`].
    fn restore(
        config: &Self::Config,
        checkpoint: &Checkpoint,
        hardware: Hardware,
    ) -> Result<Self, TrainingError>;

    /// Reads what it needs from the run before the first round of a session. Messages for the user
    /// go to `notes`.
    fn prepare(
        &mut self,
        _config: &Self::Config,
        _totals: &Totals,
        _run: &mut Run,
        _pool: &rayon::ThreadPool,
        _notes: &mut Vec<String>,
    ) -> Result<(), TrainingError> {
        Ok(())
    }

    /// The contents of a checkpoint.
    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, TrainingError>;

    /// The model's step, for models that count their steps; otherwise the steps of all rounds are
    /// added.
    fn step(&self) -> Option<u64> {
        None
    }

    /// True when a round was interrupted. It is completed before a budget of games or steps is
    /// checked.
    fn is_mid_round(&self) -> bool {
        false
    }

    /// Runs one round; `None` when there was no time to finish it. The next call then continues or
    /// repeats the round, with the same result.
    fn round(
        &mut self,
        config: &Self::Config,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Round>, TrainingError>;

    /// Called when the budget is spent, without a deadline. Returns further metrics, or none when
    /// nothing has changed. A run that is resumed later must give the same result as one that never
    /// paused.
    fn finish(
        &mut self,
        _: &Self::Config,
        _: &mut RoundContext<'_>,
    ) -> Result<Curves, TrainingError> {
        Ok(Curves::new())
    }

    /// Why the training ends before its budget is spent, if it does.
    fn end(&self, _config: &Self::Config) -> Option<End> {
        None
    }

    /// The model to rate; only for learners with [`Learner::rating`].
    fn rated_model(&self) -> Result<Option<Model>, TrainingError> {
        Ok(None)
    }
}

/// The contribution of one round to a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    pub games: u64,
    /// Positions learned from.
    pub positions: u64,
    /// Nodes or simulations.
    pub nodes: u64,
    /// Steps of learning. A round counts as at least one unless the model counts its own steps.
    pub steps: u64,
    pub values: Curves,
    pub alarms: Vec<Alarm>,
}

/// Metrics by name.
pub type Curves = BTreeMap<String, f64>;

impl Round {
    pub fn add(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), value);
    }
}

/// What a run has done so far. Elapsed time counts all sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    pub rounds: u64,
    pub games: u64,
    pub positions: u64,
    pub nodes: u64,
    pub steps: u64,
    pub elapsed_s: f64,
}

impl Totals {
    pub(crate) fn add(&mut self, round: &Round, step: Option<u64>) {
        self.rounds += 1;
        self.games += round.games;
        self.positions += round.positions;
        self.nodes += round.nodes;
        // Checkpoints are identified by their steps.
        self.steps = step.unwrap_or(self.steps + round.steps.max(1));
    }
}

/// What a round can use.
pub struct RoundContext<'a> {
    /// The seed of the run.
    pub seed: Seed,
    /// The number of that seed.
    pub run_seed: u64,
    /// The totals before this round.
    pub totals: Totals,
    pub threads: usize,
    pub pool: &'a rayon::ThreadPool,
    pub cancel: CancelToken<'a>,
    pub run: &'a mut Run,
    pub source: &'a mut dyn GameSource,
    pub(crate) watch: &'a mut dyn Watch,
    pub(crate) limits: PlayLimits<'a>,
    pub(crate) elapsed_s: f64,
    pub(crate) began: Instant,
    /// The time budget, if there is one.
    pub(crate) minutes: Option<f64>,
    /// The budget of steps of the whole run.
    pub(crate) max_steps: Option<u64>,
}

impl RoundContext<'_> {
    /// A seed for one purpose within this round.
    pub fn seed_for(&self, purpose: &str) -> Seed {
        self.seed.derive(purpose).index(self.totals.rounds)
    }

    /// The time left, if it is limited.
    pub(crate) fn seconds_left(&self) -> Option<f64> {
        let left = self.limits.deadline?.saturating_duration_since(Instant::now());
        Some(left.as_secs_f64())
    }

    /// Reports the progress of the round.
    pub fn report(&mut self, stage: Stage, done: f64) {
        let status = self.status(stage, done);
        self.watch.status(&status);
    }

    /// Like [`RoundContext::report`], for a learner whose totals have changed since the round
    /// began.
    pub fn report_status(&mut self, status: &Status) {
        self.watch.status(status);
    }

    pub fn status(&self, stage: Stage, done: f64) -> Status {
        Status {
            stage,
            done,
            elapsed_s: self.elapsed_s(),
            generation: self.totals.rounds,
            games: self.totals.games,
            positions: self.totals.positions,
            simulations: self.totals.nodes,
            steps: self.totals.steps,
        }
    }

    pub fn elapsed_s(&self) -> f64 {
        self.elapsed_s + self.began.elapsed().as_secs_f64()
    }

    /// The share of the time budget that is spent; 0 without a time budget.
    pub fn time_spent(&self) -> f64 {
        self.minutes.map_or(0.0, |minutes| self.elapsed_s() / (60.0 * minutes).max(1e-9))
    }

    pub fn note(&mut self, text: &str) {
        self.watch.note(text);
    }

    /// Plays the games of a generation by the source, or by the threads of this process.
    pub fn play_generation(
        &mut self,
        job: GenerationJob<'_>,
        is_local: bool,
    ) -> Result<PlayedGeneration, TrainingError> {
        self.limits.status = self.status(Stage::Play, 0.0);
        let mut threads = LocalThreads(self.threads);
        let source = if is_local { &mut threads } else { &mut *self.source };
        Ok(play_generation(self.run, self.watch, source, job, &self.limits)?)
    }
}

/// A checkpoint file, parsed as JSON.
pub fn read_json<T: DeserializeOwned>(
    checkpoint: &Checkpoint,
    file: &'static str,
) -> Result<T, TrainingError> {
    let bytes = read_bytes(checkpoint, file)?;
    serde_json::from_slice(bytes).map_err(|error| state_error(checkpoint, file, &error))
}

pub fn read_bytes<'a>(
    checkpoint: &'a Checkpoint,
    file: &'static str,
) -> Result<&'a [u8], TrainingError> {
    let found = checkpoint.files.get(file).map(Vec::as_slice);
    found.ok_or_else(|| state_error(checkpoint, file, &"is missing"))
}

/// An error if the network has another shape than the settings.
pub fn check_shape<S: PartialEq + fmt::Debug>(
    checkpoint: &Checkpoint,
    file: &'static str,
    got: &S,
    expected: &S,
) -> Result<(), TrainingError> {
    if got == expected {
        return Ok(());
    }
    let message = format!("a network of {got:?}, but run.toml says {expected:?}");
    Err(state_error(checkpoint, file, &message))
}

/// The error for a checkpoint file with unexpected content.
pub fn state_error(
    checkpoint: &Checkpoint,
    file: &'static str,
    message: &dyn fmt::Display,
) -> TrainingError {
    TrainingError::State { step: checkpoint.step, file, message: message.to_string() }
}
