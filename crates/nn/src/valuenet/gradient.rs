//! The gradient of the squared error.

use rayon::prelude::*;

use super::board::{SQUARES, TAPS, fold, transposed, unfold};
use super::network::{Network, Scratch, ValueNetConfig};
use crate::small::Parameters;
use crate::small::kernel::{multiply, multiply_transposed};

/// A training sample: a position and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// Thirteen planes.
    pub planes: &'a [f32],
    /// For the side to move, from -1 to 1.
    pub result: f32,
}

/// Positions whose gradients are summed together: fixed, so that sums do not depend on threads.
pub(super) const CHUNK: usize = 8;

/// The mean squared error of a batch, without the gradient.
pub fn loss(network: &Network, samples: &[Sample<'_>]) -> f64 {
    let mut scratch = Scratch::default();
    let error = |sample: &Sample<'_>| {
        f64::from(network.value(sample.planes, &mut scratch) - sample.result).powi(2)
    };
    samples.iter().map(error).sum::<f64>() / (samples.len() as f64).max(1.0)
}

/// The mean squared error of a batch and its gradient, for networks without batch norm.
pub(super) fn gradient(network: &Network, samples: &[Sample<'_>]) -> (f64, Parameters) {
    let transposed_weights = Transposed::new(network);
    let chunks: Vec<(f64, Parameters)> = samples
        .par_chunks(CHUNK)
        .map(|chunk| {
            let mut gradient = Parameters::zeros(network.weights.layout());
            let (mut scratch, mut back, mut sum) = (Scratch::default(), Back::default(), 0.0);
            for sample in chunk {
                let value = network.value(sample.planes, &mut scratch);
                let error = value - sample.result;
                sum += f64::from(error).powi(2);
                let slope = 2.0 * error * (1.0 - value * value) / samples.len() as f32;
                back.add_gradient(
                    network,
                    &transposed_weights,
                    sample.planes,
                    &scratch,
                    slope,
                    &mut gradient,
                );
            }
            (sum, gradient)
        })
        .collect();
    let mut total = Parameters::zeros(network.weights.layout());
    let mut error = 0.0;
    for (sum, gradient) in chunks {
        error += sum;
        total.values.iter_mut().zip(&gradient.values).for_each(|(total, part)| *total += part);
    }
    (error / (samples.len() as f64).max(1.0), total)
}

/// Filters with inputs and outputs exchanged, for the backward pass.
struct Transposed {
    /// The convolutions of the blocks.
    blocks: Vec<Vec<f32>>,
    head: Vec<f32>,
}

impl Transposed {
    fn new(network: &Network) -> Transposed {
        let config = network.config();
        let conv = |index: usize| {
            transposed(network.weights.part(index), config.channels, config.channels * TAPS)
        };
        Transposed {
            blocks: config.tower().skip(1).map(conv).collect(),
            head: transposed(
                network.weights.part(config.head_index()),
                config.head,
                config.channels,
            ),
        }
    }
}

/// Buffers of the backward pass, reused for each position.
#[derive(Default)]
struct Back {
    columns: Vec<f32>,
}

impl Back {
    /// Adds the gradient of one position, given its activations and the derivative of the loss by
    /// the output.
    fn add_gradient(
        &mut self,
        network: &Network,
        transposed_weights: &Transposed,
        planes: &[f32],
        scratch: &Scratch,
        slope: f32,
        gradient: &mut Parameters,
    ) {
        let config = network.config();
        let Scratch { layers, head, hidden, .. } = scratch;

        // The output and the hidden layer.
        let output = config.output_index();
        gradient.part_mut(output + 1)[0] += slope;
        add(gradient.part_mut(output), slope, hidden);
        let mut delta: Vec<f32> =
            network.weights.part(output).iter().map(|weight| slope * weight).collect();
        mask_inactive(&mut delta, hidden);
        let index = config.hidden_index();
        add(gradient.part_mut(index + 1), 1.0, &delta);
        for (row, slope) in gradient.part_mut(index).chunks_exact_mut(head.len()).zip(&delta) {
            add(row, *slope, head);
        }
        let mut below = vec![0.0; head.len()];
        for (row, slope) in network.weights.part(index).chunks_exact(head.len()).zip(&delta) {
            add(&mut below, *slope, row);
        }
        mask_inactive(&mut below, head);

        // The head is a 1×1 convolution.
        let index = config.head_index();
        add_rows(gradient.part_mut(index + 1), &below);
        let last = layers.last().expect("the stem is a layer");
        let size = (config.head, SQUARES, config.channels);
        multiply_transposed(&below, last, gradient.part_mut(index), size);
        let mut delta = vec![0.0; last.len()];
        multiply(
            &transposed_weights.head,
            &below,
            &mut delta,
            (config.channels, config.head, SQUARES),
        );

        // The blocks in reverse order. The skip connection passes derivatives unchanged.
        for block in (0..config.blocks).rev() {
            let mut skipped = Vec::new();
            for convolution in (0..config.convolutions).rev() {
                let layer = 1 + config.convolutions * block + convolution;
                mask_inactive(&mut delta, &layers[layer]);
                let below = self.convolution(
                    config,
                    config.block_index(block, convolution),
                    &layers[layer - 1],
                    &delta,
                    gradient,
                    &transposed_weights.blocks[layer - 1],
                );
                let above = std::mem::replace(&mut delta, below);
                if convolution + 1 == config.convolutions {
                    skipped = above;
                }
            }
            add(&mut delta, 1.0, &skipped);
        }
        mask_inactive(&mut delta, &layers[0]);
        self.weights_of(config, ValueNetConfig::STEM, planes, &delta, gradient);
    }

    /// Adds the gradient of a convolution's weights; returns the derivatives by its inputs.
    fn convolution(
        &mut self,
        config: ValueNetConfig,
        index: usize,
        inputs: &[f32],
        delta: &[f32],
        gradient: &mut Parameters,
        transposed_weights: &[f32],
    ) -> Vec<f32> {
        self.weights_of(config, index, inputs, delta, gradient);
        self.columns.iter_mut().for_each(|value| *value = 0.0);
        let size = (config.channels * TAPS, config.channels, SQUARES);
        multiply(transposed_weights, delta, &mut self.columns, size);
        let mut below = vec![0.0; inputs.len()];
        fold(&self.columns, &mut below);
        below
    }

    /// Adds the gradient of a convolution's weights and biases.
    fn weights_of(
        &mut self,
        config: ValueNetConfig,
        index: usize,
        inputs: &[f32],
        delta: &[f32],
        gradient: &mut Parameters,
    ) {
        add_rows(gradient.part_mut(index + 1), delta);
        unfold(inputs, &mut self.columns);
        let size = (config.channels, SQUARES, inputs.len() / SQUARES * TAPS);
        multiply_transposed(delta, &self.columns, gradient.part_mut(index), size);
    }
}

/// `sum += factor * values`.
pub(super) fn add(sum: &mut [f32], factor: f32, values: &[f32]) {
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
}

/// Adds the sum over all squares of each channel.
fn add_rows(sum: &mut [f32], values: &[f32]) {
    for (sum, row) in sum.iter_mut().zip(values.chunks_exact(SQUARES)) {
        *sum += row.iter().sum::<f32>();
    }
}

/// An inactive ReLU passes no gradient.
pub(super) fn mask_inactive(slopes: &mut [f32], values: &[f32]) {
    for (slope, value) in slopes.iter_mut().zip(values) {
        if *value <= 0.0 {
            *slope = 0.0;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use selfmate_chess::Seed;

    use super::super::network::PLANES;
    use super::*;

    pub(in super::super) fn boards(count: usize) -> Vec<(Vec<f32>, f32)> {
        let mut rng = Seed::new(9).rng();
        (0..count)
            .map(|_| {
                let planes = (0..PLANES * SQUARES).map(|_| f32::from(u8::from(rng.chance(0.1))));
                (planes.collect(), (2.0 * rng.unit() - 1.0) as f32)
            })
            .collect()
    }

    pub(in super::super) fn samples(boards: &[(Vec<f32>, f32)]) -> Vec<Sample<'_>> {
        boards.iter().map(|(planes, result)| Sample { planes, result: *result }).collect()
    }

    /// Compares a gradient with finite differences of the loss.
    pub(in super::super) fn check_gradient(
        network: &Network,
        gradient: &Parameters,
        loss: impl Fn(&Network) -> f64,
    ) {
        let mut checked = 0;
        let mut off_by: Vec<f64> = Vec::new();
        for index in (0..network.parameters()).step_by(3) {
            let at = |by: f32| {
                let mut moved = network.clone();
                moved.weights.values[index] += by;
                loss(&moved)
            };
            let slope = (at(1e-3) - at(-1e-3)) / 2e-3;
            let expected = f64::from(gradient.values[index]);
            off_by.push((slope - expected).abs() / (0.01 + expected.abs()));
            checked += usize::from(expected.abs() > 1e-3);
        }
        // At the corner of a ReLU, the slope differs on the two sides.
        off_by.sort_by(f64::total_cmp);
        let most = off_by[off_by.len() * 95 / 100];
        assert!(most < 0.1 && checked > 50, "{most} {checked}");
    }

    #[test]
    fn the_gradient_matches_finite_differences() {
        for convolutions in [1, 2] {
            let config = ValueNetConfig {
                channels: 3,
                blocks: 2,
                head: 2,
                hidden: 5,
                convolutions,
                batch_norm: false,
            };
            let mut network = Network::random(config, Seed::new(2)).unwrap();
            let mut rng = Seed::new(3).rng();
            // Blocks and output large enough to have an effect.
            for block in 0..2 {
                let last = config.block_index(block, convolutions - 1);
                network.weights.randomise(last, 27, 1.0, &mut rng);
            }
            network.weights.randomise(config.output_index(), 5, 1.0, &mut rng);
            let boards = boards(3);
            let samples = samples(&boards);
            let (_, gradient) = gradient(&network, &samples);
            check_gradient(&network, &gradient, |network| loss(network, &samples));
        }
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        let config = ValueNetConfig {
            channels: 4,
            blocks: 1,
            head: 2,
            hidden: 8,
            ..ValueNetConfig::default()
        };
        let network = Network::random(config, Seed::new(5)).unwrap();
        let boards = boards(30);
        let samples = samples(&boards);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| gradient(&network, &samples))
        };
        assert!(on(1) == on(3));
    }
}
