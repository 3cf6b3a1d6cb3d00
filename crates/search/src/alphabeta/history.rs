//! History heuristics: which moves caused cutoffs before, for ordering and pruning.

use selfmate_chess::{Bitboard, Color, Move};

use super::order::{PIECE_SQUARES, is_tactical, pack, piece_to};
use super::worker::Worker;

const HISTORY_LIMIT: i32 = 16_384;

/// The last two moves as [`piece_to`], latest first.
pub(super) type Before = [Option<usize>; 2];

/// What the history of a quiet move depends on besides the move.
#[derive(Clone, Copy)]
pub(super) struct QuietContext {
    pub(super) color: Color,
    pub(super) before: Before,
    /// The squares that the opponent attacks.
    pub(super) threats: Bitboard,
}

impl QuietContext {
    /// For a node where quiet moves are not searched.
    pub(super) fn captures_only(color: Color) -> QuietContext {
        QuietContext { color, before: [None; 2], threats: Bitboard::EMPTY }
    }
}

/// Quiet moves by squares, attacks on these and the preceding moves; captures by piece, square and
/// victim.
pub(super) struct History {
    quiet: Vec<i16>,
    continuation: Vec<i16>,
    capture: Vec<i16>,
}

impl History {
    pub(super) fn new() -> History {
        History {
            quiet: vec![0; 4 * 2 * 64 * 64],
            continuation: vec![0; PIECE_SQUARES * PIECE_SQUARES],
            capture: vec![0; PIECE_SQUARES * 6],
        }
    }

    pub(super) fn clear(&mut self) {
        self.quiet.fill(0);
        self.continuation.fill(0);
        self.capture.fill(0);
    }

    pub(super) fn quiet(&self, m: Move, context: &QuietContext) -> i32 {
        let here = piece_to(context.color, m);
        let mut score = i32::from(self.quiet[quiet_index(m, context)]);
        for piece_square in context.before.into_iter().flatten() {
            score += i32::from(self.continuation[piece_square * PIECE_SQUARES + here]);
        }
        score
    }

    pub(super) fn capture(&self, color: Color, m: Move) -> i32 {
        i32::from(self.capture[capture_index(color, m)])
    }

    fn reward_quiet(&mut self, m: Move, context: &QuietContext, bonus: i32) {
        nudge::<HISTORY_LIMIT>(&mut self.quiet[quiet_index(m, context)], bonus);
        let here = piece_to(context.color, m);
        for piece_square in context.before.into_iter().flatten() {
            let entry = &mut self.continuation[piece_square * PIECE_SQUARES + here];
            nudge::<HISTORY_LIMIT>(entry, bonus);
        }
    }

    fn reward_capture(&mut self, color: Color, m: Move, bonus: i32) {
        nudge::<HISTORY_LIMIT>(&mut self.capture[capture_index(color, m)], bonus);
    }
}

impl Worker<'_> {
    pub(super) fn quiet_context(&self, ply: usize) -> QuietContext {
        let frame = &self.stack[ply];
        QuietContext {
            color: frame.node.turn(),
            before: self.before(ply),
            threats: frame.node.threats(),
        }
    }

    /// Raises the score of the move that caused the cutoff and lowers those tried before it.
    pub(super) fn record_cutoff(
        &mut self,
        ply: usize,
        m: Move,
        depth: i32,
        context: &QuietContext,
        [quiets, captures]: [&Tried; 2],
    ) {
        self.stack[ply].cutoffs += 1;
        let bonus = (self.settings.history_bonus * depth).min(2000);
        let history = &mut self.memory.history;
        if is_tactical(m) {
            history.reward_capture(context.color, m, bonus);
        } else {
            history.reward_quiet(m, context, bonus);
            for tried in quiets.moves() {
                history.reward_quiet(tried, context, -bonus);
            }
            let killers = &mut self.stack[ply].killers;
            if killers[0] != pack(m) {
                *killers = [pack(m), killers[0]];
            }
        }
        for tried in captures.moves() {
            history.reward_capture(context.color, tried, -bonus);
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

/// By whether the move leaves and enters an attacked square, color and squares.
fn quiet_index(m: Move, context: &QuietContext) -> usize {
    let squares = pack(m) & 0xFFF;
    let is_attacked = |square: u32| context.threats.0 >> square & 1;
    let attacked = is_attacked(u32::from(squares & 63)) << 1 | is_attacked(u32::from(squares >> 6));
    let color = usize::from(context.color.is_black());
    (attacked as usize * 2 + color) * 4096 + usize::from(squares)
}

fn capture_index(color: Color, m: Move) -> usize {
    piece_to(color, m) * 6 + m.capture().map_or(5, |role| role as usize - 1)
}

/// Moves an entry towards the bonus. The closer it is to the limit, the smaller the step.
pub(super) fn nudge<const LIMIT: i32>(entry: &mut i16, bonus: i32) {
    let old = i32::from(*entry);
    *entry = (old + bonus - old * bonus.abs() / LIMIT) as i16;
}
