//! Learning from self-play, for any network (Silver et al. 2018).
//!
//! A round is a generation: a fixed number of games with one network, then training steps on the
//! latest generations. An interrupted generation continues where it was: its games are in the run's
//! journal, and a checkpoint in the middle of learning keeps the progress.

mod final_round;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::time::Instant;

use selfmate_chess::Seed;
use selfmate_nn::Model;
use selfmate_run::{Alarm, Checkpoint, GameRecord, Run, RunError};
use selfmate_search::evaluator::Uniform;
use selfmate_selfplay::{
    Evaluators, Generation, GenerationJob, GenerationStats, SelfPlayError, Stage,
};
use serde::{Deserialize, Serialize};

use crate::config::{LearningConfig, RatingConfig, SavingConfig, SelfPlayLearnerConfig};
use crate::error::TrainingError;
use crate::guards::{Guards, Verdict};
use crate::learner::{Learner, Round, RoundContext, Totals, check_shape, read_bytes, read_json};
use crate::model::{Losses, SelfPlayModel, TRAINER, TrainableModel};
use crate::options::{End, Hardware};
use crate::replay::{ReplayBuffer, samples};
use crate::targets::Targets;
use final_round::FinalProgress;

/// The checkpoint file of the [`State`] as JSON.
const STATE: &str = "selfplay.json";

/// The checkpoint file of the [`Times`] as JSON: apart, because all other files are the same however
/// long the training took and however often it was interrupted.
const TIMES: &str = "times.json";

type Config<M> = SelfPlayLearnerConfig<
    <M as TrainableModel>::Shape,
    <M as TrainableModel>::Training,
    <M as SelfPlayModel>::Evaluation,
>;

pub struct SelfPlayLearner<M: SelfPlayModel> {
    model: M,
    replay: ReplayBuffer<M::Sample>,
    state: State,
    /// Why the guards stopped the run.
    collapsed: Option<String>,
}

/// The training state in a checkpoint, besides the weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    guards: Guards,
    /// The generations of the replay buffer, oldest first.
    replay: Vec<ReplayEntry>,
    /// The time and simulations of all attempts at the current generation so far.
    #[serde(default, skip_serializing)]
    play_s: f64,
    #[serde(default, skip_serializing)]
    simulations: u64,
    /// The generation that is being learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    learning: Option<GenerationProgress>,
    /// Set when self-play has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    final_phase: Option<FinalProgress>,
    /// Seconds per sample of the last generation's learning.
    #[serde(default, skip_serializing)]
    sample_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct ReplayEntry {
    generation: u64,
    positions: u64,
    /// The weight of results in its value targets.
    result_weight: f64,
    /// The mean entropy of its policy targets.
    entropy: f64,
}

/// The progress of learning from a generation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct GenerationProgress {
    stats: GenerationStats,
    /// Simulations and seconds of playing it.
    #[serde(default, skip_serializing)]
    simulations: u64,
    #[serde(default, skip_serializing)]
    play_s: f64,
    #[serde(default, skip_serializing)]
    learn_s: f64,
    #[serde(flatten)]
    losses: LossSums,
}

/// Sums over the batches of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct LossSums {
    batches: u64,
    value_loss: f64,
    policy_loss: f64,
    gradient_norm: f64,
}

impl LossSums {
    fn add(&mut self, losses: Losses) {
        self.batches += 1;
        self.value_loss += f64::from(losses.value);
        self.policy_loss += f64::from(losses.policy);
        self.gradient_norm += f64::from(losses.gradient_norm);
    }

    /// The mean policy loss; `None` without batches.
    fn policy_loss(&self) -> Option<f64> {
        (self.batches > 0).then(|| self.policy_loss / self.batches as f64)
    }

    /// Adds the mean losses to the metrics of a round.
    fn report(&self, round: &mut Round) {
        if self.batches > 0 {
            let mean = |sum: f64| sum / self.batches as f64;
            round.add("loss.value", mean(self.value_loss));
            round.add("loss.policy", mean(self.policy_loss));
            round.add("gradient_norm", mean(self.gradient_norm));
        }
    }
}

/// Seconds and simulations of the current generation; see [`State`] and [`GenerationProgress`]. Searches
/// that a kill ended are not counted.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Times {
    all_play_s: f64,
    all_simulations: u64,
    play_s: f64,
    learn_s: f64,
    simulations: u64,
    #[serde(default)]
    sample_s: f64,
}

impl State {
    fn times(&self) -> Times {
        let learning = self.learning;
        Times {
            all_play_s: self.play_s,
            all_simulations: self.simulations,
            simulations: learning.map_or(0, |generation| generation.simulations),
            play_s: learning.map_or(0.0, |generation| generation.play_s),
            learn_s: learning.map_or(0.0, |generation| generation.learn_s),
            sample_s: self.sample_s,
        }
    }

    fn set_times(&mut self, times: Times) {
        (self.play_s, self.simulations) = (times.all_play_s, times.all_simulations);
        self.sample_s = times.sample_s;
        if let Some(generation) = &mut self.learning {
            (generation.play_s, generation.learn_s) = (times.play_s, times.learn_s);
            generation.simulations = times.simulations;
        }
    }
}

impl<M: SelfPlayModel> Learner for SelfPlayLearner<M> {
    type Config = Config<M>;
    const FILES: &'static [&'static str] = &[M::FILE, TRAINER, STATE];
    const TRAINING_FILES: &'static [&'static str] = &[TRAINER];
    const FIXED_SETTINGS: &'static [&'static str] = &["network", "selfplay.ending"];

    fn saving(config: &Self::Config) -> SavingConfig {
        config.learning.saving()
    }

    fn rating(config: &Self::Config) -> Option<&RatingConfig> {
        Some(&config.rating)
    }

    fn new(config: &Self::Config, seed: Seed, hardware: Hardware) -> Result<Self, TrainingError> {
        let model = M::new(&config.network, &config.learning.trainer, seed, hardware)?;
        Ok(SelfPlayLearner::from_parts(model, State::default()))
    }

    fn restore(
        config: &Self::Config,
        checkpoint: &Checkpoint,
        hardware: Hardware,
    ) -> Result<Self, TrainingError> {
        let trainer = read_bytes(checkpoint, TRAINER)?;
        let model = M::restore(trainer, &config.learning.trainer, hardware)?;
        check_shape(checkpoint, TRAINER, &model.shape(), &config.network)?;
        let mut state: State = read_json(checkpoint, STATE)?;
        // Checkpoints of earlier versions have the times in the state.
        if checkpoint.files.contains_key(TIMES) {
            state.set_times(read_json(checkpoint, TIMES)?);
        }
        Ok(SelfPlayLearner::from_parts(model, state))
    }

    fn prepare(
        &mut self,
        config: &Self::Config,
        _: &Totals,
        run: &mut Run,
        pool: &rayon::ThreadPool,
        notes: &mut Vec<String>,
    ) -> Result<(), TrainingError> {
        match self.state.final_phase {
            Some(_) => self.fill_final_replay(config, run, pool),
            None => self.fill_replay(config, run, pool, notes),
        }
    }

    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, TrainingError> {
        let state = serde_json::to_vec(&self.state).expect("the state is plain data");
        let times = serde_json::to_vec(&self.state.times()).expect("times are plain numbers");
        Ok(vec![
            (M::FILE, self.model.model_file()?),
            (TRAINER, self.model.state()?),
            (STATE, state),
            (TIMES, times),
        ])
    }

    fn step(&self) -> Option<u64> {
        Some(self.model.step())
    }

    fn is_mid_round(&self) -> bool {
        let final_phase = &self.state.final_phase;
        self.state.learning.is_some()
            || final_phase.is_some_and(|progress| !progress.is_done(self.model.step()))
    }

    fn round(
        &mut self,
        config: &Self::Config,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Round>, TrainingError> {
        if self.state.final_phase.is_some() {
            return self.final_round(config, context);
        }
        if self.state.learning.is_none() {
            let Some((games, simulations)) = self.play(config, context)? else { return Ok(None) };
            self.remove_invalid(config, context)?;
            self.add_generation(config, context, &games, simulations)?;
        }
        let Some(mut progress) = self.state.learning.take() else { return Ok(None) };
        let started = Instant::now();
        let is_done = self.learn(config, context, &mut progress)?;
        progress.learn_s += started.elapsed().as_secs_f64();
        if !is_done {
            self.state.learning = Some(progress);
            return Ok(None);
        }
        let mut round = self.finish_generation(config, context, &progress);
        if let Some(evaluation) = &config.evaluation {
            let curves = self.model.evaluate(evaluation, &config.selfplay, context)?;
            round.values.extend(curves.unwrap_or_default());
        }
        if self.is_final_due(config, context, &progress) {
            self.start_final_phase(config, context)?;
        }
        Ok(Some(round))
    }

    fn end(&self, config: &Self::Config) -> Option<End> {
        if let Some(reason) = &self.collapsed {
            return Some(End::Collapsed(reason.clone()));
        }
        if self.state.final_phase.is_some_and(|progress| progress.is_done(self.model.step())) {
            return Some(End::Done("the final phase is over".to_owned()));
        }
        let plan = config.plan_steps.filter(|steps| self.model.step() >= *steps)?;
        Some(End::Done(format!("all {plan} planned steps are done")))
    }

    fn rated_model(&self) -> Result<Option<Model>, TrainingError> {
        self.model.model().map(Some)
    }
}

impl<M: SelfPlayModel> SelfPlayLearner<M> {
    fn from_parts(model: M, state: State) -> SelfPlayLearner<M> {
        SelfPlayLearner { model, replay: ReplayBuffer::default(), state, collapsed: None }
    }

    /// Reads the games of the replay buffer from the run.
    fn fill_replay(
        &mut self,
        config: &Config<M>,
        run: &mut Run,
        pool: &rayon::ThreadPool,
        notes: &mut Vec<String>,
    ) -> Result<(), TrainingError> {
        self.replay = ReplayBuffer::default();
        for entry in std::mem::take(&mut self.state.replay) {
            match run.read_chunk(entry.generation) {
                Ok(games) => self.push_samples(config, pool, &games, entry)?,
                Err(RunError::Damaged(damage)) => {
                    notes.push(format!("{damage}; set aside, continuing without these games"));
                    run.set_aside(entry.generation)?;
                }
                // Set aside by an earlier session, or deleted by hand.
                Err(RunError::Io { path, error }) if error.kind() == ErrorKind::NotFound => {
                    notes.push(format!("{}: {error}; continuing without it", path.display()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn push_samples(
        &mut self,
        config: &Config<M>,
        pool: &rayon::ThreadPool,
        games: &[GameRecord],
        entry: ReplayEntry,
    ) -> Result<(), TrainingError> {
        let discount = config.selfplay.discount;
        let targets = Targets::new(&config.learning, entry.result_weight, discount);
        self.replay.push(pool.install(|| samples::<M>(games, targets))?);
        self.state.replay.push(entry);
        Ok(())
    }

    /// Plays the generation or reads it from disk, and returns the games with the simulations of
    /// this attempt; `None` when there was no time for all games.
    fn play(
        &mut self,
        config: &Config<M>,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<(Vec<GameRecord>, u64)>, TrainingError> {
        let selfplay = &config.selfplay;
        let (index, first) = (context.totals.rounds, context.totals.games);
        let is_bootstrap = selfplay.is_bootstrap(index);
        let generation = Generation {
            config: match is_bootstrap {
                true => selfplay.bootstrap_config(),
                false => self.state.guards.adapt(selfplay),
            },
            seed: Generation::games_seed(context.run_seed),
            simulations: simulations_per_move(config, context.totals),
            network: self.model.step(),
        };
        let evaluators: Evaluators = match is_bootstrap {
            true => Box::new(|| Box::new(Uniform)),
            false => self.model.evaluators()?,
        };
        let job = GenerationJob {
            run_seed: context.run_seed,
            index,
            generation: &generation,
            // Always a whole generation, so that the result does not depend on pauses.
            numbers: (first..first + selfplay.games_of(index)).collect(),
            evaluators: &evaluators,
            model_file: &|| {
                self.model.model_file().map_err(|error| SelfPlayError::Model(Box::new(error)))
            },
        };
        let started = Instant::now();
        // Games without a network are faster to play here than to send.
        let played = context.play_generation(job, is_bootstrap)?;
        self.state.play_s += started.elapsed().as_secs_f64();
        self.state.simulations += played.simulations;
        Ok(played.games.map(|games| (games, played.simulations)))
    }

    /// Removes games of earlier generations that turned out to be invalid from the run and from the
    /// replay buffer.
    fn remove_invalid(
        &mut self,
        config: &Config<M>,
        context: &mut RoundContext<'_>,
    ) -> Result<(), TrainingError> {
        let numbers = context.source.take_invalid();
        if numbers.is_empty() {
            return Ok(());
        }
        let generations: BTreeSet<u64> =
            numbers.iter().map(|number| config.selfplay.generation_of(*number)).collect();
        for generation in generations.into_iter().take_while(|&g| g < context.totals.rounds) {
            // Unreadable chunks are handled where they are needed.
            let Ok(mut games) = context.run.read_chunk(generation) else { continue };
            let count = games.len();
            games.retain(|game| !numbers.contains(&game.number));
            if games.len() < count {
                context.run.replace_chunk(generation, &games)?;
            }
        }
        let mut notes = Vec::new();
        self.fill_replay(config, context.run, context.pool, &mut notes)?;
        notes.iter().for_each(|note| context.note(note));
        Ok(())
    }

    /// Adds the games of the generation to the replay buffer and starts learning from them.
    fn add_generation(
        &mut self,
        config: &Config<M>,
        context: &RoundContext<'_>,
        games: &[GameRecord],
        simulations: u64,
    ) -> Result<(), TrainingError> {
        let learning = &config.learning;
        let stats = GenerationStats::of(games, &config.selfplay);
        let result_weight = learning.result_weight.at(progress(config, context.totals));
        let entry = ReplayEntry {
            generation: context.totals.rounds,
            positions: stats.positions,
            result_weight: self.state.guards.result_weight(result_weight),
            entropy: stats.entropy,
        };
        self.push_samples(config, context.pool, games, entry)?;
        self.replay.trim(learning.replay_capacity(context.totals.positions + stats.positions));
        let removed = self.state.replay.len() - self.replay.generations();
        self.state.replay.drain(..removed);
        self.state.learning = Some(GenerationProgress {
            stats,
            simulations,
            play_s: std::mem::take(&mut self.state.play_s),
            learn_s: 0.0,
            losses: LossSums::default(),
        });
        Ok(())
    }

    /// Trains on as many batches as the positions so far allow; false when there was no time for
    /// all. Each batch depends only on its number, so interruptions do not change the result.
    fn learn(
        &mut self,
        config: &Config<M>,
        context: &mut RoundContext<'_>,
        generation: &mut GenerationProgress,
    ) -> Result<bool, TrainingError> {
        let LearningConfig { batch, reuse, .. } = config.learning;
        let progress = progress(config, context.totals);
        let positions = context.totals.positions + generation.stats.positions;
        let mut due = (positions as f64 * reuse / batch as f64) as u64;
        if self.replay.len() < config.learning.min_buffer {
            due = self.model.step();
        }
        due = due.min(config.plan_steps.unwrap_or(u64::MAX));
        let first = self.model.step() - generation.losses.batches;
        let seed = context.seed.derive("batches");
        if self.replay.is_empty() && self.model.step() < due {
            let index = context.totals.rounds;
            context.note(&format!(
                "none of the games to learn from can be read; generation {index} ends without them"
            ));
            return Ok(true);
        }
        for step in self.model.step()..due {
            if context.cancel.is_cancelled() || context.max_steps.is_some_and(|most| step >= most) {
                return Ok(false);
            }
            let samples = self.replay.draw(batch, &mut seed.index(step).rng());
            let rate = config.learning.rate_at(progress, step) as f32;
            generation.losses.add(self.model.learn(&samples, rate)?);
            if step % 16 == 0 {
                let done = (step - first) as f64 / (due - first) as f64;
                let mut status = context.status(Stage::Learn, done);
                status.games += generation.stats.games;
                status.positions = positions;
                status.simulations += self.state.simulations;
                status.steps = self.model.step();
                context.report_status(&status);
            }
        }
        Ok(true)
    }

    /// The metrics of a generation, and the alarms of the guards.
    fn finish_generation(
        &mut self,
        config: &Config<M>,
        context: &RoundContext<'_>,
        generation: &GenerationProgress,
    ) -> Round {
        let GenerationProgress { stats, simulations, play_s, learn_s, losses } = *generation;
        let step = self.model.step();
        let mut round = Round {
            games: stats.games,
            positions: stats.positions,
            nodes: std::mem::take(&mut self.state.simulations),
            steps: losses.batches,
            values: stats.values(),
            alarms: Vec::new(),
        };
        losses.report(&mut round);
        let divergence = losses.policy_loss().map(|loss| (loss - self.target_entropy()).max(0.0));
        if losses.batches > 0 {
            self.state.sample_s = learn_s / (losses.batches as f64 * config.learning.batch as f64);
        }
        if let Some(divergence) = divergence {
            round.add("policy_divergence", divergence);
        }
        let progress = progress(config, context.totals);
        round.add("simulations_per_move", simulations_per_move(config, context.totals) as f64);
        round.add("learning_rate", config.learning.rate_at(progress, step));
        round.add("replay_positions", self.replay.len() as f64);
        round.add("play_seconds", play_s);
        round.add("learn_seconds", learn_s);
        round.add("simulations_per_second", simulations as f64 / play_s.max(1e-9));
        round.alarms = self.check_guards(config, context, &stats, divergence);
        round
    }

    /// The mean entropy of the policy targets in the replay buffer.
    fn target_entropy(&self) -> f64 {
        let entries = &self.state.replay;
        let positions: u64 = entries.iter().map(|entry| entry.positions).sum();
        let sum: f64 = entries.iter().map(|entry| entry.entropy * entry.positions as f64).sum();
        sum / (positions as f64).max(1.0)
    }

    fn check_guards(
        &mut self,
        config: &Config<M>,
        context: &RoundContext<'_>,
        stats: &GenerationStats,
        divergence: Option<f64>,
    ) -> Vec<Alarm> {
        let (config, generation) = (&config.guards, context.totals.rounds + 1);
        let (findings, verdict) = self.state.guards.check(generation, stats, divergence, config);
        let action = match verdict {
            Verdict::Continue => "none: the remedy is active".to_owned(),
            Verdict::Remedy => format!(
                "for {} generations: more varied starts, values from results alone",
                config.remedy_generations
            ),
            Verdict::Stop => format!("stopped: {} remedies did not help", config.max_remedies),
        };
        if verdict == Verdict::Stop
            && let Some(finding) = findings.first()
        {
            self.collapsed = Some(format!(
                "{} is {:.3} (bound {:.3}): {}; {action}",
                finding.name, finding.value, finding.bound, finding.meaning
            ));
        }
        let alarm = |finding: &crate::guards::Finding| Alarm {
            elapsed_s: context.elapsed_s(),
            generation,
            name: finding.name.to_owned(),
            value: finding.value,
            bound: finding.bound,
            meaning: finding.meaning.to_owned(),
            action: action.clone(),
        };
        findings.iter().map(alarm).collect()
    }
}

/// The share of the plan that was done before the current round.
fn progress<N, T, E>(config: &SelfPlayLearnerConfig<N, T, E>, totals: Totals) -> f64 {
    match config.plan_steps {
        Some(steps) => totals.steps as f64 / steps as f64,
        None => totals.games as f64 / config.plan_games as f64,
    }
}

fn simulations_per_move<N, T, E>(config: &SelfPlayLearnerConfig<N, T, E>, totals: Totals) -> u64 {
    match config.selfplay.is_bootstrap(totals.rounds) {
        true => config.selfplay.bootstrap.simulations,
        false => config.selfplay.simulations.at(progress(config, totals)).round() as u64,
    }
}
