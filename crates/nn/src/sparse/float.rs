//! The network in floats: the reference for integers and gradients.

use std::sync::Arc;

use selfmate_search::{Evaluation, Evaluator, Leaf, Wdl};

use super::kernel::Kernel;
use super::network::wdl_of_logits;
use super::sample::Sample;
use super::weights::Weights;

/// The upper limit of the value head's units, as in the integer network.
pub(super) const VALUE_MOST: f32 = 16.0;

/// The outputs of the network in floats.
#[derive(Clone, Debug, PartialEq)]
pub struct FloatOutput {
    /// For the side to move.
    pub wdl: Wdl,
    /// One logit for each legal move.
    pub logits: Vec<f32>,
}

/// Evaluates the position of a sample with the f32 weights. Simple, not fast.
pub fn evaluate(weights: &Weights, sample: &Sample) -> FloatOutput {
    let config = weights.config();
    let kernel = Kernel::Portable;
    let mut hidden = weights.input_bias.clone();
    kernel.add_rows(&weights.input, sample.features(), &mut hidden);
    for unit in &mut hidden {
        *unit = unit.clamp(0.0, 1.0).powi(2);
    }
    let numbers: Vec<u16> = (0..config.value_hidden as u16).collect();
    let mut middle = vec![0.0; config.value_hidden];
    kernel.dots(&weights.value1, &hidden, &numbers, &mut middle);
    for (unit, bias) in middle.iter_mut().zip(&weights.value1_bias) {
        *unit = (*unit + bias).clamp(0.0, VALUE_MOST);
    }
    let mut value = [0.0; 3];
    let rows = weights.value2.chunks_exact(config.value_hidden);
    for ((row, bias), logit) in rows.zip(&weights.value2_bias).zip(&mut value) {
        *logit = bias + row.iter().zip(&middle).map(|(w, unit)| w * unit).sum::<f32>();
    }
    let mut logits = vec![0.0; sample.moves()];
    kernel.dots(&weights.policy, &hidden, sample.rows(), &mut logits);
    for ((logit, row), table) in logits.iter_mut().zip(sample.rows()).zip(sample.table()) {
        *logit += weights.policy_bias[usize::from(*row)] + weights.table[usize::from(*table)];
    }
    FloatOutput { wdl: wdl_of_logits(config.value_head, value), logits }
}

/// The network in floats as an evaluator, to compare the integers with. Slow.
#[derive(Clone, Debug)]
pub struct FloatNetwork {
    weights: Arc<Weights>,
}

impl FloatNetwork {
    pub fn new(weights: Weights) -> FloatNetwork {
        FloatNetwork { weights: weights.into() }
    }
}

impl Evaluator for FloatNetwork {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        for (leaf, evaluation) in leaves.iter().zip(evaluations) {
            let nothing = vec![0.0; leaf.legal.len()];
            let sample = Sample::new(&leaf.game, &leaf.legal, &nothing, Wdl::EVEN);
            let output =
                evaluate(&self.weights, &sample.expect("one probability for each legal move"));
            evaluation.wdl = output.wdl;
            evaluation.logits = output.logits;
        }
    }
}
