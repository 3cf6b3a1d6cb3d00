//! The settings of the `value` learner.

use selfmate_nn::small::{AdamConfig, Shape};
use selfmate_nn::valuenet::ValueNetConfig;
use selfmate_train::ConfigError;
use selfmate_train::SavingConfig;
use selfmate_train::bounds::{self, Bounds, NamedBounds};
use selfmate_train::evaluation::EvaluationConfig;
use serde::{Deserialize, Serialize};

use crate::opponent::{Opponent, check_opponents};

/// The bounds of settings that no other learner has.
pub(super) const BOUNDS: &[NamedBounds] = &[
    ("epsilon.from", bounds::SHARE),
    ("epsilon.to", bounds::SHARE),
    ("epsilon.games", bounds::COUNT),
    ("late_share", bounds::SHARE),
    ("late_plies", bounds::START_PLIES),
    ("network.convolutions", Bounds::new(1.0, 2.0)),
    ("replay", bounds::POSITIONS),
    ("replay_min", bounds::POSITIONS),
    ("best_from", bounds::SHARE),
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueConfig {
    pub network: ValueNetConfig,
    /// Opponents, in turn from game to game.
    pub opponents: Vec<Opponent>,
    /// Earlier versions of the network that are kept as opponents.
    pub pool: usize,
    /// The network joins the pool every this many rounds.
    pub pool_every: u64,
    /// The probability of a random move.
    pub epsilon: Epsilon,
    /// The most random plies before a game.
    pub opening_plies: u32,
    /// The share of games that start after up to `late_plies` random plies instead (exploring
    /// starts).
    pub late_share: f64,
    pub late_plies: u32,
    /// A game is truncated after this many plies; the return of its positions is then 0.
    pub max_plies: u32,
    /// Each ply multiplies a return by this: below 1, a nearer win is worth more.
    #[serde(default = "undiscounted")]
    pub discount: f64,
    /// Games per round.
    pub round_games: u64,
    /// Batches per round.
    pub round_batches: u64,
    /// Positions per batch.
    pub batch: usize,
    /// Whether a position can occur more than once in a batch.
    #[serde(default = "yes")]
    pub with_replacement: bool,
    /// Whether positions are learned as they are or as one of their mirror images.
    #[serde(default = "yes")]
    pub mirror_images: bool,
    /// Positions in the replay buffer.
    pub replay: usize,
    /// Training begins with this many positions in the replay buffer.
    #[serde(default = "one")]
    pub replay_min: usize,
    /// The learning rate.
    pub rate: f64,
    pub optimiser: AdamConfig,
    /// From this evaluation score or win rate on, the best network so far is the one that plays.
    pub best_from: f64,
    #[serde(default)]
    pub best_by: BestBy,
    pub evaluation: EvaluationConfig,
    #[serde(default)]
    pub evaluation_games: EvaluationGames,
    pub saving: SavingConfig,
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}

fn undiscounted() -> f64 {
    1.0
}

/// The number by which networks are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BestBy {
    /// A drawn game is half a point.
    #[default]
    Score,
    /// Only wins count.
    WinRate,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationGames {
    /// A match: openings of two random plies, each played with both colours.
    #[default]
    Match,
    /// As White from the start position, against random moves.
    White,
}

/// The probability of a random move, which changes linearly over `games` games.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epsilon {
    pub from: f64,
    pub to: f64,
    pub games: u64,
}

impl Epsilon {
    pub fn at(&self, games: u64) -> f64 {
        let share = (games as f64 / self.games.max(1) as f64).min(1.0);
        self.from * (1.0 - share) + self.to * share
    }
}

impl Default for ValueConfig {
    fn default() -> ValueConfig {
        ValueConfig {
            network: ValueNetConfig::default(),
            opponents: vec![Opponent::Random],
            pool: 4,
            pool_every: 20,
            epsilon: Epsilon { from: 0.3, to: 0.05, games: 1500 },
            opening_plies: 4,
            late_share: 0.5,
            late_plies: 200,
            max_plies: 100,
            discount: 1.0,
            round_games: 20,
            round_batches: 36,
            batch: 128,
            with_replacement: true,
            mirror_images: true,
            replay: 50_000,
            replay_min: 1,
            rate: 1e-3,
            optimiser: AdamConfig::default(),
            best_from: 0.6,
            best_by: BestBy::Score,
            evaluation: EvaluationConfig {
                every_rounds: 10,
                games: 40,
                max_plies: 200,
                ..EvaluationConfig::default()
            },
            evaluation_games: EvaluationGames::Match,
            saving: SavingConfig { checkpoint_seconds: 30.0, keep_steps: 500 },
        }
    }
}

impl ValueConfig {
    /// The names that [`ValueConfig::preset`] accepts.
    pub const PRESETS: [&str; 4] = ["default", "selfplay", "spec", "tiny"];

    pub fn preset(name: &str) -> Option<ValueConfig> {
        match name {
            "default" => Some(ValueConfig::default()),
            "selfplay" => Some(ValueConfig {
                opponents: vec![Opponent::Itself, Opponent::Pool],
                ..ValueConfig::default()
            }),
            "spec" => Some(ValueConfig::spec()),
            "tiny" => Some(ValueConfig::tiny()),
            _ => None,
        }
    }

    /// A network with batch norm and blocks of one convolution, one batch after every game, games
    /// from the start position only.
    fn spec() -> ValueConfig {
        ValueConfig {
            network: ValueNetConfig {
                convolutions: 1,
                batch_norm: true,
                ..ValueNetConfig::default()
            },
            opening_plies: 0,
            late_share: 0.0,
            // Games are short and their length is not an input. Without a discount, positions that
            // come late in a game are worth little, because many games are truncated there.
            discount: 0.98,
            round_games: 1,
            round_batches: 1,
            batch: 256,
            with_replacement: false,
            mirror_images: false,
            replay_min: 256,
            // Gradients are not clipped: the longest that is accepted.
            optimiser: AdamConfig { clip_norm: 1e9, ..AdamConfig::default() },
            best_by: BestBy::WinRate,
            evaluation: EvaluationConfig {
                every_rounds: 200,
                games: 200,
                max_plies: 100,
                ..EvaluationConfig::default()
            },
            evaluation_games: EvaluationGames::White,
            ..ValueConfig::default()
        }
    }

    /// A run of a few seconds that learns almost nothing, for tests.
    pub fn tiny() -> ValueConfig {
        ValueConfig {
            network: ValueNetConfig {
                channels: 4,
                blocks: 1,
                head: 2,
                hidden: 8,
                ..ValueNetConfig::default()
            },
            opponents: vec![Opponent::Random, Opponent::Itself, Opponent::Pool],
            pool: 2,
            pool_every: 2,
            max_plies: 60,
            round_games: 6,
            round_batches: 2,
            batch: 16,
            replay: 200,
            evaluation: EvaluationConfig {
                every_rounds: 3,
                games: 4,
                max_plies: 40,
                ..EvaluationConfig::default()
            },
            saving: SavingConfig { checkpoint_seconds: 0.0, keep_steps: 4 },
            ..ValueConfig::default()
        }
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        bounds::check(self, BOUNDS)?;
        self.network.check().map_err(|error| ConfigError::Parse {
            file: "network".to_owned(),
            message: error.to_string(),
        })?;
        check_opponents(&self.opponents, self.pool)?;
        let wrong = |field, got: String, expected| Err(ConfigError::Value { field, got, expected });
        if self.replay_min > self.replay {
            return wrong("replay_min", self.replay_min.to_string(), "at most replay");
        }
        if !self.with_replacement && self.batch > self.replay {
            let expected = "at most replay, because with_replacement is false";
            return wrong("batch", self.batch.to_string(), expected);
        }
        if self.evaluation_games == EvaluationGames::White && self.evaluation.opponent != "random" {
            let expected = "random, because evaluation_games is white";
            return wrong("evaluation.opponent", self.evaluation.opponent.clone(), expected);
        }
        self.evaluation.check()
    }
}
