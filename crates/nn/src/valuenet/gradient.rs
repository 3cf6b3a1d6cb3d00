//! The gradient of the squared error.

use rayon::prelude::*;

use super::board::{SQUARES, TAPS, fold, transposed, unfold};
use super::network::{Network, Scratch, ValueNetConfig};
use crate::small::Parameters;
use crate::small::kernel::{multiply, multiply_transposed};

/// A position and how it went.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// Thirteen planes.
    pub planes: &'a [f32],
    /// What the side to move got, from -1 to 1.
    pub result: f32,
}

/// Positions whose gradients are added up together: fixed, so that sums do not depend on threads.
const CHUNK: usize = 8;

/// The mean squared error of a batch, without a gradient.
pub fn loss(network: &Network, lessons: &[Sample<'_>]) -> f64 {
    let mut scratch = Scratch::default();
    let error = |lesson: &Sample<'_>| {
        f64::from(network.value(lesson.planes, &mut scratch) - lesson.result).powi(2)
    };
    lessons.iter().map(error).sum::<f64>() / (lessons.len() as f64).max(1.0)
}

/// The mean squared error of a batch and its gradient.
pub fn gradient(network: &Network, lessons: &[Sample<'_>]) -> (f64, Parameters) {
    let turned = Turned::new(network);
    let chunks: Vec<(f64, Parameters)> = lessons
        .par_chunks(CHUNK)
        .map(|chunk| {
            let mut gradient = Parameters::zeros(network.weights.layout());
            let (mut scratch, mut back, mut sum) = (Scratch::default(), Back::default(), 0.0);
            for lesson in chunk {
                let value = network.value(lesson.planes, &mut scratch);
                let error = value - lesson.result;
                sum += f64::from(error).powi(2);
                let slope = 2.0 * error * (1.0 - value * value) / lessons.len() as f32;
                back.learn(network, &turned, lesson.planes, &scratch, slope, &mut gradient);
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
    (error / (lessons.len() as f64).max(1.0), total)
}

/// Convolutions with rows and columns exchanged, as the way back needs them.
struct Turned {
    /// First and second of each block.
    blocks: Vec<[Vec<f32>; 2]>,
    head: Vec<f32>,
}

impl Turned {
    fn new(network: &Network) -> Turned {
        let config = network.config();
        let conv = |place: usize| {
            transposed(network.weights.part(place), config.channels, config.channels * TAPS)
        };
        let block = |block: usize| {
            [conv(ValueNetConfig::first_of(block)), conv(ValueNetConfig::second_of(block))]
        };
        Turned {
            blocks: (0..config.blocks).map(block).collect(),
            head: transposed(
                network.weights.part(config.head_place()),
                config.head,
                config.channels,
            ),
        }
    }
}

/// The way back through the network for one position after the other.
#[derive(Default)]
struct Back {
    columns: Vec<f32>,
}

impl Back {
    /// Adds the gradient of one position, from what was computed for it and the slope of the loss
    /// at the output.
    fn learn(
        &mut self,
        network: &Network,
        turned: &Turned,
        planes: &[f32],
        scratch: &Scratch,
        slope: f32,
        gradient: &mut Parameters,
    ) {
        let config = network.config();
        let Scratch { layers, head, hidden, .. } = scratch;

        // The output and the hidden layer.
        let output = config.output_place();
        gradient.part_mut(output + 1)[0] += slope;
        add(gradient.part_mut(output), slope, hidden);
        let mut wish: Vec<f32> =
            network.weights.part(output).iter().map(|weight| slope * weight).collect();
        off(&mut wish, hidden);
        let place = config.hidden_place();
        add(gradient.part_mut(place + 1), 1.0, &wish);
        for (row, slope) in gradient.part_mut(place).chunks_exact_mut(head.len()).zip(&wish) {
            add(row, *slope, head);
        }
        let mut below = vec![0.0; head.len()];
        for (row, slope) in network.weights.part(place).chunks_exact(head.len()).zip(&wish) {
            add(&mut below, *slope, row);
        }
        off(&mut below, head);

        // The head looks at each square alone.
        let place = config.head_place();
        add_rows(gradient.part_mut(place + 1), &below);
        let last = &layers[2 * config.blocks];
        let size = (config.head, SQUARES, config.channels);
        multiply_transposed(&below, last, gradient.part_mut(place), size);
        let mut wish = vec![0.0; last.len()];
        multiply(&turned.head, &below, &mut wish, (config.channels, config.head, SQUARES));

        // The blocks, the last first. What goes around a block comes back unchanged.
        for block in (0..config.blocks).rev() {
            let (before, first, second) =
                (&layers[2 * block], &layers[2 * block + 1], &layers[2 * block + 2]);
            off(&mut wish, second);
            let [first_turned, second_turned] = &turned.blocks[block];
            let place = ValueNetConfig::second_of(block);
            let mut inner = self.convolution(config, place, first, &wish, gradient, second_turned);
            off(&mut inner, first);
            let place = ValueNetConfig::first_of(block);
            let around = self.convolution(config, place, before, &inner, gradient, first_turned);
            add(&mut wish, 1.0, &around);
        }
        off(&mut wish, &layers[0]);
        self.weights_of(config, ValueNetConfig::STEM, planes, &wish, gradient);
    }

    /// Adds the gradient of a convolution's weights; what is wished of its inputs.
    fn convolution(
        &mut self,
        config: ValueNetConfig,
        place: usize,
        inputs: &[f32],
        wish: &[f32],
        gradient: &mut Parameters,
        turned: &[f32],
    ) -> Vec<f32> {
        self.weights_of(config, place, inputs, wish, gradient);
        self.columns.iter_mut().for_each(|value| *value = 0.0);
        let size = (config.channels * TAPS, config.channels, SQUARES);
        multiply(turned, wish, &mut self.columns, size);
        let mut below = vec![0.0; inputs.len()];
        fold(&self.columns, &mut below);
        below
    }

    /// Adds the gradient of a convolution's weights and biases.
    fn weights_of(
        &mut self,
        config: ValueNetConfig,
        place: usize,
        inputs: &[f32],
        wish: &[f32],
        gradient: &mut Parameters,
    ) {
        add_rows(gradient.part_mut(place + 1), wish);
        unfold(inputs, &mut self.columns);
        let size = (config.channels, SQUARES, inputs.len() / SQUARES * TAPS);
        multiply_transposed(wish, &self.columns, gradient.part_mut(place), size);
    }
}

/// `sum += factor * values`.
fn add(sum: &mut [f32], factor: f32, values: &[f32]) {
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
}

/// Adds the sum over all squares of each channel.
fn add_rows(sum: &mut [f32], values: &[f32]) {
    for (sum, row) in sum.iter_mut().zip(values.chunks_exact(SQUARES)) {
        *sum += row.iter().sum::<f32>();
    }
}

/// A unit that is off passes nothing on.
fn off(slopes: &mut [f32], values: &[f32]) {
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

    pub(in super::super) fn lessons(boards: &[(Vec<f32>, f32)]) -> Vec<Sample<'_>> {
        boards.iter().map(|(planes, result)| Sample { planes, result: *result }).collect()
    }

    #[test]
    fn the_gradient_matches_finite_differences() {
        let config = ValueNetConfig { channels: 3, blocks: 2, head: 2, hidden: 5 };
        let mut network = Network::random(config, Seed::new(2)).unwrap();
        let mut rng = Seed::new(3).rng();
        // Blocks and output large enough to matter.
        for block in 0..2 {
            network.weights.randomise(ValueNetConfig::second_of(block), 27, 1.0, &mut rng);
        }
        network.weights.randomise(config.output_place(), 5, 1.0, &mut rng);
        let boards = boards(3);
        let lessons = lessons(&boards);
        let (_, gradient) = gradient(&network, &lessons);
        let mut checked = 0;
        let mut off_by: Vec<f64> = Vec::new();
        for index in (0..network.parameters()).step_by(3) {
            let at = |by: f32| {
                let mut moved = network.clone();
                moved.weights.values[index] += by;
                loss(&moved, &lessons)
            };
            let slope = (at(1e-3) - at(-1e-3)) / 2e-3;
            let expected = f64::from(gradient.values[index]);
            off_by.push((slope - expected).abs() / (0.01 + expected.abs()));
            checked += usize::from(expected.abs() > 1e-3);
        }
        // A step across the corner of a ReLU has another slope on each side.
        off_by.sort_by(f64::total_cmp);
        let most = off_by[off_by.len() * 95 / 100];
        assert!(most < 0.1 && checked > 50, "{most} {checked}");
    }

    #[test]
    fn threads_change_no_bit() {
        let config = ValueNetConfig { channels: 4, blocks: 1, head: 2, hidden: 8 };
        let network = Network::random(config, Seed::new(5)).unwrap();
        let boards = boards(30);
        let lessons = lessons(&boards);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| gradient(&network, &lessons))
        };
        assert!(on(1) == on(3));
    }
}
