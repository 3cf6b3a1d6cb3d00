//! Pseudo-random evaluations from the position's key: the same on every machine.

use selfmate_chess::Seed;

use super::{Evaluation, Evaluator, Leaf};
use crate::packed_move::PackedMove;
use crate::value::Wdl;

/// An evaluator for golden tests. Its output depends only on the position and the seed. It also
/// stands in for a trained network where only the shape of the output matters.
#[derive(Clone, Copy, Debug)]
pub struct Scripted {
    seed: Seed,
}

impl Scripted {
    /// Each seed gives different evaluations.
    pub fn new(seed: Seed) -> Scripted {
        Scripted { seed: seed.derive("scripted") }
    }
}

impl Evaluator for Scripted {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        for (leaf, evaluation) in leaves.iter().zip(evaluations) {
            let seed = self.seed.index(leaf.game.key());
            let value = (seed.rng().unit() - 0.5) as f32;
            evaluation.wdl = Wdl::new(value, 0.3);
            evaluation.logits.clear();
            evaluation.logits.extend(
                leaf.legal.iter().map(|&m| {
                    (seed.index(u64::from(PackedMove::new(m).0)).rng().unit() * 4.0) as f32
                }),
            );
        }
    }
}
