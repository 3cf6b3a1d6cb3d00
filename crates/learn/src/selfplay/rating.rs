//! How strong a network is: a few games against players of known strength.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selfmate_arena::rate::OWN_RUNGS;
use selfmate_arena::{
    GameSettings, MatchError, MatchRun, MoveLimit, RateConfig, RateReport, Registry, Rung, run_rate,
};

use super::config::RatingConfig;
use super::student::Student;

/// The name of the network among the players.
const NAME: &str = "network";

/// Rates a network against our own rungs.
pub fn rate(
    student: &impl Student,
    config: &RatingConfig,
    seed: u64,
    threads: usize,
    stop: &Arc<AtomicBool>,
) -> Result<RateReport, MatchError> {
    let mut registry = Registry::standard();
    registry.register(student.player(NAME));
    let rungs = OWN_RUNGS.map(|(player, elo)| Rung { player: player.to_owned(), elo });
    let limit = MoveLimit::nodes(config.sims);
    let config = RateConfig {
        settings: GameSettings { limit, ..GameSettings::default() },
        seed,
        max_games: config.games,
        max_error: 1.0,
        rungs: Some(rungs.into()),
        ..RateConfig::new(NAME)
    };
    let run = MatchRun { concurrency: threads, stop: Arc::clone(stop), ..MatchRun::default() };
    run_rate(&config, &run, &registry, &mut |_, _| {})
}
