//! The features of `threats3084` as a bit set. Comparing two positions takes a few instructions and
//! needs no list of their features.

use selfmate_chess::{Color, Position, Role};

use super::Threats;
use super::threats::{Features, THREATS3084_LEN};

/// At most 64, so that `changes` can mark the differing words in one word.
const WORDS: usize = THREATS3084_LEN.div_ceil(64);

/// The active features: feature `f` is bit `f % 64` of word `f / 64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureSet([u64; WORDS]);

impl FeatureSet {
    pub const EMPTY: FeatureSet = FeatureSet([0; WORDS]);

    /// The features added and removed since an earlier set.
    pub fn changes(&self, earlier: &FeatureSet) -> (Features, Features) {
        let (mut added, mut removed) = (Features::new(), Features::new());
        // Few words differ, and a branch would be unpredictable: this finds them without one.
        let mut differing = 0u64;
        for (index, (here, there)) in self.0.iter().zip(&earlier.0).enumerate() {
            differing |= u64::from(here != there) << index;
        }
        while differing != 0 {
            let index = differing.trailing_zeros() as usize;
            differing &= differing - 1;
            let here = self.0[index];
            let mut bits = here ^ earlier.0[index];
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let feature = index * 64 + bit as usize;
                let is_here = here >> bit & 1 == 1;
                added.push_if(feature, is_here);
                removed.push_if(feature, !is_here);
            }
        }
        (added, removed)
    }
}

impl Threats<'_> {
    /// The active features, as a set.
    pub fn feature_set(&self) -> FeatureSet {
        let mut words = [0; WORDS];
        let (board, mover) = (self.position.board(), self.position.turn());
        let roles = Role::ALL.map(|role| self.seen_board(board.by_role(role).0));
        let attacks = |color: Color| self.seen_board(self.attacks.by(color).0);
        let (by_mover, by_other) = (attacks(mover), attacks(!mover));
        for (side, color) in [mover, !mover].into_iter().enumerate() {
            let pieces = self.seen_board(board.by_color(color).0);
            let (attacked, defended) =
                if side == 0 { (by_other, by_mover) } else { (by_mover, by_other) };
            let buckets = [
                !attacked & !defended,
                !attacked & defended,
                attacked & !defended,
                attacked & defended,
            ];
            for (bucket, among) in buckets.into_iter().enumerate() {
                for (kind, role) in roles.into_iter().enumerate() {
                    words[bucket * 12 + side * 6 + kind] = role & pieces & among;
                }
            }
        }
        self.for_each_right(|feature| words[feature / 64] |= 1 << (feature % 64));
        FeatureSet(words)
    }

    /// Flips and mirrors a bitboard as [`Threats::seen`] does squares.
    #[inline(always)]
    fn seen_board(&self, board: u64) -> u64 {
        let board = if self.turn & 56 == 0 { board } else { board.swap_bytes() };
        if self.mirrored() { board.swap_bytes().reverse_bits() } else { board }
    }
}
