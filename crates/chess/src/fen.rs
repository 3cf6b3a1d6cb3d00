//! Positions as text (FEN), standard chess and Chess960.

use shakmaty::fen::{Fen, ParseFenError};
use shakmaty::{
    CastlingMode, Chess, EnPassantMode, FromSetup, PositionError, PositionErrorKinds, Setup,
};

use crate::game::Game;

/// Reports which field of a FEN is wrong and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bad FEN '{fen}': {field}: {expected}")]
pub struct FenError {
    pub fen: String,
    /// The name of the field, such as `castling`.
    pub field: &'static str,
    pub expected: &'static str,
}

/// The largest halfmove clock accepted. Games end at 100 or 150, and analysis that ignores the
/// rule reaches a few hundred. Code that uses the clock may rely on it being small.
pub const MAX_HALFMOVE_CLOCK: u32 = 10_000;
/// The largest move number accepted. The longest possible game has about 6,000 moves.
pub const MAX_FULLMOVE_NUMBER: u32 = 100_000;

/// Parses a FEN. The two clocks may be missing. Chess960 is recognised by its castling rights.
///
/// ```
/// let error = selfmate_chess::fen::parse_fen("8/8/8/8/8/8/8/8 x - -").unwrap_err();
/// assert_eq!(error.field, "side to move");
/// ```
pub fn parse_fen(text: &str) -> Result<Chess, FenError> {
    let text = text.trim();
    let error = |(field, expected)| FenError { fen: text.to_owned(), field, expected };
    let setup = Fen::from_ascii(text.as_bytes()).map_err(|e| error(syntax_error(&e)))?.into_setup();
    if setup.halfmoves > MAX_HALFMOVE_CLOCK {
        return Err(error(HALFMOVE_CLOCK));
    }
    if setup.fullmoves.get() > MAX_FULLMOVE_NUMBER {
        return Err(error(FULLMOVE_NUMBER));
    }
    position_from_setup(setup).map_err(|kinds| error(rule_error(kinds)))
}

/// Parses a FEN as the starting position of a game.
pub fn parse_game(text: &str) -> Result<Game, FenError> {
    parse_fen(text).map(Game::from_position)
}

/// Writes an en passant square only if a capture there is legal.
pub fn to_fen(position: &Chess) -> String {
    Fen::from_position(position, EnPassantMode::Legal).to_string()
}

fn position_from_setup(setup: Setup) -> Result<Chess, PositionErrorKinds> {
    let mode: CastlingMode = CastlingMode::detect(&setup);
    // Puzzles contain unusual material and impossible checks; both can be played. Many programs
    // write an en passant square that no pawn can have passed.
    Chess::from_setup(setup, mode)
        .or_else(PositionError::ignore_invalid_ep_square)
        .or_else(PositionError::ignore_too_much_material)
        .or_else(PositionError::ignore_impossible_check)
        .map_err(|e| e.kinds())
}

const HALFMOVE_CLOCK: (&str, &str) = ("halfmove clock", "expected a whole number from 0 to 10000");
const FULLMOVE_NUMBER: (&str, &str) =
    ("fullmove number", "expected a whole number from 1 to 100000");

fn syntax_error(error: &ParseFenError) -> (&'static str, &'static str) {
    match error {
        ParseFenError::InvalidFen => {
            ("whole", "expected: board side castling en-passant [halfmoves [fullmoves]]")
        }
        ParseFenError::InvalidBoard => {
            ("board", "expected 8 ranks of 8 squares from a8 to h1, pieces PNBRQKpnbrqk")
        }
        ParseFenError::InvalidTurn => ("side to move", "expected 'w' or 'b'"),
        ParseFenError::InvalidCastling => {
            ("castling", "expected '-' or letters of KQkq, or rook files for Chess960")
        }
        ParseFenError::InvalidEpSquare => ("en passant", "expected '-' or a square on rank 3 or 6"),
        ParseFenError::InvalidHalfmoveClock => HALFMOVE_CLOCK,
        ParseFenError::InvalidFullmoves => FULLMOVE_NUMBER,
        _ => ("whole", "expected: board side castling en-passant [halfmoves [fullmoves]]"),
    }
}

fn rule_error(kinds: PositionErrorKinds) -> (&'static str, &'static str) {
    if kinds.contains(PositionErrorKinds::EMPTY_BOARD) {
        ("board", "expected pieces on it")
    } else if kinds.contains(PositionErrorKinds::MISSING_KING) {
        ("board", "expected a king for each side")
    } else if kinds.contains(PositionErrorKinds::TOO_MANY_KINGS) {
        ("board", "expected one king for each side")
    } else if kinds.contains(PositionErrorKinds::PAWNS_ON_BACKRANK) {
        ("board", "expected no pawn on the first or last rank")
    } else if kinds.contains(PositionErrorKinds::INVALID_CASTLING_RIGHTS) {
        ("castling", "expected rights only where king and rook stand on their squares")
    } else if kinds.contains(PositionErrorKinds::OPPOSITE_CHECK) {
        ("side to move", "expected the side that is not to move not to be in check")
    } else {
        ("whole", "expected a position that the rules allow")
    }
}
