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
pub mod selfplay;
pub mod serve;
pub mod show;
pub mod suite;
pub mod tablebase;
pub mod train;
pub mod uci;
pub mod value_map;
pub mod worker;

use anyhow::Context;
use selfmate_chess::fen::{FenError, parse_fen};
use selfmate_chess::notation::parse_move;
use selfmate_chess::{Chess, Game};

/// Parses `--fen`; `startpos` is the standard start position.
fn fen_argument(text: &str) -> Result<Chess, FenError> {
    if text == "startpos" { Ok(Chess::default()) } else { parse_fen(text) }
}

/// The game after the moves of `--moves`, in UCI or SAN notation.
fn game_after(position: &Chess, moves: &[String]) -> anyhow::Result<Game> {
    let mut game = Game::from_position(position.clone());
    for text in moves {
        let m = parse_move(game.position(), text).context("--moves")?;
        game.play(m)?;
    }
    Ok(game)
}
