//! Adam with decoupled weight decay, bounds for quantisation and a moving average.
//!
//! Rows of the input and policy layers that the batch does not use are not updated, and neither are
//! their moments ("lazy" Adam): a rare row keeps its momentum until it is used again. Decay and
//! bias correction use the step count of the whole network. Biases are updated with every batch.

use rayon::prelude::*;

use super::config::ConfigError;
use super::gradient::Gradient;
use super::trainer::TrainerConfig;
use super::weights::{HEAD_BOUND, INPUT_BOUND, Weights};
use crate::adam::{AdamConstants, AdamStep, squares};

/// Moments of the gradients, and the moving average of the weights.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Adam {
    pub first: Weights,
    pub second: Weights,
    pub average: Weights,
}

impl Adam {
    pub fn new(weights: &Weights) -> Result<Adam, ConfigError> {
        let zeros = Weights::zeros(weights.config())?;
        Ok(Adam { first: zeros.clone(), second: zeros, average: weights.clone() })
    }

    /// Updates the weights with the gradient times `scale`, and clears the gradient.
    pub fn update(
        &mut self,
        weights: &mut Weights,
        gradient: &mut Gradient,
        scale: f32,
        step: u64,
        learning_rate: f32,
        config: &TrainerConfig,
    ) {
        let TrainerConfig { beta1, beta2, epsilon, weight_decay, .. } = *config;
        let constants = AdamConstants { beta1, beta2, epsilon };
        let step = AdamStep::new(constants, step, learning_rate, weight_decay, scale);
        self.rows(weights, gradient, step);
        self.small(weights, gradient, step);
        gradient.touched_input.fill(false);
        gradient.touched_policy.fill(false);
    }

    fn rows(&mut self, weights: &mut Weights, gradient: &mut Gradient, step: AdamStep) {
        let width = weights.config.hidden;
        let update = |weights: &mut [f32],
                      first: &mut [f32],
                      second: &mut [f32],
                      sums: &mut [f32],
                      touched: &[bool],
                      bound: f32| {
            let moments = first.par_chunks_mut(width).zip(second.par_chunks_mut(width));
            let rows = weights.par_chunks_mut(width).zip(moments);
            let rows = rows.zip(sums.par_chunks_mut(width)).zip(touched).with_min_len(64);
            rows.for_each(|(((weights, (first, second)), sums), touched)| {
                if *touched {
                    apply(step, weights, first, second, sums, bound);
                }
            });
        };
        let (first, second, sums) = (&mut self.first, &mut self.second, &mut gradient.sums);
        update(
            &mut weights.input,
            &mut first.input,
            &mut second.input,
            &mut sums.input,
            &gradient.touched_input,
            INPUT_BOUND,
        );
        update(
            &mut weights.policy,
            &mut first.policy,
            &mut second.policy,
            &mut sums.policy,
            &gradient.touched_policy,
            HEAD_BOUND,
        );
    }

    /// All tensors except the two large ones.
    fn small(&mut self, weights: &mut Weights, gradient: &mut Gradient, step: AdamStep) {
        let moments = self.first.tensors_mut().into_iter().zip(self.second.tensors_mut());
        let tensors = weights.tensors_mut().into_iter().zip(gradient.sums.tensors_mut());
        for ((weights, sums), (first, second)) in tensors.zip(moments) {
            if !matches!(weights.name, "input.weight" | "policy.weight") {
                let bound = weights.bound;
                apply(step, weights.values, first.values, second.values, sums.values, bound);
            }
        }
    }

    /// Moves the average towards the weights.
    pub fn average_in(&mut self, weights: &Weights, rate: f32) {
        let pairs = self.average.tensors_mut().into_iter().zip(weights.tensors());
        for (average, weights) in pairs {
            let chunks = average.values.par_chunks_mut(1 << 14);
            chunks.zip(weights.values.par_chunks(1 << 14)).for_each(|(average, weights)| {
                for (average, weight) in average.iter_mut().zip(weights) {
                    *average += rate * (weight - *average);
                }
            });
        }
    }
}

fn apply(
    step: AdamStep,
    weights: &mut [f32],
    first: &mut [f32],
    second: &mut [f32],
    sums: &mut [f32],
    bound: f32,
) {
    let moments = first.iter_mut().zip(second);
    for ((weight, sum), (first, second)) in weights.iter_mut().zip(sums).zip(moments) {
        *weight = step.update(*weight, first, second, *sum).clamp(-bound, bound);
        *sum = 0.0;
    }
}

/// The length of the gradient, summed row by row in a fixed order.
pub(super) fn norm(gradient: &Gradient) -> f32 {
    let width = gradient.sums.config.hidden;
    let mut total = 0.0;
    for tensor in gradient.sums.tensors() {
        let touched = match tensor.name {
            "input.weight" => Some(&gradient.touched_input),
            "policy.weight" => Some(&gradient.touched_policy),
            _ => None,
        };
        total += match touched {
            None => squares(tensor.values),
            Some(touched) => {
                let rows = tensor.values.par_chunks(width).zip(touched).with_min_len(128);
                let rows = rows.map(|(row, touched)| if *touched { squares(row) } else { 0.0 });
                rows.collect::<Vec<f64>>().iter().sum::<f64>()
            }
        };
    }
    total.sqrt() as f32
}
