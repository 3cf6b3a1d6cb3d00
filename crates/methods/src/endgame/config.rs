//! The settings of the endgame learners.

use selfmate_nn::mlp::LossWeights;
use selfmate_nn::small::AdamConfig;
use selfmate_search::mcts::{Expansion, PuctFormula};
use selfmate_selfplay::{Ending, PolicyTargetName, Priors, Ramp, RootRuleName, SelfPlayConfig};
use selfmate_train::bounds::{Bounds, NamedBounds};
use selfmate_train::{
    ConfigError, GuardConfig, LearningConfig, RatingConfig, SelfPlayLearnerConfig, bounds,
};
use serde::{Deserialize, Serialize};

use super::evaluation::TablebaseEvaluationConfig;
use super::network::{Encoder, EndgameShape};

pub type EndgameConfig =
    SelfPlayLearnerConfig<EndgameShape, EndgameTraining, TablebaseEvaluationConfig>;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndgameTraining {
    /// The weight of the value's squared error relative to the policy's cross entropy.
    pub value_weight: f64,
    pub optimiser: AdamConfig,
}

impl Default for EndgameTraining {
    fn default() -> EndgameTraining {
        EndgameTraining { value_weight: 2.0, optimiser: AdamConfig::default() }
    }
}

impl EndgameTraining {
    pub(super) fn loss_weights(&self) -> LossWeights {
        LossWeights { value: self.value_weight as f32, entropy: 0.0 }
    }
}

pub(super) const PRESETS: [&str; 3] = ["default", "spec", "tiny"];

pub(super) const BOUNDS: &[NamedBounds] = &[
    ("evaluation.positions", bounds::MATCH),
    ("evaluation.simulations", bounds::MATCH),
    ("evaluation.moves", Bounds::new(1.0, 10_000.0)),
];

pub fn preset(ending: Ending, name: &str) -> Option<EndgameConfig> {
    match name {
        "default" => Some(default(ending)),
        "spec" => Some(spec(ending)),
        "tiny" => Some(tiny(ending)),
        _ => None,
    }
}

pub fn default(ending: Ending) -> EndgameConfig {
    EndgameConfig {
        plan_games: 10_000,
        plan_steps: None,
        network: EndgameShape::mlp(128, 64),
        selfplay: SelfPlayConfig {
            generation_games: 128,
            simulations: Ramp::constant(100.0),
            // One network call gives both value and priors.
            expansion: Expansion::FirstVisit,
            first_play_urgency: 0.2,
            discount: 0.98,
            noise_plies: 10_000,
            temperature_plies: 8,
            opening_plies: 0,
            long_opening_share: 0.0,
            endgame_share: 0.0,
            ending: Some(ending),
            max_plies: 24,
            resign_share: 0.0,
            proven_targets: true,
            memory_mb: 16,
            ..SelfPlayConfig::default()
        },
        learning: LearningConfig {
            batch: 256,
            reuse: 4.0,
            rate: Ramp::constant(2e-3),
            rate_decay_steps: Some(2_000.0),
            warmup_steps: 0,
            replay_max: 100_000,
            replay_share: 0.25,
            replay_min: 12_000,
            result_weight: Ramp::constant(0.0),
            lambda: Some(0.5),
            keep_steps: 5_000,
            ..LearningConfig::default()
        },
        guards: GuardConfig::off(),
        rating: RatingConfig { every_seconds: 0.0, ..RatingConfig::default() },
        evaluation: Some(TablebaseEvaluationConfig::default()),
    }
}

/// Plain AlphaZero for an ending: a convolutional encoder that sees the whole board, PUCT with the
/// square root of the ratio of visits and uniform priors, random untried moves, visits as policy
/// targets, results as value targets, weight decay.
pub fn spec(ending: Ending) -> EndgameConfig {
    let config = default(ending);
    let optimiser = AdamConfig { weight_decay: 1e-4, ..AdamConfig::default() };
    EndgameConfig {
        network: EndgameShape { encoder: Encoder::Cnn, second: 128, ..config.network },
        selfplay: SelfPlayConfig {
            generation_games: 64,
            // Convolutions are faster when several positions are evaluated together.
            games_at_once: 16,
            root_rule: RootRuleName::Puct,
            // Each node tries all its moves before it chooses among them, so a search needs many
            // simulations to look further than two plies.
            simulations: Ramp::constant(400.0),
            // With this formula, visits of moves of equal value follow the square of the priors.
            // With learned priors, every generation sharpens the policy before there are values to
            // learn it from, and almost all games end in a draw.
            priors: Priors::Uniform,
            dirichlet_alpha: 1.0,
            dirichlet_epsilon: 0.25,
            temperature_plies: 20,
            c_puct: 0.5,
            puct_formula: PuctFormula::SqrtRatio,
            c_puct_base: 0.0,
            expansion: Expansion::RandomUntried,
            policy_target: PolicyTargetName::Visits,
            max_plies: 100,
            proven_targets: false,
            memory_mb: 2,
            ..config.selfplay
        },
        learning: LearningConfig {
            rate: Ramp::constant(1e-3),
            result_weight: Ramp::constant(1.0),
            // Truncated games have no result: they count as their last search.
            lambda: Some(1.0),
            trainer: EndgameTraining { value_weight: 1.0, optimiser },
            ..config.learning
        },
        evaluation: Some(TablebaseEvaluationConfig {
            every_rounds: 10,
            positions: 50,
            simulations: 100,
            ..TablebaseEvaluationConfig::default()
        }),
        ..config
    }
}

/// A run of a few seconds that learns almost nothing, for tests.
pub fn tiny(ending: Ending) -> EndgameConfig {
    let config = default(ending);
    EndgameConfig {
        network: EndgameShape::mlp(16, 16),
        selfplay: SelfPlayConfig {
            generation_games: 4,
            simulations: Ramp::constant(8.0),
            candidates: 4,
            max_plies: 20,
            memory_mb: 1,
            ..config.selfplay
        },
        learning: LearningConfig {
            batch: 16,
            replay_max: 200,
            replay_share: 0.5,
            replay_min: 100,
            checkpoint_seconds: 0.0,
            keep_steps: 3,
            ..config.learning
        },
        evaluation: Some(TablebaseEvaluationConfig {
            every_rounds: 2,
            positions: 4,
            simulations: 8,
            moves: 5,
        }),
        ..config
    }
}

pub(super) fn check(config: &EndgameConfig) -> Result<(), ConfigError> {
    config.check_common(BOUNDS)?;
    config.network.check()?;
    let wrong = |field, got: &str, expected| {
        Err(ConfigError::Value { field, got: got.to_owned(), expected })
    };
    if config.selfplay.discount == 0.0 {
        return wrong("selfplay.discount", "0", "a number above 0, at most 1");
    }
    if config.selfplay.ending.is_none() {
        return wrong("selfplay.ending", "missing", "krk, kqk or kpk");
    }
    Ok(())
}
