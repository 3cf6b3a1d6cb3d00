//! Learning from games against itself, whatever the network.
//!
//! [`train`] is the loop, a [`Student`] the network. A generation is a fixed number of games with
//! one network; then the network learns from the latest generations, and the next one is played
//! with what it has become. Nothing but the end of a run depends on the clock or on the number of threads, so a
//! run that was killed goes on as if nothing had happened: what is on disk is used, the rest is
//! computed again and comes out the same. Who plays the games is a [`Source`]'s affair.

mod check;
mod config;
mod game;
mod guards;
mod plan;
mod play;
mod rating;
mod source;
mod start;
mod state;
mod statistics;
mod student;
mod window;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use selfmate_chess::Seed;
use selfmate_nn::sparse::TrainError;
use selfmate_run::{Alarm, GameRecord, Progress, Rating, Record, Run, RunError};
use selfmate_search::evaluator::Uniform;

pub use check::{Misfit, check};
pub use config::{
    Blind, Config, GuardConfig, LearningConfig, Ramp, RatingConfig, Root, SelfPlayConfig,
};
pub use game::{Generation, Played, Retraced, SelfPlayer};
pub use guards::{Finding, Guards, Verdict};
pub use plan::plan_games;
pub use play::{TICK, Tray};
pub use source::{Harvest, Source, Threads, Work};
pub(crate) use start::start_fen;
pub use state::{Lesson, MODEL, MeanLosses, STATE, State, TRAINER, WindowEntry};
pub use statistics::Statistics;
pub use student::{Evaluators, Losses, Student, evaluators};
pub use window::{Targets, samples};

use crate::desk::{Desk, Keep};
use crate::learner::{End, LearnError, Session};
use crate::rounds::check_shape;
use crate::watch::{Stage, Status, Watch};
use crate::watchdog::Watchdog;
use window::Window;

/// Trains until the budget is spent or the session is told to stop, from the last checkpoint if
/// there is one.
pub fn train<S: Student>(
    run: &mut Run,
    config: &Config<S::Shape, S::Training>,
    session: &Session<'_>,
    source: &mut dyn Source,
    watch: &mut dyn Watch,
) -> Result<End, LearnError> {
    let mut learner = Learner::<S>::open(run, config, session, watch)?;
    loop {
        if session.stop.load(Relaxed) {
            return learner.end(End::Stopped);
        }
        if learner.desk.is_halted() {
            return learner.end(End::Finished);
        }
        // A generation is learned from to its end before the budget of games is asked.
        if learner.state.lesson.is_none() {
            if learner.is_spent() {
                return learner.end(End::Finished);
            }
            let Some((games, simulations)) = learner.play(source)? else { continue };
            learner.forget(&source.purge())?;
            learner.take_in(&games, simulations)?;
        }
        match learner.learn()? {
            Learned::Part => continue,
            Learned::All => {}
            Learned::Collapsed(reason) => return learner.end(End::Collapsed(reason)),
        }
        learner.checkpoint_if_due()?;
        learner.rate_if_due()?;
    }
}

/// How far a generation was learned from.
enum Learned {
    /// There was no time for all of it.
    Part,
    /// To its end.
    All,
    /// To its end, and the guards give up for this reason.
    Collapsed(String),
}

/// A run while it is trained.
struct Learner<'a, S: Student> {
    desk: Desk<'a>,
    config: &'a Config<S::Shape, S::Training>,
    student: S,
    window: Window<S::Sample>,
    state: State,
    /// The training time of the last rating.
    rated_s: f64,
    pool: rayon::ThreadPool,
}

impl<'a, S: Student> Learner<'a, S> {
    fn open(
        run: &'a mut Run,
        config: &'a Config<S::Shape, S::Training>,
        session: &'a Session<'a>,
        watch: &'a mut dyn Watch,
    ) -> Result<Learner<'a, S>, LearnError> {
        let (mut desk, checkpoint) = Desk::open(run, session, watch, &[MODEL, TRAINER, STATE])?;
        let (training, hardware) = (&config.learning.trainer, session.hardware);
        let (student, state) = match &checkpoint {
            Some(checkpoint) => {
                let state = serde_json::from_slice(&checkpoint.files[STATE]);
                let state: State = state.map_err(|error| LearnError::State {
                    step: checkpoint.step,
                    file: STATE,
                    message: error.to_string(),
                })?;
                let student = S::restore(&checkpoint.files[TRAINER], training, hardware)?;
                check_shape(checkpoint, TRAINER, &student.shape(), &config.network)?;
                (student, state)
            }
            None => {
                let seed = Seed::new(session.seed);
                (S::new(&config.network, training, seed, hardware)?, State::default())
            }
        };
        desk.go_back(state.generation, state.elapsed_s)?;
        let threads = hardware.threads;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool =
            pool.map_err(|error| TrainError::Threads { threads, message: error.to_string() })?;
        let rated_s = desk.run.metrics()?.0.iter().rev().find_map(|record| match record {
            Record::Rating(rating) => Some(rating.elapsed_s),
            _ => None,
        });
        let mut learner = Learner {
            rated_s: rated_s.unwrap_or(0.0),
            window: Window::default(),
            desk,
            config,
            student,
            state,
            pool,
        };
        learner.state.elapsed_s = learner.desk.elapsed_s();
        learner.refill()?;
        learner.desk.begin(learner.student.step(), learner.state.generation)?;
        Ok(learner)
    }

    /// Reads the games of the replay window again.
    fn refill(&mut self) -> Result<(), LearnError> {
        let entries = std::mem::take(&mut self.state.window);
        for entry in entries {
            match self.desk.run.read_chunk(entry.generation) {
                Ok(games) => {
                    self.add_to_window(&games, entry)?;
                    self.tell(Stage::Start, 0.0);
                }
                Err(RunError::Damaged(damage)) => {
                    let text = format!("{damage}; set aside, going on without these games");
                    self.desk.note(text);
                    self.desk.run.set_aside(entry.generation)?;
                }
                // Set aside by an earlier session, or deleted by hand.
                Err(RunError::Io { path, error }) if error.kind() == ErrorKind::NotFound => {
                    self.desk.note(format!("{}: {error}; going on without it", path.display()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The share of the plan that is done.
    fn progress(&self) -> f64 {
        self.state.games as f64 / self.config.plan_games as f64
    }

    /// The share that was done when the games of a lesson were played.
    fn progress_before(&self, lesson: &Lesson) -> f64 {
        (self.state.games - lesson.statistics.games) as f64 / self.config.plan_games as f64
    }

    /// Simulations for a move of the next generation, at this share of the plan.
    fn sims_at(&self, progress: f64) -> u64 {
        let selfplay = &self.config.selfplay;
        match selfplay.is_blind(self.state.generation) {
            true => selfplay.blind.sims,
            false => selfplay.sims.at(progress).round() as u64,
        }
    }

    fn is_spent(&self) -> bool {
        self.desk.is_spent(self.state.games, self.student.step())
    }

    /// Plays the next generation, or finds it on disk; `None` when there was no time for all of
    /// it. Also the simulations that it took.
    fn play(
        &mut self,
        source: &mut dyn Source,
    ) -> Result<Option<(Vec<GameRecord>, u64)>, LearnError> {
        let selfplay = &self.config.selfplay;
        let (seed, index) = (self.desk.session.seed, self.state.generation);
        let generation = Generation {
            config: match selfplay.is_blind(index) {
                true => selfplay.blinded(),
                false => self.state.guards.adapt(selfplay),
            },
            seed: Generation::seed_of_run(seed),
            sims: self.sims_at(self.progress()),
            network: self.student.step(),
        };
        // Always a whole generation, so that where a run pauses changes nothing.
        let numbers = self.state.games..self.state.games + selfplay.games_of(index);
        let mut threads = Threads(self.desk.session.hardware.threads);
        let (source, evaluators): (&mut dyn Source, Evaluators) = match selfplay.is_blind(index) {
            // Sooner played than asked for.
            true => (&mut threads, Box::new(|| Box::new(Uniform))),
            false => (source, self.student.evaluators()?),
        };
        let status = self.status(Stage::Play, 0.0);
        let deadline = self.desk.deadline();
        let limits = play::Limits { stop: self.desk.session.stop, deadline, status };
        let work = Work {
            seed,
            index,
            generation: &generation,
            numbers: numbers.collect(),
            evaluators: &evaluators,
            model: &|| self.student.model(),
        };
        let played = play::play(&mut self.desk, source, work, &limits)?;
        self.state.simulations += played.simulations;
        Ok(played.games.map(|games| (games, played.simulations)))
    }

    /// Removes games of earlier generations from the run and from the replay window.
    fn forget(&mut self, numbers: &BTreeSet<u64>) -> Result<(), LearnError> {
        if numbers.is_empty() {
            return Ok(());
        }
        let selfplay = &self.config.selfplay;
        let generations: BTreeSet<u64> =
            numbers.iter().map(|number| selfplay.generation_of(*number)).collect();
        for generation in generations.into_iter().take_while(|&g| g < self.state.generation) {
            // What cannot be read is dealt with where it is needed.
            let Ok(mut games) = self.desk.run.read_chunk(generation) else { continue };
            let count = games.len();
            games.retain(|game| !numbers.contains(&game.number));
            if games.len() < count {
                self.desk.run.replace_chunk(generation, &games)?;
            }
        }
        self.window = Window::default();
        self.refill()
    }

    /// Takes a generation's games in: from here on they are learned from.
    fn take_in(&mut self, games: &[GameRecord], simulations: u64) -> Result<(), LearnError> {
        let play_s = self.desk.elapsed_s() - self.state.elapsed_s;
        let statistics = Statistics::of(games, &self.config.selfplay);
        let result_weight = self.config.learning.result_weight.at(self.progress());
        let entry = WindowEntry {
            generation: self.state.generation,
            positions: statistics.positions,
            result_weight: self.state.guards.result_weight(result_weight),
            entropy: statistics.entropy,
        };
        self.add_to_window(games, entry)?;
        self.state.games += statistics.games;
        self.state.positions += statistics.positions;
        self.trim_window();
        self.state.lesson = Some(Lesson {
            statistics,
            simulations,
            play_s,
            learn_s: 0.0,
            batches: 0,
            losses: MeanLosses::default(),
        });
        Ok(())
    }

    /// Learns what is left to be learned from the latest generation.
    fn learn(&mut self) -> Result<Learned, LearnError> {
        let Some(mut lesson) = self.state.lesson.take() else { return Ok(Learned::All) };
        let started = Instant::now();
        let is_whole = self.train_batches(&mut lesson)?;
        lesson.learn_s += started.elapsed().as_secs_f64();
        if !is_whole {
            self.state.lesson = Some(lesson);
            return Ok(Learned::Part);
        }
        let Lesson { statistics, simulations, play_s, learn_s, .. } = lesson;
        let progress = self.progress_before(&lesson);
        let sims = self.sims_at(progress);
        let count = lesson.batches as f64;
        let losses = (lesson.batches > 0).then(|| MeanLosses {
            value: lesson.losses.value / count,
            policy: lesson.losses.policy / count,
            gradient_norm: lesson.losses.gradient_norm / count,
        });
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
        let steps = self.student.step();
        add("sims", sims as f64);
        add("learning_rate", self.config.learning.rate_at(progress, steps));
        add("window", self.window.len() as f64);
        add("play_seconds", play_s);
        add("learn_seconds", learn_s);
        add("games_per_second", statistics.games as f64 / (play_s + learn_s));
        self.state.elapsed_s = self.desk.elapsed_s();
        add("simulations_per_second", simulations as f64 / play_s.max(1e-9));
        self.desk.append(&Record::Progress(Progress {
            elapsed_s: self.state.elapsed_s,
            generation: self.state.generation,
            games: self.state.games,
            positions: self.state.positions,
            simulations: self.state.simulations,
            steps,
            values,
        }))?;
        let reason = self.guard(&statistics, divergence)?;
        Ok(reason.map_or(Learned::All, Learned::Collapsed))
    }

    /// Looks for signs of collapse and does something about them.
    fn guard(
        &mut self,
        statistics: &Statistics,
        divergence: Option<f64>,
    ) -> Result<Option<String>, LearnError> {
        let generation = self.state.generation;
        let config = &self.config.guards;
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
            self.desk.append(&Record::Alarm(Alarm {
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
            discount: self.config.selfplay.discount,
        };
        let samples = self.pool.install(|| samples::<S>(games, targets))?;
        self.window.push(samples);
        self.state.window.push(entry);
        Ok(())
    }

    fn trim_window(&mut self) {
        let learning = &self.config.learning;
        let share = (self.state.positions as f64 * learning.window_share) as usize;
        self.window.trim(share.min(learning.window));
        let forgotten = self.state.window.len() - self.window.generations();
        self.state.window.drain(..forgotten);
    }

    /// Learns as many batches as the positions so far allow; false when there was no time for all.
    /// Each depends on its number alone, so it does not matter where that was.
    fn train_batches(&mut self, lesson: &mut Lesson) -> Result<bool, LearnError> {
        let learning = &self.config.learning;
        let progress = self.progress_before(lesson);
        let due = (self.state.positions as f64 * learning.reuse / learning.batch as f64) as u64;
        let first = self.student.step() - lesson.batches;
        let seed = Seed::new(self.desk.session.seed).derive("batches");
        if self.window.is_empty() && self.student.step() < due {
            let generation = self.state.generation;
            self.desk.watch.note(&format!(
                "none of the games to learn from can be read; generation {generation} ends without them"
            ));
            return Ok(true);
        }
        for step in self.student.step()..due {
            if self.desk.is_halted() {
                return Ok(false);
            }
            let mut rng = seed.index(step).rng();
            let batch = self.window.draw(learning.batch, &mut rng);
            let losses = self.student.learn(&batch, learning.rate_at(progress, step) as f32)?;
            lesson.batches += 1;
            lesson.losses.value += f64::from(losses.value);
            lesson.losses.policy += f64::from(losses.policy);
            lesson.losses.gradient_norm += f64::from(losses.gradient_norm);
            if step % 16 == 0 {
                self.tell(Stage::Learn, (step - first) as f64 / (due - first) as f64);
            }
        }
        Ok(true)
    }

    fn checkpoint_if_due(&mut self) -> Result<(), LearnError> {
        if self.desk.is_due(self.config.learning.checkpoint_seconds) {
            self.checkpoint()?;
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), LearnError> {
        let step = self.student.step();
        if self.desk.is_saved(step) {
            return Ok(());
        }
        let (model, trainer) = (self.student.model()?, self.student.state()?);
        let state = serde_json::to_vec(&self.state).expect("a state is plain data");
        let files = [(MODEL, &model[..]), (TRAINER, &trainer), (STATE, &state)];
        let keep = Keep { steps: self.config.learning.keep_steps, training: &[TRAINER] };
        self.desk.save(step, &files, keep)
    }

    fn rate_if_due(&mut self) -> Result<(), LearnError> {
        let config = &self.config.rating;
        if config.every_seconds <= 0.0
            || self.desk.elapsed_s() < self.rated_s + config.every_seconds
        {
            return Ok(());
        }
        self.tell(Stage::Rate, 0.0);
        let seed = self.desk.session.seed.wrapping_add(self.state.generation);
        let Session { hardware, stop, .. } = *self.desk.session;
        let watchdog = Watchdog::new(stop, self.desk.deadline());
        let network = self.student.network()?;
        let report = rating::rate(&network, config, seed, hardware.threads, watchdog.flag())?;
        self.rated_s = self.desk.elapsed_s();
        self.state.elapsed_s = self.rated_s;
        // One that was cut short would depend on when.
        let Some(elo) = report.elo.filter(|_| !self.desk.is_halted()) else { return Ok(()) };
        self.desk.append(&Record::Rating(Rating {
            elapsed_s: self.rated_s,
            step: self.student.step(),
            generation: self.state.generation,
            elo,
            low: report.elo_low.unwrap_or(elo),
            high: report.elo_high.unwrap_or(elo),
            games: report.games,
        }))
    }

    /// Saves what there is and says why the run ends here.
    fn end(mut self, end: End) -> Result<End, LearnError> {
        self.state.elapsed_s = self.desk.elapsed_s();
        self.checkpoint()?;
        self.desk.end(end)
    }

    fn status(&self, stage: Stage, done: f64) -> Status {
        Status {
            stage,
            done,
            elapsed_s: self.desk.elapsed_s(),
            generation: self.state.generation,
            games: self.state.games,
            positions: self.state.positions,
            simulations: self.state.simulations,
            steps: self.student.step(),
        }
    }

    fn tell(&mut self, stage: Stage, done: f64) {
        let status = self.status(stage, done);
        self.desk.watch.status(&status);
    }
}
