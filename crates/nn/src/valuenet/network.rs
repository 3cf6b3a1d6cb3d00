//! The network: its shape, its weights and its forward pass.

use std::sync::Arc;

use selfmate_chess::Seed;
use serde::{Deserialize, Serialize};

use super::board::{SQUARES, TAPS, unfold};
use crate::small::kernel::{multiply, multiply_transposed};
use crate::small::{self, Layout, Shape};

/// Input planes.
pub(super) const PLANES: usize = 13;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueNetConfig {
    /// Channels of the convolutions.
    pub channels: usize,
    /// Residual blocks, two convolutions each.
    pub blocks: usize,
    /// Channels of the head.
    pub head: usize,
    /// Hidden units after the head.
    pub hidden: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {got}: expected 1 to {most}")]
pub struct ValueNetConfigError {
    field: &'static str,
    got: usize,
    most: usize,
}

impl Default for ValueNetConfig {
    fn default() -> ValueNetConfig {
        ValueNetConfig { channels: 64, blocks: 2, head: 32, hidden: 128 }
    }
}

impl ValueNetConfig {
    /// Indices of the parts: a convolution has its weight, then its bias.
    pub(super) const STEM: usize = 0;

    pub(super) fn first_of(block: usize) -> usize {
        2 + 4 * block
    }

    pub(super) fn second_of(block: usize) -> usize {
        4 + 4 * block
    }

    pub(super) fn head_index(&self) -> usize {
        2 + 4 * self.blocks
    }

    pub(super) fn hidden_index(&self) -> usize {
        4 + 4 * self.blocks
    }

    pub(super) fn output_index(&self) -> usize {
        6 + 4 * self.blocks
    }
}

impl Shape for ValueNetConfig {
    const ARCHITECTURE: &'static str = "valuenet";
    type Error = ValueNetConfigError;

    fn check(&self) -> Result<(), ValueNetConfigError> {
        let fields = [
            ("channels", self.channels, 512),
            ("blocks", self.blocks, 32),
            ("head", self.head, 512),
            ("hidden", self.hidden, 4096),
        ];
        for (field, got, most) in fields {
            if !(1..=most).contains(&got) {
                return Err(ValueNetConfigError { field, got, most });
            }
        }
        Ok(())
    }

    fn layout(&self) -> Arc<Layout> {
        let ValueNetConfig { channels, blocks, head, hidden } = *self;
        let mut shapes: Vec<(String, Vec<usize>)> = vec![
            ("stem.weight".to_owned(), vec![channels, PLANES, 3, 3]),
            ("stem.bias".to_owned(), vec![channels]),
        ];
        for block in 0..blocks {
            for half in ["first", "second"] {
                let name = format!("blocks.{block}.{half}");
                shapes.push((format!("{name}.weight"), vec![channels, channels, 3, 3]));
                shapes.push((format!("{name}.bias"), vec![channels]));
            }
        }
        shapes.extend([
            ("head.weight".to_owned(), vec![head, channels, 1, 1]),
            ("head.bias".to_owned(), vec![head]),
            ("hidden.weight".to_owned(), vec![hidden, head * SQUARES]),
            ("hidden.bias".to_owned(), vec![hidden]),
            ("output.weight".to_owned(), vec![1, hidden]),
            ("output.bias".to_owned(), vec![1]),
        ]);
        let shapes: Vec<(&str, &[usize])> =
            shapes.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())).collect();
        Layout::new(&shapes)
    }
}

pub type Network = small::Network<ValueNetConfig>;

/// The activations for one position; reusable buffers.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// The neighbourhoods of the latest convolution.
    pub(super) columns: Vec<f32>,
    /// After the stem, then after each half of each block.
    pub(super) layers: Vec<Vec<f32>>,
    pub(super) head: Vec<f32>,
    pub(super) hidden: Vec<f32>,
}

impl Network {
    /// Random weights. Blocks start near zero, so that the initial output comes from the stem.
    pub fn random(config: ValueNetConfig, seed: Seed) -> Result<Network, ValueNetConfigError> {
        let mut network = Network::zeros(config)?;
        let weights = &mut network.weights;
        let mut rng = seed.derive("valuenet").rng();
        weights.randomise(ValueNetConfig::STEM, PLANES * TAPS, 1.0, &mut rng);
        for block in 0..config.blocks {
            let inputs = config.channels * TAPS;
            weights.randomise(ValueNetConfig::first_of(block), inputs, 1.0, &mut rng);
            weights.randomise(ValueNetConfig::second_of(block), inputs, 0.2, &mut rng);
        }
        weights.randomise(config.head_index(), config.channels, 1.0, &mut rng);
        weights.randomise(config.hidden_index(), config.head * SQUARES, 1.0, &mut rng);
        weights.randomise(config.output_index(), config.hidden, 0.1, &mut rng);
        Ok(network)
    }

    /// The expected result of a position for its side to move, from -1 to 1.
    ///
    /// # Panics
    ///
    /// Panics unless there are 13 planes of 64 squares.
    pub fn value(&self, planes: &[f32], scratch: &mut Scratch) -> f32 {
        assert_eq!(planes.len(), PLANES * SQUARES, "thirteen planes");
        let config = self.config;
        scratch.layers.resize_with(1 + 2 * config.blocks, Vec::new);
        let mut layers = std::mem::take(&mut scratch.layers);
        let columns = &mut scratch.columns;
        self.convolve(ValueNetConfig::STEM, planes, columns, &mut layers[0]);
        relu(&mut layers[0]);
        for block in 0..config.blocks {
            let [before, first, second] = &mut layers[2 * block..][..3] else {
                unreachable!("each block has two layers after its input")
            };
            self.convolve(ValueNetConfig::first_of(block), before, columns, first);
            relu(first);
            self.convolve(ValueNetConfig::second_of(block), first, columns, second);
            second.iter_mut().zip(&*before).for_each(|(sum, value)| *sum += value);
            relu(second);
        }
        let last = &layers[2 * config.blocks];
        biased(self.weights.part(config.head_index() + 1), SQUARES, &mut scratch.head);
        let size = (config.head, config.channels, SQUARES);
        multiply(self.weights.part(config.head_index()), last, &mut scratch.head, size);
        relu(&mut scratch.head);
        biased(self.weights.part(config.hidden_index() + 1), 1, &mut scratch.hidden);
        let size = (config.hidden, config.head * SQUARES, 1);
        dense(self.weights.part(config.hidden_index()), &scratch.head, &mut scratch.hidden, size.1);
        relu(&mut scratch.hidden);
        scratch.layers = layers;
        let output = self.weights.part(config.output_index());
        let sum: f32 = output.iter().zip(&scratch.hidden).map(|(w, x)| w * x).sum();
        libm::tanhf(sum + self.weights.part(config.output_index() + 1)[0])
    }

    /// A 3×3 convolution with its bias.
    fn convolve(&self, index: usize, planes: &[f32], columns: &mut Vec<f32>, out: &mut Vec<f32>) {
        unfold(planes, columns);
        biased(self.weights.part(index + 1), SQUARES, out);
        let inputs = planes.len() / SQUARES * TAPS;
        multiply(self.weights.part(index), columns, out, (self.config.channels, inputs, SQUARES));
    }
}

/// Fills a layer with its biases, each repeated `times`.
fn biased(bias: &[f32], times: usize, out: &mut Vec<f32>) {
    out.clear();
    out.extend(bias.iter().flat_map(|&value| std::iter::repeat_n(value, times)));
}

/// Adds the products of the rows of a matrix with a vector.
fn dense(matrix: &[f32], vector: &[f32], out: &mut [f32], inputs: usize) {
    multiply_transposed(matrix, vector, out, (out.len(), inputs, 1));
}

fn relu(values: &mut [f32]) {
    values.iter_mut().for_each(|value| *value = value.max(0.0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::WeightsInfo;

    #[test]
    fn the_default_shape_has_the_documented_size() {
        let network = Network::random(ValueNetConfig::default(), Seed::new(1)).unwrap();
        let conv = |inputs: usize| 64 * inputs * 9 + 64;
        let expected = conv(13) + 4 * conv(64) + 32 * 64 + 32 + 128 * 2048 + 128 + 128 + 1;
        assert_eq!(network.parameters(), expected);
        let mut scratch = Scratch::default();
        let planes: Vec<f32> = (0..PLANES * SQUARES).map(|i| (i % 3) as f32).collect();
        let value = network.value(&planes, &mut scratch);
        assert!(value.abs() < 1.0);
        assert_eq!(network.value(&planes, &mut scratch), value);
    }

    #[test]
    fn networks_round_trip_through_files() {
        let config = ValueNetConfig { channels: 4, blocks: 1, head: 2, hidden: 8 };
        let network = Network::random(config, Seed::new(1)).unwrap();
        let bytes = network.encode(WeightsInfo { step: 3 }).unwrap();
        assert_eq!(Network::decode(&bytes).unwrap(), (network, WeightsInfo { step: 3 }));
        let error = Network::random(ValueNetConfig { blocks: 0, ..config }, Seed::new(1));
        assert_eq!(error.unwrap_err().to_string(), "blocks is 0: expected 1 to 32");
    }
}
