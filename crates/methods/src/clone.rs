//! The `clone` learner: imitation learning of a teacher, from games the teacher plays, from PGN
//! files or from the games of another run.
//!
//! First the games are gathered, one sealed file at a time, so that an interrupted run does not play
//! them again and other runs can use the same files. Then the network trains in passes over all
//! positions. After each pass it is validated on held-out games; the player is the network of the
//! best pass.

mod config;
mod pgn;
mod policy;
mod teacher;
mod validation;

use std::path::Path;

use selfmate_chess::Seed;
use selfmate_run::{Checkpoint, GameRecord, Run, RunError, RunReader};
use selfmate_selfplay::{GameSource, Stage, Watch};
use selfmate_train::{
    ConfigError, End, Hardware, Learner, MODEL, Round, RoundContext, SavingConfig, TRAINER,
    Targets, TrainOptions, TrainableModel, TrainingError, check_shape, read_bytes, read_json,
    samples, train,
};
use serde::{Deserialize, Serialize};

pub use config::{CloneConfig, Config, ResidualCloneConfig, Source};
pub use pgn::{PgnConfig, PgnGames, read_pgn};
pub use policy::{INFO as POLICY_INFO, Policy, PolicyCloneConfig, PolicyTraining};
pub use teacher::TeacherConfig;
pub use validation::{Validation, validate};

use crate::alphazero::{AlphaZero, batch_bytes};
use crate::charts::{Chart, Unit, chart, curve, schedule};
use crate::table::{
    LearnerConfig, LearnerInfo, Loader, PlayerFormat, SearchKind, boxed, megabytes, parse,
};
use crate::zero::Zero;

/// The checkpoint file of the progress. Its name is from an earlier version.
const STATE: &str = "lessons.json";

const CHARTS: &[Chart] = &[
    chart(
        "Agreement",
        "share of held-out positions in which the teacher's move is the first, or one of the first five",
        Unit::Share,
        &[curve("validation.top1", "first"), curve("validation.top5", "first five")],
    ),
    chart(
        "Policy loss",
        "cross entropy with the teacher's moves, in training and on held-out games",
        Unit::Number,
        &[curve("loss.policy", "training"), curve("validation_policy", "held out")],
    ),
    chart(
        "Value loss",
        "training: as the network learns it; held out: mean squared difference from the teacher's value",
        Unit::Number,
        &[curve("loss.value", "training"), curve("validation_value", "held out")],
    ),
    chart("Games gathered", "so far", Unit::Amount, &[curve("lessons", "")]),
    schedule("Passes", &[curve("passes", "")]),
];

pub const INFO: LearnerInfo = LearnerInfo {
    name: "clone",
    summary: "a sparse network that copies Stockfish, or the players of PGN files",
    presets: &CloneConfig::PRESETS,
    preset: |name| boxed(CloneConfig::preset(name)),
    parse: parse::<CloneConfig>,
    bounds: config::BOUNDS,
    is_distributed: false,
    has_device: false,
    search: SearchKind::Either,
    player: PlayerFormat { file: MODEL, load: Loader::Network },
    charts: CHARTS,
    descriptions: &[],
};

pub const RESIDUAL_INFO: LearnerInfo = LearnerInfo {
    name: "clone-residual",
    summary: "the same with a residual network",
    presets: &ResidualCloneConfig::PRESETS,
    preset: |name| boxed(ResidualCloneConfig::preset(name)),
    parse: parse::<ResidualCloneConfig>,
    has_device: true,
    ..INFO
};

impl LearnerConfig for CloneConfig {
    fn check(&self) -> Result<(), ConfigError> {
        CloneConfig::check(self)
    }

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        train::<Cloner<Zero>>(run, self, options, source, watch)
    }
}

impl LearnerConfig for ResidualCloneConfig {
    fn check(&self) -> Result<(), ConfigError> {
        ResidualCloneConfig::check(self)
    }

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        train::<Cloner<AlphaZero>>(run, self, options, source, watch)
    }

    fn memory_mb(&self, _threads: usize) -> Vec<(&'static str, u64)> {
        vec![("batch", megabytes(self.batch as u64 * batch_bytes(&self.network)))]
    }
}

pub struct Cloner<M: TrainableModel> {
    model: M,
    /// The encoded network of the best pass.
    best: Vec<u8>,
    state: State,
    /// Read when training begins, after all games have been gathered.
    dataset: Option<Dataset<M::Sample>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Sealed files of games so far.
    chunks: u64,
    /// Games in them.
    games: u64,
    /// All games have been gathered.
    is_gathered: bool,
    /// The number of training positions, once they have been read.
    #[serde(default)]
    positions: Option<u64>,
    /// Complete passes, and batches of the current one.
    passes: u64,
    batches: u64,
    /// The best validation so far.
    best: Option<Validation>,
    /// Passes since the best validation.
    worse: u64,
}

struct Dataset<T> {
    samples: Vec<T>,
    held_out: Vec<GameRecord>,
}

impl<M: TrainableModel> Learner for Cloner<M> {
    type Config = Config<M::Shape, M::Training>;
    const FILES: &'static [&'static str] = &[M::FILE, TRAINER, STATE];
    const TRAINING_FILES: &'static [&'static str] = &[TRAINER];
    const ENDS_BY_GAMES: bool = false;

    fn saving(config: &Self::Config) -> SavingConfig {
        config.saving
    }

    fn new(config: &Self::Config, seed: Seed, hardware: Hardware) -> Result<Self, TrainingError> {
        let model = M::new(&config.network, &config.trainer, seed, hardware)?;
        let best = model.model_file()?;
        Ok(Cloner { model, best, state: State::default(), dataset: None })
    }

    fn restore(
        config: &Self::Config,
        checkpoint: &Checkpoint,
        hardware: Hardware,
    ) -> Result<Self, TrainingError> {
        let model = M::restore(read_bytes(checkpoint, TRAINER)?, &config.trainer, hardware)?;
        check_shape(checkpoint, TRAINER, &model.shape(), &config.network)?;
        Ok(Cloner {
            model,
            best: read_bytes(checkpoint, M::FILE)?.to_vec(),
            state: read_json(checkpoint, STATE)?,
            dataset: None,
        })
    }

    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, TrainingError> {
        let state = serde_json::to_vec(&self.state).expect("a state is plain data");
        // Before the first validation the network in training plays.
        let best = match self.state.best {
            Some(_) => self.best.clone(),
            None => self.model.model_file()?,
        };
        Ok(vec![(M::FILE, best), (TRAINER, self.model.state()?), (STATE, state)])
    }

    fn end(&self, config: &Self::Config) -> Option<End> {
        let State { passes, worse, .. } = self.state;
        if worse >= config.patience {
            return Some(End::Done(format!("no improvement on held-out games for {worse} passes")));
        }
        let done = || End::Done(format!("{passes} passes over all samples are done"));
        (passes >= config.passes).then(done)
    }

    fn round(
        &mut self,
        config: &Self::Config,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Round>, TrainingError> {
        if self.state.is_gathered {
            self.learn(config, context)
        } else {
            self.gather(config, context)
        }
    }
}

impl<M: TrainableModel> Cloner<M> {
    /// Gathers the next file of games; `None` when there was no time for it.
    fn gather(
        &mut self,
        config: &Config<M::Shape, M::Training>,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Round>, TrainingError> {
        context.report(Stage::Play, 0.0);
        let gathered = match config.source {
            Source::Teacher => match teacher_games(config, self.state.chunks, context)? {
                Some(games) => games,
                None => return Ok(None),
            },
            Source::Pgn => {
                let cancel = context.cancel;
                let Some(pgn) = read_pgn(&config.pgn, config.games, &|| cancel.is_cancelled())?
                else {
                    return Ok(None);
                };
                if pgn.broken + pgn.filtered > 0 {
                    let (filtered, broken) = (pgn.filtered, pgn.broken);
                    context.note(&format!(
                        "skipped {filtered} games by Elo or result and {broken} that cannot be read"
                    ));
                }
                for (chunk, games) in (0..).zip(pgn.games.chunks(config.chunk_games as usize)) {
                    seal(chunk, games, context)?;
                }
                self.state.is_gathered = true;
                pgn.games
            }
            Source::Run => {
                // The games stay in the other run.
                self.state.is_gathered = true;
                Vec::new()
            }
        };
        self.state.games += gathered.len() as u64;
        self.state.chunks += 1;
        if self.state.games >= config.games || self.is_late(config, context)? {
            self.state.is_gathered = true;
        }
        let positions = gathered.iter().map(|game| game.positions.len() as u64).sum();
        let mut round =
            Round { games: gathered.len() as u64, positions, steps: 1, ..Round::default() };
        round.add("lessons", self.state.games as f64);
        Ok(Some(round))
    }

    /// True when the next file of games would exceed the share of time for gathering. Files from
    /// before an interruption are still counted.
    fn is_late(
        &self,
        config: &Config<M::Shape, M::Training>,
        context: &RoundContext<'_>,
    ) -> Result<bool, TrainingError> {
        let State { chunks, .. } = self.state;
        let with_next = context.time_spent() * (chunks + 1) as f64 / chunks as f64;
        Ok(with_next > config.gathering_share && !context.run.chunks()?.contains(&chunks))
    }

    /// Trains on some batches; at the end of a pass also validates.
    fn learn(
        &mut self,
        config: &Config<M::Shape, M::Training>,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Round>, TrainingError> {
        if self.dataset.is_none() {
            context.report(Stage::Start, 0.0);
            let Some(dataset) = read_dataset::<M>(config, self.state.chunks, context)? else {
                return Ok(None);
            };
            let (before, now) = (self.state.positions, dataset.samples.len() as u64);
            if before.is_some_and(|before| before != now) {
                let before = before.unwrap_or_default();
                let message = format!(
                    "the games have {now} positions to learn from: expected {before} as before; restore the games or start a new run"
                );
                return Err(TrainingError::Teacher(message));
            }
            self.state.positions = Some(now);
            self.dataset = Some(dataset);
        }
        let Cloner { model, best, state, dataset } = self;
        let dataset = dataset.as_ref().expect("read above");
        // Each pass has its own random order.
        let mut order: Vec<u32> = (0..dataset.samples.len() as u32).collect();
        context.seed.derive("passes").index(state.passes).rng().shuffle(&mut order);
        let batches: Vec<&[u32]> = order.chunks(config.batch).collect();
        let count = batches.len() as u64;
        let first = state.batches;
        // After an interruption the round ends where it would have ended without it.
        let until = ((first / config.round_batches + 1) * config.round_batches).min(count);
        let mut sums = [0.0; 3];
        for batch in &batches[first as usize..until as usize] {
            // The order of batches does not depend on where rounds end.
            if context.cancel.is_cancelled() {
                break;
            }
            let samples: Vec<&M::Sample> =
                batch.iter().map(|&index| &dataset.samples[index as usize]).collect();
            let done = state.passes as f64 + state.batches as f64 / count as f64;
            let rate = config.rate.at(done / config.passes as f64);
            let losses = model.learn(&samples, rate as f32)?;
            for (sum, loss) in
                sums.iter_mut().zip([losses.policy, losses.value, losses.gradient_norm])
            {
                *sum += f64::from(loss);
            }
            state.batches += 1;
            context.report(Stage::Learn, state.batches as f64 / count as f64);
        }
        if state.batches == first && count > 0 {
            return Ok(None);
        }
        let steps = (state.batches - first).max(1);
        let mut round = Round { steps, ..Round::default() };
        round.positions = steps * config.batch as u64;
        for (name, sum) in ["loss.policy", "loss.value", "gradient_norm"].into_iter().zip(sums) {
            round.add(name, sum / steps as f64);
        }
        if state.batches < count {
            return Ok(Some(round));
        }
        (state.passes, state.batches) = (state.passes + 1, 0);
        context.report(Stage::Rate, 0.0);
        let network = model.evaluators()?;
        let found = context.pool.install(|| validate(&dataset.held_out, &network))?;
        round.add("validation.top1", found.top1);
        round.add("validation.top5", found.top5);
        round.add("validation_policy", found.policy);
        round.add("validation_value", found.value);
        round.add("passes", state.passes as f64);
        if state.best.is_none_or(|best| found.loss() < best.loss()) {
            (state.best, state.worse) = (Some(found), 0);
            *best = model.model_file()?;
        } else {
            state.worse += 1;
        }
        Ok(Some(round))
    }
}

/// A sealed file of the teacher's games, which are played now if the file is missing or wrong;
/// `None` when there was no time.
fn teacher_games<N, T>(
    config: &Config<N, T>,
    chunk: u64,
    context: &mut RoundContext<'_>,
) -> Result<Option<Vec<GameRecord>>, TrainingError> {
    let first = chunk * config.chunk_games;
    let numbers = first..(first + config.chunk_games).min(config.games);
    if context.run.chunks()?.contains(&chunk) {
        let what = match context.run.read_chunk(chunk) {
            Ok(games) if games.iter().map(|game| game.number).eq(numbers.clone()) => {
                return Ok(Some(games));
            }
            Ok(_) => format!("the games of file {chunk} have other numbers than expected"),
            Err(RunError::Damaged(damage)) => damage.to_string(),
            Err(error) => return Err(error.into()),
        };
        context.note(&format!("{what}; set aside, playing them again"));
        context.run.set_aside(chunk)?;
    }
    let Some(games) = teacher::play(&config.teacher, numbers, context)? else { return Ok(None) };
    seal(chunk, &games, context)?;
    // Stored games are rounded; read them back so that a resumed run learns from the same numbers.
    Ok(Some(context.run.read_chunk(chunk)?))
}

/// Reads all games and encodes those to train on; `None` when games had to be played again and
/// there was no time.
fn read_dataset<M: TrainableModel>(
    config: &Config<M::Shape, M::Training>,
    teacher_chunks: u64,
    context: &mut RoundContext<'_>,
) -> Result<Option<Dataset<M::Sample>>, TrainingError> {
    let other = RunReader::new(Path::new(&config.run));
    let targets =
        Targets { result_weight: config.result_weight as f32, discount: 1.0, lambda: None };
    // Held-out games are chosen so that every teacher has some. The rule is the same for every source,
    // so that a run with the games of another one holds out the same games.
    let teachers = config.teacher.players.len().max(1) as u64;
    let chunks = match config.source {
        Source::Teacher => (0..teacher_chunks).collect(),
        Source::Pgn => context.run.chunks()?,
        Source::Run => other.chunks()?,
    };
    let (mut dataset, mut games) = (Dataset { samples: Vec::new(), held_out: Vec::new() }, 0);
    for chunk in chunks {
        if games >= config.games {
            break;
        }
        if context.cancel.is_cancelled() {
            return Ok(None);
        }
        let stored = match config.source {
            Source::Teacher => match teacher_games(config, chunk, context)? {
                Some(stored) => stored,
                None => return Ok(None),
            },
            Source::Pgn => context.run.read_chunk(chunk)?,
            Source::Run => other.read_chunk(chunk)?,
        };
        games += stored.len() as u64;
        let is_held_out =
            |game: &GameRecord| (game.number / teachers).is_multiple_of(config.held_out);
        let (held_out, training): (Vec<GameRecord>, Vec<GameRecord>) =
            stored.into_iter().partition(is_held_out);
        dataset.held_out.extend(held_out);
        dataset.samples.extend(context.pool.install(|| samples::<M>(&training, targets))?);
    }
    if dataset.samples.is_empty() || dataset.held_out.is_empty() {
        let source: &RunReader = if config.source == Source::Run { &other } else { &*context.run };
        let folder = source.path().display();
        return Err(TrainingError::Teacher(format!(
            "{folder} has {games} games: expected at least one to learn from and one to hold out"
        )));
    }
    Ok(Some(dataset))
}

fn seal(
    chunk: u64,
    games: &[GameRecord],
    context: &mut RoundContext<'_>,
) -> Result<(), TrainingError> {
    let (journal, _) = context.run.journal(chunk)?;
    Ok(journal.seal(context.run, games)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        for name in CloneConfig::PRESETS {
            CloneConfig::preset(name).unwrap().check().unwrap();
            ResidualCloneConfig::preset(name).unwrap().check().unwrap();
        }
        let error = |change: fn(&mut CloneConfig)| {
            let mut config = CloneConfig::tiny();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(error(|c| c.teacher.players = vec!["nobody".into()]).contains("nobody"));
        assert!(error(|c| c.source = Source::Pgn).starts_with("pgn.files is empty"));
        assert!(error(|c| c.network.hidden = 3).contains("hidden"));
    }
}
