//! The settings of the `evolve` learner.

use selfmate_arena::players::OnePlyWeights;
use selfmate_train::ConfigError;
use selfmate_train::SavingConfig;
use selfmate_train::bounds::{self, Bounds, NamedBounds};
use selfmate_train::engine_match::EngineMatchConfig;
use selfmate_train::evaluation::EvaluationConfig;
use serde::{Deserialize, Serialize};

use super::space::Space;
use crate::tuning::PlayerWeights;

/// The bounds of settings that no other learner has.
pub(super) const BOUNDS: &[NamedBounds] = &[
    ("sigma", Bounds::above_zero(1000.0)),
    ("population", Bounds::new(2.0, 10_000.0)),
    ("parents", Bounds::new(1.0, 10_000.0)),
    ("generations", bounds::COUNT),
    ("pairs", Bounds::new(1.0, 10_000.0)),
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvolveConfig {
    /// The first weights: `plain`, `default` or a file of weights for the alpha-beta engine;
    /// `four_weights` for the one-ply player `oneply`.
    pub start: String,
    /// The weights that evolve: prefixes of names such as `piece_value` or `shelter.mg`; of the
    /// one-ply player `material`, `centre`, `king_safety` and `development`.
    pub genes: Vec<String>,
    pub strategy: Strategy,
    /// The initial step size, in units of each gene: a tenth of its range, at most a quarter of a
    /// pawn; 0.1 for the one-ply player.
    pub sigma: f64,
    /// Children per generation; parents and children together for `truncation`.
    pub population: usize,
    /// Parents of the strategies `simple` and `truncation`.
    pub parents: usize,
    /// The generation after which the training ends; 0 for none.
    pub generations: u64,
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
    /// Truncation selection: a whole population from the start, of which the best are the parents of
    /// the next.
    Truncation,
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
            generations: 0,
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
    pub const PRESETS: [&str; 4] = ["default", "simple", "spec", "tiny"];

    pub fn preset(name: &str) -> Option<EvolveConfig> {
        match name {
            "default" => Some(EvolveConfig::default()),
            "simple" => {
                Some(EvolveConfig { strategy: Strategy::Simple, ..EvolveConfig::default() })
            }
            "spec" => Some(EvolveConfig::spec()),
            "tiny" => Some(EvolveConfig::tiny()),
            _ => None,
        }
    }

    /// The four weights of the one-ply player: 50 generations of 20, of which the better half stay.
    fn spec() -> EvolveConfig {
        EvolveConfig {
            start: "four_weights".to_owned(),
            genes: OnePlyWeights::NAMES.map(str::to_owned).to_vec(),
            strategy: Strategy::Truncation,
            sigma: 1.0,
            population: 20,
            parents: 10,
            generations: 50,
            ..EvolveConfig::default()
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

    pub fn start_weights(&self) -> Result<PlayerWeights, ConfigError> {
        PlayerWeights::named(&self.start)
    }

    /// The space of the weights that evolve, and its first point.
    pub(super) fn space(&self) -> Result<(Space, Vec<f64>), ConfigError> {
        let start = self.start_weights()?;
        Space::new(&start, &self.genes).map_err(|unknown| ConfigError::Value {
            field: "genes",
            got: unknown,
            expected: match start {
                PlayerWeights::Engine(_) => "the beginning of a weight's name, such as piece_value",
                PlayerWeights::OnePly(_) => "material, centre, king_safety or development",
            },
        })
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        bounds::check(self, BOUNDS)?;
        if self.space()?.0.len() == 0 {
            let (got, expected) = ("empty".to_owned(), "at least one weight");
            return Err(ConfigError::Value { field: "genes", got, expected });
        }
        if self.strategy == Strategy::Truncation && self.parents >= self.population {
            let (got, expected) = (self.parents.to_string(), "fewer than population");
            return Err(ConfigError::Value { field: "parents", got, expected });
        }
        self.evaluation.check()
    }
}
