//! A node of the tree in 24 bytes.
//!
//! All fields are atomic, so that threads share a tree without locks. Values are from the point of
//! view of the player who moved into the node: a high mean makes the parent choose it. The move and
//! its prior are stored in the parent's [edges](super::tree::Children).

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use super::result::Proof;
use crate::memory::Zeroed;
use crate::value::flip_value;

#[derive(Debug, Default)]
pub(super) struct Node {
    /// The mean value in [-1, 1] and the mean draw probability, in one word so that both are
    /// updated together; see [`pack`].
    mean: AtomicU64,
    /// See [`Counts`].
    counts: AtomicU64,
    /// The index of the first edge; 0 while the node is not expanded.
    edges: AtomicU32,
    /// The index of the first node of the first four children.
    first_group: AtomicU32,
}

/// Counters in one word: visits in the low half, then simulations in flight (16 bits), edges (8)
/// and the proof (8).
#[derive(Clone, Copy)]
pub(super) struct Counts(u64);

const ONE_VISIT: u64 = 1;
const ONE_WALK: u64 = 1 << 32;
const EDGES_SHIFT: u32 = 48;
const PROOF_SHIFT: u32 = 56;

impl Counts {
    pub fn visits(self) -> u32 {
        self.0 as u32
    }

    /// Simulations that passed this node and are not backed up yet.
    pub fn in_flight(self) -> u16 {
        (self.0 >> 32) as u16
    }

    fn edges(self) -> usize {
        (self.0 >> EDGES_SHIFT & 0xFF) as usize
    }

    pub fn proof(self) -> Proof {
        Proof::from_byte((self.0 >> PROOF_SHIFT) as u8)
    }

    /// True when the move into the node is proven to lose.
    pub fn is_lost(self) -> bool {
        Proof::is_loss((self.0 >> PROOF_SHIFT) as u8)
    }
}

/// The location of a node's children.
#[derive(Clone, Copy)]
pub(super) struct Location {
    pub edges: u32,
    pub count: usize,
    pub first_group: u32,
}

// SAFETY: every field is an atomic integer, for which zero is a valid value.
unsafe impl Zeroed for Node {}

impl Node {
    /// Resets the node to unvisited.
    pub fn forget(&self) {
        self.mean.store(0, Relaxed);
        self.counts.store(0, Relaxed);
        self.edges.store(0, Relaxed);
    }

    /// Copies everything except the children.
    pub fn copy_from(&self, other: &Node) {
        let counts = other.counts();
        self.mean.store(other.mean.load(Relaxed), Relaxed);
        let kept = u64::from(counts.visits()) | u64::from(counts.proof().to_byte()) << PROOF_SHIFT;
        self.counts.store(kept, Relaxed);
        self.edges.store(0, Relaxed);
    }

    /// Removes the proof of a draw. One visit stays, so that tried children stay before untried
    /// ones.
    pub fn remove_draw_proof(&self) {
        self.forget();
        self.counts.store(ONE_VISIT, Relaxed);
        self.mean.store(pack(0.0, 1.0), Relaxed);
    }

    pub fn counts(&self) -> Counts {
        Counts(self.counts.load(Relaxed))
    }

    pub fn visits(&self) -> u32 {
        self.counts().visits()
    }

    pub fn in_flight(&self) -> u16 {
        Counts(self.counts.load(Acquire)).in_flight()
    }

    pub fn proof(&self) -> Proof {
        self.counts().proof()
    }

    /// The mean value for the player who moved into the node.
    pub fn value(&self) -> f32 {
        // VALUE_ONE is a power of two, so this rounds only once, as a computation in 64 bits would.
        signed_value(self.mean.load(Relaxed)) as f32 / VALUE_ONE as f32
    }

    /// The mean value for the side to move at the node.
    pub fn value_to_move(&self) -> f32 {
        flip_value(self.value())
    }

    /// The mean draw probability.
    pub fn draw(&self) -> f32 {
        unpack(self.mean.load(Relaxed)).1 as f32
    }

    pub fn is_expanded(&self) -> bool {
        self.edges.load(Relaxed) != 0
    }

    pub fn children(&self) -> Option<Location> {
        // Acquire pairs with the release in `set_children`: a thread that reads the index sees the
        // edges.
        match self.edges.load(Acquire) {
            0 => None,
            edges => Some(Location {
                edges,
                count: self.counts().edges(),
                first_group: self.first_group.load(Relaxed),
            }),
        }
    }

    /// Publishes the children; called once.
    pub fn set_children(&self, location: Location) {
        self.counts.fetch_or((location.count as u64) << EDGES_SHIFT, Relaxed);
        self.first_group.store(location.first_group, Relaxed);
        self.edges.store(location.edges, Release);
    }

    /// Records a proof, once; the mean becomes exact.
    pub fn prove(&self, proof: Proof) {
        let first = |counts: u64| {
            (counts >> PROOF_SHIFT == 0).then(|| counts | u64::from(proof.to_byte()) << PROOF_SHIFT)
        };
        if self.counts.fetch_update(Relaxed, Relaxed, first).is_err() {
            return;
        }
        if let Some((value, draw)) = proof.mean() {
            self.mean.store(pack(f64::from(value), f64::from(draw)), Relaxed);
        }
    }

    /// Counts a simulation on its way down.
    pub fn enter(&self, sharing: Sharing) {
        self.count(ONE_WALK, sharing);
    }

    /// Undoes [`Node::enter`] for an abandoned simulation.
    pub fn leave(&self, sharing: Sharing) {
        self.count(ONE_WALK.wrapping_neg(), sharing);
    }

    /// Counts a simulation on its way up, with its value and draw probability.
    pub fn finish(&self, value: f32, draw: f32, sharing: Sharing) {
        let counts = self.count(ONE_VISIT.wrapping_sub(ONE_WALK), sharing);
        if counts.proof() != Proof::Unknown {
            return;
        }
        let share = 1.0 / f64::from(counts.visits());
        let step = |bits| {
            let (mean, mean_draw) = unpack(bits);
            pack(
                mean + (f64::from(value) - mean) * share,
                mean_draw + (f64::from(draw) - mean_draw) * share,
            )
        };
        match sharing {
            Sharing::Alone => self.mean.store(step(self.mean.load(Relaxed)), Relaxed),
            Sharing::Threads => {
                let updated = self.mean.fetch_update(Relaxed, Relaxed, |bits| Some(step(bits)));
                debug_assert!(updated.is_ok(), "the update always returns a value");
            }
        }
    }

    /// Adds to the counts and returns the new ones.
    fn count(&self, step: u64, sharing: Sharing) -> Counts {
        match sharing {
            Sharing::Alone => {
                let counts = self.counts.load(Relaxed).wrapping_add(step);
                self.counts.store(counts, Relaxed);
                Counts(counts)
            }
            // Acquire and release: a thread that sees a simulation finished also sees the children
            // it added.
            Sharing::Threads => Counts(self.counts.fetch_add(step, AcqRel).wrapping_add(step)),
        }
    }
}

/// Whether several threads use the tree. Plain stores are cheaper and suffice for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    Alone,
    Threads,
}

/// A value in 40 bits and a draw probability in 24, as fixed-point numbers. A 32-bit float would
/// stop changing after some ten million visits.
fn pack(value: f64, draw: f64) -> u64 {
    let value = (value * VALUE_ONE) as i64 as u64 & ((1 << DRAW_SHIFT) - 1);
    value | ((draw * DRAW_ONE) as u64) << DRAW_SHIFT
}

fn unpack(bits: u64) -> (f64, f64) {
    (signed_value(bits) as f64 / VALUE_ONE, (bits >> DRAW_SHIFT) as f64 / DRAW_ONE)
}

fn signed_value(bits: u64) -> i64 {
    // The two shifts extend the sign of the value.
    (bits << (64 - DRAW_SHIFT)) as i64 >> (64 - DRAW_SHIFT)
}

const DRAW_SHIFT: u32 = 40;
const VALUE_ONE: f64 = (1u64 << 38) as f64;
const DRAW_ONE: f64 = ((1u32 << 24) - 1) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_24_bytes() {
        assert_eq!(size_of::<Node>(), 24);
    }

    #[test]
    fn means_are_correct_with_one_thread_and_with_many() {
        for sharing in [Sharing::Alone, Sharing::Threads] {
            let node = Node::default();
            for (value, draw) in [(1.0, 0.0), (-1.0, 0.0), (0.5, 0.5), (0.0, 1.0)] {
                node.enter(sharing);
                node.finish(value, draw, sharing);
            }
            assert_eq!((node.visits(), node.in_flight()), (4, 0));
            assert!((node.value() - 0.125).abs() < 1e-6 && (node.draw() - 0.375).abs() < 1e-6);
        }
    }

    #[test]
    fn a_mean_still_changes_after_ten_million_visits() {
        let node = Node::default();
        for value in [0.3, 0.2] {
            for _ in 0..10_000_000 {
                node.enter(Sharing::Alone);
                node.finish(value, 1.0 - value, Sharing::Alone);
            }
        }
        assert!((node.value() - 0.25).abs() < 1e-4, "{}", node.value());
        for value in [-1.0, -0.7, 0.0, 0.5, 1.0] {
            let (kept, draw) = unpack(pack(value, 1.0 - value.abs()));
            assert!((kept - value).abs() < 1e-9 && (draw - (1.0 - value.abs())).abs() < 1e-6);
        }
    }

    #[test]
    fn counters_do_not_overflow_into_each_other() {
        let node = Node::default();
        node.enter(Sharing::Threads);
        node.enter(Sharing::Alone);
        node.set_children(Location { edges: 7, count: 218, first_group: 9 });
        node.prove(Proof::Loss(63));
        node.finish(0.0, 0.0, Sharing::Threads);
        node.leave(Sharing::Alone);
        let location = node.children().unwrap();
        assert_eq!((location.edges, location.count, location.first_group), (7, 218, 9));
        assert_eq!((node.visits(), node.in_flight(), node.proof()), (1, 0, Proof::Loss(63)));
        assert_eq!(node.value(), -1.0);
    }
}
