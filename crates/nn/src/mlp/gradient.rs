//! The policy gradient with a baseline (Williams 1992) for a batch of played moves.
//!
//! The loss of a sample is `-A Σ t ln π - β H(π) + c (v - R)²`. The target t is 1 for the played
//! move, which the advantage A makes more or less likely, or it is a full policy, with A = 1. The
//! entropy H keeps the policy from converging too early, and the value v is trained on the return
//! R. The mean over a batch is minimised.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::network::{
    Forward, INPUT, INPUT_BIAS, MIDDLE, MIDDLE_BIAS, Network, POLICY, POLICY_BIAS, VALUE,
    VALUE_BIAS,
};
use crate::small::Parameters;

/// The policy target.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The played move, as an index into the legal moves.
    Played(u16),
    /// A probability for each legal move, summing to one: cross entropy.
    Policy(Box<[f32]>),
}

impl Target {
    /// The target probability of a legal move.
    fn share(&self, index: usize) -> f64 {
        match self {
            Target::Played(played) => f64::from(u8::from(usize::from(*played) == index)),
            Target::Policy(shares) => f64::from(shares[index]),
        }
    }
}

/// A training sample: a position, its policy target and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The active features.
    pub features: Box<[u16]>,
    /// The numbers of the legal moves.
    pub moves: Box<[u16]>,
    pub target: Target,
    /// How much better the result was than expected; 1 for a policy target.
    pub advantage: f32,
    /// The discounted result for the side to move.
    pub result: f32,
}

/// The weights of the parts of the loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossWeights {
    /// Of the squared error of the value.
    pub value: f32,
    /// Of the entropy of the policy.
    pub entropy: f32,
}

/// Means over a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// `-A Σ t ln π`.
    pub policy: f64,
    /// `(v - R)²`.
    pub value: f64,
    /// The entropy of the policy, in nats.
    pub entropy: f64,
}

impl Losses {
    /// The mean of `count` positions, given their sum.
    pub(crate) fn mean(self, count: usize) -> Losses {
        let count = (count as f64).max(1.0);
        Losses {
            policy: self.policy / count,
            value: self.value / count,
            entropy: self.entropy / count,
        }
    }

    pub(crate) fn plus(self, other: Losses) -> Losses {
        Losses {
            policy: self.policy + other.policy,
            value: self.value + other.value,
            entropy: self.entropy + other.entropy,
        }
    }

    /// The weighted sum that is minimised.
    pub fn total(&self, weights: &LossWeights) -> f64 {
        self.policy + f64::from(weights.value) * self.value
            - f64::from(weights.entropy) * self.entropy
    }
}

/// Probabilities of the legal moves and their entropy.
fn policy(logits: &[f32]) -> (Vec<f64>, f64) {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exponents: Vec<f64> =
        logits.iter().map(|logit| libm::exp(f64::from(logit - most))).collect();
    let sum: f64 = exponents.iter().sum();
    let shares: Vec<f64> = exponents.iter().map(|exponent| exponent / sum).collect();
    let entropy = shares.iter().filter(|p| **p > 0.0).map(|p| -p * libm::log(*p)).sum();
    (shares, entropy)
}

/// What a position should have led to.
#[derive(Clone, Copy)]
pub(crate) struct Goal<'a> {
    pub target: &'a Target,
    pub advantage: f32,
    pub result: f32,
}

impl Sample {
    fn goal(&self) -> Goal<'_> {
        Goal { target: &self.target, advantage: self.advantage, result: self.result }
    }
}

impl Goal<'_> {
    /// The losses of a network's outputs.
    pub fn losses(&self, logits: &[f32], value: f32) -> Losses {
        let (shares, entropy) = policy(logits);
        self.losses_of(&shares, entropy, value)
    }

    fn losses_of(&self, shares: &[f64], entropy: f64, value: f32) -> Losses {
        let cross_entropy = |(index, chance): (usize, &f64)| match self.target.share(index) {
            0.0 => 0.0,
            share => -share * libm::log(chance.max(f64::MIN_POSITIVE)),
        };
        let cross_entropy: f64 = shares.iter().enumerate().map(cross_entropy).sum();
        Losses {
            policy: f64::from(self.advantage) * cross_entropy,
            value: f64::from(value - self.result).powi(2),
            entropy,
        }
    }

    /// The losses of a network's outputs, and the derivatives of the mean loss of `count` positions
    /// by the logits and by the value before its tanh.
    pub fn derivatives(
        &self,
        logits: &[f32],
        value: f32,
        weights: &LossWeights,
        count: usize,
    ) -> (Losses, Vec<f32>, f32) {
        let (shares, entropy) = policy(logits);
        let losses = self.losses_of(&shares, entropy, value);
        let part = 1.0 / count as f64;
        let (advantage, bonus) = (f64::from(self.advantage), f64::from(weights.entropy));
        let logits: Vec<f32> = shares
            .iter()
            .enumerate()
            .map(|(index, &share)| {
                let target = self.target.share(index);
                let log = libm::log(share.max(f64::MIN_POSITIVE));
                // d(-A Σ t ln π)/dz = A (π - t);  d(-β H)/dz = β π (ln π + H)
                (part * (advantage * (share - target) + bonus * share * (log + entropy))) as f32
            })
            .collect();
        let error = f64::from(value - self.result);
        let slope = 1.0 - f64::from(value).powi(2);
        let value = (part * f64::from(weights.value) * 2.0 * error * slope) as f32;
        (losses, logits, value)
    }
}

/// The mean losses of a batch, without the gradient.
pub fn loss(network: &Network, samples: &[Sample]) -> Losses {
    let mut forward = Forward::default();
    let mut sum = Losses::default();
    for sample in samples {
        network.forward(&sample.features, &sample.moves, &mut forward);
        sum = sum.plus(sample.goal().losses(&forward.logits, forward.value));
    }
    sum.mean(samples.len())
}

/// The derivatives of one sample's loss by the outputs of each layer.
struct Derivatives {
    forward: Forward,
    logits: Vec<f32>,
    value: f32,
    second: Vec<f32>,
    first: Vec<f32>,
    losses: Losses,
}

/// The mean losses of a batch and their gradient.
pub fn gradient(
    network: &Network,
    samples: &[Sample],
    weights: &LossWeights,
) -> (Losses, Parameters) {
    let derivatives: Vec<Derivatives> = samples
        .par_iter()
        .map(|sample| derivatives(network, sample, weights, samples.len()))
        .collect();
    let losses = derivatives
        .iter()
        .map(|derivatives| derivatives.losses)
        .fold(Losses::default(), Losses::plus);
    let mut gradient = Parameters::zeros(network.weights.layout());
    let (first, second) = (network.config().first, network.config().second);
    let mut parts = gradient.parts_mut();
    // In reverse order, so that each can be removed from the list.
    let value_bias = parts.remove(VALUE_BIAS);
    let value = parts.remove(VALUE);
    let policy_bias = parts.remove(POLICY_BIAS);
    let policy = parts.remove(POLICY);
    let middle_bias = parts.remove(MIDDLE_BIAS);
    let middle = parts.remove(MIDDLE);
    let input_bias = parts.remove(INPUT_BIAS);
    let input = parts.remove(INPUT);

    for derivatives in &derivatives {
        value_bias[0] += derivatives.value;
        add(value, derivatives.value, &derivatives.forward.second);
        add(middle_bias, 1.0, &derivatives.second);
        add(input_bias, 1.0, &derivatives.first);
    }
    let touched: Vec<Touched<'_>> = samples
        .iter()
        .zip(&derivatives)
        .map(|(sample, derivatives)| Touched {
            moves: &sample.moves,
            slopes: &derivatives.logits,
            inputs: &derivatives.forward.second,
        })
        .collect();
    add_policy_gradient(&touched, policy, policy_bias, second);
    // The samples that use each row of the input matrix, in the order of the batch.
    let mut by_feature: Vec<(u16, u32)> = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        by_feature.extend(sample.features.iter().map(|&feature| (feature, index as u32)));
    }
    by_feature.sort_by_key(|&(feature, _)| feature);
    middle.par_chunks_mut(first).enumerate().for_each(|(row, weights)| {
        for derivatives in derivatives.iter().filter(|derivatives| derivatives.second[row] != 0.0) {
            add(weights, derivatives.second[row], &derivatives.forward.first);
        }
    });
    input.par_chunks_mut(first).enumerate().for_each(|(row, weights)| {
        let begin = by_feature.partition_point(|&(feature, _)| usize::from(feature) < row);
        let touched = by_feature[begin..].iter().take_while(|entry| usize::from(entry.0) == row);
        for &(_, index) in touched {
            add(weights, 1.0, &derivatives[index as usize].first);
        }
    });
    (losses.mean(samples.len()), gradient)
}

/// The rows of the policy matrix that a position uses, with the derivatives by their logits.
pub(crate) struct Touched<'a> {
    pub moves: &'a [u16],
    pub slopes: &'a [f32],
    /// The activations that the rows are multiplied with.
    pub inputs: &'a [f32],
}

/// Adds the gradient of a policy matrix with one row for each move. Each row is summed by one thread
/// in the order of the batch.
pub(crate) fn add_policy_gradient(
    batch: &[Touched<'_>],
    rows: &mut [f32],
    biases: &mut [f32],
    width: usize,
) {
    let mut by_move: Vec<(u16, u32, f32)> = Vec::new();
    for (index, touched) in batch.iter().enumerate() {
        let slopes = touched.moves.iter().zip(touched.slopes);
        by_move.extend(slopes.map(|(&m, &slope)| (m, index as u32, slope)));
    }
    by_move.sort_by_key(|&(m, _, _)| m);
    let rows = rows.par_chunks_mut(width).zip(biases).enumerate();
    rows.for_each(|(row, (weights, bias))| {
        let begin = by_move.partition_point(|&(m, _, _)| usize::from(m) < row);
        for &(_, index, slope) in
            by_move[begin..].iter().take_while(|entry| usize::from(entry.0) == row)
        {
            *bias += slope;
            add(weights, slope, batch[index as usize].inputs);
        }
    });
}

/// `sum += factor * values`.
pub(crate) fn add(sum: &mut [f32], factor: f32, values: &[f32]) {
    for (sum, value) in sum.iter_mut().zip(values) {
        *sum += factor * value;
    }
}

fn derivatives(
    network: &Network,
    sample: &Sample,
    weights: &LossWeights,
    count: usize,
) -> Derivatives {
    let mut forward = Forward::default();
    network.forward(&sample.features, &sample.moves, &mut forward);
    let (losses, logits, value) =
        sample.goal().derivatives(&forward.logits, forward.value, weights, count);
    // Backpropagation; an inactive ReLU passes no gradient.
    let (first, second_units) = (network.config().first, network.config().second);
    let parameters = &network.weights;
    let mut second = vec![0.0; second_units];
    add(&mut second, value, parameters.part(VALUE));
    let rows = parameters.part(POLICY);
    for (&m, &slope) in sample.moves.iter().zip(&logits) {
        add(&mut second, slope, &rows[usize::from(m) * second_units..][..second_units]);
    }
    mask_inactive(&mut second, &forward.second);
    let mut below = vec![0.0; first];
    for (row, &slope) in parameters.part(MIDDLE).chunks_exact(first).zip(&second) {
        add(&mut below, slope, row);
    }
    mask_inactive(&mut below, &forward.first);
    Derivatives { forward, logits, value, second, first: below, losses }
}

pub(crate) fn mask_inactive(slopes: &mut [f32], values: &[f32]) {
    for (slope, value) in slopes.iter_mut().zip(values) {
        if *value <= 0.0 {
            *slope = 0.0;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use selfmate_chess::{Rng, Seed};

    use super::super::network::MlpConfig;
    use super::*;

    const WEIGHTS: LossWeights = LossWeights { value: 0.7, entropy: 0.3 };

    pub(in super::super) fn samples(count: usize, rng: &mut Rng) -> Vec<Sample> {
        (0..count)
            .map(|_| {
                let moves: Vec<u16> = (0..5).map(|i| (i * 800 + rng.below(700)) as u16).collect();
                Sample {
                    features: (0..12).map(|i| (i * 64 + rng.below(64)) as u16).collect(),
                    target: Target::Played(rng.below(moves.len()) as u16),
                    moves: moves.into(),
                    advantage: rng.normal() as f32,
                    result: (2.0 * rng.unit() - 1.0) as f32,
                }
            })
            .collect()
    }

    #[test]
    fn the_gradient_matches_finite_differences() {
        let config = MlpConfig { first: 9, second: 7 };
        let mut network = Network::random(config, Seed::new(3)).unwrap();
        let mut rng = Seed::new(4).rng();
        // Policy and value weights large enough to have an effect.
        network.weights.randomise(POLICY, 7, 2.0, &mut rng);
        network.weights.randomise(VALUE, 7, 1.0, &mut rng);
        let mut samples = samples(6, &mut rng);
        for sample in samples.iter_mut().step_by(2) {
            sample.target = Target::Policy([0.1, 0.2, 0.0, 0.4, 0.3].into());
        }
        let (_, gradient) = gradient(&network, &samples, &WEIGHTS);
        let touched: Vec<usize> =
            (0..gradient.len()).filter(|&i| gradient.values[i] != 0.0).collect();
        assert!(touched.len() > 200);
        let mut off_by: Vec<f64> = Vec::new();
        for &index in touched.iter().step_by(7) {
            let at = |by: f32| {
                let mut moved = network.clone();
                moved.weights.values[index] += by;
                loss(&moved, &samples).total(&WEIGHTS)
            };
            let step = 1e-3f32;
            let slope = (at(step) - at(-step)) / (2.0 * f64::from(step));
            let expected = f64::from(gradient.values[index]);
            off_by.push((slope - expected).abs() / (0.02 + expected.abs()));
        }
        // At the corner of a ReLU, the slope differs on the two sides.
        off_by.sort_by(f64::total_cmp);
        let most = off_by[off_by.len() * 97 / 100];
        assert!(most < 0.05, "{most}");
    }

    #[test]
    fn a_positive_advantage_makes_a_move_more_likely() {
        let network = Network::random(MlpConfig { first: 16, second: 16 }, Seed::new(1)).unwrap();
        let mut rng = Seed::new(2).rng();
        for advantage in [1.0, -1.0] {
            let mut sample = samples(1, &mut rng).remove(0);
            (sample.advantage, sample.target) = (advantage, Target::Played(0));
            let alone = LossWeights { value: 0.0, entropy: 0.0 };
            let (_, gradient) = gradient(&network, std::slice::from_ref(&sample), &alone);
            let mut moved = network.clone();
            for (weight, slope) in moved.weights.values.iter_mut().zip(&gradient.values) {
                *weight -= 0.5 * slope;
            }
            let chance = |network: &Network| {
                let mut forward = Forward::default();
                network.forward(&sample.features, &sample.moves, &mut forward);
                policy(&forward.logits).0[0]
            };
            assert_ne!(moved, network, "a gradient moves weights");
            assert_eq!(chance(&moved) > chance(&network), advantage > 0.0);
        }
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        let network = Network::random(MlpConfig { first: 32, second: 16 }, Seed::new(5)).unwrap();
        let samples = samples(64, &mut Seed::new(6).rng());
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| gradient(&network, &samples, &WEIGHTS))
        };
        assert!(on(1) == on(3));
    }
}
