//! How a learner's player does against another: a match between two rounds.

use selfmate_arena::adjudicate::Adjudication;
use selfmate_arena::{
    GameSettings, MatchConfig, MatchReport, MatchRun, OpeningSource, PlayerKind, Registry,
    run_match,
};
use selfmate_chess::Seed;
use serde::{Deserialize, Serialize};

use crate::config::ConfigError;
use crate::learner::LearnError;
use crate::rounds::Room;

/// When a learner is examined, and by whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExamConfig {
    /// Rounds between exams; 0 for none.
    pub every_rounds: u64,
    /// Games of an exam, half of them with each colour.
    pub games: u64,
    /// The opponent's spec.
    pub opponent: String,
    /// A game that lasts longer counts as drawn.
    pub max_plies: u32,
}

impl Default for ExamConfig {
    fn default() -> ExamConfig {
        ExamConfig { every_rounds: 10, games: 100, opponent: "random".to_owned(), max_plies: 300 }
    }
}

impl ExamConfig {
    /// True when an exam follows this round.
    pub fn is_due(&self, round: u64) -> bool {
        self.every_rounds > 0 && (round + 1).is_multiple_of(self.every_rounds)
    }

    /// Says what makes no sense, if anything does; numbers are checked with all others.
    pub fn check(&self) -> Result<(), ConfigError> {
        Registry::standard().parse(&self.opponent).map(drop).map_err(|_| ConfigError::Value {
            field: "exam.opponent",
            got: self.opponent.clone(),
            expected: "a player such as random",
        })
    }
}

/// The name of the learner among the players.
const NAME: &str = "learner";

/// Lets a player meet its examiner; `None` when there was no time for all games.
pub fn examine(
    config: &ExamConfig,
    player: impl FnOnce(&'static str) -> PlayerKind,
    seed: Seed,
    room: &Room<'_>,
) -> Result<Option<MatchReport>, LearnError> {
    let mut registry = Registry::standard();
    registry.register(player(NAME));
    let adjudication =
        Adjudication { max_plies: Some(config.max_plies), ..Adjudication::default() };
    let contest = MatchConfig {
        settings: GameSettings { adjudication, ..GameSettings::default() },
        openings: OpeningSource::Random { plies: 2 },
        seed: seed.rng().bits(),
        ..MatchConfig::new(NAME, &config.opponent, config.games)
    };
    contest_in(&contest, MatchRun::default(), &registry, room)
}

/// A match within a round; `None` when there was no time for all of it.
pub fn contest_in(
    contest: &MatchConfig,
    run: MatchRun,
    registry: &Registry,
    room: &Room<'_>,
) -> Result<Option<MatchReport>, LearnError> {
    let run = MatchRun { concurrency: room.threads, stop: room.halt.flag(), ..run };
    let report = run_match(contest, &run, registry, &mut |_| ())?;
    Ok(Some(report).filter(|report| report.is_finished))
}
