//! Finds the decisive mistake of a lost game: the loser's move after which the score of a deeper
//! search drops most, and a better move.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use selfmate_arena::Tuning;
use selfmate_arena::game::PlayedGame;
use selfmate_chess::{Chess, Color, Game, Move, Position, fen, notation};
use selfmate_search::alphabeta::Score;
use selfmate_search::phase::Phase;
use selfmate_search::player::Limit;
use serde::{Deserialize, Serialize};

use super::mistake::MistakeKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossConfig {
    /// Lost games to analyse per trial; 0 for none.
    pub games: usize,
    /// Nodes per position.
    pub nodes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LosingMove {
    /// The number of the game in its match.
    pub game: u64,
    /// Plies before the move.
    pub ply: usize,
    pub fen: String,
    pub played: String,
    /// The move of the deeper search.
    pub better: String,
    /// The loser's score in centipawns with the better move.
    pub before: i32,
    /// The loser's score one own move later.
    pub after: i32,
    pub kind: MistakeKind,
    pub phase: Phase,
}

/// A position with the loser to move.
struct Analysed {
    ply: usize,
    position: Chess,
    played: Move,
    best: Move,
    score: Score,
}

/// Scores are clamped to this, so that a mate counts no more than a queen and a rook.
const MAX_SCORE: i32 = 1500;

/// The loser's move that cost most; `None` when the game was not lost, the score never dropped, or
/// `stop` was set.
pub fn losing_move(
    number: u64,
    game: &PlayedGame,
    tuning: &Tuning,
    nodes: u64,
    stop: &AtomicBool,
) -> Option<LosingMove> {
    let loser = !Color::from(game.winner?);
    let replayed = game.replay().ok()?;
    let mut engine = tuning.engine(8).ok()?;
    let mut current = Game::from_position(replayed.start().clone());
    let mut analysed = Vec::new();
    for (ply, m) in replayed.moves().enumerate() {
        if current.turn() == loser && ply >= game.opening_plies {
            let found = engine.search(&current, &Limit::nodes(nodes), stop, &mut |_| {});
            if stop.load(Relaxed) {
                return None;
            }
            let (position, best) = (current.position().clone(), found.best?);
            analysed.push(Analysed { ply, position, played: m, best, score: found.score });
        }
        current.play_unchecked(m);
    }
    // A game that ended by mate has one score more than positions.
    let mate = replayed.position().is_checkmate().then_some(Score::Mate(0));
    let scores: Vec<Score> = analysed.iter().map(|analysed| analysed.score).chain(mate).collect();
    let bounded = |score: Score| score.centipawns().clamp(-MAX_SCORE, MAX_SCORE);
    let drops = scores.windows(2).map(|pair| bounded(pair[0]) - bounded(pair[1]));
    // The first of equal drops, because it led to the others.
    let (index, drop) =
        drops.enumerate().fold((0, 0), |best, next| if next.1 > best.1 { next } else { best });
    if drop <= 0 {
        return None;
    }
    let Analysed { ply, position, played, best, score } = &analysed[index];
    let after = scores[index + 1];
    Some(LosingMove {
        game: number,
        ply: *ply,
        fen: fen::to_fen(position),
        played: notation::san(position, *played),
        better: notation::san(position, *best),
        before: bounded(*score),
        after: bounded(after),
        kind: MistakeKind::of(position, *played, *score, after),
        phase: Phase::of(position),
    })
}

#[cfg(test)]
mod tests {
    use selfmate_arena::game::{Side, Termination};
    use selfmate_chess::Reason;

    use super::*;

    #[test]
    fn the_move_that_loses_the_queen_is_found() {
        // Black gives its queen for a pawn and then moves a pawn back and forth.
        let mut game = Game::new();
        for san in ["e4", "e5", "Nf3", "Qg5", "d3", "Qxg2", "Bxg2", "a6", "O-O", "a5"] {
            game.play(notation::parse_san(game.position(), san).unwrap()).unwrap();
        }
        let played = PlayedGame {
            fen: None,
            opening: None,
            opening_plies: 2,
            moves: game.moves().map(|m| m.to_uci(game.castling_mode()).to_string()).collect(),
            evals: Vec::new(),
            winner: Some(Side::White),
            termination: Termination::Rules(Reason::Checkmate),
            detail: None,
        };
        let never = AtomicBool::new(false);
        let found = losing_move(3, &played, &Tuning::default(), 3000, &never).unwrap();
        assert!(["Qg5", "Qxg2"].contains(&found.played.as_str()), "{found:?}");
        assert!(found.before - found.after > 400 && found.better != found.played, "{found:?}");
        assert_eq!(found.phase, Phase::Opening);
        let expected = if found.played == "Qxg2" { "bad exchange" } else { "hanging piece" };
        assert_eq!(found.kind.name(), expected);
        let drawn = PlayedGame { winner: None, ..played };
        assert_eq!(losing_move(3, &drawn, &Tuning::default(), 100, &never), None);
    }

    #[test]
    fn the_move_that_allows_mate_at_once_is_found() {
        let mut game = Game::new();
        for san in ["f3", "e5", "g4", "Qh4#"] {
            game.play(notation::parse_san(game.position(), san).unwrap()).unwrap();
        }
        let played = PlayedGame {
            fen: None,
            opening: None,
            opening_plies: 0,
            moves: game.moves().map(|m| m.to_uci(game.castling_mode()).to_string()).collect(),
            evals: Vec::new(),
            winner: Some(Side::Black),
            termination: Termination::Rules(Reason::Checkmate),
            detail: None,
        };
        let never = AtomicBool::new(false);
        let found = losing_move(0, &played, &Tuning::default(), 1000, &never).unwrap();
        assert_eq!((found.played.as_str(), found.kind), ("g4", MistakeKind::AllowedMate));
    }
}
