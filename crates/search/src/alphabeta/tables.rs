//! What tablebases tell the search: results inside the tree, and the order of the root's moves.

use std::sync::atomic::Ordering::Relaxed;

use selfmate_chess::Move;
use selfmate_chess::tablebase::{RankedMove, Ranking, TableResult};

use super::score::{TABLE_BOUND, TABLE_WIN, is_mate};
use super::table::{Bound, Entry};
use super::worker::Worker;

/// Results of tables stand in the transposition table as if searched this much deeper.
const EXTRA_DEPTH: i32 = 6;

impl Worker<'_> {
    /// What tables know of the node at `ply`. A win is a bound, since there may be a mate.
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

    /// Keeps what tables know of the node at `ply`: probing takes longer than remembering.
    pub(super) fn remember_tables(&mut self, ply: usize, depth: i32, score: i32, bound: Bound) {
        let node = &self.stack[ply].node;
        let eval = if node.in_check() { 0 } else { self.memory.evaluate(node) };
        let entry = Entry { best: 0, score, eval, depth: depth + EXTRA_DEPTH, bound };
        self.shared.table.store(node.key, ply, entry);
    }
}

/// The rank of a root move; all are alike where tables know nothing.
pub(super) fn rank_of(ranking: Option<&Ranking>, m: Move) -> i32 {
    ranking.and_then(|ranking| ranking.find(m)).map_or(0, |ranked| ranked.rank)
}

/// The score of a root move that tables know; `searched` counts where it has seen a mate.
pub(super) fn root_score(known: &RankedMove, searched: i32) -> i32 {
    let win = (TABLE_WIN - known.dtz.map_or(0, i32::abs)).max(TABLE_BOUND);
    match known.result {
        TableResult::Win if is_mate(searched) && searched > 0 => searched,
        TableResult::Loss if is_mate(searched) && searched < 0 => searched,
        TableResult::Win => win,
        // Not quite a draw: the other side has to know how.
        TableResult::CursedWin => 1,
        TableResult::Draw => 0,
        TableResult::BlessedLoss => -1,
        TableResult::Loss => -win,
    }
}
