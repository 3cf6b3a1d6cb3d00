//! History heuristics: which moves caused cutoffs before, for ordering and pruning.

use selfmate_chess::{Color, Move};

use super::order::{PIECE_SQUARES, is_tactical, pack, piece_to};
use super::worker::Worker;

const HISTORY_LIMIT: i32 = 16_384;

/// Quiet moves by squares and by the preceding moves, captures by piece, square and victim.
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

    /// `before` are the last moves as [`piece_to`], latest first.
    pub(super) fn quiet(&self, color: Color, m: Move, before: [Option<usize>; 2]) -> i32 {
        let here = piece_to(color, m);
        let mut score = i32::from(self.quiet[from_to(color, m)]);
        for piece_square in before.into_iter().flatten() {
            score += i32::from(self.continuation[piece_square * PIECE_SQUARES + here]);
        }
        score
    }

    pub(super) fn capture(&self, color: Color, m: Move) -> i32 {
        i32::from(self.capture[capture_index(color, m)])
    }

    fn reward_quiet(&mut self, color: Color, m: Move, before: [Option<usize>; 2], bonus: i32) {
        let here = piece_to(color, m);
        nudge::<HISTORY_LIMIT>(&mut self.quiet[from_to(color, m)], bonus);
        for piece_square in before.into_iter().flatten() {
            nudge::<HISTORY_LIMIT>(
                &mut self.continuation[piece_square * PIECE_SQUARES + here],
                bonus,
            );
        }
    }

    fn reward_capture(&mut self, color: Color, m: Move, bonus: i32) {
        nudge::<HISTORY_LIMIT>(&mut self.capture[capture_index(color, m)], bonus);
    }
}

impl Worker<'_> {
    /// Raises the score of the move that caused the cutoff and lowers those tried before it.
    pub(super) fn record_cutoff(
        &mut self,
        ply: usize,
        m: Move,
        depth: i32,
        quiets: &Tried,
        captures: &Tried,
    ) {
        self.stack[ply].cutoffs += 1;
        let us = self.stack[ply].node.turn();
        let before = self.before(ply);
        let bonus = (self.settings.history_bonus * depth).min(2000);
        let history = &mut self.memory.history;
        if is_tactical(m) {
            history.reward_capture(us, m, bonus);
        } else {
            history.reward_quiet(us, m, before, bonus);
            for tried in quiets.moves() {
                history.reward_quiet(us, tried, before, -bonus);
            }
            let killers = &mut self.stack[ply].killers;
            if killers[0] != pack(m) {
                *killers = [pack(m), killers[0]];
            }
        }
        for tried in captures.moves() {
            history.reward_capture(us, tried, -bonus);
        }
    }
}

/// The first moves tried at a node that did not cause a cutoff.
#[derive(Default)]
pub(super) struct Tried {
    moves: [Option<Move>; 32],
    len: usize,
}

impl Tried {
    pub(super) fn push(&mut self, m: Move) {
        if self.len < self.moves.len() {
            self.moves[self.len] = Some(m);
            self.len += 1;
        }
    }

    fn moves(&self) -> impl Iterator<Item = Move> + '_ {
        self.moves[..self.len].iter().copied().flatten()
    }
}

fn from_to(color: Color, m: Move) -> usize {
    (pack(m) & 0xFFF) as usize + if color.is_white() { 0 } else { 4096 }
}

fn capture_index(color: Color, m: Move) -> usize {
    piece_to(color, m) * 6 + m.capture().map_or(5, |role| role as usize - 1)
}

/// Moves an entry towards the bonus. The closer it is to the limit, the smaller the step.
pub(super) fn nudge<const LIMIT: i32>(entry: &mut i16, bonus: i32) {
    let old = i32::from(*entry);
    *entry = (old + bonus - old * bonus.abs() / LIMIT) as i16;
}
