//! The examples run and give plausible results.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use selfmate_chess::{fen, notation};

#[path = "../examples/own_evaluator.rs"]
mod own_evaluator;

#[test]
fn own_evaluator_captures_a_hanging_queen() {
    let game = fen::parse_game("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1").unwrap();
    let result = own_evaluator::search(&game, 300).unwrap();
    let visits: u32 = result.moves.iter().map(|m| m.visits).sum();
    assert_eq!(u64::from(visits), result.simulations);
    assert_eq!(notation::uci(game.position(), result.best.unwrap()), "e4d5");
    own_evaluator::main().unwrap();
}
