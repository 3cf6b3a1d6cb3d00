//! The settings of the `reinforce` learner.

use selfmate_nn::mlp::{LossWeights, MlpConfig};
use selfmate_nn::small::{AdamConfig, Shape};
use selfmate_selfplay::Ramp;
use selfmate_train::ConfigError;
use selfmate_train::SavingConfig;
use selfmate_train::bounds::{self, NamedBounds};
use selfmate_train::evaluation::EvaluationConfig;
use serde::{Deserialize, Serialize};

use super::game::PlayConfig;
use crate::opponent::{Opponent, check_opponents};

/// The bounds of settings that no other learner has.
pub(super) const BOUNDS: &[NamedBounds] = &[
    ("trace", bounds::SHARE),
    ("material", bounds::SHARE),
    ("entropy.from", bounds::WEIGHT),
    ("entropy.to", bounds::WEIGHT),
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReinforceConfig {
    /// The number of games at which the ramps end.
    pub plan_games: u64,
    pub network: MlpConfig,
    /// Opponents, in turn from game to game.
    pub opponents: Vec<Opponent>,
    /// Earlier versions of the network that are kept as opponents.
    pub pool: usize,
    /// The network joins the pool every this many rounds.
    pub pool_every: u64,
    /// Games per round.
    pub round_games: u64,
    /// Moves per batch; a round is split into batches of about this size.
    pub batch: usize,
    /// The most random plies before a game.
    pub opening_plies: u32,
    /// A game is truncated after this many plies.
    pub max_plies: u32,
    /// The discount per own move.
    pub discount: f64,
    /// λ of TD(λ): 1 uses the game's result alone, 0 the network's value one own move later.
    pub trace: f64,
    /// The value of being a queen ahead in a truncated game; 0 uses the network's value of the last
    /// position instead.
    pub material: f64,
    /// The learning rate.
    pub rate: Ramp,
    /// The weight of the entropy bonus.
    pub entropy: Ramp,
    /// The weight of the value's squared error.
    pub value_weight: f64,
    pub optimiser: AdamConfig,
    pub evaluation: EvaluationConfig,
    pub saving: SavingConfig,
}

impl Default for ReinforceConfig {
    fn default() -> ReinforceConfig {
        ReinforceConfig {
            plan_games: 2_000_000,
            network: MlpConfig::default(),
            opponents: vec![Opponent::Random, Opponent::Pool],
            pool: 8,
            pool_every: 400,
            round_games: 128,
            batch: 1024,
            opening_plies: 4,
            max_plies: 120,
            discount: 0.99,
            trace: 0.9,
            material: 0.5,
            rate: Ramp::new(1e-3, 1e-4, 0.2, 1.0),
            entropy: Ramp::new(0.02, 0.002, 0.0, 1.0),
            value_weight: 0.5,
            optimiser: AdamConfig::default(),
            evaluation: EvaluationConfig {
                every_rounds: 200,
                games: 200,
                ..EvaluationConfig::default()
            },
            saving: SavingConfig { checkpoint_seconds: 30.0, keep_steps: 2000 },
        }
    }
}

impl ReinforceConfig {
    /// The names that [`ReinforceConfig::preset`] accepts.
    pub const PRESETS: [&str; 3] = ["default", "selfplay", "tiny"];

    pub fn preset(name: &str) -> Option<ReinforceConfig> {
        match name {
            "default" => Some(ReinforceConfig::default()),
            "selfplay" => Some(ReinforceConfig {
                opponents: vec![Opponent::Itself, Opponent::Pool],
                ..ReinforceConfig::default()
            }),
            "tiny" => Some(ReinforceConfig::tiny()),
            _ => None,
        }
    }

    /// A run of a few seconds that learns almost nothing, for tests.
    pub fn tiny() -> ReinforceConfig {
        ReinforceConfig {
            plan_games: 128,
            network: MlpConfig { first: 16, second: 16 },
            opponents: vec![Opponent::Random, Opponent::Itself, Opponent::Pool],
            pool: 2,
            pool_every: 2,
            round_games: 12,
            batch: 64,
            max_plies: 40,
            evaluation: EvaluationConfig {
                every_rounds: 4,
                games: 6,
                max_plies: 60,
                ..EvaluationConfig::default()
            },
            saving: SavingConfig { checkpoint_seconds: 0.0, keep_steps: 3 },
            ..ReinforceConfig::default()
        }
    }

    pub(super) fn play_config(&self) -> PlayConfig {
        PlayConfig {
            opening_plies: self.opening_plies,
            max_plies: self.max_plies,
            discount: self.discount as f32,
            trace: self.trace as f32,
            material: self.material as f32,
        }
    }

    pub(super) fn losses(&self, progress: f64) -> LossWeights {
        LossWeights { value: self.value_weight as f32, entropy: self.entropy.at(progress) as f32 }
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        bounds::check(self, BOUNDS)?;
        self.network.check().map_err(|error| ConfigError::Parse {
            file: "network".to_owned(),
            message: error.to_string(),
        })?;
        check_opponents(&self.opponents, self.pool)?;
        self.evaluation.check()
    }
}
