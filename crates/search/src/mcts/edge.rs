//! An edge of the tree in 4 bytes: a move and its prior.

use crate::packed_move::PackedMove;

/// The prior is in the upper half, so that edges sort by prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge(pub u32);

impl Edge {
    pub fn new(played: PackedMove, prior: f32) -> Edge {
        Edge(u32::from(pack_prior(prior)) << 16 | u32::from(played.0))
    }

    pub fn played(self) -> PackedMove {
        PackedMove(self.0 as u16)
    }

    pub fn prior(self) -> f32 {
        unpack_prior((self.0 >> 16) as u16)
    }
}

/// Sorts the edges of a node, highest prior first. All edges have different moves.
pub(super) fn sort(edges: &mut [Edge]) {
    const FEW: usize = 64;
    if edges.len() > FEW {
        edges.sort_unstable_by(|a, b| b.cmp(a));
        return;
    }
    // For few edges, counting the better ones avoids the unpredictable branches of a sort.
    let mut all = [Edge(0); FEW];
    all[..edges.len()].copy_from_slice(edges);
    let padded = &all[..edges.len().next_multiple_of(8)];
    for &edge in &all[..edges.len()] {
        let better: u32 = padded.iter().map(|other| u32::from(*other > edge)).sum();
        edges[better as usize] = edge;
    }
}

/// The exponent bits shared by all f32 in [2⁻³¹, 1]. Without them the upper 20 bits fit in 16: 5
/// bits of exponent and 11 of mantissa, so a prior is exact to one part in 4096.
const SHARED_BITS: u32 = (127 - 31) << 11;

fn pack_prior(prior: f32) -> u16 {
    let prior = prior.clamp(1.0 / (1u32 << 31) as f32, 1.0);
    // Adding half of the last kept bit rounds to nearest. 1.0 cannot round up, since its lower bits
    // are zero.
    (((prior.to_bits() + (1 << 11)) >> 12) - SHARED_BITS) as u16
}

fn unpack_prior(bits: u16) -> f32 {
    f32::from_bits((u32::from(bits) + SHARED_BITS) << 12)
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Rng, Seed};

    use super::*;

    #[test]
    fn priors_are_exact_to_one_part_in_four_thousand() {
        let kept = |prior| Edge::new(PackedMove(0xABCD), prior).prior();
        for step in 1..=10_000 {
            let prior = step as f32 / 10_000.0;
            assert!((kept(prior) / prior - 1.0).abs() < 1.0 / 4000.0, "{prior}: {}", kept(prior));
        }
        assert_eq!(kept(1.0), 1.0);
        assert!(kept(0.0) > 0.0 && kept(1e-7) > 0.9e-7);
        assert_eq!(Edge::new(PackedMove(0xABCD), 0.3).played(), PackedMove(0xABCD));
    }

    #[test]
    fn edges_sort_by_prior() {
        let edge = |prior| Edge::new(PackedMove(0xFFFF), prior);
        assert!(edge(0.5) > edge(0.25) && edge(1e-6) > edge(1e-7));
        let mut rng = Seed::new(3).rng();
        for count in [0, 1, 7, 8, 33, 64, 65, 218] {
            let prior = |rng: &mut Rng| rng.below(20) as f32 / 20.0;
            let mut edges: Vec<Edge> =
                (0..count).map(|m| Edge::new(PackedMove(m), prior(&mut rng))).collect();
            let mut expected = edges.clone();
            expected.sort_by(|a, b| b.cmp(a));
            sort(&mut edges);
            assert_eq!(edges, expected);
        }
    }
}
