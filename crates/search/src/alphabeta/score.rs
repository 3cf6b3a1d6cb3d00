//! Scores: centipawns, and mates counted in plies from the root.

use std::fmt;

use super::pair::Pair;

/// The longest line the search follows, in plies.
pub(super) const MAX_PLY: usize = 128;
/// Greater than every score.
pub(super) const INFINITE: i32 = 32_001;
/// `-MATE` is being mated now; a mate `n` plies away is `n` less.
pub(super) const MATE: i32 = 32_000;
/// Scores from here on are forced mates.
pub(super) const MATE_BOUND: i32 = MATE - 2 * MAX_PLY as i32;
/// A tablebase win at the root; `n` plies from the root it is `n` less.
pub(super) const TABLE_WIN: i32 = 20_000;
/// Scores from here on are wins, by tablebase or by mate.
pub(super) const TABLE_BOUND: i32 = TABLE_WIN - 2 * MAX_PLY as i32;
/// Static evaluations stay within this limit.
pub(super) const EVAL_LIMIT: i32 = TABLE_BOUND - 1;

/// A score for the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Score {
    /// Hundredths of a pawn; about 20,000 for a tablebase win.
    Cp(i32),
    /// Full moves to mate; negative when the side to move is mated. `Mate(0)`: the side to move is
    /// already mated.
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

    /// One number that orders scores: centipawns, with mates beyond all of them.
    pub const fn centipawns(self) -> i32 {
        match self {
            Score::Cp(cp) => cp,
            Score::Mate(moves) if moves > 0 => MATE - 2 * moves + 1,
            Score::Mate(moves) => -MATE - 2 * moves,
        }
    }
}

impl fmt::Display for Score {
    /// As in UCI: `cp 23` or `mate -4`.
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

/// A mate or a tablebase result, for either side.
pub(super) const fn is_decided(score: i32) -> bool {
    score.abs() >= TABLE_BOUND
}

/// Blends the middlegame and endgame halves by phase: 24 at the start, 0 without pieces.
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
