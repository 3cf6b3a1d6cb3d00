//! The results of a search as plain data.

use selfmate_chess::Move;

use crate::value::Wdl;

#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// `None` when there is no legal move.
    pub best: Option<Move>,
    /// For the side to move.
    pub wdl: Wdl,
    /// The evaluator's output for the root, or its value before this search when the tree was
    /// reused.
    pub raw_wdl: Wdl,
    /// The policy target over all legal moves, in the order of `moves`; see
    /// [`PolicyTarget`](super::PolicyTarget).
    pub policy_target: Vec<f32>,
    /// Every legal move: the chosen move first, then by visits.
    pub moves: Vec<MoveStatistics>,
    /// Simulations of this search only.
    pub simulations: u64,
    pub tablebase_hits: u64,
    /// For the side to move.
    pub proof: Proof,
}

/// The part of a [`SearchResult`] that self-play needs; much cheaper to compute.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub best: Move,
    /// For the side to move.
    pub wdl: Wdl,
    /// The policy target, in the order of the legal moves.
    pub policy_target: Vec<f32>,
}

/// Statistics of a root move, for the side to move.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveStatistics {
    pub played: Move,
    /// Includes visits from earlier searches in the same tree.
    pub visits: u32,
    pub prior: f32,
    /// [`Wdl::EVEN`] when the move was never tried.
    pub wdl: Wdl,
    pub proof: Proof,
    /// The most visited continuation, this move first.
    pub line: Vec<Move>,
}

/// A proven result: of a move for the player who makes it, or of a position for its side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Proof {
    #[default]
    Unknown,
    /// Mate in at most this many plies. From [`Proof::DISTANT`] on, the distance is not known.
    Win(u8),
    /// Mated in at most this many plies; otherwise as for a win.
    Loss(u8),
    Draw,
}

impl Proof {
    const MAX_PLIES: u8 = 63;

    /// A tablebase win counts as a mate in this many plies: longer than the mates that a search
    /// proves, so that those are preferred.
    pub const DISTANT: u8 = 48;

    /// The same result for the other side.
    #[must_use]
    pub fn flip(self) -> Proof {
        match self {
            Proof::Win(plies) => Proof::Loss(plies),
            Proof::Loss(plies) => Proof::Win(plies),
            other => other,
        }
    }

    /// The certain result; `None` when nothing is proven.
    pub fn wdl(self) -> Option<Wdl> {
        match self {
            Proof::Unknown => None,
            Proof::Win(_) => Some(Wdl::WIN),
            Proof::Loss(_) => Some(Wdl::LOSS),
            Proof::Draw => Some(Wdl::DRAW),
        }
    }

    pub(super) fn mean(self) -> Option<(f32, f32)> {
        self.wdl().map(|wdl| (wdl.value(), wdl.draw))
    }

    /// The proof of a move into a position, given the proofs of the replies.
    pub(super) fn from_replies(replies: impl Iterator<Item = Proof>) -> Proof {
        let mut best = Some(Proof::Loss(0));
        for reply in replies {
            best = match (best, reply) {
                (_, Proof::Win(plies)) => return Proof::Loss(Self::MAX_PLIES.min(plies + 1)),
                (_, Proof::Unknown) => None,
                (None, _) => None,
                (Some(Proof::Loss(longest)), Proof::Loss(plies)) => {
                    Some(Proof::Loss(longest.max(plies)))
                }
                (Some(_), _) => Some(Proof::Draw),
            };
        }
        match best {
            Some(Proof::Loss(plies)) => Proof::Win(Self::MAX_PLIES.min(plies + 1)),
            Some(Proof::Draw) => Proof::Draw,
            _ => Proof::Unknown,
        }
    }

    pub(super) fn to_byte(self) -> u8 {
        match self {
            Proof::Unknown => 0,
            Proof::Win(plies) => 0x40 | plies.min(Self::MAX_PLIES),
            Proof::Loss(plies) => 0x80 | plies.min(Self::MAX_PLIES),
            Proof::Draw => 0xC0,
        }
    }

    /// Whether a byte encodes a loss.
    pub(super) fn is_loss(byte: u8) -> bool {
        byte >> 6 == 2
    }

    pub(super) fn from_byte(byte: u8) -> Proof {
        match byte >> 6 {
            0 => Proof::Unknown,
            1 => Proof::Win(byte & 0x3F),
            2 => Proof::Loss(byte & 0x3F),
            _ => Proof::Draw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_follow_from_replies() {
        use Proof::*;
        let from = |replies: &[Proof]| Proof::from_replies(replies.iter().copied());
        // The opponent has a mate: moving here loses.
        assert_eq!(from(&[Unknown, Win(1), Draw]), Loss(2));
        // Every reply loses: moving here wins, after the longest defence.
        assert_eq!(from(&[Loss(2), Loss(4)]), Win(5));
        assert_eq!(from(&[Loss(2), Draw]), Draw);
        assert_eq!(from(&[Draw, Loss(2), Draw]), Draw);
        assert_eq!(from(&[Loss(2), Unknown]), Unknown);
        assert_eq!(from(&[Unknown, Draw]), Unknown);
        assert_eq!(from(&[Loss(63)]), Win(63));
    }

    #[test]
    fn proofs_fit_a_byte() {
        for proof in [Proof::Unknown, Proof::Win(0), Proof::Win(63), Proof::Loss(17), Proof::Draw] {
            assert_eq!(Proof::from_byte(proof.to_byte()), proof);
        }
    }
}
