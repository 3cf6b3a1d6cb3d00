//! The commands, one file each.

pub mod ablate;
pub mod analyse;
pub mod bench;
pub mod book;
pub mod cluster;
pub mod demo;
pub mod doctor;
pub mod encode;
pub mod evaluate;
pub mod export;
mod game_args;
pub mod ladder;
pub mod match_;
pub mod perft;
pub mod play;
pub mod plot;
pub mod rate;
pub mod runs;
pub mod serve;
pub mod show;
pub mod suite;
pub mod tablebase;
pub mod train;
pub mod uci;
pub mod value_map;
pub mod worker;

use selfmate_chess::Chess;
use selfmate_chess::fen::{FenError, parse_fen};

/// Parses `--fen`; `startpos` is the standard start position.
fn fen_argument(text: &str) -> Result<Chess, FenError> {
    if text == "startpos" { Ok(Chess::default()) } else { parse_fen(text) }
}
