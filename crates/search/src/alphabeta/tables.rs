//! Tablebase probes in alpha-beta: results inside the tree, and the ranking of root moves.

use std::sync::atomic::Ordering::Relaxed;

use selfmate_chess::Move;
use selfmate_chess::tablebase::{RankedMove, Ranking, TableResult};

use super::score::{TABLE_BOUND, TABLE_WIN, is_mate};
use super::table::{Bound, Entry};
use super::worker::Worker;

/// Tablebase results are stored in the transposition table with this much extra depth.
const EXTRA_DEPTH: i32 = 6;

impl Worker<'_> {
    /// The tablebase result of the node at `ply`. A win is a lower bound, since there may be a
    /// mate.
    pub(super) fn probe_tables(&self, ply: usize) -> Option<(i32, Bound)> {
        let result = self.shared.tables?.in_search(&self.stack[ply].node.position)?;
        self.shared.tablebase_hits.fetch_add(1, Relaxed);
        let win = TABLE_WIN - ply as i32;
        Some(match result {
            TableResult::Win => (win, Bound::Lower),
            TableResult::Loss => (-win, Bound::Upper),
            _ => (0, Bound::Exact),
        })
    }

    /// Stores a tablebase result in the transposition table: probing again takes longer.
    pub(super) fn store_tables(&mut self, ply: usize, depth: i32, score: i32, bound: Bound) {
        let node = &self.stack[ply].node;
        let eval = if node.in_check() { 0 } else { self.memory.evaluate(node) };
        let entry = Entry { best: 0, score, eval, depth: depth + EXTRA_DEPTH, bound };
        self.shared.table.store(node.key, ply, entry);
    }
}

/// The rank of a root move; equal for all when the root is not in the tables.
pub(super) fn rank_of(ranking: Option<&Ranking>, m: Move) -> i32 {
    ranking.and_then(|ranking| ranking.find(m)).map_or(0, |ranked| ranked.rank)
}

/// The score of a root move found in the tables; `searched` takes precedence when it is a mate.
pub(super) fn root_score(known: &RankedMove, searched: i32) -> i32 {
    let win = (TABLE_WIN - known.dtz.map_or(0, i32::abs)).max(TABLE_BOUND);
    match known.result {
        TableResult::Win if is_mate(searched) && searched > 0 => searched,
        TableResult::Loss if is_mate(searched) && searched < 0 => searched,
        TableResult::Win => win,
        // Slightly better than a draw: the opponent has to find the defence.
        TableResult::CursedWin => 1,
        TableResult::Draw => 0,
        TableResult::BlessedLoss => -1,
        TableResult::Loss => -win,
    }
}
