//! Knows nothing: every position is even, every move as good as the next.

use super::{Evaluation, Evaluator, Leaf};
use crate::value::Wdl;

/// The null evaluator, for tests and for measuring the tree alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uniform;

impl Evaluator for Uniform {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        for (leaf, evaluation) in leaves.iter().zip(evaluations) {
            evaluation.wdl = Wdl::EVEN;
            evaluation.logits.clear();
            evaluation.logits.resize(leaf.legal.len(), 0.0);
        }
    }
}
