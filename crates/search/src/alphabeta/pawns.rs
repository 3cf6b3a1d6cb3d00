//! Pawn structure and king shelter: terms that depend on pawns and kings only.
//!
//! Most positions of a search share these, so the results are kept in a small cache.

use selfmate_chess::{Board, Color, Square};

use super::pair::Pair;
use super::weights::Weights;

#[derive(Clone, Copy, Default)]
pub(super) struct PawnScore {
    /// White's minus Black's.
    pub(super) score: Pair,
    /// The passed pawns of both sides.
    pub(super) passed: u64,
}

/// Direct-mapped cache, by the key of pawns and kings.
pub(super) struct PawnCache(Vec<(u64, PawnScore)>);

const CACHE_SIZE: usize = 1 << 14;

impl PawnCache {
    pub(super) fn new() -> PawnCache {
        // Only a position with exactly this key would match an empty slot: one in 2⁶⁴.
        PawnCache(vec![(u64::MAX, PawnScore::default()); CACHE_SIZE])
    }

    pub(super) fn get(&mut self, key: u64, board: &Board, weights: &Weights) -> PawnScore {
        let slot = &mut self.0[key as usize % CACHE_SIZE];
        if slot.0 != key {
            *slot = (key, evaluate(board, weights));
        }
        slot.1
    }
}

fn evaluate(board: &Board, weights: &Weights) -> PawnScore {
    let white = side(board, Color::White, weights);
    let black = side(board, Color::Black, weights);
    PawnScore { score: white.score - black.score, passed: white.passed | black.passed }
}

fn side(board: &Board, us: Color, weights: &Weights) -> PawnScore {
    let ours = (board.pawns() & board.by_color(us)).0;
    let theirs = (board.pawns() & board.by_color(!us)).0;
    let guarded = attacks(ours, us);
    let threatened = attacks(theirs, !us);
    let mut result = PawnScore::default();
    for square in board.pawns() & board.by_color(us) {
        let bit = 1u64 << u32::from(square);
        let file = FILE << (u32::from(square) & 7);
        let beside = neighbours(file);
        let ahead = ahead(square, us);
        let rank = relative_rank(square, us);
        if ours & file & ahead != 0 {
            result.score += weights.doubled.at(0);
        }
        if theirs & (file | beside) & ahead == 0 && ours & file & ahead == 0 {
            result.passed |= bit;
        }
        if guarded & bit != 0 || ours & neighbours(bit) != 0 {
            result.score += weights.connected.at(rank);
        } else if ours & beside == 0 {
            result.score += weights.isolated.at(0);
        } else if ours & beside & !ahead == 0 && threatened & forward(bit, us) != 0 {
            result.score += weights.backward.at(0);
        }
    }
    if let Some(king) = board.king_of(us) {
        result.score += shelter(king, us, ours, theirs, weights);
    }
    result
}

/// The pawns of both sides on the king's file and the two adjacent files.
fn shelter(king: Square, us: Color, ours: u64, theirs: u64, weights: &Weights) -> Pair {
    let middle = (u32::from(king) & 7).clamp(1, 6);
    let behind = !ahead(king, us);
    let not_behind = !(behind & !(0xFF << (u32::from(king) & 56)));
    let mut score = Pair::default();
    for file in middle - 1..=middle + 1 {
        let on_file = (FILE << file) & not_behind;
        score += weights.shelter.at(nearest_rank(ours & on_file, us));
        score += weights.storm.at(nearest_rank(theirs & on_file, us));
    }
    score
}

/// The rank of the pawn nearest to our side; 0 when there is none.
fn nearest_rank(pawns: u64, us: Color) -> usize {
    if pawns == 0 {
        0
    } else if us.is_white() {
        pawns.trailing_zeros() as usize / 8
    } else {
        pawns.leading_zeros() as usize / 8
    }
}

const FILE: u64 = 0x0101_0101_0101_0101;
const NOT_A: u64 = !FILE;
const NOT_H: u64 = !(FILE << 7);

/// The squares a side's pawns attack.
pub(super) const fn attacks(pawns: u64, us: Color) -> u64 {
    forward(neighbours(pawns), us)
}

/// The squares to the left and right.
const fn neighbours(squares: u64) -> u64 {
    (squares & NOT_A) >> 1 | (squares & NOT_H) << 1
}

/// One step towards the other side.
pub(super) const fn forward(squares: u64, us: Color) -> u64 {
    if us.is_white() { squares << 8 } else { squares >> 8 }
}

/// All ranks in front of the square, seen from our side.
pub(super) fn ahead(square: Square, us: Color) -> u64 {
    let rank = u32::from(square) & 56;
    if us.is_white() { !0 << rank << 8 } else { (1 << rank) - 1 }
}

/// All squares that the pawns attack now or after advancing.
pub(super) fn attack_span(pawns: u64, us: Color) -> u64 {
    let mut span = attacks(pawns, us);
    for step in [8, 16, 32] {
        span |= if us.is_white() { span << step } else { span >> step };
    }
    span
}

/// 0 for a side's own back rank, 7 for the enemy's.
pub(super) fn relative_rank(square: Square, us: Color) -> usize {
    let rank = square.to_usize() / 8;
    if us.is_white() { rank } else { 7 - rank }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(fen: &str) -> Vec<String> {
        let position = selfmate_chess::fen::parse_fen(fen).expect("a position");
        let board = selfmate_chess::Position::board(&position);
        let result = evaluate(board, &Weights::default());
        let squares = selfmate_chess::Bitboard(result.passed);
        squares.into_iter().map(|square| square.to_string()).collect()
    }

    #[test]
    fn a_pawn_is_passed_when_no_enemy_pawn_is_ahead_on_three_files() {
        assert_eq!(passed("4k3/p7/8/1P6/8/8/8/4K3 w - - 0 1"), Vec::<String>::new());
        assert_eq!(passed("4k3/8/p7/2P5/8/8/8/4K3 w - - 0 1"), ["c5", "a6"]);
        assert_eq!(passed("4k3/8/8/2P5/2P5/7p/8/4K3 w - - 0 1"), ["h3", "c5"]);
    }

    #[test]
    fn spans_reach_the_last_rank() {
        let e2 = 1 << 12;
        let d_and_f = FILE << 3 | FILE << 5;
        assert_eq!(attack_span(e2, Color::White), d_and_f & !0xFFFF);
    }
}
