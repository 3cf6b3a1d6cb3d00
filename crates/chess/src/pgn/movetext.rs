//! The words of the move text and their meaning in a position.

use std::borrow::Cow;

use shakmaty::san::San;
use shakmaty::{
    CastlingMode, Chess, Color, EnPassantMode, FromSetup, Move, Position, PositionError, Setup,
};

use super::PgnResult;
use crate::notation::{MoveError, parse_san, parse_uci};

/// The kind of a word of the move text, before the position is considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'t> {
    /// A move number, or `e.p.`, which the position implies.
    Nothing,
    Result(PgnResult),
    Pass(&'t str),
    Nag(u16),
    Move(&'t str),
}

impl<'t> Word<'t> {
    /// Classifies a word. A move number attached to it (`1.e4`, `1...e5`) is removed.
    pub(super) fn new(text: &'t str) -> Word<'t> {
        let after_digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let text = match after_digits.strip_prefix('.') {
            Some(after_dot) => after_dot.trim_start_matches('.'),
            None => text,
        };
        if text.bytes().all(|byte| byte.is_ascii_digit()) && text != "0000" {
            return Word::Nothing;
        }
        if let Some(result) = PgnResult::parse(text) {
            return Word::Result(result);
        }
        match text {
            "e.p." | "ep" | "e.p" => Word::Nothing,
            "--" | "Z0" | "null" | "pass" | "@@@@" | "0000" => Word::Pass(text),
            // Signs of books and older programs that PGN writes as numbers.
            "=" => Word::Nag(10),
            "∞" => Word::Nag(13),
            "+=" | "+/=" | "⩲" => Word::Nag(14),
            "=+" | "=/+" | "⩱" => Word::Nag(15),
            "+/-" | "±" => Word::Nag(16),
            "-/+" | "∓" => Word::Nag(17),
            "+-" => Word::Nag(18),
            "-+" => Word::Nag(19),
            "N" => Word::Nag(146),
            "D" => Word::Nag(220),
            _ => Word::Move(text),
        }
    }
}

/// Parses a legal move as people and programs write it: SAN, also with `0-0`, without `x` or
/// `=`, or with too many check marks; long algebraic (`e2-e4`, `Ng1-f3`); UCI.
pub(crate) fn read_move(position: &Chess, text: &str) -> Result<Move, MoveError> {
    let error = match parse_san(position, text) {
        Ok(m) => return Ok(m),
        Err(error) => error,
    };
    let bare = text.trim_end_matches("e.p.").trim_end_matches(['+', '#', '!', '?']);
    let bare: Cow<'_, str> = match bare {
        "0-0" | "o-o" | "O-O" => "O-O".into(),
        "0-0-0" | "o-o-o" | "O-O-O" => "O-O-O".into(),
        _ => bare.replace('-', "").replace(':', "x").into(),
    };
    let promoted = with_promotion_sign(&bare);
    match San::from_ascii(promoted.as_bytes()) {
        Ok(san) => san
            .to_move(position)
            .ok()
            .or_else(|| other_capture(san).to_move(position).ok())
            .or_else(|| parse_uci(position, &bare).ok())
            .ok_or(match error {
                // The corrected spelling is a move, but an illegal one.
                MoveError::Syntax(_) => {
                    MoveError::Illegal { text: text.to_owned(), fen: crate::fen::to_fen(position) }
                }
                other => other,
            }),
        Err(_) => parse_uci(position, &bare).map_err(|_| error),
    }
}

/// `e8Q` as `e8=Q`.
fn with_promotion_sign(text: &str) -> Cow<'_, str> {
    match text.as_bytes() {
        [.., b'1' | b'8', b'Q' | b'R' | b'B' | b'N'] => {
            let (to, role) = text.split_at(text.len() - 1);
            format!("{to}={role}").into()
        }
        _ => text.into(),
    }
}

fn other_capture(san: San) -> San {
    match san {
        San::Normal { role, file, rank, capture, to, promotion } => {
            San::Normal { role, file, rank, capture: !capture, to, promotion }
        }
        other => other,
    }
}

/// The position after a null move; `None` in check, where passing is not allowed.
pub(super) fn pass(position: &Chess) -> Option<Chess> {
    let mut setup = position.to_setup(EnPassantMode::Legal);
    setup.swap_turn();
    setup.halfmoves = setup.halfmoves.saturating_add(1);
    if position.turn() == Color::Black {
        setup.fullmoves = setup.fullmoves.saturating_add(1);
    }
    lenient(setup, position.castles().mode())
}

/// The same position with Chess960 castling notation.
pub(super) fn as_chess960(position: Chess) -> Chess {
    let setup = position.to_setup(EnPassantMode::Legal);
    lenient(setup, CastlingMode::Chess960).unwrap_or(position)
}

fn lenient(setup: Setup, mode: CastlingMode) -> Option<Chess> {
    Chess::from_setup(setup, mode)
        .or_else(PositionError::ignore_too_much_material)
        .or_else(PositionError::ignore_impossible_check)
        .ok()
}
