//! The flags that limit the search of a move.

use std::time::Duration;

use selfmate_arena::{MatchLimit, TimeControl};
use selfmate_search::player::Limit;

/// Limits of one move.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct LimitArgs {
    /// Simulations per move of tree searches; a network then plays by tree search. It does not limit
    /// alpha-beta, Stockfish and other UCI engines, which have no simulations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "nodes")]
    pub sims: Option<u64>,
    /// Nodes per move, of any search; a simulation of a tree search is a node
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    nodes: Option<u64>,
    /// Search depth per move, in plies
    #[arg(long, value_name = "PLIES", value_parser = clap::value_parser!(u32).range(1..=200))]
    depth: Option<u32>,
    /// Milliseconds per move
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    movetime: Option<u64>,
}

impl LimitArgs {
    pub fn simulations(sims: u64) -> LimitArgs {
        LimitArgs { sims: Some(sims), ..LimitArgs::default() }
    }

    pub fn to_limit(&self) -> Limit {
        Limit {
            nodes: self.nodes,
            depth: self.depth,
            movetime: self.movetime.map(Duration::from_millis),
            ..Limit::default()
        }
    }

    /// The limit of a match, with a clock; `default` when nothing is set.
    pub fn to_match_limit(&self, clock: Option<TimeControl>, default: MatchLimit) -> MatchLimit {
        let (nodes, depth, movetime_ms) = (self.nodes, self.depth, self.movetime);
        let limit = MatchLimit { nodes, depth, movetime_ms, clock };
        if limit == MatchLimit::default() { default } else { limit }
    }
}
