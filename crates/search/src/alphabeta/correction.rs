//! Correction history: the error of the static evaluation that searches found in similar positions.
//!
//! Each table is indexed by one part of the position. An update changes all of them by the error that
//! is left after the correction, so that their sum learns the error.

use super::history::nudge;
use super::order::PIECE_SQUARES;
use super::score::EVAL_LIMIT;
use super::worker::Worker;

/// Entries per table and side to move; a power of two.
const SIZE: usize = 1 << 14;
/// The largest entry.
const LIMIT: i32 = 1024;

pub(super) struct Correction {
    /// By pawns and kings.
    pawns: Vec<i16>,
    /// By the pieces of one color without pawns.
    pieces: [Vec<i16>; 2],
    /// By the last move's piece and target square.
    last_move: Vec<i16>,
}

/// The entries of one position, one per table.
struct Place {
    pawns: usize,
    pieces: [usize; 2],
    last_move: Option<usize>,
}

impl Correction {
    pub(super) fn new() -> Correction {
        Correction {
            pawns: vec![0; 2 * SIZE],
            pieces: [vec![0; 2 * SIZE], vec![0; 2 * SIZE]],
            last_move: vec![0; PIECE_SQUARES],
        }
    }

    pub(super) fn clear(&mut self) {
        self.pawns.fill(0);
        self.pieces.iter_mut().for_each(|table| table.fill(0));
        self.last_move.fill(0);
    }

    /// The sum over all tables: at most [`LIMIT`] for each of them.
    fn sum(&self, place: &Place) -> i32 {
        let last_move = place.last_move.map_or(0, |index| self.last_move[index]);
        i32::from(self.pawns[place.pawns])
            + i32::from(self.pieces[0][place.pieces[0]])
            + i32::from(self.pieces[1][place.pieces[1]])
            + i32::from(last_move)
    }

    fn update(&mut self, place: &Place, bonus: i32) {
        nudge::<LIMIT>(&mut self.pawns[place.pawns], bonus);
        for (table, index) in self.pieces.iter_mut().zip(place.pieces) {
            nudge::<LIMIT>(&mut table[index], bonus);
        }
        if let Some(index) = place.last_move {
            nudge::<LIMIT>(&mut self.last_move[index], bonus);
        }
    }
}

impl Worker<'_> {
    /// The static evaluation, corrected by what searches found in similar positions.
    pub(super) fn corrected(&self, ply: usize, raw: i32) -> i32 {
        let sum = self.memory.correction.sum(&self.place(ply));
        (raw + sum * self.settings.correction / LIMIT).clamp(-EVAL_LIMIT, EVAL_LIMIT)
    }

    /// Learns from the difference between a search of this depth and the corrected evaluation.
    pub(super) fn correct(&mut self, ply: usize, difference: i32, depth: i32) {
        let place = self.place(ply);
        let bonus = (difference * depth / 8).clamp(-LIMIT / 4, LIMIT / 4);
        self.memory.correction.update(&place, bonus);
    }

    fn place(&self, ply: usize) -> Place {
        let node = &self.stack[ply].node;
        let side = if node.turn().is_white() { 0 } else { SIZE };
        let index = |key: u64| side + key as usize % SIZE;
        Place {
            pawns: index(node.pawn_key),
            pieces: node.piece_keys.map(index),
            last_move: self.before(ply)[0],
        }
    }
}
