//! One file for each command.

pub mod bench;
pub mod doctor;
pub mod encode;
pub mod perft;

use selfmate_chess::Chess;
use selfmate_chess::fen::{FenError, parse_fen};

/// Reads `--fen`; `startpos` is the usual start position.
fn fen_argument(text: &str) -> Result<Chess, FenError> {
    if text == "startpos" { Ok(Chess::default()) } else { parse_fen(text) }
}
