//! Move ordering.
//!
//! The order is: hash move, captures that do not lose material, killers, quiet moves by history,
//! captures that lose material.

use selfmate_chess::{Color, Move, MoveList, Role};

use crate::packed_move::PackedMove;

use super::history::{History, QuietContext};
use super::node::{Node, castled, piece_index};
use super::see;

/// A move in 16 bits. No legal move goes from a1 to a1, so no move packs to 0.
pub(super) fn pack(m: Move) -> u16 {
    PackedMove::new(m).0
}

/// Captures and queen promotions.
pub(super) fn is_tactical(m: Move) -> bool {
    m.is_capture() || m.promotion() == Some(Role::Queen)
}

/// Moving piece and target square, as an index below [`PIECE_SQUARES`].
pub(super) fn piece_to(color: Color, m: Move) -> usize {
    let to = match m {
        Move::Castle { king, rook } => castled(king, rook).0,
        _ => m.to(),
    };
    piece_index(color, m.role()) * 64 + to.to_usize()
}

/// Twelve pieces on 64 squares.
pub(super) const PIECE_SQUARES: usize = 12 * 64;

#[derive(Clone, Copy)]
pub(super) struct Hints {
    /// The hash move, packed; 0 for none.
    pub(super) best: u16,
    /// Quiet moves that caused a cutoff at a sibling node, packed.
    pub(super) killers: [u16; 2],
    pub(super) quiet: QuietContext,
}

/// Returns moves one at a time, the most promising first.
///
/// Quiet moves are scored only when no good capture is left, because most nodes have a cutoff
/// before. `N` is the number of scores kept. Moves beyond it come last and unsorted; only positions
/// with more queens than any real game have that many moves.
pub(super) struct Picker<'m, const N: usize> {
    /// First the moves returned, then those scored, then those not scored yet.
    moves: &'m mut MoveList,
    scores: [i32; N],
    next: usize,
    scored: usize,
    hints: Hints,
}

#[derive(Clone, Copy)]
pub(super) struct Picked {
    pub(super) m: Move,
    /// A capture that loses material.
    pub(super) loses: bool,
}

const BEST: i32 = 1 << 28;
const GOOD_CAPTURE: i32 = 1 << 24;
const KILLER: i32 = 1 << 20;
const BAD_CAPTURE: i32 = -(1 << 24);

impl<'m, const N: usize> Picker<'m, N> {
    pub(super) fn new(moves: &'m mut MoveList, history: &History, hints: Hints) -> Picker<'m, N> {
        let mut scores = [0; N];
        let mut scored = 0;
        for index in 0..moves.len().min(N) {
            let m = moves[index];
            let is_best = pack(m) == hints.best;
            if is_best || is_tactical(m) {
                let victim = m.capture().map_or(0, |role| see::VALUE[role as usize]);
                let promotion = m.promotion().map_or(0, |role| see::VALUE[role as usize]);
                scores[scored] = if is_best {
                    BEST
                } else {
                    GOOD_CAPTURE + (victim + promotion) * 32 + history.capture(hints.quiet.color, m)
                };
                moves.swap(scored, index);
                scored += 1;
            }
        }
        Picker { moves, scores, next: 0, scored, hints }
    }

    pub(super) fn next(&mut self, node: &Node, history: &History) -> Option<Picked> {
        loop {
            let best = self.best_scored();
            let score = best.map_or(BAD_CAPTURE, |index| self.scores[index]);
            if score < BAD_CAPTURE / 2 && self.scored < self.moves.len().min(N) {
                self.score_quiets(history);
                continue;
            }
            let Some(best) = best else {
                // Beyond the scores kept.
                let m = *self.moves.get(self.next)?;
                self.next += 1;
                return Some(Picked { m, loses: false });
            };
            let m = self.moves[best];
            // Static exchange evaluation runs only for captures whose turn has come.
            if (GOOD_CAPTURE / 2..BEST).contains(&score) && !see::gains(node, m, 0) {
                self.scores[best] = score - GOOD_CAPTURE + BAD_CAPTURE;
                continue;
            }
            self.moves.swap(self.next, best);
            self.scores.swap(self.next, best);
            self.next += 1;
            return Some(Picked { m, loses: score < BAD_CAPTURE / 2 });
        }
    }

    /// The best scored move not yet returned; the first among equals.
    fn best_scored(&self) -> Option<usize> {
        let mut best = None;
        let mut best_score = i32::MIN;
        for (offset, &score) in self.scores[self.next..self.scored].iter().enumerate() {
            if score > best_score {
                best_score = score;
                best = Some(self.next + offset);
            }
        }
        best
    }

    fn score_quiets(&mut self, history: &History) {
        let all = self.moves.len().min(N);
        for index in self.scored..all {
            let m = self.moves[index];
            let packed = pack(m);
            self.scores[index] = if packed == self.hints.killers[0] {
                KILLER + 1
            } else if packed == self.hints.killers[1] {
                KILLER
            } else {
                history.quiet(m, &self.hints.quiet)
            };
        }
        self.scored = all;
    }
}
