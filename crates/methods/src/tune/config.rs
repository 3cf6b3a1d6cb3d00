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
use crate::tuning::{Genome, first};

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

/// The settings of the `tune` learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneConfig {
    /// The first champion: `plain`, `default` or a file of weights.
    pub start: String,
    /// What is tuned: beginnings of names such as `piece_value` or `search.razor_margin`; none
    /// for the whole evaluation.
    pub genes: Vec<String>,
    /// How challengers are made, one kind after the other.
    pub cycle: Vec<Proposal>,
    /// How far random variations go.
    pub vary: VaryConfig,
    /// How weights move by simultaneous perturbation.
    pub spsa: SpsaConfig,
    /// How weights are fitted to results.
    pub texel: TexelConfig,
    /// When a challenger becomes champion.
    pub trial: TrialConfig,
    /// How games are played.
    pub games: EngineMatchConfig,
    /// How games become an opening book.
    pub book: BookRules,
    /// How lost games are looked at.
    pub losses: LossConfig,
    /// How the champion is evaluated.
    pub evaluation: EvaluationConfig,
    /// Which checkpoints are made.
    pub saving: SavingConfig,
}

/// How a challenger is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proposal {
    /// The champion with every weight changed a little, at random.
    Vary,
    /// The point that simultaneous perturbation has reached.
    Spsa,
    /// The champion's weights fitted to the results of its games.
    Texel,
}

impl Proposal {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Proposal::Vary => "vary",
            Proposal::Spsa => "spsa",
            Proposal::Texel => "texel",
        }
    }
}

/// How far random variations go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaryConfig {
    /// The share by which a weight is changed, up or down.
    pub share: f64,
    /// What that is multiplied by after each failure; a success sets it back.
    pub growth: f64,
    /// The largest share.
    pub most: f64,
}

/// When a challenger becomes champion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialConfig {
    /// The difference that is not worth it, in normalised Elo.
    pub elo0: f64,
    /// The difference that is.
    pub elo1: f64,
    /// The most games; then the champion stays.
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
    /// The names that [`TuneConfig::preset`] knows.
    pub const PRESETS: [&str; 5] = ["default", "texel", "spsa", "challenger", "tiny"];

    /// Settings by name.
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

    /// A run of seconds that learns next to nothing.
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

    /// The test that decides trials.
    pub fn sprt(&self) -> Sprt {
        Sprt::new(self.trial.elo0, self.trial.elo1)
    }

    /// What is tuned.
    pub(super) fn genome(&self) -> Result<Genome, ConfigError> {
        let base = first(&self.start)?;
        let genes = if self.genes.is_empty() { evaluation() } else { self.genes.clone() };
        Genome::new(&base, &genes).map_err(|unknown| ConfigError::Value {
            field: "genes",
            got: unknown,
            expected: "the beginning of a weight's name, such as piece_value",
        })
    }

    /// Says what makes no sense, if anything does.
    pub fn check(&self) -> Result<(), ConfigError> {
        bounds::check(self, BOUNDS)?;
        if self.cycle.is_empty() {
            let (got, expected) = ("empty".to_owned(), "vary, spsa or texel");
            return Err(ConfigError::Value { field: "cycle", got, expected });
        }
        self.sprt().checked().map_err(|error| ConfigError::Value {
            field: "trial.elo1",
            got: error.to_string(),
            expected: "a test that makes sense",
        })?;
        self.genome()?;
        self.evaluation.check()
    }
}

/// The names of all terms of the evaluation.
fn evaluation() -> Vec<String> {
    let mut names: Vec<String> = selfmate_arena::Tuning::parameters()
        .iter()
        .filter_map(|parameter| parameter.name.split('.').next())
        .filter(|term| *term != "search")
        .map(str::to_owned)
        .collect();
    names.dedup();
    names
}
