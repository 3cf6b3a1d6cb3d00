//! The settings of the endgame learners.

use selfmate_nn::mlp::{LossWeights, MlpConfig};
use selfmate_nn::small::{AdamConfig, Shape};
use serde::{Deserialize, Serialize};

use super::exam::ExamConfig;
use super::lab::EndingName;
use super::replay::ReplayConfig;
use super::thinker::ThinkConfig;
use crate::bounds;
use crate::config::ConfigError;
use crate::rounds::SavingConfig;

/// The settings of an endgame learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndgameConfig {
    /// The ending.
    pub ending: EndingName,
    /// What a result is worth a ply earlier.
    pub discount: f64,
    /// A game is cut off after so many plies.
    pub max_plies: u32,
    /// How much of a value target comes from the targets that follow; the rest from the search
    /// at the next position.
    pub lambda: f64,
    /// How much the outcome of the game counts against that target.
    pub outcome_weight: f64,
    /// Games of a round.
    pub round_games: u64,
    /// Positions of a batch.
    pub batch: usize,
    /// How often each position is learned from, on average.
    pub passes: f64,
    /// The learning rate at the start.
    pub rate: f64,
    /// Steps after which the learning rate is down to 1/√2.
    pub rate_steps: f64,
    /// The weight of the value's squared error.
    pub value_weight: f64,
    /// The network's shape.
    pub network: MlpConfig,
    /// How to search.
    pub search: ThinkConfig,
    /// Which positions are learned from.
    pub replay: ReplayConfig,
    /// The optimiser.
    pub optimiser: AdamConfig,
    /// How it is examined.
    pub exam: ExamConfig,
    /// Which checkpoints are made.
    pub saving: SavingConfig,
}

impl EndgameConfig {
    /// The names that [`EndgameConfig::preset`] knows.
    pub const PRESETS: [&str; 2] = ["default", "tiny"];

    /// Settings by name.
    pub fn preset(ending: EndingName, name: &str) -> Option<EndgameConfig> {
        match name {
            "default" => Some(EndgameConfig { ending, ..EndgameConfig::default() }),
            "tiny" => Some(EndgameConfig { ending, ..EndgameConfig::tiny() }),
            _ => None,
        }
    }

    /// A run of seconds that learns next to nothing.
    pub fn tiny() -> EndgameConfig {
        EndgameConfig {
            max_plies: 20,
            round_games: 4,
            batch: 16,
            network: MlpConfig { first: 16, second: 16 },
            search: ThinkConfig { simulations: 8, candidates: 4, ..ThinkConfig::default() },
            replay: ReplayConfig { least: 100, share: 0.5, most: 200 },
            exam: ExamConfig { every_rounds: 2, positions: 4, simulations: 8, moves: 5 },
            saving: SavingConfig { checkpoint_seconds: 0.0, keep_steps: 3 },
            ..EndgameConfig::default()
        }
    }

    /// Says what makes no sense, if anything does.
    pub fn check(&self) -> Result<(), ConfigError> {
        bounds::check(self)?;
        self.network.check().map_err(|error| ConfigError::Parse {
            file: "network".to_owned(),
            message: error.to_string(),
        })?;
        if self.discount == 0.0 {
            return Err(ConfigError::Value {
                field: "discount",
                got: self.discount.to_string(),
                expected: "a number above 0, at most 1",
            });
        }
        Ok(())
    }

    pub(super) fn losses(&self) -> LossWeights {
        LossWeights { value: self.value_weight as f32, entropy: 0.0 }
    }

    /// The learning rate at a step.
    pub(super) fn rate_at(&self, step: u64) -> f32 {
        (self.rate / (1.0 + step as f64 / self.rate_steps).sqrt()) as f32
    }
}

impl Default for EndgameConfig {
    fn default() -> EndgameConfig {
        EndgameConfig {
            ending: EndingName::Krk,
            discount: 0.98,
            max_plies: 24,
            lambda: 0.5,
            outcome_weight: 0.0,
            round_games: 128,
            batch: 256,
            passes: 4.0,
            rate: 2e-3,
            rate_steps: 2_000.0,
            value_weight: 2.0,
            network: MlpConfig { first: 128, second: 64 },
            search: ThinkConfig::default(),
            replay: ReplayConfig { least: 12_000, share: 0.25, most: 100_000 },
            optimiser: AdamConfig::default(),
            exam: ExamConfig::default(),
            saving: SavingConfig { checkpoint_seconds: 30.0, keep_steps: 5_000 },
        }
    }
}
