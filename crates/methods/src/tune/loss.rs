//! Where lost games turned: the loser's move after which a deeper search thinks much less of its
//! chances, and what it should have played.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use selfmate_arena::Tuning;
use selfmate_arena::game::PlayedGame;
use selfmate_chess::{Color, Game, fen, notation};
use selfmate_search::alphabeta::AlphaBetaLimit;
use serde::{Deserialize, Serialize};

/// How lost games are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossConfig {
    /// Lost games of a trial to look at; 0 for none.
    pub games: usize,
    /// Nodes for each position.
    pub nodes: u64,
}

/// The move that lost a game.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The number of the game in its match.
    pub game: u64,
    /// Moves played before.
    pub ply: usize,
    /// The position.
    pub fen: String,
    /// What was played.
    pub played: String,
    /// What the deeper search would have played.
    pub better: String,
    /// What that would have been worth to the loser, in centipawns.
    pub before: i32,
    /// What was left a move later.
    pub after: i32,
}

/// Scores count up to this: a mate is no more of a turn than a queen and a rook.
const MOST: i32 = 1500;

/// The loser's move that cost most; `None` when the game was not lost or never turned.
/// Gives up when `stop` is set.
pub fn turn(
    number: u64,
    game: &PlayedGame,
    tuning: &Tuning,
    nodes: u64,
    stop: &AtomicBool,
) -> Option<Turn> {
    let loser = !Color::from(game.winner?);
    let replayed = game.replay().ok()?;
    let mut engine = tuning.engine(8).ok()?;
    let mut current = Game::from_position(replayed.start().clone());
    // Of each position in which the loser was to move: the ply, what a search says, what was played.
    let mut looked = Vec::new();
    for (ply, m) in replayed.moves().enumerate() {
        if current.turn() == loser && ply >= game.opening_plies {
            let found = engine.search(&current, &AlphaBetaLimit::nodes(nodes), stop, &mut |_| {});
            if stop.load(Relaxed) {
                return None;
            }
            let score = found.score.centipawns().clamp(-MOST, MOST);
            looked.push((ply, score, found.best?, m, current.position().clone()));
        }
        current.play_unchecked(m);
    }
    let drops = looked.windows(2).map(|pair| pair[0].1 - pair[1].1);
    // Of equal drops the first, which led to the others.
    let (index, drop) =
        drops.enumerate().fold((0, 0), |best, next| if next.1 > best.1 { next } else { best });
    if drop <= 0 {
        return None;
    }
    let (ply, before, better, played, position) = &looked[index];
    Some(Turn {
        game: number,
        ply: *ply,
        fen: fen::to_fen(position),
        played: notation::san(position, *played),
        better: notation::san(position, *better),
        before: *before,
        after: looked[index + 1].1,
    })
}

#[cfg(test)]
mod tests {
    use selfmate_arena::game::{Side, Termination};
    use selfmate_chess::Reason;

    use super::*;

    #[test]
    fn the_move_that_loses_the_queen_is_found() {
        // Black gives its queen for a pawn and shuffles on.
        let mut game = Game::new();
        for san in ["e4", "e5", "Nf3", "Qg5", "d3", "Qxg2", "Bxg2", "a6", "O-O", "a5"] {
            game.play(notation::parse_san(game.position(), san).unwrap()).unwrap();
        }
        let played = PlayedGame {
            fen: None,
            opening: None,
            opening_plies: 2,
            moves: game.moves().map(|m| m.to_uci(game.castling_mode()).to_string()).collect(),
            thoughts: Vec::new(),
            winner: Some(Side::White),
            termination: Termination::Rules(Reason::Checkmate),
            detail: None,
        };
        let never = AtomicBool::new(false);
        let found = turn(3, &played, &Tuning::default(), 3000, &never).unwrap();
        assert!(["Qg5", "Qxg2"].contains(&found.played.as_str()), "{found:?}");
        assert!(found.before - found.after > 400 && found.better != found.played, "{found:?}");
        let drawn = PlayedGame { winner: None, ..played };
        assert_eq!(turn(3, &drawn, &Tuning::default(), 100, &never), None);
    }
}
