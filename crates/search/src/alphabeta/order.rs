//! Move ordering: which move to try first, and the memory of what worked before.
//!
//! Order: the table's move, captures that do not lose material, killers, quiet moves by
//! history, captures that lose material.

use selfmate_chess::{Color, Move, MoveList, Role};

use super::node::{Node, castled, piece_index};
use super::see;

/// A move in 16 bits, never 0: from, to (the rook when castling), promotion.
pub(super) fn pack(m: Move) -> u16 {
    let from = m.from().map_or(0, |square| square.to_usize() as u16);
    let promotion = m.promotion().map_or(0, |role| role as u16);
    // No legal move goes from a1 to a1, so no move packs to 0.
    from | (m.to().to_usize() as u16) << 6 | promotion << 12
}

/// Captures and queen promotions: moves that change the material at once.
pub(super) fn is_tactical(m: Move) -> bool {
    m.is_capture() || m.promotion() == Some(Role::Queen)
}

/// A piece and where it goes, as an index below [`PIECE_SQUARES`].
pub(super) fn piece_to(color: Color, m: Move) -> usize {
    let to = match m {
        Move::Castle { king, rook } => castled(king, rook).0,
        _ => m.to(),
    };
    piece_index(color, m.role()) * 64 + to.to_usize()
}

/// Twelve pieces on 64 squares.
pub(super) const PIECE_SQUARES: usize = 12 * 64;

const HISTORY_LIMIT: i32 = 16_384;

/// What cut off before: for quiet moves by squares and by the moves before them, for captures
/// by piece, square and victim.
pub(super) struct History {
    quiet: Vec<i16>,
    continuation: Vec<i16>,
    capture: Vec<i16>,
}

impl History {
    pub(super) fn new() -> History {
        History {
            quiet: vec![0; 2 * 64 * 64],
            continuation: vec![0; PIECE_SQUARES * PIECE_SQUARES],
            capture: vec![0; PIECE_SQUARES * 6],
        }
    }

    pub(super) fn clear(&mut self) {
        self.quiet.fill(0);
        self.continuation.fill(0);
        self.capture.fill(0);
    }

    /// `before` are the last moves as [`piece_to`], the latest first.
    pub(super) fn quiet(&self, color: Color, m: Move, before: [Option<usize>; 2]) -> i32 {
        let here = piece_to(color, m);
        let mut score = i32::from(self.quiet[from_to(color, m)]);
        for piece_square in before.into_iter().flatten() {
            score += i32::from(self.continuation[piece_square * PIECE_SQUARES + here]);
        }
        score
    }

    fn capture(&self, color: Color, m: Move) -> i32 {
        i32::from(self.capture[capture_index(color, m)])
    }

    pub(super) fn reward_quiet(
        &mut self,
        color: Color,
        m: Move,
        before: [Option<usize>; 2],
        bonus: i32,
    ) {
        let here = piece_to(color, m);
        nudge(&mut self.quiet[from_to(color, m)], bonus);
        for piece_square in before.into_iter().flatten() {
            nudge(&mut self.continuation[piece_square * PIECE_SQUARES + here], bonus);
        }
    }

    pub(super) fn reward_capture(&mut self, color: Color, m: Move, bonus: i32) {
        nudge(&mut self.capture[capture_index(color, m)], bonus);
    }
}

fn from_to(color: Color, m: Move) -> usize {
    (pack(m) & 0xFFF) as usize + if color.is_white() { 0 } else { 4096 }
}

fn capture_index(color: Color, m: Move) -> usize {
    piece_to(color, m) * 6 + m.capture().map_or(5, |role| role as usize - 1)
}

/// Moves an entry towards the bonus; the closer to the limit, the smaller the step.
fn nudge(entry: &mut i16, bonus: i32) {
    let old = i32::from(*entry);
    *entry = (old + bonus - old * bonus.abs() / HISTORY_LIMIT) as i16;
}

/// What a picker is told about the node.
pub(super) struct Hints {
    /// The table's move, packed; 0 for none.
    pub(super) best: u16,
    /// Quiet moves that cut off beside this node, packed.
    pub(super) killers: [u16; 2],
    /// The last moves as [`piece_to`].
    pub(super) before: [Option<usize>; 2],
}

/// Hands out moves, the most promising first.
pub(super) struct Picker {
    moves: MoveList,
    scores: [i32; 256],
    next: usize,
}

const BEST: i32 = 1 << 28;
const GOOD_CAPTURE: i32 = 1 << 24;
const KILLER: i32 = 1 << 20;
const BAD_CAPTURE: i32 = -(1 << 24);

impl Picker {
    pub(super) fn new(moves: MoveList, node: &Node, history: &History, hints: &Hints) -> Picker {
        let us = node.turn();
        let mut scores = [0; 256];
        for (m, score) in moves.iter().zip(&mut scores) {
            let packed = pack(*m);
            *score = if packed == hints.best {
                BEST
            } else if is_tactical(*m) {
                let victim = m.capture().map_or(0, |role| see::VALUE[role as usize]);
                let promotion = m.promotion().map_or(0, |role| see::VALUE[role as usize]);
                GOOD_CAPTURE + (victim + promotion) * 32 + history.capture(us, *m)
            } else if packed == hints.killers[0] {
                KILLER + 1
            } else if packed == hints.killers[1] {
                KILLER
            } else {
                history.quiet(us, *m, hints.before)
            };
        }
        Picker { moves, scores, next: 0 }
    }

    /// The next move, and whether its exchange is already known to lose material.
    pub(super) fn next(&mut self, node: &Node) -> Option<Picked> {
        loop {
            let left = self.moves.len();
            let best = (self.next..left).max_by_key(|&i| (self.scores[i], std::cmp::Reverse(i)))?;
            let score = self.scores[best];
            let m = self.moves[best];
            // Exchanges are counted only for captures whose turn has come.
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
}

/// A move in its turn.
#[derive(Clone, Copy)]
pub(super) struct Picked {
    pub(super) m: Move,
    /// A capture that loses material.
    pub(super) loses: bool,
}
