//! The endgame lab: an ending small enough that the truth about every position is known, learned by
//! self-play with a small network, and judged by that truth.
//!
//! [`Endgame`] is the learner behind `krk`, `kqk` and `kpk`. A round plays games from random
//! positions of the ending, with a tree search for both sides, and learns from the positions of the
//! latest games: policies from the searches, values from what followed. Nothing of the truth enters
//! the learning; [`examine`] alone asks the [`Lab`].

pub mod ablate;
mod config;
mod exam;
mod game;
mod heat;
mod lab;
mod log;
mod replay;
mod thinker;
mod trained;
mod view;

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use selfmate_chess::{Reason, Seed};
use selfmate_nn::mlp::{Lesson, Losses, Network, Trainer};
use selfmate_nn::sparse::WeightsInfo;
use selfmate_run::Checkpoint;
use selfmate_search::mcts::SimulationStats;

pub use config::EndgameConfig;
pub use exam::{ExamConfig, ExamReport, examine};
pub use game::{Played, Referee, SelfPlayer};
pub use heat::{Heat, Insight, JudgedMove, Placement, PlacementError};
pub use lab::{Defender, EndingName, Lab};
pub use log::{Log, LogError, Ply};
pub use replay::ReplayConfig;
pub use thinker::{Manner, Priors, Rule, ThinkConfig};
pub use trained::{Trained, TrainedError};

use crate::config::ConfigError;
use crate::learner::{Hardware, LearnError};
use crate::rounds::{Halt, Method, Room, Round, SavingConfig, bytes, check_shape, fault};
use crate::watch::Stage;
use replay::Replay;

/// The file that holds the network.
pub const NETWORK: &str = "endgame.safetensors";
/// The file that holds the optimiser's memory and the weights.
const TRAINER: &str = "trainer.safetensors";
/// The file that holds what is learned from.
const REPLAY: &str = "replay.bin";

/// An ending being learned.
pub struct Endgame {
    lab: Lab,
    trainer: Trainer,
    replay: Replay,
}

/// The games of a round that are to be played.
pub struct Work<'a> {
    /// The seed of the run.
    pub seed: u64,
    /// The number of the round.
    pub round: u64,
    /// The numbers of the games.
    pub numbers: Range<u64>,
    /// How to play.
    pub config: &'a EndgameConfig,
    /// The ending.
    pub lab: &'a Lab,
    /// The network that plays.
    pub network: &'a Arc<Network>,
    /// Batches that it has learned.
    pub step: u64,
    /// Threads of this process.
    pub pool: &'a rayon::ThreadPool,
    /// When to give up.
    pub halt: Halt<'a>,
}

impl Work<'_> {
    /// Plays on the threads of this process; `None` when it was told to halt.
    pub fn play(&self) -> Option<Vec<Log>> {
        let (seed, halt) = (games_seed(self.seed), self.halt);
        let halt = || halt.is_over();
        let Work { config, lab, network, .. } = self;
        let numbers = self.numbers.clone();
        self.pool.install(|| play(config, lab, network, seed, numbers, &halt))
    }
}

/// The seed of all games of a run.
pub fn games_seed(seed: u64) -> Seed {
    Seed::new(seed).derive("games")
}

/// Plays games on the threads of the pool that this is called in; `None` when told to halt.
fn play(
    config: &EndgameConfig,
    lab: &Lab,
    network: &Arc<Network>,
    seed: Seed,
    numbers: Range<u64>,
    halt: &(dyn Fn() -> bool + Sync),
) -> Option<Vec<Log>> {
    let player = || SelfPlayer::new(config, lab, network);
    let play = |player: &mut SelfPlayer, number: u64| player.play_until(seed, number, halt);
    numbers.into_par_iter().map_init(player, play).collect()
}

/// What a round did.
#[derive(Clone, Debug, Default)]
pub struct Lap {
    /// Games played.
    pub games: u64,
    /// Positions they added.
    pub positions: u64,
    /// What their searches looked like.
    pub walks: SimulationStats,
    /// The share of games that ended in mate, in a draw, and that were cut off.
    pub shares: [f64; 3],
    /// Batches learned.
    pub steps: u64,
    /// The mean losses of those.
    pub losses: Losses,
    /// The learning rate at the end.
    pub rate: f64,
}

impl Endgame {
    /// Knows nothing yet.
    pub fn untaught(config: &EndgameConfig, seed: Seed) -> Result<Endgame, LearnError> {
        let lab = lab(config.ending)?;
        let network = Network::random(config.network, seed).map_err(|error| {
            ConfigError::Parse { file: "network".to_owned(), message: error.to_string() }
        })?;
        Ok(Endgame { lab, trainer: Trainer::new(network), replay: Replay::default() })
    }

    /// The ending and the truth about it.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The network as it is now.
    pub fn network(&self) -> Arc<Network> {
        Arc::new(self.trainer.network().clone())
    }

    /// Plays the games of a round; `None` when it was told to halt. The seed is that of all games.
    pub fn play(
        &self,
        config: &EndgameConfig,
        seed: Seed,
        first: u64,
        halt: &(dyn Fn() -> bool + Sync),
    ) -> Option<Vec<Log>> {
        let numbers = first..first + config.round_games;
        play(config, &self.lab, &self.network(), seed, numbers, halt)
    }

    /// Works out what is to be learned from games that this network has played.
    pub fn lessons(
        &self,
        config: &EndgameConfig,
        logs: &[Log],
        seed: Seed,
    ) -> Result<Vec<Played>, LearnError> {
        let mut referee = Referee::new(config, &self.lab, &self.network());
        let finish = |log: &Log| Ok(referee.finish(log, seed)?);
        logs.iter().map(finish).collect()
    }

    /// Learns from the games of a round and those before; `None` when it was told to halt, and then
    /// it is as it was before.
    pub fn learn(
        &mut self,
        config: &EndgameConfig,
        games: Vec<Played>,
        seed: Seed,
        halt: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Lap>, LearnError> {
        let before = (self.trainer.clone(), self.replay.clone());
        let mut lap = Lap { games: games.len() as u64, ..Lap::default() };
        let total = games.len() as f64;
        for game in games {
            lap.walks.add(&game.walks);
            lap.positions += game.samples.len() as u64;
            let kind = match game.outcome {
                Some(outcome) if outcome.reason == Reason::Checkmate => 0,
                Some(_) => 1,
                None => 2,
            };
            lap.shares[kind] += 1.0 / total;
            for sample in game.samples {
                self.replay.push(sample, &config.replay);
            }
        }
        let steps = (config.passes * lap.positions as f64 / config.batch as f64).ceil() as u64;
        let mut rng = seed.rng();
        for _ in 0..steps {
            if halt() {
                (self.trainer, self.replay) = before;
                return Ok(None);
            }
            let samples = self.replay.draw(config.batch, &mut rng);
            let weight = config.outcome_weight as f32;
            let lessons: Vec<Lesson> = samples.iter().map(|sample| sample.lesson(weight)).collect();
            let rate = config.rate_at(self.trainer.step());
            let (losses, _) =
                self.trainer.learn(&lessons, &config.losses(), &config.optimiser, rate)?;
            lap.losses.policy += losses.policy / steps as f64;
            lap.losses.value += losses.value / steps as f64;
            lap.losses.entropy += losses.entropy / steps as f64;
            lap.rate = f64::from(rate);
        }
        lap.steps = steps;
        Ok(Some(lap))
    }
}

/// The lab of an ending.
pub fn lab(ending: EndingName) -> Result<Lab, LearnError> {
    Lab::new(ending).map_err(|error| {
        let message = error.to_string();
        ConfigError::Parse { file: "ending".to_owned(), message }.into()
    })
}

impl Method for Endgame {
    type Config = EndgameConfig;
    const FILES: &'static [&'static str] = &[NETWORK, TRAINER, REPLAY];
    const TRAINING: &'static [&'static str] = &[TRAINER, REPLAY];

    fn saving(config: &EndgameConfig) -> SavingConfig {
        config.saving
    }

    fn new(config: &EndgameConfig, seed: Seed, _: Hardware) -> Result<Endgame, LearnError> {
        Endgame::untaught(config, seed)
    }

    fn restore(
        config: &EndgameConfig,
        checkpoint: &Checkpoint,
        _: Hardware,
    ) -> Result<Endgame, LearnError> {
        let replay = Replay::decode(bytes(checkpoint, REPLAY)?);
        let trainer = Trainer::restore(bytes(checkpoint, TRAINER)?)?;
        check_shape(checkpoint, TRAINER, &trainer.network().config(), &config.network)?;
        Ok(Endgame {
            lab: lab(config.ending)?,
            trainer,
            replay: replay.map_err(|error| fault(checkpoint, REPLAY, &error))?,
        })
    }

    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, LearnError> {
        let info = WeightsInfo { step: self.trainer.step() };
        Ok(vec![
            (NETWORK, self.trainer.network().encode(info)?),
            (TRAINER, self.trainer.state()?),
            (REPLAY, self.replay.encode()),
        ])
    }

    fn round(
        &mut self,
        config: &EndgameConfig,
        room: &mut Room<'_>,
    ) -> Result<Option<Round>, LearnError> {
        room.tell(Stage::Play, 0.0);
        let (halt, first) = (room.halt, room.totals.games);
        let network = self.network();
        let work = Work {
            seed: room.run_seed,
            round: room.totals.rounds,
            numbers: first..first + config.round_games,
            config,
            lab: &self.lab,
            network: &network,
            step: self.trainer.step(),
            pool: room.pool,
            halt,
        };
        let Some(logs) = room.play_endings(&work)? else { return Ok(None) };
        let halt = || halt.is_over();
        let games = self.lessons(config, &logs, games_seed(room.run_seed))?;
        let bad = room.source.purge();
        if !bad.is_empty() {
            let forgotten = self.replay.forget(&bad);
            room.note(&format!(
                "{forgotten} positions of refused games are not learned from again"
            ));
        }
        room.tell(Stage::Learn, 0.0);
        let seed = room.seed_for("learn");
        let Some(lap) = room.pool.install(|| self.learn(config, games, seed, &halt))? else {
            return Ok(None);
        };
        let mut round = Round {
            games: lap.games,
            positions: lap.positions,
            nodes: lap.walks.count,
            steps: lap.steps,
            ..Round::default()
        };
        for (name, share) in ["mate", "drawn", "cut_off"].into_iter().zip(lap.shares) {
            round.add(&format!("games_share.{name}"), share);
        }
        round.add("plies", lap.positions as f64 / lap.games.max(1) as f64);
        round.add("loss.policy", lap.losses.policy);
        round.add("loss.value", lap.losses.value);
        round.add("entropy", lap.losses.entropy);
        round.add("learning_rate", lap.rate);
        round.add("window", self.replay.len() as f64);
        if config.exam.is_due(room.totals.rounds) {
            room.tell(Stage::Rate, 0.0);
            let (network, seed) = (self.network(), room.seed.derive("exam"));
            let exam = || examine(config, &config.exam, &self.lab, &network, seed, &halt);
            if let Some(report) = room.pool.install(exam) {
                for (name, value) in report.curves() {
                    round.add(name, value);
                }
            }
        }
        Ok(Some(round))
    }
}
