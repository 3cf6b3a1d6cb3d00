//! The `alphazero` learner: a residual network over 119 planes and 4672 moves that learns from
//! games against itself (Silver et al. 2018).
//!
//! The loop is that of all learners from [`crate::selfplay`]; here is what it plays and trains
//! with. A position of the replay window is a place in a stored game: its planes are made when
//! they are needed, because a million of them would take 30 gigabytes.

use std::sync::Arc;

use rayon::prelude::*;
use selfmate_chess::env::ActionSpace;
use selfmate_chess::{Game, Seed};
use selfmate_encode::MoveSpace;
use selfmate_nn::device::{self, Trainer};
use selfmate_nn::residual::{
    self, Batch, Optimiser, TrainingConfig, ValueHead, Weights, WeightsInfo,
};
use selfmate_nn::{Device, Model};
use selfmate_run::{GameRecord, PositionRecord, RecordError};
use selfmate_search::Wdl;
use selfmate_search::mcts::Expansion;

use crate::config::ConfigError;
use crate::learner::{Hardware, LearnError};
use crate::selfplay::{
    Blind, Config, Evaluators, GuardConfig, LearningConfig, Losses, Ramp, RatingConfig, Root,
    SelfPlayConfig, Student, Targets,
};

/// The settings of the `alphazero` learner.
pub type AlphaZeroConfig = Config<residual::Config, TrainingConfig>;

impl AlphaZeroConfig {
    /// The names that [`AlphaZeroConfig::preset`] knows.
    pub const PRESETS: [&str; 4] = ["cpu", "toy", "paper", "tiny"];

    /// Settings by name.
    pub fn preset(name: &str) -> Option<AlphaZeroConfig> {
        match name {
            "default" | "cpu" => Some(AlphaZeroConfig::cpu()),
            "toy" => Some(AlphaZeroConfig::toy()),
            "paper" => Some(AlphaZeroConfig::paper()),
            "tiny" => Some(AlphaZeroConfig::tiny()),
            _ => None,
        }
    }

    /// Half an hour on two cores: a small network, a Gumbel root with few simulations.
    pub fn cpu() -> AlphaZeroConfig {
        let adam = Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
        AlphaZeroConfig {
            plan_games: 10_000,
            network: residual::Config { value: ValueHead::Wdl, ..residual::Config::small() },
            selfplay: SelfPlayConfig {
                generation_games: 512,
                // With half as many, and half the candidates, games soon end in draws.
                sims: Ramp::new(32.0, 48.0, 0.0, 1.0),
                games_at_once: 32,
                expansion: Expansion::FirstVisit,
                candidates: 16,
                // A random network would say as little and take eighteen times as long.
                blind: Blind { games: 6144, sims: 64, kept: 0.3 },
                memory_mb: 2,
                ..SelfPlayConfig::default()
            },
            learning: LearningConfig {
                batch: 256,
                // Learned from more often, a game's result is soon known by heart.
                reuse: 1.0,
                rate: Ramp::new(2e-3, 2e-4, 0.4, 1.0),
                // With so few games the searches know nothing for long.
                result_weight: Ramp::new(1.0, 0.5, 0.4, 0.9),
                warmup_steps: 100,
                window: 1_000_000,
                trainer: TrainingConfig { optimiser: adam, ..TrainingConfig::default() },
                ..LearningConfig::default()
            },
            guards: GuardConfig::default(),
            rating: RatingConfig { nodes: 64, ..RatingConfig::default() },
        }
    }

    /// As [`AlphaZeroConfig::cpu`], with the network of five blocks and 64 filters.
    pub fn toy() -> AlphaZeroConfig {
        let cpu = AlphaZeroConfig::cpu();
        let network = residual::Config { value: ValueHead::Wdl, ..residual::Config::toy() };
        AlphaZeroConfig { plan_games: 2_500, network, ..cpu }
    }

    /// The published settings: 800 simulations, PUCT with Dirichlet noise, momentum, steps of the
    /// learning rate. For a GPU and patience.
    pub fn paper() -> AlphaZeroConfig {
        AlphaZeroConfig {
            plan_games: 44_000_000,
            network: residual::Config::standard(),
            selfplay: SelfPlayConfig {
                generation_games: 25_000,
                sims: Ramp::new(800.0, 800.0, 0.0, 1.0),
                games_at_once: 256,
                expansion: Expansion::FirstVisit,
                root: Root::Puct,
                c_puct: 1.25,
                discount: 1.0,
                noisy_plies: 60,
                blind: Blind::default(),
                opening_plies: 0,
                wild_share: 0.0,
                endgame_share: 0.0,
                max_plies: 512,
                resign_value: 0.95,
                memory_mb: 8,
                ..SelfPlayConfig::default()
            },
            learning: LearningConfig {
                batch: 4096,
                reuse: 1.0,
                rate: Ramp::new(0.2, 0.2, 0.0, 1.0),
                rate_drops: vec![100_000, 300_000, 500_000],
                warmup_steps: 0,
                window: 1_000_000,
                window_share: 1.0,
                result_weight: Ramp::new(1.0, 1.0, 0.0, 1.0),
                ..LearningConfig::default()
            },
            ..AlphaZeroConfig::cpu()
        }
    }

    /// A run of seconds that learns next to nothing: for tests and for a first look.
    pub fn tiny() -> AlphaZeroConfig {
        let cpu = AlphaZeroConfig::cpu();
        AlphaZeroConfig {
            plan_games: 64,
            network: residual::Config { blocks: 1, filters: 16, ..cpu.network },
            selfplay: SelfPlayConfig {
                generation_games: 8,
                sims: Ramp::new(4.0, 4.0, 0.0, 1.0),
                games_at_once: 4,
                candidates: 4,
                blind: Blind { games: 12, sims: 8, kept: 0.5 },
                max_plies: 40,
                memory_mb: 1,
                ..cpu.selfplay
            },
            learning: LearningConfig {
                batch: 32,
                reuse: 1.0,
                window: 2000,
                warmup_steps: 4,
                checkpoint_seconds: 0.2,
                keep_steps: 50,
                ..cpu.learning
            },
            rating: RatingConfig { every_seconds: 0.0, ..cpu.rating },
            ..cpu
        }
    }

    /// Says what makes no sense, if anything does.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_common()?;
        self.network.check().map_err(|error| ConfigError::Parse {
            file: "network".to_owned(),
            message: error.to_string(),
        })
    }
}

/// A residual network in training.
pub struct AlphaZero {
    trainer: Trainer,
    shape: residual::Config,
    device: Device,
    batch: Batch,
}

/// A position of a stored game, with what to say of its value.
pub struct Position {
    played: Arc<Played>,
    /// Its place among the judged positions of the game.
    index: usize,
    wdl: Wdl,
}

/// A stored game, and the same played to its end.
struct Played {
    judged: Vec<PositionRecord>,
    game: Game,
}

impl Position {
    /// As numbers.
    fn encode(&self, config: residual::Config) -> Encoded {
        let judged = &self.played.judged[self.index];
        let encoding = config.encoding();
        let mut game = Game::new();
        game.copy_recent_at(&self.played.game, judged.ply.into(), encoding.history());
        let index = |m| {
            let index = MoveSpace::Az4672.index(game.position(), m);
            index.expect("every legal move has an index") as u16
        };
        let legal = game.legal_moves();
        let moves = legal.iter().zip(&judged.policy);
        let policy = moves.map(|(&m, &share)| (index(m), share)).collect();
        Encoded { planes: encoding.encoded(&game), policy }
    }
}

/// A position as numbers: its planes, and a share for each legal move.
struct Encoded {
    planes: Vec<f32>,
    policy: Vec<(u16, f32)>,
}

impl AlphaZero {
    fn with(trainer: Trainer, device: Device) -> AlphaZero {
        let shape = trainer.average().config();
        AlphaZero { trainer, shape, device, batch: Batch::new(shape) }
    }
}

impl Student for AlphaZero {
    type Shape = residual::Config;
    type Training = TrainingConfig;
    type Sample = Position;
    const SEARCHES: f64 = 130.0;

    fn new(
        shape: &residual::Config,
        training: &TrainingConfig,
        seed: Seed,
        Hardware { threads, device }: Hardware,
    ) -> Result<AlphaZero, LearnError> {
        let weights = Weights::random(*shape, seed).map_err(residual::TrainError::from)?;
        Ok(AlphaZero::with(Trainer::new(weights, *training, threads, device)?, device))
    }

    fn restore(
        state: &[u8],
        training: &TrainingConfig,
        Hardware { threads, device }: Hardware,
    ) -> Result<AlphaZero, LearnError> {
        Ok(AlphaZero::with(Trainer::restore(state, *training, threads, device)?, device))
    }

    fn shape(&self) -> residual::Config {
        self.shape
    }

    fn state(&self) -> Result<Vec<u8>, LearnError> {
        Ok(self.trainer.state()?)
    }

    fn step(&self) -> u64 {
        self.trainer.steps()
    }

    fn learn(&mut self, batch: &[&Position], rate: f32) -> Result<Losses, LearnError> {
        let encoded: Vec<Encoded> =
            batch.par_iter().map(|position| position.encode(self.shape)).collect();
        self.batch.clear();
        for (Encoded { planes, policy }, position) in encoded.iter().zip(batch) {
            self.batch.push(planes, policy, position.wdl)?;
        }
        let losses = self.trainer.step(&self.batch, rate)?;
        let residual::Losses { value, policy, gradient_norm, .. } = losses;
        Ok(Losses { value, policy, gradient_norm })
    }

    fn model(&self) -> Result<Vec<u8>, LearnError> {
        Ok(residual::encode(self.trainer.average(), WeightsInfo { step: self.step() })?)
    }

    fn evaluators(&self) -> Result<Evaluators, LearnError> {
        Ok(device::evaluators(self.trainer.average(), self.device)?)
    }

    fn samples(record: &GameRecord, targets: Targets) -> Result<Vec<Position>, RecordError> {
        let game = record.replay(|_, _, _| {})?;
        let played = Arc::new(Played { judged: record.positions.clone(), game });
        let position = |(index, wdl)| Position { played: Arc::clone(&played), index, wdl };
        Ok(targets.wdls(record).into_iter().enumerate().map(position).collect())
    }

    fn network(&self) -> Result<Model, LearnError> {
        Ok(Model::Residual(self.trainer.average().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_make_sense() {
        for name in AlphaZeroConfig::PRESETS {
            AlphaZeroConfig::preset(name).unwrap().check().unwrap();
        }
    }
}
