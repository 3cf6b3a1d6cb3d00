//! The gradient with batch norm (Ioffe and Szegedy 2015). Its statistics are those of the whole
//! batch, so each layer is computed for all positions before the next one begins.
//!
//! Sums over positions are computed in the order of the batch or over chunks of fixed size, so
//! results do not depend on threads.

use rayon::prelude::*;

use super::board::{SQUARES, fold, transposed, unfold};
use super::gradient::{CHUNK, Sample, add, mask_inactive};
use super::network::{Network, PLANES, ValueNetConfig};
use crate::residual::{NORM_EPSILON, NORM_MOMENTUM};
use crate::small::Parameters;
use crate::small::kernel::{multiply, multiply_transposed};

/// A convolution of the batch with its norm. Layers have one board after the other.
struct Layer {
    /// The index of the weight.
    index: usize,
    channels: usize,
    /// Outputs of the convolution with mean 0 and variance 1.
    normal: Vec<f32>,
    /// After norm, skip connection and ReLU.
    outputs: Vec<f32>,
    means: Vec<f64>,
    variances: Vec<f64>,
}

/// The forward pass of a batch.
struct Forward {
    planes: Vec<f32>,
    /// Stem, blocks and head.
    layers: Vec<Layer>,
    hidden: Vec<f32>,
    values: Vec<f32>,
}

/// The statistics of a batch, for the running ones.
pub(super) struct Statistics {
    /// The index of the weight, means and variances of each convolution.
    layers: Vec<(usize, Vec<f64>, Vec<f64>)>,
    /// Numbers in each mean.
    count: f64,
}

impl Statistics {
    /// Updates the running statistics, whose variances are unbiased.
    pub fn update(&self, network: &mut Network) {
        let unbiased = self.count / (self.count - 1.0);
        for (index, means, variances) in &self.layers {
            let norm = network.config.norm_index(*index);
            for (part, values, scale) in [(norm + 1, means, 1.0), (norm + 2, variances, unbiased)] {
                for (running, value) in network.weights.part_mut(part).iter_mut().zip(values) {
                    *running += NORM_MOMENTUM * ((value * scale) as f32 - *running);
                }
            }
        }
    }
}

/// The mean squared error of a batch, its gradient and its statistics. Running statistics have no
/// gradient.
pub(super) fn gradient(network: &Network, samples: &[Sample<'_>]) -> (f64, Parameters, Statistics) {
    let forward = Forward::new(network, samples);
    let gradient = forward.gradient(network, samples);
    let error = forward.error(samples);
    let layers =
        forward.layers.into_iter().map(|layer| (layer.index, layer.means, layer.variances));
    let count = (samples.len() * SQUARES) as f64;
    (error, gradient, Statistics { layers: layers.collect(), count })
}

impl Forward {
    fn new(network: &Network, samples: &[Sample<'_>]) -> Forward {
        let config = network.config;
        let mut planes = Vec::with_capacity(samples.len() * PLANES * SQUARES);
        samples.iter().for_each(|sample| planes.extend(sample.planes));
        let mut layers: Vec<Layer> = Vec::new();
        for index in config.tower().chain([config.head_index()]) {
            let inputs = layers.last().map_or(&planes, |layer| &layer.outputs);
            let is_head = index == config.head_index();
            let skipped = (!is_head && config.ends_block(index))
                .then(|| &*layers[layers.len() - config.convolutions].outputs);
            layers.push(Layer::new(network, index, samples.len(), inputs, skipped));
        }
        let head = &layers.last().expect("the head is a layer").outputs;
        let (weight, bias) = (config.hidden_index(), config.hidden_index() + 1);
        let mut hidden = network.weights.part(bias).repeat(samples.len());
        let (units, inputs) = (config.hidden, config.head * SQUARES);
        hidden.par_chunks_mut(CHUNK * units).zip(head.par_chunks(CHUNK * inputs)).for_each(
            |(hidden, head)| {
                let size = (hidden.len() / units, inputs, units);
                multiply_transposed(head, network.weights.part(weight), hidden, size);
                hidden.iter_mut().for_each(|value| *value = value.max(0.0));
            },
        );
        let output = network.weights.part(config.output_index());
        let output_bias = network.weights.part(config.output_index() + 1)[0];
        let value = |hidden: &[f32]| {
            let sum: f32 = output.iter().zip(hidden).map(|(w, x)| w * x).sum();
            libm::tanhf(sum + output_bias)
        };
        let values = hidden.chunks_exact(units).map(value).collect();
        Forward { planes, layers, hidden, values }
    }

    fn error(&self, samples: &[Sample<'_>]) -> f64 {
        let errors = self.values.iter().zip(samples);
        let sum: f64 = errors.map(|(value, s)| f64::from(value - s.result).powi(2)).sum();
        sum / samples.len() as f64
    }

    fn gradient(&self, network: &Network, samples: &[Sample<'_>]) -> Parameters {
        let (config, count) = (network.config, samples.len());
        let mut gradient = Parameters::zeros(network.weights.layout());
        let slope = |(value, sample): (&f32, &Sample<'_>)| {
            2.0 * (value - sample.result) * (1.0 - value * value) / count as f32
        };
        let slopes: Vec<f32> = self.values.iter().zip(samples).map(slope).collect();
        let mut delta = self.dense(network, &slopes, &mut gradient);
        // Derivatives that bypass the convolutions of a block.
        let mut skipped = Vec::new();
        for (number, layer) in self.layers.iter().enumerate().rev() {
            let inputs = match number {
                0 => &self.planes,
                _ => &self.layers[number - 1].outputs,
            };
            let is_tower = layer.index != config.head_index();
            mask_inactive(&mut delta, &layer.outputs);
            let mut below = layer.back(network, inputs, &delta, &mut gradient);
            if is_tower && config.ends_block(layer.index) {
                skipped = delta;
            }
            if is_tower && number > 0 && (number - 1).is_multiple_of(config.convolutions) {
                add(&mut below, 1.0, &skipped);
            }
            delta = below;
        }
        gradient
    }

    /// Adds the gradient of the output and the hidden layer; returns the derivatives by the head.
    fn dense(&self, network: &Network, slopes: &[f32], gradient: &mut Parameters) -> Vec<f32> {
        let config = network.config;
        let (units, inputs, count) = (config.hidden, config.head * SQUARES, slopes.len());
        let head = &self.layers.last().expect("the head is a layer").outputs;
        let output = config.output_index();
        gradient.part_mut(output + 1)[0] = slopes.iter().sum();
        let mut delta = Vec::with_capacity(count * units);
        for (slope, hidden) in slopes.iter().zip(self.hidden.chunks_exact(units)) {
            add(gradient.part_mut(output), *slope, hidden);
            delta.extend(network.weights.part(output).iter().map(|weight| slope * weight));
        }
        mask_inactive(&mut delta, &self.hidden);
        let index = config.hidden_index();
        for delta in delta.chunks_exact(units) {
            add(gradient.part_mut(index + 1), 1.0, delta);
        }
        let by_unit = transposed(&delta, count, units);
        let rows = gradient.part_mut(index).par_chunks_mut(CHUNK * inputs);
        rows.zip(by_unit.par_chunks(CHUNK * count)).for_each(|(rows, delta)| {
            multiply(delta, head, rows, (delta.len() / count, count, inputs));
        });
        let mut below = vec![0.0; count * inputs];
        below.par_chunks_mut(CHUNK * inputs).zip(delta.par_chunks(CHUNK * units)).for_each(
            |(below, delta)| {
                let size = (delta.len() / units, units, inputs);
                multiply(delta, network.weights.part(index), below, size);
            },
        );
        below
    }
}

impl Layer {
    fn new(
        network: &Network,
        index: usize,
        count: usize,
        inputs: &[f32],
        skipped: Option<&[f32]>,
    ) -> Layer {
        let (weight, bias) = (network.weights.part(index), network.weights.part(index + 1));
        let channels = bias.len();
        let (board, input) = (channels * SQUARES, inputs.len() / count);
        let mut normal = vec![0.0; count * board];
        let size = (channels, weight.len() / channels, SQUARES);
        normal.par_chunks_mut(board).zip(inputs.par_chunks(input)).for_each_init(
            Vec::new,
            |columns, (out, inputs)| {
                multiply(weight, neighbours(&network.config, index, inputs, columns), out, size);
            },
        );
        let total = (count * SQUARES) as f64;
        let mean = |sums: Vec<f64>| sums.into_iter().map(|sum| sum / total).collect::<Vec<f64>>();
        let means = mean(channel_sums(&normal, channels, |_, value| f64::from(value)));
        let square = |channel: usize, value: f32| (f64::from(value) - means[channel]).powi(2);
        let variances = mean(channel_sums(&normal, channels, square));
        let factors = network.weights.part(network.config.norm_index(index));
        let mut outputs = vec![0.0; normal.len()];
        let boards = outputs.par_chunks_mut(board).zip(normal.par_chunks_mut(board)).enumerate();
        boards.for_each(|(number, (outputs, normal))| {
            let rows = outputs.chunks_exact_mut(SQUARES).zip(normal.chunks_exact_mut(SQUARES));
            for (channel, (outputs, normal)) in rows.enumerate() {
                let (mean, deviation) =
                    (means[channel] as f32, 1.0 / deviation(variances[channel]));
                for (output, value) in outputs.iter_mut().zip(normal) {
                    *value = (*value - mean) * deviation;
                    *output = *value * factors[channel] + bias[channel];
                }
            }
            if let Some(skipped) = skipped {
                add(outputs, 1.0, &skipped[number * board..][..board]);
            }
            outputs.iter_mut().for_each(|value| *value = value.max(0.0));
        });
        Layer { index, channels, normal, outputs, means, variances }
    }

    /// Adds the gradient of the weights and the norm, given the derivatives by the norm's outputs.
    /// Returns the derivatives by the inputs.
    fn back(
        &self,
        network: &Network,
        inputs: &[f32],
        delta: &[f32],
        gradient: &mut Parameters,
    ) -> Vec<f32> {
        let (config, channels, index) = (network.config, self.channels, self.index);
        let board = channels * SQUARES;
        let count = delta.len() / board;
        let total = (count * SQUARES) as f64;
        let biases = channel_sums(delta, channels, |_, slope| f64::from(slope));
        let products: Vec<f32> = delta.iter().zip(&self.normal).map(|(d, x)| d * x).collect();
        let factors = channel_sums(&products, channels, |_, product| f64::from(product));
        let norm = config.norm_index(index);
        for (part, sums) in [(index + 1, &biases), (norm, &factors)] {
            for (value, sum) in gradient.part_mut(part).iter_mut().zip(sums) {
                *value = *sum as f32;
            }
        }
        // Derivatives by the outputs of the convolution. The statistics depend on all of them.
        let mut slopes = vec![0.0; delta.len()];
        slopes.par_chunks_mut(board).enumerate().for_each(|(number, slopes)| {
            let (delta, normal) =
                (&delta[number * board..][..board], &self.normal[number * board..][..board]);
            for channel in 0..channels {
                let factor =
                    network.weights.part(norm)[channel] / deviation(self.variances[channel]);
                let mean = (biases[channel] / total) as f32;
                let along = (factors[channel] / total) as f32;
                for square in channel * SQUARES..(channel + 1) * SQUARES {
                    slopes[square] = factor * (delta[square] - mean - normal[square] * along);
                }
            }
        });
        let weight = network.weights.part(index);
        let taps = weight.len() / channels;
        let by_input = transposed(weight, channels, taps);
        let input = inputs.len() / count;
        let mut below = vec![0.0; inputs.len()];
        let chunks = slopes
            .par_chunks(CHUNK * board)
            .zip(inputs.par_chunks(CHUNK * input))
            .zip(below.par_chunks_mut(CHUNK * input));
        // The gradient with rows and columns exchanged: only small matrices are transposed.
        let sums: Vec<Vec<f32>> = chunks
            .map(|((slopes, inputs), below)| {
                let mut sum = vec![0.0; weight.len()];
                let mut columns = Vec::new();
                let boards = slopes.chunks_exact(board).zip(inputs.chunks_exact(input));
                for ((slopes, inputs), below) in boards.zip(below.chunks_exact_mut(input)) {
                    let by_square = transposed(slopes, channels, SQUARES);
                    let values = neighbours(&config, index, inputs, &mut columns);
                    multiply(values, &by_square, &mut sum, (taps, SQUARES, channels));
                    let size = (taps, channels, SQUARES);
                    if index == config.head_index() {
                        multiply(&by_input, slopes, below, size);
                    } else {
                        columns.fill(0.0);
                        multiply(&by_input, slopes, &mut columns, size);
                        fold(&columns, below);
                    }
                }
                sum
            })
            .collect();
        let mut total = vec![0.0; weight.len()];
        sums.iter().for_each(|sum| add(&mut total, 1.0, sum));
        gradient.part_mut(index).copy_from_slice(&transposed(&total, taps, channels));
        below
    }
}

/// The values that a convolution multiplies: the neighbourhood of every square, or for the head the
/// square alone.
fn neighbours<'a>(
    config: &ValueNetConfig,
    index: usize,
    inputs: &'a [f32],
    columns: &'a mut Vec<f32>,
) -> &'a [f32] {
    if index == config.head_index() {
        return inputs;
    }
    unfold(inputs, columns);
    columns
}

fn deviation(variance: f64) -> f32 {
    (variance as f32 + NORM_EPSILON).sqrt()
}

/// For each channel, the sum of a function over all squares of all boards.
fn channel_sums(
    values: &[f32],
    channels: usize,
    term: impl Fn(usize, f32) -> f64 + Sync,
) -> Vec<f64> {
    let of_board = |board: &[f32]| -> Vec<f64> {
        let rows = board.chunks_exact(SQUARES).enumerate();
        rows.map(|(channel, row)| row.iter().map(|value| term(channel, *value)).sum()).collect()
    };
    let boards: Vec<Vec<f64>> = values.par_chunks(channels * SQUARES).map(of_board).collect();
    let mut sums = vec![0.0; channels];
    for board in boards {
        sums.iter_mut().zip(board).for_each(|(sum, value)| *sum += value);
    }
    sums
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::super::gradient::tests::{boards, check_gradient, samples};
    use super::super::network::Scratch;
    use super::super::network::tests::randomise_norms;
    use super::*;

    fn network(convolutions: usize) -> Network {
        let config = ValueNetConfig {
            channels: 4,
            blocks: 2,
            head: 3,
            hidden: 6,
            convolutions,
            batch_norm: true,
        };
        let mut network = Network::random(config, Seed::new(2)).unwrap();
        randomise_norms(&mut network);
        let (output, mut rng) = (config.output_index(), Seed::new(3).rng());
        network.weights.randomise(output, 6, 1.0, &mut rng);
        network
    }

    #[test]
    fn the_gradient_matches_finite_differences() {
        let boards = boards(5);
        let samples = samples(&boards);
        for convolutions in [1, 2] {
            let network = network(convolutions);
            let (loss, gradient, _) = gradient(&network, &samples);
            assert_eq!(loss, Forward::new(&network, &samples).error(&samples));
            let first_statistic = network.config.norm_index(0) + 1;
            assert!(gradient.part(first_statistic).iter().all(|slope| *slope == 0.0));
            check_gradient(&network, &gradient, |network| {
                Forward::new(network, &samples).error(&samples)
            });
        }
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        let (network, boards) = (network(1), boards(30));
        let samples = samples(&boards);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let (loss, gradient, statistics) = pool.install(|| gradient(&network, &samples));
            (loss, gradient, statistics.layers)
        };
        assert!(on(1) == on(3));
    }

    #[test]
    fn running_statistics_approach_those_of_the_batch() {
        let (mut network, boards) = (network(1), boards(40));
        let samples = samples(&boards);
        let (_, _, statistics) = gradient(&network, &samples);
        let in_training = Forward::new(&network, &samples).values;
        let in_play = |network: &Network| -> Vec<f32> {
            let value = |s: &Sample<'_>| network.value(s.planes, &mut Scratch::default());
            samples.iter().map(value).collect()
        };
        let distance = |network: &Network| {
            let pairs = in_play(network).into_iter().zip(&in_training);
            pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        let before = distance(&network);
        (0..100).for_each(|_| statistics.update(&mut network));
        let after = distance(&network);
        assert!(before > 0.1 && after < 1e-2, "{before} {after}");
    }
}
