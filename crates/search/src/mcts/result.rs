//! What a search has found, as plain data.

use selfmate_chess::Move;

use crate::value::Wdl;

/// What a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// The move to play; `None` when there is no legal move.
    pub best: Option<Move>,
    /// The chances of the side to move.
    pub wdl: Wdl,
    /// The evaluator's own view of the root, or where the tree was kept, what it said before this
    /// search.
    pub raw_wdl: Wdl,
    /// A policy to learn from, over all legal moves in the order of `moves`: visit shares for
    /// PUCT and UCT, the improved policy for Gumbel.
    pub policy_target: Vec<f32>,
    /// Every legal move, most promising first.
    pub moves: Vec<MoveStatistics>,
    /// Simulations of this search.
    pub simulations: u64,
    /// Positions found in tablebases.
    pub tablebase_hits: u64,
    /// What is proven about the root, for the side to move.
    pub proof: Proof,
}

/// What self-play wants of a search: less than a [`SearchResult`], and much cheaper.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The move to play.
    pub best: Move,
    /// The chances of the side to move.
    pub wdl: Wdl,
    /// A policy to learn from, in the order of the legal moves.
    pub policy_target: Vec<f32>,
}

/// What a search knows of a root move, for the side to move.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveStatistics {
    /// The move.
    pub played: Move,
    /// SimulationStats through it, those of earlier searches in the same tree included.
    pub visits: u32,
    /// Its prior.
    pub prior: f32,
    /// Its chances; even when it was never tried.
    pub wdl: Wdl,
    /// What is proven about it.
    pub proof: Proof,
    /// The most visited continuation, this move first.
    pub line: Vec<Move>,
}

/// What is proven about a move for the one who makes it, or about a position for the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Proof {
    /// Nothing.
    #[default]
    Unknown,
    /// Won, with mate at most this many plies away; from [`Proof::DISTANT`] on nobody has counted.
    Win(u8),
    /// Lost, likewise.
    Loss(u8),
    /// Drawn.
    Draw,
}

impl Proof {
    const MAX_PLIES: u8 = 63;

    /// Where a tablebase knows a win, it counts as a mate that is this many plies away: further than
    /// those that a search proves, and the sooner it is reached the better.
    pub const DISTANT: u8 = 48;

    /// The same as the other side sees it.
    #[must_use]
    pub fn flip(self) -> Proof {
        match self {
            Proof::Win(plies) => Proof::Loss(plies),
            Proof::Loss(plies) => Proof::Win(plies),
            other => other,
        }
    }

    /// The chances, when they are certain.
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

    /// What follows for a move into a position, from what is proven of the moves out of it.
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

    /// Whether a byte is that of a loss.
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
        // Every reply loses: moving here wins, as late as the longest defence.
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
