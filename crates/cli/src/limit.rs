//! The flags that limit the search of a move.

use std::time::Duration;

use selfmate_arena::{MoveLimit, TimeControl};
use selfmate_search::player::Limit;

/// Limits of one move.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct LimitArgs {
    /// Simulations per move of a tree search; alpha-beta, Stockfish and other UCI engines, which
    /// have no simulations, search as many nodes
    #[arg(long, visible_alias = "nodes", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub sims: Option<u64>,
    /// Search depth per move, in plies
    #[arg(long, value_name = "PLIES", value_parser = clap::value_parser!(u32).range(1..=200))]
    depth: Option<u32>,
    /// Milliseconds per move
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    movetime: Option<u64>,
}

impl LimitArgs {
    pub fn to_limit(&self) -> Limit {
        Limit {
            nodes: self.sims,
            depth: self.depth,
            movetime: self.movetime.map(Duration::from_millis),
            ..Limit::default()
        }
    }

    /// The limit of a match, with a clock; `default` when nothing is set.
    pub fn to_move_limit(&self, clock: Option<TimeControl>, default: MoveLimit) -> MoveLimit {
        let (nodes, depth, movetime_ms) = (self.sims, self.depth, self.movetime);
        let limit = MoveLimit { nodes, depth, movetime_ms, clock };
        if limit == MoveLimit::default() { default } else { limit }
    }
}
