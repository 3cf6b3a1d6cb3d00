//! What a learner is: the part of a training that differs between methods.

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
/// A round depends on the seed and on the rounds before it, not on the clock and not on the number
/// of threads. So a run that was killed goes on from its last checkpoint and computes again what was
/// lost. The one exception is how many games `clone` gathers within a budget of time.
pub trait Learner: Sized {
    type Config;

    /// The files of its checkpoints.
    const FILES: &'static [&'static str];
    /// The files that only training needs: old checkpoints lose them.
    const TRAINING_FILES: &'static [&'static str];
    /// Settings that a checkpoint depends on: a run cannot go on with other values.
    const FIXED_SETTINGS: &'static [&'static str] = &["network"];
    /// Whether a budget of games ends the training. Not so where games are only gathered first.
    const ENDS_BY_GAMES: bool = true;

    fn saving(config: &Self::Config) -> SavingConfig;

    /// How the model is rated against our own players on the way.
    fn rating(_config: &Self::Config) -> Option<&RatingConfig> {
        None
    }

    fn new(config: &Self::Config, seed: Seed, hardware: Hardware) -> Result<Self, TrainingError>;

    /// Goes on from a checkpoint, which has all of [`Learner::FILES`].
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

    /// The step of its model, for learners whose model counts its steps; otherwise the steps of all
    /// rounds are added up.
    fn step(&self) -> Option<u64> {
        None
    }

    /// True when a round was interrupted: it is ended before a budget of games or steps counts.
    fn is_mid_round(&self) -> bool {
        false
    }

    /// Runs one round; `None` when there was no time for all of it. The next call then continues or
    /// repeats the round, with the same result.
    fn round(
        &mut self,
        config: &Self::Config,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Round>, TrainingError>;

    /// Does what is left to do when the budget is spent, without a deadline, and returns what it adds
    /// to the curves: nothing when nothing has changed. A run that is resumed later must be the same
    /// as one that never paused.
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

/// What a round adds to a run.
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

/// Points of curves, by name.
pub type Curves = BTreeMap<String, f64>;

impl Round {
    /// Adds a point to a curve.
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
        // Checkpoints are told apart by their steps.
        self.steps = step.unwrap_or(self.steps + round.steps.max(1));
    }
}

/// What a round may use.
pub struct RoundContext<'a> {
    /// The root of the run's randomness.
    pub seed: Seed,
    /// The number that it comes from.
    pub run_seed: u64,
    /// What was done before this round.
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
    /// The budget of time, if there is one.
    pub(crate) minutes: Option<f64>,
}

impl RoundContext<'_> {
    /// The seed of this round for a purpose.
    pub fn seed_for(&self, purpose: &str) -> Seed {
        self.seed.derive(purpose).index(self.totals.rounds)
    }

    /// Reports how far the round is.
    pub fn report(&mut self, stage: Stage, done: f64) {
        let status = self.status(stage, done);
        self.watch.status(&status);
    }

    /// As [`RoundContext::report`], for a learner whose totals have changed since the round began.
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

    /// The share of the budget of time that is spent; 0 without such a budget.
    pub fn time_spent(&self) -> f64 {
        self.minutes.map_or(0.0, |minutes| self.elapsed_s() / (60.0 * minutes).max(1e-9))
    }

    pub fn note(&mut self, text: &str) {
        self.watch.note(text);
    }

    /// Has the games of a generation played by the source, or by the threads of this process.
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

/// A file of a checkpoint, read as JSON.
pub fn read_json<T: DeserializeOwned>(
    checkpoint: &Checkpoint,
    file: &'static str,
) -> Result<T, TrainingError> {
    let bytes = read_bytes(checkpoint, file)?;
    serde_json::from_slice(bytes).map_err(|error| state_error(checkpoint, file, &error))
}

/// A file of a checkpoint.
pub fn read_bytes<'a>(
    checkpoint: &'a Checkpoint,
    file: &'static str,
) -> Result<&'a [u8], TrainingError> {
    let found = checkpoint.files.get(file).map(Vec::as_slice);
    found.ok_or_else(|| state_error(checkpoint, file, &"is missing"))
}

/// Refuses a network of another shape than that of the settings.
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

/// The error for a file of a checkpoint that does not hold what it should.
pub fn state_error(
    checkpoint: &Checkpoint,
    file: &'static str,
    message: &dyn fmt::Display,
) -> TrainingError {
    TrainingError::State { step: checkpoint.step, file, message: message.to_string() }
}
