//! Monte Carlo tree search, alpha-beta, and the evaluator interface between search and networks.
//!
//! A search turns an evaluator into a better move, a policy target and a value. This crate does not
//! depend on networks, files or sockets. [`mcts::Search`] and [`alphabeta::AlphaBeta`] are the
//! places to start.

pub mod alphabeta;
mod cache;
pub mod evaluator;
pub mod math;
pub mod mcts;
pub mod memory;
mod packed_move;
pub mod phase;
pub mod player;
mod server;
mod terminal;
mod value;

pub use cache::Cached;
pub use evaluator::{Evaluation, Evaluator, Leaf, Need};
pub use packed_move::PackedMove;
pub use player::{Choice, Player, PlayerError};
pub use server::{Client, Server, ServerParams};
pub use value::{Wdl, WhiteWdl, flip_value, side_value, white_value};
