//! How a game ends, and which rules end it.

use std::fmt;

use serde::{Deserialize, Serialize};
use shakmaty::Color;

/// The end of a game: who won, and why it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The winner; `None` for a draw and for a game that was cut off.
    pub winner: Option<Color>,
    /// Why the game is over.
    pub reason: Reason,
}

impl Outcome {
    pub(crate) const fn draw(reason: Reason) -> Outcome {
        Outcome { winner: None, reason }
    }

    /// True when the game was cut off by the ply cap: its result is unknown, not a draw.
    pub const fn is_truncated(self) -> bool {
        matches!(self.reason, Reason::Truncated)
    }

    /// The points of a side: 1 for a win, 0 for a loss, ½ otherwise.
    pub fn points(self, color: Color) -> f64 {
        match self.winner {
            Some(winner) if winner == color => 1.0,
            Some(_) => 0.0,
            None => 0.5,
        }
    }

    /// The result as PGN writes it; `*` for a game that was cut off.
    pub const fn pgn(self) -> &'static str {
        match (self.winner, self.reason) {
            (Some(Color::White), _) => "1-0",
            (Some(Color::Black), _) => "0-1",
            (None, Reason::Truncated) => "*",
            (None, _) => "1/2-1/2",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.pgn(), self.reason)
    }
}

/// Why a game is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The side to move is mated.
    Checkmate,
    /// The side to move has no legal move and is not in check.
    Stalemate,
    /// Neither side could mate by any sequence of moves.
    InsufficientMaterial,
    /// The position stands for the third time.
    Threefold,
    /// The position stands for the fifth time.
    Fivefold,
    /// Fifty moves by each side without a capture or a pawn move.
    FiftyMoves,
    /// Seventy-five moves by each side without a capture or a pawn move.
    SeventyFiveMoves,
    /// The game reached the length limit and was cut off.
    Truncated,
    /// The players, or a rule of theirs, settled it before the end: resignation, an agreed draw.
    Adjudication,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Checkmate => "checkmate",
            Reason::Stalemate => "stalemate",
            Reason::InsufficientMaterial => "insufficient material",
            Reason::Threefold => "threefold repetition",
            Reason::Fivefold => "fivefold repetition",
            Reason::FiftyMoves => "fifty-move rule",
            Reason::SeventyFiveMoves => "seventy-five-move rule",
            Reason::Truncated => "ply cap",
            Reason::Adjudication => "adjudication",
        })
    }
}

/// Which rules end a game besides mate, stalemate and insufficient material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// When repetition and quiet play end the game.
    pub draws: DrawRules,
    /// The game is cut off after this many plies.
    pub max_plies: Option<u32>,
}

impl Default for Rules {
    /// What engine matches play by: draws are claimed as soon as they can be, no ply cap.
    fn default() -> Rules {
        Rules { draws: DrawRules::Claimed, max_plies: None }
    }
}

/// When repetition and quiet play end the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DrawRules {
    /// At the third repetition and after fifty moves, as if a player always claimed.
    Claimed,
    /// At the fifth repetition and after seventy-five moves, when nobody claims.
    Automatic,
}

impl DrawRules {
    pub(crate) const fn repetitions(self) -> usize {
        match self {
            DrawRules::Claimed => 3,
            DrawRules::Automatic => 5,
        }
    }

    pub(crate) const fn halfmoves(self) -> u32 {
        match self {
            DrawRules::Claimed => 100,
            DrawRules::Automatic => 150,
        }
    }
}
