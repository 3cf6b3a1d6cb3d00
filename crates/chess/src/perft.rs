//! Perft: counts the leaves of the move tree, the standard test of a move generator.

use rayon::prelude::*;
use shakmaty::{Chess, Move, Position};

/// The number of move sequences of length `depth`. Uses all cores.
pub fn perft(position: &Chess, depth: u32) -> u64 {
    divide(position, depth).iter().map(|(_, nodes)| nodes).sum::<u64>().max(u64::from(depth == 0))
}

/// The perft count below each legal move, in the move generator's order. Empty for depth 0.
pub fn divide(position: &Chess, depth: u32) -> Vec<(Move, u64)> {
    if depth == 0 {
        return Vec::new();
    }
    // Splitting at two plies gives enough tasks to keep all cores busy to the end.
    let root_moves: Vec<Move> = position.legal_moves().to_vec();
    root_moves
        .into_par_iter()
        .map(|m| {
            let mut child = position.clone();
            child.play_unchecked(m);
            let nodes = if depth < 4 {
                shakmaty::perft(&child, depth - 1)
            } else {
                count_in_parallel(&child, depth - 1)
            };
            (m, nodes)
        })
        .collect()
}

fn count_in_parallel(position: &Chess, depth: u32) -> u64 {
    position
        .legal_moves()
        .into_iter()
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|m| {
            let mut child = position.clone();
            child.play_unchecked(m);
            shakmaty::perft(&child, depth - 1)
        })
        .sum()
}
