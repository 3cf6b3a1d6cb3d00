//! The f32 master weights, their initialisation and their bounds.
//!
//! The same struct also holds gradients and moments, which have the same shape.

use selfmate_chess::{Rng, Seed};
use selfmate_encode::sparse::{MOVE_ROWS, MOVE_TABLE, THREATS3084_LEN};

use super::config::{ConfigError, SparseConfig};

/// Bound of the input weights: 38 rows (32 pieces, 4 castling rights, en passant, bias) at this
/// bound and [`super::network`]'s scale of 1024 fit in 16 bits.
pub const INPUT_BOUND: f32 = 0.84;
/// Bound of the weights after the wide layer: sums over 1024 units at this bound fit in 32 bits.
pub const HEAD_BOUND: f32 = 1.9;
/// Bound of biases and of the move table.
pub const BIAS_BOUND: f32 = 32.0;

/// All weights of a sparse network; every matrix is row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    pub(super) config: SparseConfig,
    /// One row of `hidden` for each feature.
    pub(super) input: Vec<f32>,
    pub(super) input_bias: Vec<f32>,
    /// One row of `hidden` for each unit of the value head.
    pub(super) value1: Vec<f32>,
    pub(super) value1_bias: Vec<f32>,
    /// One row of `value_hidden` for each output.
    pub(super) value2: Vec<f32>,
    pub(super) value2_bias: Vec<f32>,
    /// One row of `hidden` for each kind of move.
    pub(super) policy: Vec<f32>,
    pub(super) policy_bias: Vec<f32>,
    pub(super) table: Vec<f32>,
}

/// A tensor with its name, shape and bound.
pub(crate) struct Tensor<T> {
    pub name: &'static str,
    pub shape: Vec<usize>,
    pub bound: f32,
    pub values: T,
}

impl Weights {
    /// Random weights: small, so that a new network has an almost uniform policy and values near
    /// zero.
    pub fn random(config: SparseConfig, seed: Seed) -> Result<Weights, ConfigError> {
        let mut weights = Weights::zeros(config)?;
        let seed = seed.derive("weights");
        // About 30 rows are added; this puts the sums into the range where the activation is not
        // linear.
        fill(&mut weights.input, &mut seed.derive("input").rng(), 0.08);
        weights.input_bias.fill(0.25);
        let spread = 1.0 / (config.hidden as f32).sqrt();
        fill(&mut weights.value1, &mut seed.derive("value1").rng(), spread);
        let small = 0.1 / (config.value_hidden as f32).sqrt();
        fill(&mut weights.value2, &mut seed.derive("value2").rng(), small);
        fill(&mut weights.policy, &mut seed.derive("policy").rng(), 0.1 * spread);
        Ok(weights)
    }

    pub fn zeros(config: SparseConfig) -> Result<Weights, ConfigError> {
        config.check()?;
        let (hidden, middle) = (config.hidden, config.value_hidden);
        let outputs = config.value_head.outputs();
        Ok(Weights {
            config,
            input: vec![0.0; THREATS3084_LEN * hidden],
            input_bias: vec![0.0; hidden],
            value1: vec![0.0; middle * hidden],
            value1_bias: vec![0.0; middle],
            value2: vec![0.0; outputs * middle],
            value2_bias: vec![0.0; outputs],
            policy: vec![0.0; MOVE_ROWS * hidden],
            policy_bias: vec![0.0; MOVE_ROWS],
            table: vec![0.0; MOVE_TABLE],
        })
    }

    pub fn config(&self) -> SparseConfig {
        self.config
    }

    /// Every tensor with its name in a file, its shape and its values row by row.
    pub fn named(&self) -> Vec<(&'static str, Vec<usize>, &[f32])> {
        self.tensors()
            .into_iter()
            .map(|tensor| (tensor.name, tensor.shape, tensor.values))
            .collect()
    }

    /// Clips every weight to the bounds of the integer network.
    pub fn clip(&mut self) {
        for tensor in self.tensors_mut() {
            for value in tensor.values {
                *value = value.clamp(-tensor.bound, tensor.bound);
            }
        }
    }

    /// Every tensor, in a fixed order.
    pub(crate) fn tensors(&self) -> [Tensor<&[f32]>; 9] {
        let (hidden, middle) = (self.config.hidden, self.config.value_hidden);
        let outputs = self.config.value_head.outputs();
        let tensor = |name, shape: &[usize], bound, values| Tensor {
            name,
            shape: shape.to_vec(),
            bound,
            values,
        };
        [
            tensor("input.weight", &[THREATS3084_LEN, hidden], INPUT_BOUND, &self.input[..]),
            tensor("input.bias", &[hidden], INPUT_BOUND, &self.input_bias),
            tensor("value1.weight", &[middle, hidden], HEAD_BOUND, &self.value1),
            tensor("value1.bias", &[middle], BIAS_BOUND, &self.value1_bias),
            tensor("value2.weight", &[outputs, middle], HEAD_BOUND, &self.value2),
            tensor("value2.bias", &[outputs], BIAS_BOUND, &self.value2_bias),
            tensor("policy.weight", &[MOVE_ROWS, hidden], HEAD_BOUND, &self.policy),
            tensor("policy.bias", &[MOVE_ROWS], BIAS_BOUND, &self.policy_bias),
            tensor("policy.table", &[MOVE_TABLE], BIAS_BOUND, &self.table),
        ]
    }

    /// Every tensor, mutable, in the same order.
    pub(super) fn tensors_mut(&mut self) -> [Tensor<&mut [f32]>; 9] {
        let kinds = self.tensors().map(|t| (t.name, t.shape, t.bound));
        let values: [&mut Vec<f32>; 9] = [
            &mut self.input,
            &mut self.input_bias,
            &mut self.value1,
            &mut self.value1_bias,
            &mut self.value2,
            &mut self.value2_bias,
            &mut self.policy,
            &mut self.policy_bias,
            &mut self.table,
        ];
        let mut values = values.into_iter();
        kinds.map(|(name, shape, bound)| {
            let values = values.next().expect("nine names, nine tensors");
            Tensor { name, shape, bound, values: &mut values[..] }
        })
    }
}

/// Normal samples with this deviation, truncated at three deviations.
fn fill(values: &mut [f32], rng: &mut Rng, deviation: f32) {
    for value in values {
        *value = (rng.normal() as f32).clamp(-3.0, 3.0) * deviation;
    }
}
