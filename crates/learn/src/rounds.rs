//! The loop of all learners that go in rounds: play a little, learn from it, and again.
//!
//! [`train`] is the loop, a [`Method`] what happens in a round. A round depends on the seed, on the
//! rounds before it and on nothing else, neither the clock nor the number of threads. So a run that
//! was killed goes on from its last checkpoint and computes again what was lost. The one exception is
//! how many games `clone` gathers within a budget of time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use selfmate_chess::Seed;
use selfmate_nn::sparse::TrainError;
use selfmate_run::{Checkpoint, Progress, Record, Run};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::desk::{Desk, Keep};
use crate::endgame;
use crate::learner::{End, Hardware, LearnError, Session};
use crate::selfplay::Source;
use crate::watch::{Stage, Status, Watch};
use crate::watchdog::Watchdog;

/// The file of a checkpoint that says what has been done so far: [`Totals`] as JSON.
pub const TOTALS: &str = "totals.json";

/// A way to learn in rounds.
pub trait Method: Sized {
    /// Its settings.
    type Config;

    /// The files of its checkpoints.
    const FILES: &'static [&'static str];
    /// The files that only training needs: old checkpoints lose them.
    const TRAINING: &'static [&'static str];
    /// Whether a budget of games is spent when so many have been played. Not so where they are only
    /// the lessons.
    const ENDS_BY_GAMES: bool = true;

    /// Which checkpoints are made and kept.
    fn saving(config: &Self::Config) -> SavingConfig;

    /// A new run.
    fn new(config: &Self::Config, seed: Seed, hardware: Hardware) -> Result<Self, LearnError>;

    /// Goes on from a checkpoint, which has all [`Method::FILES`].
    fn restore(
        config: &Self::Config,
        checkpoint: &Checkpoint,
        hardware: Hardware,
    ) -> Result<Self, LearnError>;

    /// What a checkpoint holds.
    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, LearnError>;

    /// Does what is left to do when the budget is spent, without a deadline, and says what it adds to
    /// the curves: nothing when nothing has changed. A run that goes on later must be the same as one
    /// that never paused.
    fn finish(&mut self, _: &Self::Config, _: &mut Room<'_>) -> Result<Curves, LearnError> {
        Ok(Curves::new())
    }

    /// Why there is nothing more to learn, if there is not.
    fn is_done(&self, _config: &Self::Config) -> Option<String> {
        None
    }

    /// Goes one round, or as far as there was time for: then `None`, and nothing has changed that
    /// the next attempt would notice.
    fn round(
        &mut self,
        config: &Self::Config,
        room: &mut Room<'_>,
    ) -> Result<Option<Round>, LearnError>;
}

/// Which checkpoints are made and kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavingConfig {
    /// Seconds between checkpoints.
    pub checkpoint_seconds: f64,
    /// Steps between checkpoints that are kept for good.
    pub keep_steps: u64,
}

/// What a round adds to a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// Games played.
    pub games: u64,
    /// Positions learned from.
    pub positions: u64,
    /// Nodes searched.
    pub nodes: u64,
    /// Steps of learning, at least one.
    pub steps: u64,
    /// Points of curves.
    pub values: Curves,
}

/// Points of curves, by name.
pub type Curves = BTreeMap<String, f64>;

impl Round {
    /// Adds a point to a curve.
    pub fn add(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), value);
    }
}

/// What a run has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Rounds.
    pub rounds: u64,
    /// Games played.
    pub games: u64,
    /// Positions learned from.
    pub positions: u64,
    /// Nodes searched.
    pub nodes: u64,
    /// Steps of learning.
    pub steps: u64,
    /// Seconds of training.
    pub elapsed_s: f64,
}

impl Totals {
    fn add(&mut self, round: &Round) {
        self.rounds += 1;
        self.games += round.games;
        self.positions += round.positions;
        self.nodes += round.nodes;
        // Checkpoints are told apart by their steps.
        self.steps += round.steps.max(1);
    }

    fn status(&self, stage: Stage, done: f64, elapsed_s: f64) -> Status {
        Status {
            stage,
            done,
            elapsed_s,
            generation: self.rounds,
            games: self.games,
            positions: self.positions,
            simulations: self.nodes,
            steps: self.steps,
        }
    }
}

/// What a round may use.
pub struct Room<'a> {
    /// The root of the run's randomness.
    pub seed: Seed,
    /// The number that it comes from.
    pub run_seed: u64,
    /// What was done before this round.
    pub totals: Totals,
    /// Threads to use.
    pub threads: usize,
    /// These threads.
    pub pool: &'a rayon::ThreadPool,
    /// When to give up.
    pub halt: Halt<'a>,
    /// The run's folder.
    pub run: &'a mut Run,
    /// Who plays, for methods whose games others may play.
    pub source: &'a mut dyn Source,
    watch: &'a mut dyn Watch,
    elapsed_s: f64,
    began: Instant,
    /// The budget of time, if there is one.
    minutes: Option<f64>,
}

/// Says when to give up a round.
#[derive(Clone, Copy)]
pub struct Halt<'a> {
    stop: &'a Arc<AtomicBool>,
    deadline: Option<Instant>,
    over: &'a Arc<AtomicBool>,
}

impl Room<'_> {
    /// The seed of this round for a purpose.
    pub fn seed_for(&self, purpose: &str) -> Seed {
        self.seed.derive(purpose).index(self.totals.rounds)
    }

    /// Tells how far the round is.
    pub fn tell(&mut self, stage: Stage, done: f64) {
        let elapsed_s = self.elapsed_s();
        self.watch.status(&self.totals.status(stage, done, elapsed_s));
    }

    fn elapsed_s(&self) -> f64 {
        self.elapsed_s + self.began.elapsed().as_secs_f64()
    }

    /// The share of the budget of time that is spent; 0 without such a budget.
    pub fn time_spent(&self) -> f64 {
        self.minutes.map_or(0.0, |minutes| self.elapsed_s() / (60.0 * minutes).max(1e-9))
    }

    /// Has the games of a round of an ending played, here or elsewhere.
    pub fn play_endings(
        &mut self,
        work: &endgame::Work<'_>,
    ) -> Result<Option<Vec<endgame::Log>>, LearnError> {
        let watch = &mut *self.watch;
        self.source.play_endings(work, &mut |text| watch.note(text))
    }

    /// Says something worth knowing.
    pub fn note(&mut self, text: &str) {
        self.watch.note(text);
    }
}

impl Halt<'_> {
    /// True when the round should be given up.
    pub fn is_over(self) -> bool {
        self.stop.load(Relaxed) || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// For whoever takes a flag: set a moment after the round should be given up.
    pub fn flag(self) -> Arc<AtomicBool> {
        Arc::clone(self.over)
    }
}

/// Trains until the budget is spent, there is nothing more to learn or the session is told to stop,
/// from the last checkpoint if there is one.
pub fn train<M: Method>(
    run: &mut Run,
    config: &M::Config,
    session: &Session<'_>,
    source: &mut dyn Source,
    watch: &mut dyn Watch,
) -> Result<End, LearnError> {
    let required: Vec<&str> = M::FILES.iter().copied().chain([TOTALS]).collect();
    let (mut desk, checkpoint) = Desk::open(run, session, watch, &required)?;
    let hardware = session.hardware;
    let threads = hardware.threads.max(1);
    let seed = Seed::new(session.seed);
    let (mut method, mut totals) = match &checkpoint {
        Some(checkpoint) => {
            let totals: Totals = json(checkpoint, TOTALS)?;
            (M::restore(config, checkpoint, hardware)?, totals)
        }
        None => (M::new(config, seed, hardware)?, Totals::default()),
    };
    desk.go_back(totals.rounds, totals.elapsed_s)?;
    desk.begin(totals.steps, totals.rounds)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| TrainError::Threads { threads, message: error.to_string() })?;
    loop {
        let end = if session.stop.load(Relaxed) {
            Some(End::Stopped)
        } else if is_spent::<M>(&desk, &totals) {
            Some(End::Finished)
        } else {
            method.is_done(config).map(End::Done)
        };
        let elapsed_s = desk.elapsed_s();
        let deadline = desk.deadline().filter(|_| end.is_none());
        let watchdog = Watchdog::new(session.stop, deadline);
        let mut room = Room {
            seed,
            run_seed: session.seed,
            source: &mut *source,
            totals,
            threads,
            pool: &pool,
            halt: Halt { stop: session.stop, deadline, over: watchdog.flag() },
            run: &mut *desk.run,
            watch: &mut *desk.watch,
            elapsed_s,
            began: Instant::now(),
            minutes: session.budget.minutes,
        };
        if let Some(end) = end {
            let values = match end {
                End::Stopped => Curves::new(),
                _ => method.finish(config, &mut room)?,
            };
            let is_changed = !values.is_empty();
            if is_changed {
                tell(&mut desk, &totals, values)?;
            }
            if is_changed || !desk.is_saved(totals.steps) {
                save(&mut desk, &method, config, &mut totals)?;
            }
            return desk.end(end);
        }
        let Some(mut round) = method.round(config, &mut room)? else { continue };
        totals.add(&round);
        let seconds = (desk.elapsed_s() - elapsed_s).max(1e-9);
        round.add("round_seconds", seconds);
        round.add("games_per_second", round.games as f64 / seconds);
        tell(&mut desk, &totals, round.values)?;
        // The last one is made after `finish`.
        if desk.is_due(M::saving(config).checkpoint_seconds) && !is_spent::<M>(&desk, &totals) {
            save(&mut desk, &method, config, &mut totals)?;
        }
    }
}

/// Adds to the curves.
fn tell(desk: &mut Desk<'_>, totals: &Totals, values: Curves) -> Result<(), LearnError> {
    desk.append(&Record::Progress(Progress {
        elapsed_s: desk.elapsed_s(),
        generation: totals.rounds,
        games: totals.games,
        positions: totals.positions,
        simulations: totals.nodes,
        steps: totals.steps,
        values,
    }))
}

fn is_spent<M: Method>(desk: &Desk<'_>, totals: &Totals) -> bool {
    desk.is_spent(if M::ENDS_BY_GAMES { totals.games } else { 0 }, totals.steps)
}

fn save<M: Method>(
    desk: &mut Desk<'_>,
    method: &M,
    config: &M::Config,
    totals: &mut Totals,
) -> Result<(), LearnError> {
    totals.elapsed_s = desk.elapsed_s();
    let mut files = method.files()?;
    files.push((TOTALS, serde_json::to_vec(totals).expect("totals are plain numbers")));
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    let keep = Keep { steps: M::saving(config).keep_steps, training: M::TRAINING };
    desk.save(totals.steps, &files, keep)
}

/// A file of a checkpoint, read as JSON.
pub fn json<T: DeserializeOwned>(
    checkpoint: &Checkpoint,
    file: &'static str,
) -> Result<T, LearnError> {
    let bytes = bytes(checkpoint, file)?;
    serde_json::from_slice(bytes).map_err(|error| fault(checkpoint, file, &error))
}

/// A file of a checkpoint.
pub fn bytes<'a>(checkpoint: &'a Checkpoint, file: &'static str) -> Result<&'a [u8], LearnError> {
    let found = checkpoint.files.get(file).map(Vec::as_slice);
    found.ok_or_else(|| fault(checkpoint, file, &"is missing"))
}

/// Refuses a network of another shape than the settings have: a checkpoint of an earlier version
/// does not tell the settings that it was made with.
pub fn check_shape<S: PartialEq + fmt::Debug>(
    checkpoint: &Checkpoint,
    file: &'static str,
    got: &S,
    expected: &S,
) -> Result<(), LearnError> {
    if got == expected {
        return Ok(());
    }
    let message = format!("a network of {got:?}, but run.toml says {expected:?}");
    Err(fault(checkpoint, file, &message))
}

/// The error for a file of a checkpoint that holds something else.
pub fn fault(
    checkpoint: &Checkpoint,
    file: &'static str,
    message: &dyn fmt::Display,
) -> LearnError {
    LearnError::State { step: checkpoint.step, file, message: message.to_string() }
}
