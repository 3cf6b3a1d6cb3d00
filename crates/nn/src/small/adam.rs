//! Adam (Kingma and Ba 2015) with clipped gradients.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::parameters::Parameters;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// Decay rate of the first moment.
    pub beta1: f32,
    /// Decay rate of the second moment.
    pub beta2: f32,
    /// Avoids division by zero.
    pub epsilon: f32,
    /// The maximum length of the gradient.
    pub clip_norm: f32,
    /// Decoupled weight decay (Loshchilov and Hutter 2019): each step multiplies the weights by
    /// 1 - learning rate × this.
    pub weight_decay: f32,
}

impl Default for AdamConfig {
    fn default() -> AdamConfig {
        AdamConfig { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, clip_norm: 1.0, weight_decay: 0.0 }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    /// Moving average of the gradient.
    pub first: Parameters,
    /// Moving average of its square.
    pub second: Parameters,
}

/// Numbers that are summed together: fixed, so that sums do not depend on threads.
const CHUNK: usize = 1 << 14;

impl Adam {
    /// Zero moments, for the first step.
    pub fn new(weights: &Parameters) -> Adam {
        let zeros = Parameters::zeros(weights.layout());
        Adam { first: zeros.clone(), second: zeros }
    }

    /// Updates the weights with the gradient of step number `step`, starting at 1. Returns the
    /// length of the gradient before clipping.
    pub fn step(
        &mut self,
        weights: &mut Parameters,
        gradient: &Parameters,
        config: &AdamConfig,
        rate: f32,
        step: u64,
    ) -> f32 {
        let norm = norm(gradient);
        let scale = if norm > config.clip_norm { config.clip_norm / norm } else { 1.0 };
        let step = i32::try_from(step).unwrap_or(i32::MAX);
        let one = 1.0 - config.beta1.powi(step);
        let two = 1.0 - config.beta2.powi(step);
        let kept = 1.0 - rate * config.weight_decay;
        let moments = self.first.values.par_chunks_mut(CHUNK);
        let moments = moments.zip(self.second.values.par_chunks_mut(CHUNK));
        let values = weights.values.par_chunks_mut(CHUNK);
        let all = values.zip(gradient.values.par_chunks(CHUNK)).zip(moments);
        all.for_each(|((weights, gradient), (first, second))| {
            let moments = first.iter_mut().zip(second);
            for ((weight, slope), (first, second)) in weights.iter_mut().zip(gradient).zip(moments)
            {
                let slope = slope * scale;
                *first = config.beta1 * *first + (1.0 - config.beta1) * slope;
                *second = config.beta2 * *second + (1.0 - config.beta2) * slope * slope;
                let spread = (*second / two).sqrt() + config.epsilon;
                *weight = *weight * kept - rate * (*first / one) / spread;
            }
        });
        norm
    }
}

fn norm(gradient: &Parameters) -> f32 {
    let square = |values: &[f32]| values.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>();
    let sums: Vec<f64> = gradient.values.par_chunks(CHUNK).map(square).collect();
    sums.iter().sum::<f64>().sqrt() as f32
}

#[cfg(test)]
mod tests {
    use super::super::Layout;
    use super::*;

    #[test]
    fn weights_without_a_gradient_decay() {
        let mut weights = Parameters::zeros(&Layout::new(&[("a", &[2])]));
        weights.values.copy_from_slice(&[1.0, -2.0]);
        let gradient = Parameters::zeros(weights.layout());
        let config = AdamConfig { weight_decay: 0.5, ..AdamConfig::default() };
        Adam::new(&weights).step(&mut weights, &gradient, &config, 0.1, 1);
        assert_eq!(weights.values, [0.95, -1.9]);
    }

    #[test]
    fn the_first_step_has_the_learning_rate_and_long_gradients_are_clipped() {
        let mut weights = Parameters::zeros(&Layout::new(&[("a", &[2])]));
        let mut gradient = weights.clone();
        gradient.values.copy_from_slice(&[30.0, -40.0]);
        let mut adam = Adam::new(&weights);
        let norm = adam.step(&mut weights, &gradient, &AdamConfig::default(), 0.1, 1);
        assert_eq!(norm, 50.0);
        assert!((weights.values[0] + 0.1).abs() < 1e-4 && (weights.values[1] - 0.1).abs() < 1e-4);
        assert!((adam.first.values[0] - 0.06).abs() < 1e-6);
    }

    #[test]
    fn it_finds_the_minimum_of_a_quadratic() {
        let mut weights = Parameters::zeros(&Layout::new(&[("a", &[3])]));
        let mut adam = Adam::new(&weights);
        let bottom = [1.0, -2.0, 3.0];
        for step in 1..=2000 {
            let mut gradient = weights.clone();
            for (slope, bottom) in gradient.values.iter_mut().zip(bottom) {
                *slope = 2.0 * (*slope - bottom);
            }
            adam.step(&mut weights, &gradient, &AdamConfig::default(), 0.01, step);
        }
        let near = weights.values.iter().zip(bottom).all(|(a, b)| (a - b).abs() < 0.01);
        assert!(near, "{:?}", weights.values);
    }
}
