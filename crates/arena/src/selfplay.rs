//! Games of any player against itself, for data to learn from. The crate `selfplay` plays the games
//! of trainings, which have the results of every search too.

use selfmate_chess::Seed;
use serde::{Deserialize, Serialize};

use crate::game::{GameSettings, Side, Termination};
use crate::game_pool::GamePool;
use crate::match_runner::{MatchError, MatchRun};
use crate::openings::{OpeningSource, Openings};
use crate::record::MatchGame;
use crate::remote::Next;
use crate::resolved_player::ResolvedPlayer;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelfPlayConfig {
    pub games: u64,
    pub settings: GameSettings,
    /// Each game has its own opening. A player that always answers a position with the same move
    /// would otherwise play one game again and again.
    pub openings: OpeningSource,
    pub seed: u64,
}

/// Plays the games and returns the finished ones, by number. The games do not depend on the number
/// of threads if the player does not depend on time. Games that are interrupted by
/// [`MatchRun::stop`] are left out. `run.store`, `run.pgn` and `run.remote` are not used.
///
/// ```
/// use selfmate_arena::{GameSettings, MatchRun, OpeningSource, Registry};
/// use selfmate_arena::{SelfPlayConfig, run_selfplay};
///
/// let config = SelfPlayConfig {
///     games: 4,
///     settings: GameSettings::default(),
///     openings: OpeningSource::default(),
///     seed: 1,
/// };
/// let player = Registry::standard().resolve("greedy")?;
/// let games = run_selfplay(&config, &player, &MatchRun::default(), &mut |_| {})?;
/// assert_eq!(games.len(), 4);
/// # Ok::<(), selfmate_arena::MatchError>(())
/// ```
pub fn run_selfplay(
    config: &SelfPlayConfig,
    player: &ResolvedPlayer,
    run: &MatchRun,
    observer: &mut dyn FnMut(&SelfPlayTally),
) -> Result<Vec<MatchGame>, MatchError> {
    let openings = Openings::load(&config.openings, Seed::new(config.seed).derive("openings"))?;
    let open: Vec<usize> = (0..usize::try_from(config.games).unwrap_or(usize::MAX)).collect();
    let pool = GamePool {
        settings: &config.settings,
        run: &MatchRun { remote: None, ..run.clone() },
        players: [player, player],
        seed: config.seed,
        openings: &openings.take(open.len()),
        games_per_opening: 1,
    };
    let mut games = Vec::new();
    let mut tally = SelfPlayTally::default();
    pool.play(&open, &mut |record| {
        tally.add(&record);
        observer(&tally);
        games.push(record);
        Ok(Next::GoOn)
    })?;
    games.sort_unstable_by_key(|record| record.game);
    Ok(games)
}

/// The number of games per result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SelfPlayTally {
    pub games: u64,
    /// Positions with a move, those of the openings included.
    pub positions: u64,
    pub white_wins: u64,
    pub draws: u64,
    pub black_wins: u64,
    /// Games that reached the ply cap. They have no result.
    pub truncated: u64,
    /// Games that a failing engine or the clock ended. They have no result either: such an end says
    /// nothing about the positions.
    pub faults: u64,
}

impl SelfPlayTally {
    pub fn add(&mut self, record: &MatchGame) {
        self.games += 1;
        self.positions += record.played.moves.len() as u64;
        let count = match (record.played.termination, record.played.winner) {
            (Termination::Truncated, _) => &mut self.truncated,
            (Termination::Fault | Termination::TimeForfeit, _) => &mut self.faults,
            (_, Some(Side::White)) => &mut self.white_wins,
            (_, Some(Side::Black)) => &mut self.black_wins,
            (_, None) => &mut self.draws,
        };
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::adjudicate::Adjudication;
    use crate::registry::Registry;

    #[test]
    fn a_deterministic_player_plays_different_games_and_the_same_on_two_threads() {
        let player = Registry::standard().resolve("alphabeta:depth=1").unwrap();
        let adjudication = Adjudication { max_plies: Some(40), ..Adjudication::default() };
        let config = SelfPlayConfig {
            games: 12,
            settings: GameSettings { adjudication, ..GameSettings::default() },
            openings: OpeningSource::default(),
            seed: 5,
        };
        let play = |concurrency| {
            let run = MatchRun { concurrency, ..MatchRun::default() };
            let mut last = SelfPlayTally::default();
            let games = run_selfplay(&config, &player, &run, &mut |tally| last = *tally).unwrap();
            let moves: Vec<_> =
                games.into_iter().map(|record| (record.game, record.played.moves)).collect();
            (moves, last)
        };
        let (games, tally) = play(1);
        assert_eq!((&games, tally), (&play(2).0, play(2).1));
        assert!(games.iter().map(|(number, _)| *number).eq(0..12));
        let different: HashSet<_> = games.iter().map(|(_, moves)| moves).collect();
        assert_eq!(different.len(), 12);
        let results = tally.white_wins + tally.draws + tally.black_wins;
        assert_eq!((tally.games, results + tally.truncated + tally.faults), (12, 12));
        assert!(tally.truncated > 0, "{tally:?}");
    }
}
