//! Optimisers: stochastic gradient descent with momentum, or Adam.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::weights::{Layout, Weights};
use crate::adam::{AdamConstants, AdamStep, squares};

/// Weights that one thread updates at a time.
const PIECE: usize = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Optimiser {
    /// Momentum; weight decay is part of the gradient.
    Sgd {
        /// The share of the last velocity that is kept.
        momentum: f32,
    },
    /// Adam with decoupled weight decay (Loshchilov and Hutter 2019).
    Adam {
        /// Decay rate of the first moment.
        beta1: f32,
        /// Decay rate of the second moment.
        beta2: f32,
        /// Avoids division by zero.
        epsilon: f32,
    },
}

impl Optimiser {
    /// The paper's: momentum 0.9.
    pub const fn sgd() -> Optimiser {
        Optimiser::Sgd { momentum: 0.9 }
    }

    /// The usual constants.
    pub const fn adam() -> Optimiser {
        Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }
}

/// The parameters of one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub optimiser: Optimiser,
    /// The number of steps before this one.
    pub steps: u64,
    pub learning_rate: f32,
    pub weight_decay: f32,
    /// The factor from gradient clipping.
    pub scale: f32,
}

impl Step {
    /// Updates the trained weights. `second` is used only by Adam and may be empty otherwise.
    pub fn apply(
        self,
        weights: &mut Weights,
        gradient: &[f32],
        first: &mut [f32],
        second: &mut [f32],
    ) {
        let (rate, decay, scale) = (self.learning_rate, self.weight_decay, self.scale);
        let layout = weights.layout().clone();
        for range in trained(&layout) {
            let weights = &mut weights.values[range.clone()];
            let (gradient, first) = (&gradient[range.clone()], &mut first[range.clone()]);
            match self.optimiser {
                Optimiser::Sgd { momentum } => {
                    let pieces = weights.par_chunks_mut(PIECE).zip(first.par_chunks_mut(PIECE));
                    pieces.zip(gradient.par_chunks(PIECE)).for_each(
                        |((weights, first), gradient)| {
                            let all = weights.iter_mut().zip(first).zip(gradient);
                            for ((weight, velocity), gradient) in all {
                                let gradient = gradient * scale + decay * *weight;
                                *velocity = momentum * *velocity + gradient;
                                *weight -= rate * *velocity;
                            }
                        },
                    );
                }
                Optimiser::Adam { beta1, beta2, epsilon } => {
                    let constants = AdamConstants { beta1, beta2, epsilon };
                    let step = AdamStep::new(constants, self.steps, rate, decay, scale);
                    let second = &mut second[range];
                    let pieces = weights.par_chunks_mut(PIECE).zip(first.par_chunks_mut(PIECE));
                    let pieces = pieces.zip(second.par_chunks_mut(PIECE));
                    pieces.zip(gradient.par_chunks(PIECE)).for_each(
                        |(((weights, first), second), gradient)| {
                            let all = weights.iter_mut().zip(first).zip(second).zip(gradient);
                            for (((weight, first), second), gradient) in all {
                                *weight = step.update(*weight, first, second, *gradient);
                            }
                        },
                    );
                }
            }
        }
    }
}

/// The length of the trained part of a vector, summed in a fixed order.
pub(super) fn norm(layout: &Layout, values: &[f32]) -> f32 {
    let tensors = trained(layout).map(|range| {
        let pieces = values[range].par_chunks(PIECE).map(squares);
        pieces.collect::<Vec<f64>>().iter().sum::<f64>()
    });
    tensors.sum::<f64>().sqrt() as f32
}

fn trained(layout: &Layout) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    layout.entries.iter().filter(|entry| entry.trained).map(|entry| entry.range.clone())
}
