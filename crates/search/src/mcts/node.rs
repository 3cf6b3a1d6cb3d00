//! A node of the tree in 20 bytes.
//!
//! All fields are atomic, so that threads share a tree without locks. A node speaks for the
//! player who moved into it: its mean is high when its parent should choose it. The move and
//! its prior belong to the parent's [edges](super::tree::Children).

use std::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use super::arena::Zeroed;
use super::result::Proof;

#[derive(Debug, Default)]
pub(super) struct Node {
    /// The mean value in [-1, 1], as the bits of an f32.
    value: AtomicU32,
    /// The mean share of draws, likewise.
    draw: AtomicU32,
    visits: AtomicU32,
    /// Where the edges to the children stand in the tree; 0 while there are none.
    edges: AtomicU32,
    /// Walks that have passed here and not come back yet.
    in_flight: AtomicU16,
    edge_count: AtomicU8,
    proof: AtomicU8,
}

// SAFETY: every field is an atomic integer, for which zero is a value.
unsafe impl Zeroed for Node {}

impl Node {
    /// Makes this a node that was never visited.
    pub fn forget(&self) {
        self.value.store(0, Relaxed);
        self.draw.store(0, Relaxed);
        self.visits.store(0, Relaxed);
        self.edges.store(0, Relaxed);
        self.in_flight.store(0, Relaxed);
        self.edge_count.store(0, Relaxed);
        self.proof.store(0, Relaxed);
    }

    /// Becomes another node without its children.
    pub fn copy_from(&self, other: &Node) {
        self.value.store(other.value.load(Relaxed), Relaxed);
        self.draw.store(other.draw.load(Relaxed), Relaxed);
        self.visits.store(other.visits(), Relaxed);
        self.edges.store(0, Relaxed);
        self.in_flight.store(0, Relaxed);
        self.edge_count.store(0, Relaxed);
        self.proof.store(other.proof.load(Relaxed), Relaxed);
    }

    pub fn visits(&self) -> u32 {
        self.visits.load(Relaxed)
    }

    pub fn in_flight(&self) -> u16 {
        self.in_flight.load(Relaxed)
    }

    /// The mean value.
    pub fn value(&self) -> f32 {
        f32::from_bits(self.value.load(Relaxed))
    }

    /// The mean share of draws.
    pub fn draw(&self) -> f32 {
        f32::from_bits(self.draw.load(Relaxed))
    }

    /// The place and number of the edges to the children; `None` while there are none.
    pub fn edges(&self) -> Option<(u32, usize)> {
        // Acquire pairs with the release in `set_edges`: whoever sees the place sees the edges.
        match self.edges.load(Acquire) {
            0 => None,
            first => Some((first, usize::from(self.edge_count.load(Relaxed)))),
        }
    }

    pub fn set_edges(&self, first: u32, count: usize) {
        self.edge_count.store(count as u8, Relaxed);
        self.edges.store(first, Release);
    }

    pub fn proof(&self) -> Proof {
        Proof::from_byte(self.proof.load(Relaxed))
    }

    /// Records what is proven; the mean becomes exact.
    pub fn prove(&self, proof: Proof) {
        self.proof.store(proof.to_byte(), Relaxed);
        if let Some((value, draw)) = proof.mean() {
            self.value.store(value.to_bits(), Relaxed);
            self.draw.store(draw.to_bits(), Relaxed);
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
        step(&self.value, value, share, sharing);
        step(&self.draw, draw, share, sharing);
    }
}

/// Moves a mean, kept as the bits of an f32, towards a new sample.
fn step(mean: &AtomicU32, sample: f32, share: f32, sharing: Sharing) {
    let moved = |bits| {
        let mean = f32::from_bits(bits);
        (mean + (sample - mean) * share).to_bits()
    };
    match sharing {
        Sharing::Alone => mean.store(moved(mean.load(Relaxed)), Relaxed),
        Sharing::Threads => {
            let updated = mean.fetch_update(Relaxed, Relaxed, |bits| Some(moved(bits)));
            debug_assert!(updated.is_ok(), "the update never declines");
        }
    }
}

/// Who else may touch the tree: plain stores are enough, and cheaper, when nobody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    Alone,
    Threads,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_20_bytes() {
        assert_eq!(size_of::<Node>(), 20);
    }

    #[test]
    fn means_are_means_alone_and_shared() {
        for sharing in [Sharing::Alone, Sharing::Threads] {
            let node = Node::default();
            for (value, draw) in [(1.0, 0.0), (-1.0, 0.0), (0.5, 0.5), (0.0, 1.0)] {
                node.add(value, draw, sharing);
            }
            assert_eq!(node.visits(), 4);
            assert!((node.value() - 0.125).abs() < 1e-6 && (node.draw() - 0.375).abs() < 1e-6);
        }
    }
}
