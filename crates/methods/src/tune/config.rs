//! The settings of the `tune` learner.

use selfmate_arena::{BookRules, Sprt};
use selfmate_train::ConfigError;
use selfmate_train::SavingConfig;
use selfmate_train::bounds::{self, Bounds, NamedBounds};
use selfmate_train::engine_match::EngineMatchConfig;
use selfmate_train::evaluation::EvaluationConfig;
use serde::{Deserialize, Serialize};

use super::loss::LossConfig;
use super::spsa::SpsaConfig;
use super::texel::TexelConfig;
use crate::tuning::{Genome, start_weights};

/// The bounds of settings that no other learner has.
pub(super) const BOUNDS: &[NamedBounds] = &[
    ("vary.share", Bounds::above_zero(10.0)),
    ("vary.growth", Bounds::new(1.0, 1000.0)),
    ("vary.most", Bounds::above_zero(10.0)),
    ("pairs", Bounds::new(1.0, 10_000.0)),
    ("spsa.iterations", Bounds::new(1.0, 100_000.0)),
    ("spsa.width", Bounds::above_zero(1000.0)),
    ("spsa.step", Bounds::above_zero(1000.0)),
    ("spsa.stability", Bounds::above_zero(1e9)),
    ("texel.games", bounds::MATCH),
    ("texel.trials", Bounds::new(0.0, 100_000.0)),
    ("texel.positions", Bounds::new(1.0, 1e8)),
    ("texel.steps", Bounds::new(0.0, 1e6)),
    ("texel.pull", bounds::WEIGHT),
    ("trial.elo0", Bounds::new(-10_000.0, 10_000.0)),
    ("trial.elo1", Bounds::new(-10_000.0, 10_000.0)),
    ("trial.games", Bounds::new(2.0, 100_000.0)),
    ("book.plies", Bounds::new(1.0, 1000.0)),
    ("book.min_games", Bounds::new(0.0, 1e9)),
    ("book.tolerance", bounds::SHARE),
    ("losses.games", Bounds::new(0.0, 100_000.0)),
    ("losses.nodes", bounds::NODES),
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneConfig {
    /// The first champion: `plain`, `default` or a file of weights.
    pub start: String,
    /// The weights to tune: prefixes of names such as `piece_value` or `search.razor_margin`; empty
    /// for the whole evaluation.
    pub genes: Vec<String>,
    /// The kinds of challengers, in turn.
    pub cycle: Vec<Proposal>,
    pub vary: VaryConfig,
    pub spsa: SpsaConfig,
    pub texel: TexelConfig,
    pub trial: TrialConfig,
    pub games: EngineMatchConfig,
    /// Which games enter the opening book.
    pub book: BookRules,
    /// The analysis of lost games.
    pub losses: LossConfig,
    pub evaluation: EvaluationConfig,
    pub saving: SavingConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proposal {
    /// The champion with every weight changed a little, at random.
    Vary,
    /// The point that SPSA has reached.
    Spsa,
    /// The champion's weights fitted to the results of games.
    Texel,
}

impl Proposal {
    pub fn name(self) -> &'static str {
        match self {
            Proposal::Vary => "vary",
            Proposal::Spsa => "spsa",
            Proposal::Texel => "texel",
        }
    }
}

/// The size of random variations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaryConfig {
    /// The relative change of a weight, up or down.
    pub share: f64,
    /// The factor for `share` after each failure; a success resets it.
    pub growth: f64,
    /// The largest `share`.
    pub most: f64,
}

/// The sequential test that decides whether a challenger becomes champion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialConfig {
    /// The null hypothesis, in normalised Elo.
    pub elo0: f64,
    /// The alternative hypothesis, in normalised Elo.
    pub elo1: f64,
    /// The most games; without a decision the champion stays.
    pub games: u64,
}

impl Default for TuneConfig {
    fn default() -> TuneConfig {
        TuneConfig {
            start: "plain".to_owned(),
            genes: Vec::new(),
            cycle: vec![Proposal::Texel, Proposal::Texel, Proposal::Spsa, Proposal::Vary],
            vary: VaryConfig { share: 0.05, growth: 1.3, most: 0.3 },
            spsa: SpsaConfig::default(),
            texel: TexelConfig::default(),
            trial: TrialConfig { elo0: 0.0, elo1: 30.0, games: 600 },
            games: EngineMatchConfig { nodes: 600, ..EngineMatchConfig::default() },
            book: BookRules::default(),
            losses: LossConfig { games: 4, nodes: 20_000 },
            evaluation: EvaluationConfig { every_rounds: 0, ..EvaluationConfig::default() },
            saving: SavingConfig { checkpoint_seconds: 30.0, keep_steps: 4 },
        }
    }
}

impl TuneConfig {
    /// The names that [`TuneConfig::preset`] accepts.
    pub const PRESETS: [&str; 5] = ["default", "texel", "spsa", "challenger", "tiny"];

    pub fn preset(name: &str) -> Option<TuneConfig> {
        let cycle = match name {
            "default" => return Some(TuneConfig::default()),
            "tiny" => return Some(TuneConfig::tiny()),
            "texel" => Proposal::Texel,
            "spsa" => Proposal::Spsa,
            "challenger" => Proposal::Vary,
            _ => return None,
        };
        Some(TuneConfig { cycle: vec![cycle], ..TuneConfig::default() })
    }

    /// A run of a few seconds that learns almost nothing, for tests.
    pub fn tiny() -> TuneConfig {
        TuneConfig {
            genes: vec!["piece_value".to_owned()],
            spsa: SpsaConfig { iterations: 2, pairs: 1, ..SpsaConfig::default() },
            texel: TexelConfig { games: 4, steps: 20, ..TexelConfig::default() },
            trial: TrialConfig { elo0: 0.0, elo1: 50.0, games: 6 },
            games: EngineMatchConfig { nodes: 60, max_plies: 50, ..EngineMatchConfig::default() },
            losses: LossConfig { games: 1, nodes: 200 },
            saving: SavingConfig { checkpoint_seconds: 0.0, keep_steps: 2 },
            ..TuneConfig::default()
        }
    }

    /// The test of a trial.
    pub fn sprt(&self) -> Sprt {
        Sprt::new(self.trial.elo0, self.trial.elo1)
    }

    pub(super) fn genome(&self) -> Result<Genome, ConfigError> {
        let base = start_weights(&self.start)?;
        let genes = if self.genes.is_empty() { evaluation_terms() } else { self.genes.clone() };
        Genome::new(&base, &genes).map_err(|unknown| ConfigError::Value {
            field: "genes",
            got: unknown,
            expected: "the beginning of a weight's name, such as piece_value",
        })
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        bounds::check(self, BOUNDS)?;
        if self.cycle.is_empty() {
            let (got, expected) = ("empty".to_owned(), "vary, spsa or texel");
            return Err(ConfigError::Value { field: "cycle", got, expected });
        }
        self.sprt().checked().map_err(|error| ConfigError::Value {
            field: "trial.elo1",
            got: error.to_string(),
            expected: "valid SPRT bounds",
        })?;
        self.genome()?;
        self.evaluation.check()
    }
}

fn evaluation_terms() -> Vec<String> {
    let mut names: Vec<String> = selfmate_arena::Tuning::parameters()
        .iter()
        .filter_map(|parameter| parameter.name.split('.').next())
        .filter(|term| *term != "search")
        .map(str::to_owned)
        .collect();
    names.dedup();
    names
}
