//! Search: the evaluator seam, Monte Carlo tree search and alpha-beta.
//!
//! Searches turn an evaluator into a better move, a policy target and a value. They do not know
//! networks, files or sockets.

pub mod alphabeta;
mod cache;
pub mod evaluator;
pub mod math;
pub mod mcts;
pub mod memory;
mod packed_move;
pub mod player;
mod server;
mod terminal;
mod value;

pub use cache::Cached;
pub use evaluator::{Evaluation, Evaluator, Leaf, Need};
pub use packed_move::PackedMove;
pub use player::{Choice, Player, PlayerError};
pub use server::{Client, Server, ServerParams};
pub use value::{Wdl, WhiteWdl};
