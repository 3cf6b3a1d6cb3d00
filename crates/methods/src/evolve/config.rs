//! The settings of the `evolve` learner.

use selfmate_arena::Tuning;
use selfmate_train::ConfigError;
use selfmate_train::SavingConfig;
use selfmate_train::bounds::{self, Bounds, NamedBounds};
use selfmate_train::engine_match::EngineMatchConfig;
use selfmate_train::evaluation::EvaluationConfig;
use serde::{Deserialize, Serialize};

use crate::tuning::{Genome, start_weights};

/// The bounds of settings that no other learner has.
pub(super) const BOUNDS: &[NamedBounds] = &[
    ("sigma", Bounds::above_zero(1000.0)),
    ("population", Bounds::new(2.0, 10_000.0)),
    ("parents", Bounds::new(1.0, 10_000.0)),
    ("pairs", Bounds::new(1.0, 10_000.0)),
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvolveConfig {
    /// The first weights: `plain`, `default` or a file of weights.
    pub start: String,
    /// The weights that evolve: prefixes of names such as `piece_value` or `shelter.mg`.
    pub genes: Vec<String>,
    pub strategy: Strategy,
    /// The initial step size, in units of each gene: a tenth of its range, at most a quarter of a
    /// pawn.
    pub sigma: f64,
    /// Children per generation.
    pub population: usize,
    /// Parents of the simple strategy.
    pub parents: usize,
    /// Pairs of games per candidate.
    pub pairs: usize,
    /// The pool has the first weights and this many earlier bests.
    pub pool: usize,
    /// The best joins the pool every this many generations.
    pub pool_every: u64,
    pub games: EngineMatchConfig,
    pub evaluation: EvaluationConfig,
    pub saving: SavingConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// (μ + λ): the best of parents and children are the next parents.
    Simple,
    /// CMA-ES: a normal distribution that adapts its covariance.
    Cma,
}

/// Everything except piece-square tables and mobility.
const GENES: [&str; 30] = [
    "piece_value",
    "bishop_pair",
    "rook_open_file",
    "rook_half_open_file",
    "rook_on_seventh",
    "outpost",
    "doubled",
    "isolated",
    "backward",
    "connected",
    "passed",
    "passed_blocked",
    "passed_safe",
    "passed_own_king",
    "passed_enemy_king",
    "shelter",
    "storm",
    "king_attacker",
    "king_ring_attack",
    "king_safe_check",
    "king_no_queen",
    "threat_by_pawn",
    "threat_by_minor",
    "threat_by_rook",
    "hanging",
    "undeveloped",
    "centre_pawn",
    "centre_control",
    "tempo",
    "mop_up",
];

impl Default for EvolveConfig {
    fn default() -> EvolveConfig {
        EvolveConfig {
            start: "plain".to_owned(),
            genes: GENES.map(str::to_owned).to_vec(),
            strategy: Strategy::Cma,
            sigma: 0.3,
            population: 24,
            parents: 6,
            pairs: 8,
            pool: 4,
            pool_every: 10,
            games: EngineMatchConfig { nodes: 300, ..EngineMatchConfig::default() },
            evaluation: EvaluationConfig {
                every_rounds: 10,
                games: 100,
                ..EvaluationConfig::default()
            },
            saving: SavingConfig { checkpoint_seconds: 30.0, keep_steps: 10 },
        }
    }
}

impl EvolveConfig {
    /// The names that [`EvolveConfig::preset`] accepts.
    pub const PRESETS: [&str; 3] = ["default", "simple", "tiny"];

    pub fn preset(name: &str) -> Option<EvolveConfig> {
        match name {
            "default" => Some(EvolveConfig::default()),
            "simple" => {
                Some(EvolveConfig { strategy: Strategy::Simple, ..EvolveConfig::default() })
            }
            "tiny" => Some(EvolveConfig::tiny()),
            _ => None,
        }
    }

    /// A run of a few seconds that learns almost nothing, for tests.
    pub fn tiny() -> EvolveConfig {
        EvolveConfig {
            genes: vec!["piece_value".to_owned()],
            population: 4,
            parents: 2,
            pairs: 1,
            pool_every: 2,
            games: EngineMatchConfig { nodes: 60, max_plies: 40, ..EngineMatchConfig::default() },
            evaluation: EvaluationConfig {
                every_rounds: 3,
                games: 4,
                max_plies: 60,
                ..EvaluationConfig::default()
            },
            saving: SavingConfig { checkpoint_seconds: 0.0, keep_steps: 2 },
            ..EvolveConfig::default()
        }
    }

    pub fn start_weights(&self) -> Result<Tuning, ConfigError> {
        start_weights(&self.start)
    }

    pub(super) fn genome(&self) -> Result<Genome, ConfigError> {
        Genome::new(&self.start_weights()?, &self.genes).map_err(|unknown| ConfigError::Value {
            field: "genes",
            got: unknown,
            expected: "the beginning of a weight's name, such as piece_value",
        })
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        bounds::check(self, BOUNDS)?;
        if self.genome()?.is_empty() {
            let (got, expected) = ("empty".to_owned(), "at least one weight");
            return Err(ConfigError::Value { field: "genes", got, expected });
        }
        self.evaluation.check()
    }
}
