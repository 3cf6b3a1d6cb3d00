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
    ("vary.importance", bounds::SHARE),
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
    ("trial.max_plies.from", bounds::SOME_PLIES),
    ("trial.max_plies.to", bounds::SOME_PLIES),
    ("trial.max_plies.trials", bounds::COUNT),
    ("pool.champions", bounds::POOL),
    ("pool.every", bounds::SOME),
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
    pub pool: PoolConfig,
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
    /// The part of a variation that is in proportion to the measured importance of the weight: 0
    /// varies all weights alike.
    pub importance: f64,
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
    /// The plies after which a game of a trial is truncated.
    pub max_plies: LengthRamp,
    /// Whether both sides open with the book learned so far.
    pub book: bool,
}

/// The cap on the length of games: short in early trials, longer later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LengthRamp {
    pub from: u32,
    pub to: u32,
    /// The number of trials until `to` is reached.
    pub trials: u64,
}

impl LengthRamp {
    /// The cap of the trial with this number.
    pub fn at(&self, trial: u64) -> u32 {
        let (from, to) = (i128::from(self.from), i128::from(self.to));
        let (done, trials) = (i128::from(trial.min(self.trials)), i128::from(self.trials.max(1)));
        let share = if self.trials == 0 { to - from } else { (to - from) * done / trials };
        (from + share) as u32
    }
}

/// Earlier champions as opponents. A challenger that scores less than half against them is not
/// promoted, even if it beats the champion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolConfig {
    /// The number of earlier champions, the latest ones; 0 for none.
    pub champions: usize,
    /// Challengers meet them once in this many trials.
    pub every: u64,
    /// Pairs of games against all of them together.
    pub pairs: usize,
}

impl PoolConfig {
    pub(super) fn is_due(&self, trial: u64) -> bool {
        (trial + 1).is_multiple_of(self.every)
    }
}

impl Default for TuneConfig {
    fn default() -> TuneConfig {
        TuneConfig {
            start: "plain".to_owned(),
            genes: Vec::new(),
            cycle: vec![Proposal::Texel, Proposal::Texel, Proposal::Spsa, Proposal::Vary],
            vary: VaryConfig { share: 0.05, growth: 1.3, most: 0.3, importance: 0.5 },
            spsa: SpsaConfig::default(),
            texel: TexelConfig::default(),
            trial: TrialConfig {
                elo0: 0.0,
                elo1: 30.0,
                games: 600,
                max_plies: LengthRamp { from: 200, to: 400, trials: 20 },
                book: false,
            },
            pool: PoolConfig { champions: 4, every: 2, pairs: 20 },
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
            trial: TrialConfig {
                elo0: 0.0,
                elo1: 50.0,
                games: 6,
                max_plies: LengthRamp { from: 50, to: 60, trials: 3 },
                book: true,
            },
            pool: PoolConfig { champions: 2, every: 2, pairs: 2 },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_on_game_length_rises_and_then_stays() {
        let ramp = LengthRamp { from: 200, to: 400, trials: 20 };
        assert_eq!([0, 1, 10, 20, u64::MAX].map(|trial| ramp.at(trial)), [200, 210, 300, 400, 400]);
        let at_once = LengthRamp { from: 200, to: 400, trials: 0 };
        assert_eq!(at_once.at(0), 400);
        let falling = LengthRamp { from: 10_000, to: 1, trials: u64::MAX };
        assert_eq!([falling.at(0), falling.at(u64::MAX)], [10_000, 1]);
    }

    #[test]
    fn the_pool_is_met_once_in_so_many_trials() {
        let pool = PoolConfig { champions: 1, every: 3, pairs: 1 };
        let due: Vec<u64> = (0..9).filter(|trial| pool.is_due(*trial)).collect();
        assert_eq!(due, [2, 5, 8]);
    }
}
