//! How games end, and which rules end them.

use std::fmt;

use serde::{Deserialize, Serialize};
use shakmaty::Color;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// `None` for a draw and for a truncated game.
    pub winner: Option<Color>,
    pub reason: Reason,
}

impl Outcome {
    pub(crate) const fn draw(reason: Reason) -> Outcome {
        Outcome { winner: None, reason }
    }

    /// True if the game reached the ply cap. It has no result, so it is not a draw: it gives no reward,
    /// and counts half a point where points are counted.
    pub const fn is_truncated(self) -> bool {
        matches!(self.reason, Reason::Truncated)
    }

    /// 1 for a win, -1 for a loss, 0 otherwise.
    pub fn reward(self, color: Color) -> i8 {
        match self.winner {
            Some(winner) if winner == color => 1,
            Some(_) => -1,
            None => 0,
        }
    }

    /// 1 for a win, 0 for a loss, ½ otherwise.
    pub fn points(self, color: Color) -> f64 {
        match self.winner {
            Some(winner) if winner == color => 1.0,
            Some(_) => 0.0,
            None => 0.5,
        }
    }

    /// The PGN result; `*` for a truncated game.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Checkmate,
    Stalemate,
    /// No sequence of legal moves leads to checkmate.
    InsufficientMaterial,
    /// The same position occurred three times.
    Threefold,
    /// The same position occurred five times.
    Fivefold,
    /// Fifty moves by each side without a capture or a pawn move.
    FiftyMoves,
    /// Seventy-five moves by each side without a capture or a pawn move.
    SeventyFiveMoves,
    /// The game reached [`Rules::max_plies`].
    Truncated,
    /// Decided outside the rules of the game: resignation, an agreed draw, a tablebase.
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
            Reason::Truncated => "truncated",
            Reason::Adjudication => "adjudication",
        })
    }
}

/// The rules that end a game besides checkmate, stalemate and insufficient material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    pub draws: DrawRules,
    /// The game is truncated after this many plies.
    pub max_plies: Option<u32>,
}

impl Default for Rules {
    /// The rules of engine matches: draws are claimed as soon as possible, no ply cap.
    fn default() -> Rules {
        Rules { draws: DrawRules::Claimed, max_plies: None }
    }
}

/// When repetition and the lack of progress end the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DrawRules {
    /// At the third repetition and after fifty moves, as if a player always claimed the draw.
    Claimed,
    /// At the fifth repetition and after seventy-five moves: the limits when nobody claims.
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
