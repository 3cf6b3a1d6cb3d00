//! Evaluation of a learner's player by a match between two rounds.

use selfmate_arena::adjudicate::Adjudication;
use selfmate_arena::{
    GameSettings, MatchConfig, MatchReport, MatchRun, OpeningSource, PlayerKind, Registry,
    run_match,
};
use selfmate_chess::Seed;
use serde::{Deserialize, Serialize};

use crate::config_error::ConfigError;
use crate::error::TrainingError;
use crate::learner::RoundContext;

/// When a learner is evaluated, and against which player.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationConfig {
    /// Rounds between evaluations; 0 for none.
    pub every_rounds: u64,
    /// Games of an evaluation, half of them with each colour.
    pub games: u64,
    /// The opponent's spec.
    pub opponent: String,
    /// A game is truncated after this many plies.
    pub max_plies: u32,
}

impl Default for EvaluationConfig {
    fn default() -> EvaluationConfig {
        EvaluationConfig {
            every_rounds: 10,
            games: 100,
            opponent: "random".to_owned(),
            max_plies: 300,
        }
    }
}

impl EvaluationConfig {
    /// True when an evaluation follows the round with this index.
    pub fn is_due(&self, round: u64) -> bool {
        self.every_rounds > 0 && (round + 1).is_multiple_of(self.every_rounds)
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        Registry::standard().parse(&self.opponent).map(drop).map_err(|_| ConfigError::Value {
            field: "evaluation.opponent",
            got: self.opponent.clone(),
            expected: "a player such as random",
        })
    }
}

/// The learner's name in the registry.
const NAME: &str = "learner";

/// Plays a match against the opponent; `None` when there was no time for all games.
pub fn evaluate(
    config: &EvaluationConfig,
    player: impl FnOnce(&'static str) -> PlayerKind,
    seed: Seed,
    context: &RoundContext<'_>,
) -> Result<Option<MatchReport>, TrainingError> {
    let mut registry = Registry::standard();
    registry.register(player(NAME));
    let adjudication =
        Adjudication { max_plies: Some(config.max_plies), ..Adjudication::default() };
    let config = MatchConfig {
        settings: GameSettings { adjudication, ..GameSettings::default() },
        openings: OpeningSource::Random { plies: 2 },
        seed: seed.rng().bits(),
        ..MatchConfig::new(NAME, &config.opponent, config.games)
    };
    match_in_round(&config, MatchRun::default(), &registry, context)
}

/// Plays a match within a round; `None` when there was no time for all games.
pub fn match_in_round(
    config: &MatchConfig,
    run: MatchRun,
    registry: &Registry,
    context: &RoundContext<'_>,
) -> Result<Option<MatchReport>, TrainingError> {
    let run = MatchRun { concurrency: context.threads, stop: context.cancel.flag(), ..run };
    let report = run_match(config, &run, registry, &mut |_| ())?;
    Ok(Some(report).filter(|report| report.is_finished))
}
