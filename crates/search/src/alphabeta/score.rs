//! Scores: centipawns, and mates counted in plies from the root.

use std::fmt;

use super::pair::Pair;

/// The longest line the search will look at, in plies.
pub(super) const MAX_PLY: usize = 128;
/// Beyond every score.
pub(super) const INFINITE: i32 = 32_001;
/// The score of being mated on the spot is `-MATE`; a mate `n` plies away is `n` less.
pub(super) const MATE: i32 = 32_000;
/// Any score at or above this is a forced mate.
pub(super) const MATE_BOUND: i32 = MATE - 2 * MAX_PLY as i32;
/// A position that a tablebase knows to be won; `n` plies from the root it is `n` less.
pub(super) const TABLE_WIN: i32 = 20_000;
/// Any score at or above this is won, by a tablebase or by mate.
pub(super) const TABLE_BOUND: i32 = TABLE_WIN - 2 * MAX_PLY as i32;
/// No static evaluation goes beyond this.
pub(super) const EVAL_LIMIT: i32 = TABLE_BOUND - 1;

/// What the side to move can expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Score {
    /// Hundredths of a pawn; about 20,000 when a tablebase knows the win.
    Cp(i32),
    /// A forced mate in this many full moves; negative when the side to move gets mated.
    /// `Mate(0)` is a position that is mate already.
    Mate(i32),
}

impl Score {
    pub(super) const fn from_internal(score: i32) -> Score {
        if score >= MATE_BOUND {
            Score::Mate((MATE - score + 1) / 2)
        } else if score <= -MATE_BOUND {
            Score::Mate(-(MATE + score) / 2)
        } else {
            Score::Cp(score)
        }
    }

    /// One number that orders scores: centipawns, with mates far outside them.
    pub const fn centipawns(self) -> i32 {
        match self {
            Score::Cp(cp) => cp,
            Score::Mate(moves) if moves > 0 => MATE - 2 * moves + 1,
            Score::Mate(moves) => -MATE - 2 * moves,
        }
    }
}

impl fmt::Display for Score {
    /// As UCI writes it: `cp 23` or `mate -4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Score::Cp(cp) => write!(f, "cp {cp}"),
            Score::Mate(moves) => write!(f, "mate {moves}"),
        }
    }
}

pub(super) const fn mated_in(ply: usize) -> i32 {
    -MATE + ply as i32
}

pub(super) const fn is_mate(score: i32) -> bool {
    score.abs() >= MATE_BOUND
}

/// Won or lost for certain.
pub(super) const fn is_decided(score: i32) -> bool {
    score.abs() >= TABLE_BOUND
}

/// Blends the middlegame and endgame halves by the material left: 24 at the start, 0 without pieces.
pub(super) fn taper(pair: Pair, eg_scale: i32, phase: i32) -> i32 {
    let phase = phase.min(24);
    let eg = pair.eg() * eg_scale / 64;
    ((pair.mg() * phase + eg * (24 - phase)) / 24).clamp(-EVAL_LIMIT, EVAL_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mate_scores_count_full_moves() {
        assert_eq!(Score::from_internal(MATE - 1), Score::Mate(1));
        assert_eq!(Score::from_internal(MATE - 3), Score::Mate(2));
        assert_eq!(Score::from_internal(mated_in(0)), Score::Mate(0));
        assert_eq!(Score::from_internal(mated_in(2)), Score::Mate(-1));
        assert_eq!(Score::from_internal(-15), Score::Cp(-15));
    }

    #[test]
    fn centipawns_keep_the_order_of_scores() {
        let ordered = [-1, -2, -9].map(Score::Mate).into_iter();
        let ordered = ordered.chain([-500, 0, 12].map(Score::Cp));
        let ordered: Vec<_> = ordered.chain([9, 2, 1].map(Score::Mate)).collect();
        assert!(ordered.is_sorted_by_key(|score| score.centipawns()));
        assert_eq!(Score::Mate(1).centipawns(), MATE - 1);
        assert_eq!(Score::Mate(-1).centipawns(), mated_in(2));
    }
}
