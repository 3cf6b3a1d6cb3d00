//! A plain f64 implementation of the network: the reference for tests.

use std::collections::HashMap;

use selfmate_chess::Seed;

use super::batch::Batch;
use super::config::{Config, MOVES, ValueHead};
use super::weights::Weights;

/// Weights in f64, by name.
#[derive(Clone)]
pub struct Reference {
    config: Config,
    pub tensors: HashMap<String, Vec<f64>>,
}

/// Which statistics batch norm uses.
#[derive(Clone, Copy, PartialEq)]
pub enum Statistics {
    Running,
    Batch,
}

/// Policy logits and raw values of a batch.
pub struct ReferenceOutput {
    pub policy: Vec<Vec<f64>>,
    pub value: Vec<Vec<f64>>,
}

/// Channels × 64 for each position.
type Boards = Vec<Vec<f64>>;

/// Random weights whose batch norms are not the identity.
pub fn varied(config: Config, seed: u64) -> Weights {
    let mut weights = Weights::random(config, Seed::new(seed)).unwrap();
    let mut rng = Seed::new(seed).derive("varied").rng();
    let names: Vec<String> = weights.tensors().map(|tensor| tensor.name.to_owned()).collect();
    for name in names {
        let values = weights.tensor_mut(&name).unwrap();
        for value in values {
            *value += match &*name {
                name if name.ends_with("running_var") => 0.8 * rng.unit() as f32,
                name if name.ends_with("norm.weight") => 0.4 * rng.unit() as f32 - 0.2,
                name if name.ends_with("running_mean") || name.ends_with("bias") => {
                    0.2 * rng.normal() as f32
                }
                "value.output.weight" | "policy.linear.weight" => 0.1 * rng.normal() as f32,
                _ => 0.0,
            };
        }
    }
    weights
}

impl Reference {
    pub fn new(weights: &Weights) -> Reference {
        let wide = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect();
        let tensors = weights.tensors().map(|t| (t.name.to_owned(), wide(t.values)));
        Reference { config: weights.config(), tensors: tensors.collect() }
    }

    fn get(&self, name: &str) -> &[f64] {
        &self.tensors[name]
    }

    pub fn evaluate(&self, planes: &[f32], statistics: Statistics) -> ReferenceOutput {
        let config = self.config;
        let wide = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect();
        let input: Boards = planes.chunks_exact(config.planes * 64).map(wide).collect();
        let mut boards = self.unit(&input, "stem", 3, statistics);
        relu(&mut boards);
        for block in 0..config.blocks {
            let name = format!("blocks.{block}");
            let mut inner = self.unit(&boards, &format!("{name}.first"), 3, statistics);
            relu(&mut inner);
            let mut outer = self.unit(&inner, &format!("{name}.second"), 3, statistics);
            if config.squeeze > 0 {
                self.excite(&mut outer, &format!("{name}.squeeze"));
            }
            for (board, outer) in boards.iter_mut().zip(outer) {
                for (value, outer) in board.iter_mut().zip(outer) {
                    *value += outer;
                }
            }
            relu(&mut boards);
        }
        let mut policy = self.unit(&boards, "policy", 1, statistics);
        relu(&mut policy);
        let mut value = self.unit(&boards, "value", 1, statistics);
        relu(&mut value);
        let policy = policy.iter().map(|input| self.linear(input, "policy.linear")).collect();
        let value = value.iter().map(|input| {
            let hidden = self.linear(input, "value.hidden");
            let hidden: Vec<f64> = hidden.into_iter().map(|unit| unit.max(0.0)).collect();
            self.linear(&hidden, "value.output")
        });
        ReferenceOutput { policy, value: value.collect() }
    }

    /// The training loss, with weight 1 for both parts.
    pub fn loss(&self, batch: &Batch) -> [f64; 2] {
        let expected = self.evaluate(batch.planes(), Statistics::Batch);
        let mut losses = [0.0; 2];
        for position in 0..batch.len() {
            let moves = batch.moves(position);
            let logits: Vec<f64> =
                moves.iter().map(|(m, _)| expected.policy[position][usize::from(*m)]).collect();
            let shares: Vec<f64> = moves.iter().map(|(_, share)| f64::from(*share)).collect();
            losses[0] += cross_entropy(&logits, &shares);
            let target = batch.value(position);
            let raw = &expected.value[position];
            losses[1] += match self.config.value {
                ValueHead::Scalar => (raw[0].tanh() - f64::from(target.value())).powi(2),
                ValueHead::Wdl => {
                    cross_entropy(raw, &[target.win, target.draw, target.loss].map(f64::from))
                }
            };
        }
        losses.map(|loss| loss / batch.len() as f64)
    }

    /// A convolution and its batch norm.
    fn unit(&self, boards: &Boards, name: &str, side: usize, statistics: Statistics) -> Boards {
        let weights = self.get(&format!("{name}.conv.weight"));
        let norm = |part: &str| self.get(&format!("{name}.norm.{part}"));
        let (scale, shift) = (norm("weight"), norm("bias"));
        let outputs = scale.len();
        let mut out: Boards =
            boards.iter().map(|board| convolve(board, weights, outputs, side)).collect();
        for channel in 0..outputs {
            let range = channel * 64..(channel + 1) * 64;
            let (mean, variance) = match statistics {
                Statistics::Running => {
                    (norm("running_mean")[channel], norm("running_var")[channel])
                }
                Statistics::Batch => {
                    let all = || out.iter().flat_map(|board| &board[range.clone()]);
                    let count = (out.len() * 64) as f64;
                    let mean = all().sum::<f64>() / count;
                    (mean, all().map(|value| (value - mean).powi(2)).sum::<f64>() / count)
                }
            };
            for board in &mut out {
                for value in &mut board[range.clone()] {
                    *value = (*value - mean) / (variance + 1e-5).sqrt() * scale[channel]
                        + shift[channel];
                }
            }
        }
        out
    }

    fn excite(&self, boards: &mut Boards, name: &str) {
        for board in boards {
            let means: Vec<f64> =
                board.chunks_exact(64).map(|plane| plane.iter().sum::<f64>() / 64.0).collect();
            let units = self.linear(&means, &format!("{name}.reduce"));
            let units: Vec<f64> = units.into_iter().map(|unit| unit.max(0.0)).collect();
            let gates = self.linear(&units, &format!("{name}.expand"));
            for (plane, gate) in board.chunks_exact_mut(64).zip(gates) {
                plane.iter_mut().for_each(|value| *value /= 1.0 + (-gate).exp());
            }
        }
    }

    fn linear(&self, input: &[f64], name: &str) -> Vec<f64> {
        let weights = self.get(&format!("{name}.weight"));
        let rows = weights.chunks_exact(input.len()).zip(self.get(&format!("{name}.bias")));
        rows.map(|(row, bias)| row.iter().zip(input).map(|(a, b)| a * b).sum::<f64>() + bias)
            .collect()
    }
}

/// A plain convolution of one board; squares off the board are 0.
pub fn convolve(board: &[f64], weights: &[f64], outputs: usize, side: usize) -> Vec<f64> {
    let inputs = board.len() / 64;
    let reach = side as i32 / 2;
    let mut out = vec![0.0; outputs * 64];
    for output in 0..outputs {
        for input in 0..inputs {
            let filter = &weights[(output * inputs + input) * side * side..][..side * side];
            for (tap, weight) in filter.iter().enumerate() {
                let up = (tap / side) as i32 - reach;
                let right = (tap % side) as i32 - reach;
                for rank in (-up).max(0)..8.min(8 - up) {
                    for file in (-right).max(0)..8.min(8 - right) {
                        out[output * 64 + (rank * 8 + file) as usize] +=
                            weight * board[input * 64 + ((rank + up) * 8 + file + right) as usize];
                    }
                }
            }
        }
    }
    out
}

fn relu(boards: &mut Boards) {
    boards.iter_mut().flatten().for_each(|value| *value = value.max(0.0));
}

fn cross_entropy(logits: &[f64], shares: &[f64]) -> f64 {
    let highest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logits.iter().map(|logit| (logit - highest).exp()).sum();
    logits.iter().zip(shares).map(|(l, share)| share * (total.ln() + highest - l)).sum()
}

/// The largest difference between policy logits, and between values.
pub fn distance(expected: &ReferenceOutput, policy: &[f32], value: &[f32]) -> (f64, f64) {
    let far = |a: &[Vec<f64>], b: &[f32]| {
        let pairs = a.iter().flatten().zip(b);
        pairs.map(|(a, b)| (a - f64::from(*b)).abs()).fold(0.0, f64::max)
    };
    assert_eq!(policy.len(), expected.policy.len() * MOVES);
    (far(&expected.policy, policy), far(&expected.value, value))
}
