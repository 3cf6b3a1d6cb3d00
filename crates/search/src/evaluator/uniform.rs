//! The same value for every position and the same prior for every move.

use super::{Evaluation, Evaluator, Leaf};
use crate::value::Wdl;

/// For tests, and for measuring the tree search without evaluation cost.
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
