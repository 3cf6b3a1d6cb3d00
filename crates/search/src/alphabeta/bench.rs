//! A fixed set of searches. Their total node count is the signature of the search.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use selfmate_chess::fen;

use super::{AlphaBeta, Weights};
use crate::memory::MemoryError;
use crate::player::Limit;

const DEPTH: u32 = 11;

/// Openings, tactics, closed positions and endgames.
const POSITIONS: [&str; 12] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "r1bq1rk1/pp2bppp/2n1pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QK2R w KQ - 2 8",
    "2rq1rk1/pb1n1ppN/4p3/1pb5/3P1Pn1/P1N5/1PQ1B1PP/R1B2RK1 b - - 0 16",
    "r1b2rk1/2q1bppp/p2p1n2/np2p3/3PP3/5N1P/PPBN1PP1/R1BQR1K1 b - - 2 13",
    "3r1rk1/p5pp/bpp1pp2/8/q1PP1P2/b3P3/P2NQRPP/1R2B1K1 b - - 6 22",
    "4rrk1/1p1nq3/p7/2p1P1pp/3P2bp/3Q1Bn1/PPPB4/1K2R1NR w - - 40 21",
    "8/8/1p1r1k2/p1pPN1p1/P3KnP1/1P6/8/3R4 b - - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "8/3k4/3p4/p2P1p2/P2P1P2/8/8/3K4 w - - 0 1",
    "8/8/8/4k3/8/8/2R5/4K3 w - - 0 1",
];

/// Searches the positions to a fixed depth and returns the number of nodes visited.
///
/// The number changes exactly when search or evaluation behave differently.
pub fn bench() -> Result<u64, MemoryError> {
    Ok(bench_search(&mut AlphaBeta::new(Weights::default(), 16)?))
}

/// Like [`bench()`]; `None` when `stop` was set before the end.
pub fn bench_until(stop: &AtomicBool) -> Result<Option<u64>, MemoryError> {
    let nodes = search_all(&mut AlphaBeta::new(Weights::default(), 16)?, stop);
    Ok((!stop.load(Relaxed)).then_some(nodes))
}

/// Like [`bench()`], with the settings, table and evaluator of this engine.
pub fn bench_search(search: &mut AlphaBeta) -> u64 {
    search_all(search, &AtomicBool::new(false))
}

fn search_all(search: &mut AlphaBeta, stop: &AtomicBool) -> u64 {
    let mut nodes = 0;
    for text in POSITIONS {
        let game = fen::parse_game(text).expect("the bench positions are valid FEN");
        search.clear();
        nodes += search.search(&game, &Limit::depth(DEPTH), stop, &mut |_| {}).nodes;
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_bench_has_no_result() {
        assert_eq!(bench_until(&AtomicBool::new(true)), Ok(None));
    }
}
