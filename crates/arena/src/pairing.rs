//! Two players that play the games of a match one after another, and the checks of games that were
//! played on other machines.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selfmate_chess::Seed;
use selfmate_search::Player;

use crate::game::{GameSettings, PositionAdjudicator, Side, check_game, play_game, second_guess};
use crate::openings::Opening;
use crate::record::MatchGame;
use crate::resolved_player::ResolvedPlayer;
use crate::spec::SpecError;

/// A pair of players. A game depends only on its number and opening, not on earlier games, unless a
/// player keeps state between games.
pub struct Pairing {
    players: [Box<dyn Player>; 2],
}

impl Pairing {
    /// Builds A and B from the seed of the match.
    pub fn new([a, b]: [&ResolvedPlayer; 2], seed: Seed) -> Result<Pairing, SpecError> {
        Ok(Pairing { players: [a.build(seed.derive("a"))?, b.build(seed.derive("b"))?] })
    }

    /// Plays a game. Returns `None` if it was stopped before its end.
    pub fn play(
        &mut self,
        game: u64,
        opening: &Opening,
        settings: &GameSettings,
        adjudicator: Option<&PositionAdjudicator>,
        halt: &Arc<AtomicBool>,
    ) -> Option<MatchGame> {
        let a_plays = side_of_a(game);
        let [a, b] = &mut self.players;
        let (white, black) = if a_plays == Side::White { (a, b) } else { (b, a) };
        let played =
            play_game(white.as_mut(), black.as_mut(), opening, settings, adjudicator, halt)?;
        Some(MatchGame { game, a_plays, played })
    }
}

impl Pairing {
    /// Searches every position of a checked game again with both players. Returns the plies where
    /// they would play another move, or where their scores differ by more than `slack` centipawns.
    /// `None` when it was stopped.
    pub fn second_guess(
        &mut self,
        record: &MatchGame,
        opening: &Opening,
        settings: &GameSettings,
        slack: u32,
        halt: &Arc<AtomicBool>,
    ) -> Option<Vec<usize>> {
        let [a, b] = &mut self.players;
        let (white, black) = if side_of_a(record.game) == Side::White { (a, b) } else { (b, a) };
        let (white, black) = (white.as_mut(), black.as_mut());
        second_guess(white, black, opening, settings, &record.played, slack, halt)
    }
}

/// A plays White in even games.
const fn side_of_a(game: u64) -> Side {
    if game.is_multiple_of(2) { Side::White } else { Side::Black }
}

/// Checks a game from another machine without its players: the opening, legal moves, and an end
/// exactly where the rules or the settings end it. Games with clocks, tablebase adjudication or
/// faults cannot be checked. The error describes the first problem.
pub fn check(record: &MatchGame, opening: &Opening, settings: &GameSettings) -> Result<(), String> {
    let expected = side_of_a(record.game);
    if record.a_plays != expected {
        return Err(format!("A plays {:?}: expected {expected:?}", record.a_plays));
    }
    check_game(&record.played, opening, settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjudicate::Adjudication;
    use crate::openings::{OpeningSource, Openings};
    use crate::registry::Registry;

    #[test]
    fn a_played_game_passes_the_check_and_a_changed_one_does_not() {
        let registry = Registry::standard();
        let [a, b] =
            ["alphabeta:depth=1", "alphabeta:depth=2"].map(|s| registry.resolve(s).unwrap());
        let seed = Seed::new(3);
        let openings = Openings::load(&OpeningSource::default(), seed).unwrap().take(1);
        let adjudication = Adjudication { max_plies: Some(30), ..Adjudication::default() };
        let settings = GameSettings { adjudication, ..GameSettings::default() };
        let halt = Arc::new(AtomicBool::new(false));
        let mut pairing = Pairing::new([&a, &b], seed).unwrap();
        let good = pairing.play(1, &openings[0], &settings, None, &halt).unwrap();
        assert_eq!(check(&good, &openings[0], &settings), Ok(()));
        let odd = pairing.second_guess(&good, &openings[0], &settings, 0, &halt);
        assert_eq!(odd, Some(Vec::new()));
        let first = openings[0].game.ply();
        let mut other = good.clone();
        other.played.evals[2].cp = other.played.evals[2].cp.map(|cp| cp + 200);
        let odd = pairing.second_guess(&other, &openings[0], &settings, 150, &halt);
        assert_eq!(odd, Some(vec![first + 2]));
        let refused = |change: fn(&mut MatchGame)| {
            let mut record = good.clone();
            change(&mut record);
            check(&record, &openings[0], &settings).unwrap_err()
        };
        assert!(
            refused(|record| record.a_plays = Side::White)
                .contains("A plays White: expected Black")
        );
        assert!(
            refused(|record| record.played.winner = Some(Side::Black)).contains("result, reason")
        );
        assert!(refused(|record| _ = record.played.evals.pop()).contains("move evaluations for"));
        let shorten = |record: &mut MatchGame| {
            record.played.evals.pop();
            record.played.moves.pop();
        };
        assert!(refused(shorten).contains("not over"));
        let illegal = |record: &mut MatchGame| {
            let last = record.played.moves.len() - 1;
            record.played.moves[last] = "a1a1".to_owned();
        };
        assert!(refused(illegal).contains("ply"));
    }
}
