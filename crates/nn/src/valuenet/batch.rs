//! Evaluates many positions at a time, with Winograd convolutions.
//!
//! A one-ply look-ahead evaluates some thirty positions at once; this is then several times as fast
//! as [`Network::value`]. A position has the same bits in any batch, but they differ from those of
//! [`Network::value`] in the last places.

use super::board::SQUARES;
use super::network::{Network, PLANES, ValueNetConfig};
use crate::residual::{
    End, Floats, Kernel, LANES, Layer, Left, Right, Shape, TileScratch, Tiles, boards_of, packed,
};

/// Boards whose tiles are multiplied together, so that the tiles stay in the second-level cache.
const BLOCK: usize = 8;

/// A network prepared for batches. All widths are padded to whole vectors.
#[derive(Debug)]
pub struct BatchNetwork {
    kernel: Kernel,
    /// The stem, then the convolutions of the blocks.
    layers: Vec<Layer>,
    /// Convolutions of a block.
    convolutions: usize,
    channels: usize,
    /// Channels × head.
    head: Dense,
    /// Square × head, then hidden.
    hidden: Dense,
    output: Vec<f32>,
    output_bias: f32,
}

/// Reusable buffers.
#[derive(Debug, Default)]
pub struct BatchScratch {
    input: Floats,
    tower: Floats,
    between: Floats,
    tiles: TileScratch,
    head: Floats,
    hidden: Floats,
}

/// A matrix and its bias.
#[derive(Debug)]
struct Dense {
    inputs: usize,
    outputs: usize,
    weights: Floats,
    bias: Vec<f32>,
}

impl BatchNetwork {
    pub fn new(network: &Network) -> BatchNetwork {
        let network = network.folded();
        let (config, weights) = (network.config(), &network.weights);
        let ValueNetConfig { channels, head, hidden, .. } = config;
        let wide = channels.next_multiple_of(LANES);
        let layer = |index: usize, inputs: usize, wide_inputs: usize| {
            let (filters, bias) = (weights.part(index), weights.part(index + 1));
            let mut padded = vec![0.0; wide * wide_inputs * 9];
            for (output, filters) in filters.chunks_exact(inputs * 9).enumerate() {
                padded[output * wide_inputs * 9..][..filters.len()].copy_from_slice(filters);
            }
            Layer::plain(&padded, &extended(bias, wide), wide_inputs)
        };
        let mut layers = vec![layer(ValueNetConfig::STEM, PLANES, PLANES)];
        layers.extend(config.tower().skip(1).map(|index| layer(index, channels, wide)));
        let part = |index: usize| (weights.part(index), weights.part(index + 1));
        let (matrix, bias) = part(config.head_index());
        let squeeze = Dense::new((wide, head), bias, |input, output| {
            if input < channels { matrix[output * channels + input] } else { 0.0 }
        });
        // The inputs are in another order here: square by square.
        let (matrix, bias) = part(config.hidden_index());
        let wide_head = squeeze.outputs;
        let hidden = Dense::new((SQUARES * wide_head, hidden), bias, |input, output| {
            let (square, channel) = (input / wide_head, input % wide_head);
            let index = (output * head + channel) * SQUARES + square;
            if channel < head { matrix[index] } else { 0.0 }
        });
        let (output, output_bias) = part(config.output_index());
        BatchNetwork {
            kernel: Kernel::detect(),
            layers,
            convolutions: config.convolutions,
            channels: wide,
            output: extended(output, hidden.outputs),
            output_bias: output_bias[0],
            head: squeeze,
            hidden,
        }
    }

    /// The expected result of each position for its side to move, from -1 to 1.
    ///
    /// # Panics
    ///
    /// Panics unless there are 13 planes of 64 squares for each position.
    pub fn values(&self, planes: &[f32], scratch: &mut BatchScratch) -> Vec<f32> {
        assert!(
            planes.len().is_multiple_of(PLANES * SQUARES),
            "expected 13 planes of 64 squares for each position"
        );
        let count = planes.len() / (PLANES * SQUARES);
        scratch.grow(self, count);
        self.tower(planes, scratch);
        let shape =
            Shape { rows: count * SQUARES, depth: self.channels, columns: self.head.outputs };
        self.head.run(self.kernel, shape, &scratch.tower, &mut scratch.head);
        let shape = Shape { rows: count, depth: self.hidden.inputs, columns: self.hidden.outputs };
        self.hidden.run(self.kernel, shape, &scratch.head, &mut scratch.hidden);
        let hidden = scratch.hidden.chunks_exact(self.hidden.outputs).take(count);
        let value = |hidden: &[f32]| {
            let sum: f32 = hidden.iter().zip(&self.output).map(|(x, w)| x * w).sum();
            libm::tanhf(sum + self.output_bias)
        };
        hidden.map(value).collect()
    }

    /// Runs positions through stem and blocks.
    fn tower(&self, planes: &[f32], scratch: &mut BatchScratch) {
        let board = SQUARES * self.channels;
        let size = PLANES * SQUARES;
        let BatchScratch { input, tower, between, tiles, .. } = scratch;
        let blocks = planes.chunks(BLOCK * size).zip(tower.chunks_mut(BLOCK * board));
        for (planes, tower) in blocks {
            let count = planes.len() / size;
            boards_of(planes, PLANES, input);
            self.layers[0].run(self.kernel, count, input, tiles, tower, End::Relu);
            for layers in self.layers[1..].chunks_exact(self.convolutions) {
                match layers {
                    [only] => {
                        between[..count * board].copy_from_slice(&tower[..count * board]);
                        only.run(self.kernel, count, between, tiles, tower, End::AddRelu);
                    }
                    [first, second] => {
                        first.run(self.kernel, count, tower, tiles, between, End::Relu);
                        second.run(self.kernel, count, between, tiles, tower, End::AddRelu);
                    }
                    _ => unreachable!("a block has one or two convolutions"),
                }
            }
        }
    }
}

impl BatchScratch {
    fn grow(&mut self, network: &BatchNetwork, count: usize) {
        let (channels, block) = (network.channels, count.min(BLOCK));
        let planes = PLANES.next_multiple_of(LANES);
        self.input.grow(block * SQUARES * planes);
        self.tower.grow(count * SQUARES * channels);
        self.between.grow(block * SQUARES * channels);
        self.tiles.tiles.grow(Tiles { boards: block, channels: planes.max(channels) }.len());
        self.tiles.products.grow(Tiles { boards: block, channels }.len());
        self.head.grow(count * network.hidden.inputs);
        self.hidden.grow(count * network.hidden.outputs);
    }
}

impl Dense {
    /// A matrix with its values by input and output.
    fn new(
        (inputs, outputs): (usize, usize),
        bias: &[f32],
        weight: impl Fn(usize, usize) -> f32,
    ) -> Dense {
        let wide = outputs.next_multiple_of(LANES);
        let mut matrix = vec![0.0; wide * inputs];
        for (output, row) in matrix.chunks_exact_mut(inputs).take(outputs).enumerate() {
            row.iter_mut().enumerate().for_each(|(input, value)| *value = weight(input, output));
        }
        let weights = packed(&matrix, inputs, wide);
        Dense { inputs, outputs: wide, weights, bias: extended(bias, wide) }
    }

    /// Multiplies, adds the bias and activates.
    fn run(&self, kernel: Kernel, shape: Shape, from: &[f32], to: &mut [f32]) {
        let rows = || shape.rows * self.outputs;
        for row in to[..rows()].chunks_exact_mut(self.outputs) {
            row.copy_from_slice(&self.bias);
        }
        let left = Left::rows(from, self.inputs);
        let right = Right::packed(&self.weights, self.inputs, self.outputs);
        kernel.product_add(shape, left, right, to, self.outputs);
        to[..rows()].iter_mut().for_each(|value| *value = value.max(0.0));
    }
}

/// Pads values with zeros.
fn extended(values: &[f32], length: usize) -> Vec<f32> {
    let mut out = values.to_vec();
    out.resize(length, 0.0);
    out
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::super::network::Scratch;
    use super::super::network::tests::randomise_norms;
    use super::*;

    fn noise(count: usize, seed: u64) -> Vec<f32> {
        let mut rng = Seed::new(seed).rng();
        (0..count * PLANES * SQUARES).map(|_| f32::from(rng.chance(0.2))).collect()
    }

    #[test]
    fn a_batch_network_agrees_with_the_network() {
        let odd = ValueNetConfig {
            channels: 20,
            blocks: 1,
            head: 3,
            hidden: 10,
            ..ValueNetConfig::default()
        };
        let normed = ValueNetConfig { batch_norm: true, ..ValueNetConfig::default() };
        let spec = ValueNetConfig { convolutions: 1, ..normed };
        for config in [ValueNetConfig::default(), odd, normed, spec] {
            let mut network = Network::random(config, Seed::new(5)).unwrap();
            if config.batch_norm {
                randomise_norms(&mut network);
            }
            let planes = noise(BLOCK + 3, 1);
            let values = BatchNetwork::new(&network).values(&planes, &mut BatchScratch::default());
            let mut scratch = Scratch::default();
            let each = planes.chunks_exact(PLANES * SQUARES);
            let exact: Vec<f32> = each.map(|one| network.value(one, &mut scratch)).collect();
            assert_eq!(values.len(), exact.len());
            for (got, expected) in values.iter().zip(&exact) {
                assert!((got - expected).abs() < 1e-4, "{got} {expected}");
            }
            let spread =
                exact.iter().fold(0.0f32, |most, value| most.max((value - exact[0]).abs()));
            assert!(spread > 1e-3, "all values are nearly equal: {exact:?}");
        }
    }

    #[test]
    fn a_position_has_the_same_bits_in_any_batch() {
        let network = Network::random(ValueNetConfig::default(), Seed::new(6)).unwrap();
        let (network, mut scratch) = (BatchNetwork::new(&network), BatchScratch::default());
        let planes = noise(2 * BLOCK + 1, 2);
        let all = network.values(&planes, &mut scratch);
        for (index, one) in planes.chunks_exact(PLANES * SQUARES).enumerate() {
            assert_eq!(network.values(one, &mut scratch), [all[index]]);
        }
        assert!(network.values(&[], &mut scratch).is_empty());
    }
}
