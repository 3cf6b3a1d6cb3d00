//! A node of the tree in 24 bytes.
//!
//! All fields are atomic, so that threads share a tree without locks. A node speaks for the
//! player who moved into it: its mean is high when its parent should choose it.

use std::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::Release,
};

use super::result::Proof;
use crate::packed_move::PackedMove;

#[derive(Debug, Default)]
pub(super) struct Node {
    /// Two numbers in one word, so that they change together: the mean value in [-1, 1] in the
    /// low half, the mean share of draws in the high half.
    mean: AtomicU64,
    visits: AtomicU32,
    /// Where the children stand in the tree; 0 while there are none.
    first_child: AtomicU32,
    /// Walks that have passed here and not come back yet.
    in_flight: AtomicU16,
    played: AtomicU16,
    /// See [`pack_prior`].
    prior: AtomicU16,
    child_count: AtomicU8,
    proof: AtomicU8,
}

impl Node {
    /// Makes this a fresh child.
    pub fn reset(&self, played: PackedMove, prior: f32) {
        self.played.store(played.0, Relaxed);
        self.set_prior(prior);
        self.forget();
    }

    /// Forgets everything but the move and its prior.
    pub fn forget(&self) {
        self.mean.store(0, Relaxed);
        self.visits.store(0, Relaxed);
        self.first_child.store(0, Relaxed);
        self.in_flight.store(0, Relaxed);
        self.child_count.store(0, Relaxed);
        self.proof.store(0, Relaxed);
    }

    /// Becomes another node without its children.
    pub fn copy_from(&self, other: &Node) {
        self.mean.store(other.mean.load(Relaxed), Relaxed);
        self.visits.store(other.visits(), Relaxed);
        self.first_child.store(0, Relaxed);
        self.in_flight.store(0, Relaxed);
        self.played.store(other.played.load(Relaxed), Relaxed);
        self.prior.store(other.prior.load(Relaxed), Relaxed);
        self.child_count.store(0, Relaxed);
        self.proof.store(other.proof.load(Relaxed), Relaxed);
    }

    pub fn played(&self) -> PackedMove {
        PackedMove(self.played.load(Relaxed))
    }

    pub fn prior(&self) -> f32 {
        unpack_prior(self.prior.load(Relaxed))
    }

    pub fn set_prior(&self, prior: f32) {
        self.prior.store(pack_prior(prior), Relaxed);
    }

    pub fn visits(&self) -> u32 {
        self.visits.load(Relaxed)
    }

    pub fn in_flight(&self) -> u16 {
        self.in_flight.load(Relaxed)
    }

    /// Mean value and mean share of draws.
    pub fn mean(&self) -> (f32, f32) {
        unpack_mean(self.mean.load(Relaxed))
    }

    pub fn value(&self) -> f32 {
        self.mean().0
    }

    /// The children's place and number; `None` while there are none.
    pub fn children(&self) -> Option<(u32, usize)> {
        // Acquire pairs with the release in `set_children`: whoever sees the place sees the nodes.
        match self.first_child.load(std::sync::atomic::Ordering::Acquire) {
            0 => None,
            first => Some((first, usize::from(self.child_count.load(Relaxed)))),
        }
    }

    pub fn set_children(&self, first: u32, count: usize) {
        self.child_count.store(count as u8, Relaxed);
        self.first_child.store(first, Release);
    }

    pub fn proof(&self) -> Proof {
        Proof::from_byte(self.proof.load(Relaxed))
    }

    /// Records what is proven; the mean becomes exact.
    pub fn prove(&self, proof: Proof) {
        self.proof.store(proof.to_byte(), Relaxed);
        if let Some((value, draw)) = proof.mean() {
            self.mean.store(pack_mean(value, draw), Relaxed);
        }
    }

    pub fn enter(&self, sharing: Sharing) {
        match sharing {
            Sharing::Alone => self.in_flight.store(self.in_flight() + 1, Relaxed),
            Sharing::Threads => _ = self.in_flight.fetch_add(1, Relaxed),
        }
    }

    pub fn leave(&self, sharing: Sharing) {
        match sharing {
            Sharing::Alone => self.in_flight.store(self.in_flight() - 1, Relaxed),
            Sharing::Threads => _ = self.in_flight.fetch_sub(1, Relaxed),
        }
    }

    /// Counts one visit with this value and share of draws.
    pub fn add(&self, value: f32, draw: f32, sharing: Sharing) {
        let visits = match sharing {
            Sharing::Alone => {
                let visits = self.visits() + 1;
                self.visits.store(visits, Relaxed);
                visits
            }
            Sharing::Threads => self.visits.fetch_add(1, Relaxed) + 1,
        };
        if self.proof() != Proof::Unknown {
            return;
        }
        let share = 1.0 / visits as f32;
        let step = |bits| {
            let (mean, mean_draw) = unpack_mean(bits);
            pack_mean(mean + (value - mean) * share, mean_draw + (draw - mean_draw) * share)
        };
        match sharing {
            Sharing::Alone => self.mean.store(step(self.mean.load(Relaxed)), Relaxed),
            Sharing::Threads => {
                self.mean
                    .fetch_update(Relaxed, Relaxed, |bits| Some(step(bits)))
                    .expect("the update never declines");
            }
        }
    }
}

/// Who else may touch the tree: plain stores are enough, and cheaper, when nobody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    Alone,
    Threads,
}

fn pack_mean(value: f32, draw: f32) -> u64 {
    u64::from(value.to_bits()) | u64::from(draw.to_bits()) << 32
}

fn unpack_mean(bits: u64) -> (f32, f32) {
    (f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32))
}

/// What an f32 in [2⁻³¹, 1] has in its upper 20 bits, less what all of them share: 5 bits of
/// exponent, 11 of mantissa, so a prior is kept to one part in 4096.
const SHARED_BITS: u32 = (127 - 31) << 11;

fn pack_prior(prior: f32) -> u16 {
    let prior = prior.clamp(1.0 / (1u32 << 31) as f32, 1.0);
    // Half of the last kept bit rounds to nearest; 1.0 cannot round up, it has no lower bits.
    (((prior.to_bits() + (1 << 11)) >> 12) - SHARED_BITS) as u16
}

fn unpack_prior(bits: u16) -> f32 {
    f32::from_bits((u32::from(bits) + SHARED_BITS) << 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_24_bytes() {
        assert_eq!(size_of::<Node>(), 24);
    }

    #[test]
    fn priors_survive_to_one_part_in_four_thousand() {
        for step in 1..=10_000 {
            let prior = step as f32 / 10_000.0;
            let kept = unpack_prior(pack_prior(prior));
            assert!((kept / prior - 1.0).abs() < 1.0 / 4000.0, "{prior} became {kept}");
        }
        assert_eq!(unpack_prior(pack_prior(1.0)), 1.0);
        assert!(unpack_prior(pack_prior(0.0)) > 0.0);
        assert!(unpack_prior(pack_prior(1e-7)) > 0.9e-7);
    }

    #[test]
    fn means_are_means_alone_and_shared() {
        for sharing in [Sharing::Alone, Sharing::Threads] {
            let node = Node::default();
            for (value, draw) in [(1.0, 0.0), (-1.0, 0.0), (0.5, 0.5), (0.0, 1.0)] {
                node.add(value, draw, sharing);
            }
            let (value, draw) = node.mean();
            assert_eq!(node.visits(), 4);
            assert!((value - 0.125).abs() < 1e-6 && (draw - 0.375).abs() < 1e-6);
        }
    }
}
