//! The `zero` learner: a sparse network that learns from games against itself.
//!
//! [`train`] is the loop. A generation is a fixed number of games with one network; then the
//! network learns from the latest generations, and the next one is played with what it has
//! become. Nothing but the end of a run depends on the clock or on the number of threads, so a
//! run that was killed goes on as if nothing had happened: what is on disk is used, the rest is
//! computed again and comes out the same.

mod config;
mod guards;
mod plan;
mod play;
mod rating;
mod selfplay;
mod start;
mod state;
mod statistics;
mod window;

use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use selfmate_arena::MatchError;
use selfmate_chess::Seed;
use selfmate_nn::sparse::{self, Network, TrainError, Trainer, Weights, WeightsError, WeightsInfo};
use selfmate_run::{Alarm, GameRecord, Progress, Rating, Record, RecordError, Run, RunError};

pub use config::{GuardConfig, LearningConfig, Ramp, RatingConfig, SelfPlayConfig, ZeroConfig};
pub use guards::{Finding, Guards, Verdict};
pub use plan::plan_games;
pub use selfplay::{Generation, Played, SelfPlayer};
pub use state::{MODEL, STATE, State, TRAINER, WindowEntry};
pub use statistics::Statistics;
pub use window::{Targets, samples};

use crate::config::{Budget, ConfigError, RunConfig};
use crate::watch::{Stage, Status, Watch};
use window::Window;

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The budget is spent.
    Finished,
    /// It was told to stop.
    Stopped,
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
    /// Weights cannot be written or read.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The rating games cannot be played.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// A checkpoint that holds something else than a learner's state.
    #[error("checkpoint {step}: {STATE}: {message}")]
    State {
        /// The checkpoint.
        step: u64,
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
    let mut learner = Learner::open(run, config, threads, stop, watch)?;
    loop {
        if stop.load(Relaxed) {
            return learner.end(End::Stopped);
        }
        if learner.is_spent(budget) {
            return learner.end(End::Finished);
        }
        let Some((games, simulations)) = learner.play(budget)? else { continue };
        if let Some(reason) = learner.learn(&games, simulations)? {
            return learner.end(End::Collapsed(reason));
        }
        learner.checkpoint_if_due()?;
        learner.rate_if_due()?;
    }
}

/// A run while it is trained.
struct Learner<'a> {
    run: &'a mut Run,
    config: &'a RunConfig,
    threads: usize,
    stop: &'a Arc<AtomicBool>,
    watch: &'a mut dyn Watch,
    trainer: Trainer,
    window: Window,
    state: State,
    /// When this session began, and how much had been trained before.
    began: (Instant, f64),
    /// The training time of the last checkpoint.
    saved_s: f64,
    /// The step of the last checkpoint.
    saved_step: Option<u64>,
    /// Old checkpoints that have lost their optimiser.
    thinned: HashSet<u64>,
    /// The training time of the last rating.
    rated_s: f64,
    pool: rayon::ThreadPool,
}

impl<'a> Learner<'a> {
    fn open(
        run: &'a mut Run,
        config: &'a RunConfig,
        threads: usize,
        stop: &'a Arc<AtomicBool>,
        watch: &'a mut dyn Watch,
    ) -> Result<Learner<'a>, LearnError> {
        let (checkpoint, damages) = run.recover_checkpoint(&[MODEL, TRAINER, STATE])?;
        let mut notes: Vec<String> = damages
            .iter()
            .map(|damage| format!("{damage}; set aside, going on from the checkpoint before"))
            .collect();
        let seed = Seed::new(config.seed);
        let trainer_config = config.zero.learning.trainer;
        let (trainer, mut state, saved_step) = match &checkpoint {
            Some(checkpoint) => {
                let state = serde_json::from_slice(&checkpoint.files[STATE]);
                let state: State = state.map_err(|error| LearnError::State {
                    step: checkpoint.step,
                    message: error.to_string(),
                })?;
                let trainer =
                    Trainer::restore(&checkpoint.files[TRAINER], trainer_config, threads)?;
                (trainer, state, Some(checkpoint.step))
            }
            None => {
                let weights =
                    Weights::random(config.zero.network, seed).map_err(TrainError::from)?;
                (Trainer::new(weights, trainer_config, threads)?, State::default(), None)
            }
        };
        // Time is never given back, even when the work of it was lost.
        let metrics = run.metrics()?;
        let last_s = metrics.iter().filter_map(Record::elapsed_s).fold(0.0, f64::max);
        state.elapsed_s = state.elapsed_s.max(last_s);
        let is_new = metrics.is_empty();
        if !is_new && saved_step.is_none() {
            notes.push("no whole checkpoint yet; learning again from the stored games".to_owned());
        }
        run.rewind_metrics(state.generation)?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool =
            pool.map_err(|error| TrainError::Threads { threads, message: error.to_string() })?;
        let rated_s = run.metrics()?.iter().rev().find_map(|record| match record {
            Record::Rating(rating) => Some(rating.elapsed_s),
            _ => None,
        });
        let mut learner = Learner {
            began: (Instant::now(), state.elapsed_s),
            saved_s: state.elapsed_s,
            saved_step,
            thinned: HashSet::new(),
            rated_s: rated_s.unwrap_or(0.0),
            window: Window::default(),
            run,
            config,
            threads,
            stop,
            watch,
            trainer,
            state,
            pool,
        };
        learner.refill(&mut notes)?;
        for note in &notes {
            learner.watch.note(note);
        }
        learner.append(&if is_new {
            Record::Start {
                version: config.version.clone(),
                seed: config.seed,
                threads: threads as u64,
            }
        } else {
            Record::Resume {
                elapsed_s: learner.state.elapsed_s,
                step: learner.trainer.step(),
                generation: learner.state.generation,
                notes,
            }
        })?;
        Ok(learner)
    }

    /// Reads the games of the replay window again.
    fn refill(&mut self, notes: &mut Vec<String>) -> Result<(), LearnError> {
        let entries = std::mem::take(&mut self.state.window);
        for entry in entries {
            match self.run.read_chunk(entry.generation) {
                Ok(games) => {
                    self.add_to_window(&games, entry)?;
                    self.tell(Stage::Start, 0.0);
                }
                Err(RunError::Damaged(damage)) => {
                    notes.push(format!("{damage}; set aside, going on without these games"));
                    self.run.set_aside(entry.generation)?;
                }
                // Set aside by an earlier session, or deleted by hand.
                Err(RunError::Io { path, error }) if error.kind() == ErrorKind::NotFound => {
                    notes.push(format!("{}: {error}; going on without it", path.display()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The share of the plan that is done.
    fn progress(&self) -> f64 {
        self.state.games as f64 / self.config.zero.plan_games as f64
    }

    fn elapsed_s(&self) -> f64 {
        self.began.1 + self.began.0.elapsed().as_secs_f64()
    }

    fn is_spent(&self, budget: Budget) -> bool {
        budget.minutes.is_some_and(|minutes| self.elapsed_s() >= 60.0 * minutes)
            || budget.games.is_some_and(|games| self.state.games >= games)
            || budget.steps.is_some_and(|steps| self.trainer.step() >= steps)
    }

    /// Plays the next generation, or finds it on disk; `None` when there was no time for all of
    /// it. Also the simulations that it took.
    fn play(&mut self, budget: Budget) -> Result<Option<(Vec<GameRecord>, u64)>, LearnError> {
        let zero = &self.config.zero;
        let generation = Generation {
            config: self.state.guards.adapt(&zero.selfplay),
            seed: Seed::new(self.config.seed).derive("games"),
            sims: zero.selfplay.sims.at(self.progress()).round() as u64,
            network: self.trainer.step(),
        };
        // Always a whole generation, so that where a run pauses changes nothing.
        let numbers = self.state.games..self.state.games + zero.selfplay.generation_games;
        let network = Network::new(self.trainer.average());
        let status = self.status(Stage::Play, 0.0);
        let deadline = budget.minutes.and_then(|minutes| {
            let left = Duration::try_from_secs_f64((60.0 * minutes - self.elapsed_s()).max(0.0));
            Instant::now().checked_add(left.ok()?)
        });
        let hands = play::Hands { threads: self.threads, stop: self.stop, deadline, status };
        let index = self.state.generation;
        let played =
            play::play(self.run, index, &generation, numbers, &network, &hands, self.watch)?;
        self.state.simulations += played.simulations;
        Ok(played.games.map(|games| (games, played.simulations)))
    }

    /// Learns from a generation's games; the reason when the guards give up.
    fn learn(
        &mut self,
        games: &[GameRecord],
        simulations: u64,
    ) -> Result<Option<String>, LearnError> {
        let started = Instant::now();
        let play_s = self.elapsed_s() - self.state.elapsed_s;
        let learning = &self.config.zero.learning;
        let progress = self.progress();
        let statistics = Statistics::of(games, &self.config.zero.selfplay);
        let entry = WindowEntry {
            generation: self.state.generation,
            positions: statistics.positions,
            result_weight: self.state.guards.result_weight(learning.result_weight.at(progress)),
            entropy: statistics.entropy,
        };
        self.add_to_window(games, entry)?;
        self.state.games += statistics.games;
        self.state.positions += statistics.positions;
        self.trim_window();
        let losses = self.train_batches(progress)?;
        let divergence =
            losses.map(|losses| (losses.policy - self.state.window_entropy()).max(0.0));
        self.state.generation += 1;

        let mut values = statistics.values();
        let mut add = |name: &str, value: f64| _ = values.insert(name.to_owned(), value);
        if let Some(losses) = losses {
            add("loss.value", losses.value);
            add("loss.policy", losses.policy);
            add("gradient_norm", losses.gradient_norm);
        }
        if let Some(divergence) = divergence {
            add("policy_divergence", divergence);
        }
        let learn_s = started.elapsed().as_secs_f64();
        let steps = self.trainer.step();
        add("sims", self.config.zero.selfplay.sims.at(progress).round());
        add("learning_rate", learning.rate.at(progress));
        add("window", self.window.len() as f64);
        add("play_seconds", play_s);
        add("learn_seconds", learn_s);
        add("games_per_second", statistics.games as f64 / (play_s + learn_s));
        self.state.elapsed_s = self.elapsed_s();
        add("simulations_per_second", simulations as f64 / play_s.max(1e-9));
        self.append(&Record::Progress(Progress {
            elapsed_s: self.state.elapsed_s,
            generation: self.state.generation,
            games: self.state.games,
            positions: self.state.positions,
            simulations: self.state.simulations,
            steps,
            values,
        }))?;
        self.guard(&statistics, divergence)
    }

    /// Looks for signs of collapse and does something about them.
    fn guard(
        &mut self,
        statistics: &Statistics,
        divergence: Option<f64>,
    ) -> Result<Option<String>, LearnError> {
        let generation = self.state.generation;
        let config = &self.config.zero.guards;
        let (findings, verdict) =
            self.state.guards.look(generation, statistics, divergence, config);
        let action = match verdict {
            Verdict::GoOn => "watched: the remedy is at work".to_owned(),
            Verdict::Remedy => format!(
                "for {} generations: more varied starts, values from results alone",
                config.remedy_generations
            ),
            Verdict::GiveUp => format!("stopped: {} remedies have not helped", config.max_remedies),
        };
        for finding in &findings {
            self.append(&Record::Alarm(Alarm {
                elapsed_s: self.state.elapsed_s,
                generation,
                name: finding.name.to_owned(),
                value: finding.value,
                bound: finding.bound,
                meaning: finding.meaning.to_owned(),
                action: action.clone(),
            }))?;
        }
        let reason = findings.first().filter(|_| verdict == Verdict::GiveUp).map(|finding| {
            format!(
                "{} is {:.3} (bound {:.3}): {}; {action}",
                finding.name, finding.value, finding.bound, finding.meaning
            )
        });
        Ok(reason)
    }

    fn add_to_window(
        &mut self,
        games: &[GameRecord],
        entry: WindowEntry,
    ) -> Result<(), LearnError> {
        let targets = Targets {
            result_weight: entry.result_weight as f32,
            discount: self.config.zero.selfplay.discount,
        };
        let samples = self.pool.install(|| samples(games, targets))?;
        self.window.push(samples);
        self.state.window.push(entry);
        Ok(())
    }

    fn trim_window(&mut self) {
        let learning = &self.config.zero.learning;
        let share = (self.state.positions as f64 * learning.window_share) as usize;
        self.window.trim(share.min(learning.window));
        let forgotten = self.state.window.len() - self.window.generations();
        self.state.window.drain(..forgotten);
    }

    /// Learns as many batches as the positions so far allow; mean losses, unless there were none.
    fn train_batches(&mut self, progress: f64) -> Result<Option<MeanLosses>, LearnError> {
        let learning = &self.config.zero.learning;
        let due = (self.state.positions as f64 * learning.reuse / learning.batch as f64) as u64;
        let first = self.trainer.step();
        let seed = Seed::new(self.config.seed).derive("batches");
        let mut sum = MeanLosses::default();
        for step in first..due {
            let mut rng = seed.index(step).rng();
            let batch = self.window.draw(learning.batch, &mut rng);
            let warm = ((step + 1) as f64 / learning.warmup_steps.max(1) as f64).min(1.0);
            let losses = self.trainer.train(&batch, (learning.rate.at(progress) * warm) as f32)?;
            sum.value += f64::from(losses.value);
            sum.policy += f64::from(losses.policy);
            sum.gradient_norm += f64::from(losses.gradient_norm);
            if step % 16 == 0 {
                self.tell(Stage::Learn, (step - first) as f64 / (due - first) as f64);
            }
        }
        let count = (due.saturating_sub(first)) as f64;
        Ok((count > 0.0).then(|| MeanLosses {
            value: sum.value / count,
            policy: sum.policy / count,
            gradient_norm: sum.gradient_norm / count,
        }))
    }

    fn checkpoint_if_due(&mut self) -> Result<(), LearnError> {
        let learning = &self.config.zero.learning;
        if self.elapsed_s() >= self.saved_s + learning.checkpoint_seconds {
            self.checkpoint()?;
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), LearnError> {
        let step = self.trainer.step();
        if self.saved_step == Some(step) {
            return Ok(());
        }
        let model = sparse::encode_for_play(self.trainer.average(), WeightsInfo { step })?;
        let trainer = self.trainer.state()?;
        let state = serde_json::to_vec(&self.state).expect("a state is plain data");
        self.run.save_checkpoint(step, &[(MODEL, &model), (TRAINER, &trainer), (STATE, &state)])?;
        (self.saved_step, self.saved_s) = (Some(step), self.elapsed_s());
        self.forget_checkpoints()
    }

    /// Keeps the last checkpoints whole, of older ones now and then the network.
    fn forget_checkpoints(&mut self) -> Result<(), LearnError> {
        let mut steps = self.run.steps()?;
        // Later ones are left from before the run had to go back.
        steps.retain(|&step| step <= self.trainer.step());
        let old = steps.len().saturating_sub(WHOLE_CHECKPOINTS);
        let mut kept = None;
        for &step in &steps[..old] {
            if kept.is_some_and(|kept| step < kept + self.config.zero.learning.keep_steps) {
                self.run.remove_checkpoint(step)?;
                continue;
            }
            kept = Some(step);
            if !self.thinned.insert(step) {
                continue;
            }
            match self.run.thin_checkpoint(step, &[TRAINER]) {
                Err(RunError::Damaged(damage)) => {
                    self.watch.note(&format!("{damage}; no matter, there are newer ones"));
                }
                result => result?,
            }
        }
        Ok(())
    }

    fn rate_if_due(&mut self) -> Result<(), LearnError> {
        let config = &self.config.zero.rating;
        if config.every_seconds <= 0.0 || self.elapsed_s() < self.rated_s + config.every_seconds {
            return Ok(());
        }
        self.tell(Stage::Rate, 0.0);
        let seed = self.config.seed.wrapping_add(self.state.generation);
        let report = rating::rate(self.trainer.average(), config, seed, self.threads, self.stop)?;
        self.rated_s = self.elapsed_s();
        self.state.elapsed_s = self.rated_s;
        if report.games == 0 {
            return Ok(());
        }
        self.append(&Record::Rating(Rating {
            elapsed_s: self.rated_s,
            step: self.trainer.step(),
            generation: self.state.generation,
            elo: report.elo,
            low: report.elo_low,
            high: report.elo_high,
            games: report.games,
        }))
    }

    /// Saves what there is and says why the run ends here.
    fn end(mut self, end: End) -> Result<End, LearnError> {
        self.state.elapsed_s = self.elapsed_s();
        self.checkpoint()?;
        let reason = match &end {
            End::Finished => "the budget is spent".to_owned(),
            End::Stopped => "stopped".to_owned(),
            End::Collapsed(reason) => reason.clone(),
        };
        let elapsed_s = self.state.elapsed_s;
        self.append(&Record::End { elapsed_s, reason })?;
        Ok(end)
    }

    fn append(&mut self, record: &Record) -> Result<(), LearnError> {
        self.run.append_metric(record)?;
        self.watch.record(record);
        Ok(())
    }

    fn status(&self, stage: Stage, done: f64) -> Status {
        Status {
            stage,
            done,
            elapsed_s: self.elapsed_s(),
            generation: self.state.generation,
            games: self.state.games,
            positions: self.state.positions,
            simulations: self.state.simulations,
            steps: self.trainer.step(),
        }
    }

    fn tell(&mut self, stage: Stage, done: f64) {
        let status = self.status(stage, done);
        self.watch.status(&status);
    }
}

/// Checkpoints that keep their optimiser.
const WHOLE_CHECKPOINTS: usize = 3;

#[derive(Clone, Copy, Debug, Default)]
struct MeanLosses {
    value: f64,
    policy: f64,
    gradient_norm: f64,
}
