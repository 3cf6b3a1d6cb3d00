//! The `alphazero` learner: a residual network over 119 planes and 4672 moves, trained by self-play
//! (Silver et al. 2018).
//!
//! The training loop is [`SelfPlayLearner`]; this file has the model and its presets. A sample in
//! the replay buffer refers to a stored game. Its planes are encoded when needed, because those of a
//! million positions would take 30 gigabytes.

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
use selfmate_run::{GameRecord, PositionRecord, RecordError, Run};
use selfmate_search::Wdl;
use selfmate_search::mcts::Expansion;
use selfmate_selfplay::{
    Bootstrap, Evaluators, GameSource, Ramp, RootRuleName, SelfPlayConfig, Watch,
};
use selfmate_train::{
    ConfigError, End, GuardConfig, Hardware, LearningConfig, Losses, MODEL, NoEvaluation,
    RatingConfig, SelfPlayLearner, SelfPlayLearnerConfig, SelfPlayModel, Targets, TrainOptions,
    TrainableModel, TrainingError, plan_games, train,
};

use crate::charts;
use crate::table::{
    LearnerConfig, LearnerInfo, Loader, PlayerFormat, SearchKind, boxed, megabytes, parse,
};

pub type AlphaZeroConfig = SelfPlayLearnerConfig<residual::Config, TrainingConfig>;

const PRESETS: [&str; 5] = ["cpu", "toy", "paper", "large", "tiny"];

fn preset(name: &str) -> Option<AlphaZeroConfig> {
    match name {
        "default" | "cpu" => Some(cpu()),
        "toy" => Some(toy()),
        "paper" => Some(paper()),
        "large" => Some(large()),
        "tiny" => Some(tiny()),
        _ => None,
    }
}

/// Half an hour on two cores: a small network, a Gumbel root with few simulations.
pub fn cpu() -> AlphaZeroConfig {
    let adam = Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
    AlphaZeroConfig {
        plan_games: 10_000,
        plan_steps: None,
        network: residual::Config { value: ValueHead::Wdl, ..residual::Config::small() },
        selfplay: SelfPlayConfig {
            generation_games: 512,
            // With half as many simulations and candidates, most games soon end in draws.
            simulations: Ramp::new(32.0, 48.0, 0.0, 1.0),
            games_at_once: 32,
            expansion: Expansion::FirstVisit,
            candidates: 16,
            // A random network would add no information and take eighteen times as long.
            bootstrap: Bootstrap { games: 6144, simulations: 64, kept_share: 0.3 },
            memory_mb: 2,
            ..SelfPlayConfig::default()
        },
        learning: LearningConfig {
            batch: 256,
            // With more reuse the network memorises the results of games.
            reuse: 1.0,
            rate: Ramp::new(2e-3, 2e-4, 0.4, 1.0),
            // With so few games the values of the search are unreliable for a long time.
            result_weight: Ramp::new(1.0, 0.5, 0.4, 0.9),
            warmup_steps: 100,
            replay_max: 1_000_000,
            trainer: TrainingConfig { optimiser: adam, ..TrainingConfig::default() },
            ..LearningConfig::default()
        },
        guards: GuardConfig::default(),
        rating: RatingConfig { nodes: 64, ..RatingConfig::default() },
        evaluation: None,
    }
}

/// The system of `paper`, made small: it learns something in hours without a GPU.
pub fn toy() -> AlphaZeroConfig {
    let paper = paper();
    AlphaZeroConfig {
        plan_steps: Some(5000),
        network: residual::Config::toy(),
        selfplay: SelfPlayConfig {
            generation_games: 16,
            simulations: Ramp::constant(200.0),
            games_at_once: 8,
            memory_mb: 2,
            ..paper.selfplay
        },
        learning: LearningConfig {
            batch: 2048,
            // With one use of each position, 5,000 steps would need 10 million positions.
            reuse: 8.0,
            rate_drops: vec![1000, 3000],
            min_buffer: 4096,
            ..paper.learning
        },
        ..paper
    }
}

/// AlphaZero (Silver et al. 2018) with the values of docs/sources.md, which compares it with the
/// default. Needs a GPU and a lot of time.
pub fn paper() -> AlphaZeroConfig {
    AlphaZeroConfig {
        plan_games: 44_000_000,
        // The learning rate is 0.002 at the end.
        plan_steps: Some(500_000),
        network: residual::Config::standard(),
        selfplay: SelfPlayConfig {
            // The published system learned all the time; here a new network plays after so many games.
            generation_games: 256,
            simulations: Ramp::constant(800.0),
            games_at_once: 256,
            expansion: Expansion::FirstVisit,
            root_rule: RootRuleName::Puct,
            dirichlet_alpha: 0.3,
            dirichlet_epsilon: 0.25,
            c_puct: 1.25,
            c_puct_base: 0.0,
            unvisited_value: Some(0.0),
            discount: 1.0,
            // Noise on every move, and moves drawn by visits in the first 30 moves of each side.
            noise_plies: 512,
            temperature_plies: 60,
            bootstrap: Bootstrap::default(),
            opening_plies: 0,
            long_opening_share: 0.0,
            endgame_share: 0.0,
            max_plies: 512,
            resign_value: 0.95,
            proven_targets: false,
            memory_mb: 8,
            ..SelfPlayConfig::default()
        },
        learning: LearningConfig {
            batch: 4096,
            reuse: 1.0,
            rate: Ramp::constant(0.2),
            rate_drops: vec![100_000, 300_000, 500_000],
            warmup_steps: 0,
            replay_max: 1_000_000,
            replay_share: 1.0,
            min_buffer: 50_000,
            result_weight: Ramp::constant(1.0),
            trainer: TrainingConfig {
                optimiser: Optimiser::Sgd { momentum: 0.9 },
                weight_decay: 1e-4,
                clip_norm: 1.0,
                // The weights themselves play, not an average.
                average_rate: 1.0,
                ..TrainingConfig::default()
            },
            ..LearningConfig::default()
        },
        guards: GuardConfig::off(),
        ..cpu()
    }
}

/// As [`paper`], with 19 blocks of 256 filters.
pub fn large() -> AlphaZeroConfig {
    AlphaZeroConfig { network: residual::Config::large(), ..paper() }
}

/// A run of a few seconds that learns almost nothing, for tests and first experiments.
pub fn tiny() -> AlphaZeroConfig {
    let cpu = cpu();
    AlphaZeroConfig {
        plan_games: 64,
        network: residual::Config { blocks: 1, filters: 16, ..cpu.network },
        selfplay: SelfPlayConfig {
            generation_games: 8,
            simulations: Ramp::new(4.0, 4.0, 0.0, 1.0),
            games_at_once: 4,
            candidates: 4,
            bootstrap: Bootstrap { games: 12, simulations: 8, kept_share: 0.5 },
            max_plies: 40,
            memory_mb: 1,
            ..cpu.selfplay
        },
        learning: LearningConfig {
            batch: 32,
            reuse: 1.0,
            replay_max: 2000,
            warmup_steps: 4,
            checkpoint_seconds: 0.2,
            keep_steps: 50,
            ..cpu.learning
        },
        rating: RatingConfig { every_seconds: 0.0, ..cpu.rating },
        ..cpu
    }
}

pub const INFO: LearnerInfo = LearnerInfo {
    name: "alphazero",
    summary: "a residual network, 119 planes in and 4672 moves out, from games against itself",
    presets: &PRESETS,
    preset: |name| boxed(preset(name)),
    parse: parse::<AlphaZeroConfig>,
    bounds: &[],
    is_distributed: true,
    has_device: true,
    search: SearchKind::Either,
    player: PlayerFormat { file: MODEL, load: Loader::Network },
    charts: charts::SELF_PLAY,
    descriptions: &[],
};

/// Bytes of a sample; a generous estimate.
const SAMPLE_BYTES: u64 = 256;

/// Bytes of a position in a training batch: its planes and the activations of every layer.
pub(crate) fn batch_bytes(network: &residual::Config) -> u64 {
    let activations = network.filters * (2 * network.blocks + 2);
    (64 * 4 * (network.planes + activations)) as u64
}

impl LearnerConfig for AlphaZeroConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.check_common(INFO.bounds)?;
        self.network.check().map_err(|error| ConfigError::network(&error))
    }

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        train::<SelfPlayLearner<AlphaZero>>(run, self, options, source, watch)
    }

    fn memory_mb(&self, threads: usize) -> Vec<(&'static str, u64)> {
        let batch = self.learning.batch as u64 * batch_bytes(&self.network);
        let replay = self.replay_positions().saturating_mul(SAMPLE_BYTES);
        vec![
            ("selfplay.memory_mb", self.selfplay.trees_mb(threads) as u64),
            ("learning.batch", megabytes(batch)),
            ("learning.replay_max", megabytes(replay)),
        ]
    }

    fn plan_games(&mut self) -> Option<&mut u64> {
        Some(&mut self.plan_games)
    }

    fn measure_plan(&self, minutes: f64, hardware: Hardware) -> Result<Option<u64>, TrainingError> {
        plan_games::<AlphaZero>(self, minutes, hardware).map(Some)
    }

    fn rating(&self) -> Option<&RatingConfig> {
        Some(&self.rating)
    }

    fn selfplay(&self) -> Option<(&SelfPlayConfig, Ramp)> {
        Some((&self.selfplay, self.learning.result_weight))
    }
}

pub struct AlphaZero {
    trainer: Trainer,
    shape: residual::Config,
    device: Device,
    batch: Batch,
}

/// A position of a stored game and its value target.
pub struct Position {
    stored: Arc<StoredGame>,
    /// The index in `recorded`.
    index: usize,
    wdl: Wdl,
}

/// A game's recorded positions, and its final state with the move history.
struct StoredGame {
    recorded: Vec<PositionRecord>,
    game: Game,
}

impl Position {
    fn encode(&self, config: residual::Config) -> Encoded {
        let recorded = &self.stored.recorded[self.index];
        let encoding = config.encoding();
        let mut game = Game::new();
        game.copy_recent_at(&self.stored.game, recorded.ply.into(), encoding.history());
        let index = |m| {
            let index = MoveSpace::Az4672.index(game.position(), m);
            index.expect("every legal move has an index") as u16
        };
        let legal = game.legal_moves();
        let moves = legal.iter().zip(&recorded.policy);
        let policy = moves.map(|(&m, &share)| (index(m), share)).collect();
        Encoded { planes: encoding.encoded(&game), policy }
    }
}

/// The planes of a position and the share of each legal move.
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

impl TrainableModel for AlphaZero {
    type Shape = residual::Config;
    type Training = TrainingConfig;
    type Sample = Position;

    fn new(
        shape: &residual::Config,
        training: &TrainingConfig,
        seed: Seed,
        Hardware { threads, device }: Hardware,
    ) -> Result<AlphaZero, TrainingError> {
        let weights = Weights::random(*shape, seed).map_err(residual::TrainError::from)?;
        Ok(AlphaZero::with(Trainer::new(weights, *training, threads, device)?, device))
    }

    fn restore(
        state: &[u8],
        training: &TrainingConfig,
        Hardware { threads, device }: Hardware,
    ) -> Result<AlphaZero, TrainingError> {
        Ok(AlphaZero::with(Trainer::restore(state, *training, threads, device)?, device))
    }

    fn shape(&self) -> residual::Config {
        self.shape
    }

    fn state(&self) -> Result<Vec<u8>, TrainingError> {
        Ok(self.trainer.state()?)
    }

    fn step(&self) -> u64 {
        self.trainer.steps()
    }

    fn learn(&mut self, batch: &[&Position], rate: f32) -> Result<Losses, TrainingError> {
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

    fn model_file(&self) -> Result<Vec<u8>, TrainingError> {
        Ok(residual::encode(self.trainer.average(), WeightsInfo { step: self.step() })?)
    }

    fn evaluators(&self) -> Result<Evaluators, TrainingError> {
        Ok(device::evaluators(self.trainer.average(), self.device)?)
    }

    fn samples(record: &GameRecord, targets: Targets) -> Result<Vec<Position>, RecordError> {
        let game = record.replay(|_, _, _| {})?;
        let stored = Arc::new(StoredGame { recorded: record.positions.clone(), game });
        let position = |(index, wdl)| Position { stored: Arc::clone(&stored), index, wdl };
        Ok(targets.wdls(record).into_iter().enumerate().map(position).collect())
    }
}

impl SelfPlayModel for AlphaZero {
    type Evaluation = NoEvaluation;
    const SEARCHES_PER_GAME: f64 = 130.0;

    fn model(&self) -> Result<Model, TrainingError> {
        Ok(Model::Residual(self.trainer.average().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid() {
        for name in PRESETS {
            preset(name).unwrap().check().unwrap();
        }
    }
}
