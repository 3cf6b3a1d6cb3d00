//! Two players at a table, for the games of a match one after another, and what shows that a game
//! can be one of theirs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selfmate_chess::Seed;
use selfmate_search::Player;

use crate::game::{GameSettings, Judge, Side, check_game, play_game};
use crate::openings::Opening;
use crate::pinned::Pinned;
use crate::record::GameRecord;
use crate::spec::SpecError;

/// Two players at a table. A game depends on its number and its opening, not on those before it,
/// unless a player does.
pub struct Duel {
    players: [Box<dyn Player>; 2],
}

impl Duel {
    /// Builds A and B; the seed is that of the match.
    pub fn new([a, b]: [&Pinned; 2], seed: Seed) -> Result<Duel, SpecError> {
        Ok(Duel { players: [a.build(seed.derive("a"))?, b.build(seed.derive("b"))?] })
    }

    /// Plays a game; `None` when it was stopped before its end.
    pub fn play(
        &mut self,
        game: u64,
        opening: &Opening,
        settings: &GameSettings,
        judge: Option<&Judge>,
        halt: &Arc<AtomicBool>,
    ) -> Option<GameRecord> {
        let a_plays = side_of_a(game);
        let [a, b] = &mut self.players;
        let (white, black) = if a_plays == Side::White { (a, b) } else { (b, a) };
        let played = play_game(white.as_mut(), black.as_mut(), opening, settings, judge, halt)?;
        Some(GameRecord { game, a_plays, played })
    }
}

/// A has White in the even games.
const fn side_of_a(game: u64) -> Side {
    if game.is_multiple_of(2) { Side::White } else { Side::Black }
}

/// Holds a game from elsewhere to all that can be seen without the players: its opening, legal
/// moves, and an end where the rules or the settings end it, and nowhere else. What is wrong, if
/// anything is. Games with clocks, tables or faults are not for this.
pub fn check(
    record: &GameRecord,
    opening: &Opening,
    settings: &GameSettings,
) -> Result<(), String> {
    let expected = side_of_a(record.game);
    if record.a_plays != expected {
        return Err(format!("A has {:?}: expected {expected:?}", record.a_plays));
    }
    check_game(&record.played, opening, settings)
}
