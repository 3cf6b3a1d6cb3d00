//! The settings of the `qlearn` learner.

use selfmate_arena::Registry;
use selfmate_selfplay::Ramp;
use selfmate_train::ConfigError;
use selfmate_train::SavingConfig;
use selfmate_train::bounds::{self, Bounds, NamedBounds};
use selfmate_train::evaluation::EvaluationConfig;
use serde::{Deserialize, Serialize};

use super::start::Starts;

/// The bounds of settings that no other learner has.
pub(super) const BOUNDS: &[NamedBounds] = &[
    ("table_plies", bounds::PLIES),
    ("new_states", bounds::PLIES),
    ("alpha.from", Bounds::above_zero(1.0)),
    ("alpha.to", Bounds::above_zero(1.0)),
    ("doubt", Bounds::new(0.0, 1e6)),
    ("gamma", bounds::SHARE),
    ("epsilon.from", bounds::SHARE),
    ("epsilon.to", bounds::SHARE),
    ("table_mb", bounds::MEGABYTES),
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QLearnConfig {
    /// The number of games at which the ramps end.
    pub plan_games: u64,
    /// Where games start: `game`, an ending such as `krk`, or an EPD or PGN file.
    pub start: String,
    /// The table plays and learns the first plies of a game; 0 means all.
    pub table_plies: u32,
    /// The player that finishes games after `table_plies`, for both sides.
    pub finisher: String,
    /// Games are truncated after this many plies.
    pub max_plies: u32,
    /// How many new positions per game enter the table; after them moves are random. 0 means no
    /// limit.
    pub new_states: u32,
    pub opponent: Opponent,
    /// Games per round; the table is updated after each round.
    pub round_games: u64,
    /// The smallest step size towards a target, as a share of the difference.
    pub alpha: Ramp,
    /// The number of imagined zero targets of a new value, at most `1 / alpha - 1`.
    pub doubt: u32,
    /// The discount per move of the side or sides that learn.
    pub gamma: f64,
    /// The probability of a random move.
    pub epsilon: Ramp,
    pub table_mb: usize,
    pub evaluation: EvaluationConfig,
    pub saving: SavingConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opponent {
    /// The table plays and learns both sides.
    Itself,
    /// Plays random moves; the table has White in every other game.
    Random,
}

impl Default for QLearnConfig {
    fn default() -> QLearnConfig {
        QLearnConfig {
            plan_games: 10_000_000,
            start: "game".to_owned(),
            table_plies: 0,
            finisher: "greedy".to_owned(),
            max_plies: 24,
            new_states: 1,
            opponent: Opponent::Random,
            round_games: 16_384,
            alpha: Ramp::new(0.1, 0.1, 0.0, 1.0),
            doubt: 9,
            gamma: 0.99,
            epsilon: Ramp::new(0.3, 0.1, 0.0, 0.5),
            table_mb: 256,
            evaluation: EvaluationConfig {
                every_rounds: 20,
                games: 500,
                ..EvaluationConfig::default()
            },
            // A table of 256 MB takes a while to write.
            saving: SavingConfig { checkpoint_seconds: 300.0, keep_steps: 1_000_000_000 },
        }
    }
}

impl QLearnConfig {
    /// The names that [`QLearnConfig::preset`] accepts.
    pub const PRESETS: [&str; 4] = ["default", "krk", "opening", "tiny"];

    pub fn preset(name: &str) -> Option<QLearnConfig> {
        match name {
            "default" => Some(QLearnConfig::default()),
            "krk" => Some(QLearnConfig::krk()),
            "opening" => Some(QLearnConfig::opening()),
            "tiny" => Some(QLearnConfig::tiny()),
            _ => None,
        }
    }

    /// King and rook against king; the table learns both sides.
    pub fn krk() -> QLearnConfig {
        QLearnConfig {
            plan_games: 2_000_000,
            start: "krk".to_owned(),
            max_plies: 100,
            new_states: 0,
            opponent: Opponent::Itself,
            round_games: 4096,
            doubt: 0,
            epsilon: Ramp::new(0.5, 0.1, 0.0, 0.5),
            table_mb: 64,
            ..QLearnConfig::default()
        }
    }

    /// The first ten plies; the rest of each game is played by `greedy` on both sides.
    pub fn opening() -> QLearnConfig {
        QLearnConfig {
            plan_games: 100_000,
            table_plies: 10,
            max_plies: 200,
            new_states: 0,
            opponent: Opponent::Itself,
            round_games: 1024,
            doubt: 0,
            epsilon: Ramp::new(0.5, 0.2, 0.0, 0.5),
            ..QLearnConfig::default()
        }
    }

    /// A run of a few seconds that learns almost nothing, for tests.
    pub fn tiny() -> QLearnConfig {
        QLearnConfig {
            plan_games: 256,
            start: "krk".to_owned(),
            max_plies: 40,
            new_states: 0,
            opponent: Opponent::Itself,
            round_games: 32,
            doubt: 0,
            table_mb: 1,
            evaluation: EvaluationConfig {
                every_rounds: 2,
                games: 10,
                ..EvaluationConfig::default()
            },
            saving: SavingConfig { checkpoint_seconds: 0.0, keep_steps: 5_000 },
            ..QLearnConfig::default()
        }
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        bounds::check(self, BOUNDS)?;
        Registry::standard().parse(&self.finisher).map_err(|_| ConfigError::Value {
            field: "finisher",
            got: self.finisher.clone(),
            expected: "a player such as greedy",
        })?;
        Starts::load(&self.start)?;
        self.evaluation.check()
    }
}
