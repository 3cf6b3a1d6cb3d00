//! The network: its shape, its weights and its forward pass.

use std::sync::Arc;

use selfmate_chess::Seed;
use serde::{Deserialize, Serialize};

use super::board::{SQUARES, TAPS, unfold};
use crate::residual::NORM_EPSILON;
use crate::small::kernel::{multiply, multiply_transposed};
use crate::small::{self, Layout, Parameters, Shape};

/// Input planes.
pub(super) const PLANES: usize = 13;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueNetConfig {
    /// Channels of the convolutions.
    pub channels: usize,
    pub blocks: usize,
    /// Channels of the head.
    pub head: usize,
    /// Hidden units after the head.
    pub hidden: usize,
    /// Convolutions of a residual block, 1 or 2.
    #[serde(default = "two")]
    pub convolutions: usize,
    /// Batch norm after every convolution, that of the head included.
    #[serde(default)]
    pub batch_norm: bool,
}

fn two() -> usize {
    ValueNetConfig::default().convolutions
}

/// The shape in files. What was added later is left out at its default, so that the files of such
/// networks are the same as before.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StoredShape {
    channels: usize,
    blocks: usize,
    head: usize,
    hidden: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    convolutions: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_norm: Option<bool>,
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
        ValueNetConfig {
            channels: 64,
            blocks: 2,
            head: 32,
            hidden: 128,
            convolutions: 2,
            batch_norm: false,
        }
    }
}

impl ValueNetConfig {
    /// Indices of the parts: a convolution has its weight, then its bias. With batch norm, the bias
    /// is that of the norm; the other parts of the norms follow after the output.
    pub(super) const STEM: usize = 0;

    /// A convolution of a block.
    pub(super) fn block_index(&self, block: usize, convolution: usize) -> usize {
        2 + 2 * (self.convolutions * block + convolution)
    }

    pub(super) fn head_index(&self) -> usize {
        self.block_index(self.blocks, 0)
    }

    pub(super) fn hidden_index(&self) -> usize {
        self.head_index() + 2
    }

    pub(super) fn output_index(&self) -> usize {
        self.head_index() + 4
    }

    /// The factors of the norm of a convolution; its running means and variances follow.
    pub(super) fn norm_index(&self, convolution: usize) -> usize {
        self.output_index() + 2 + 3 * (convolution / 2)
    }

    /// The convolutions of stem and blocks, in order.
    pub(super) fn tower(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        (ValueNetConfig::STEM..self.head_index()).step_by(2)
    }

    /// Whether the input of its block is added to the output of this convolution.
    pub(super) fn ends_block(&self, convolution: usize) -> bool {
        convolution > 0 && (convolution / 2).is_multiple_of(self.convolutions)
    }
}

impl Shape for ValueNetConfig {
    const ARCHITECTURE: &'static str = "valuenet";
    type Error = ValueNetConfigError;
    type Stored = StoredShape;

    fn stored(self) -> StoredShape {
        let ValueNetConfig { channels, blocks, head, hidden, convolutions, batch_norm } = self;
        StoredShape {
            channels,
            blocks,
            head,
            hidden,
            convolutions: Some(convolutions).filter(|count| *count != two()),
            batch_norm: batch_norm.then_some(true),
        }
    }

    fn check(&self) -> Result<(), ValueNetConfigError> {
        let fields = [
            ("channels", self.channels, 512),
            ("blocks", self.blocks, 32),
            ("head", self.head, 512),
            ("hidden", self.hidden, 4096),
            ("convolutions", self.convolutions, 2),
        ];
        for (field, got, most) in fields {
            if !(1..=most).contains(&got) {
                return Err(ValueNetConfigError { field, got, most });
            }
        }
        Ok(())
    }

    fn layout(&self) -> Arc<Layout> {
        let ValueNetConfig { channels, blocks, head, hidden, convolutions, batch_norm } = *self;
        let mut names = vec![("stem".to_owned(), vec![channels, PLANES, 3, 3])];
        for block in 0..blocks {
            for place in &["first", "second"][..convolutions] {
                names.push((format!("blocks.{block}.{place}"), vec![channels, channels, 3, 3]));
            }
        }
        names.push(("head".to_owned(), vec![head, channels, 1, 1]));
        let bias = if batch_norm { "norm.bias" } else { "bias" };
        let mut shapes: Vec<(String, Vec<usize>)> = Vec::new();
        for (name, shape) in &names {
            shapes.push((format!("{name}.weight"), shape.clone()));
            shapes.push((format!("{name}.{bias}"), vec![shape[0]]));
        }
        shapes.extend([
            ("hidden.weight".to_owned(), vec![hidden, head * SQUARES]),
            ("hidden.bias".to_owned(), vec![hidden]),
            ("output.weight".to_owned(), vec![1, hidden]),
            ("output.bias".to_owned(), vec![1]),
        ]);
        if batch_norm {
            for (name, shape) in &names {
                let norm = |part: &str| (format!("{name}.norm.{part}"), vec![shape[0]]);
                shapes.extend(["weight", "running_mean", "running_var"].map(norm));
            }
        }
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
    /// After each convolution of stem and blocks.
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
        for index in config.tower().skip(1) {
            let scale = if config.ends_block(index) { 0.2 } else { 1.0 };
            weights.randomise(index, config.channels * TAPS, scale, &mut rng);
        }
        weights.randomise(config.head_index(), config.channels, 1.0, &mut rng);
        weights.randomise(config.hidden_index(), config.head * SQUARES, 1.0, &mut rng);
        weights.randomise(config.output_index(), config.hidden, 0.1, &mut rng);
        if config.batch_norm {
            for convolution in config.tower().chain([config.head_index()]) {
                let norm = config.norm_index(convolution);
                weights.part_mut(norm).fill(1.0);
                weights.part_mut(norm + 2).fill(1.0);
            }
        }
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
        scratch.layers.resize_with(config.tower().count(), Vec::new);
        let mut layers = std::mem::take(&mut scratch.layers);
        let columns = &mut scratch.columns;
        for (layer, index) in config.tower().enumerate() {
            let (before, after) = layers.split_at_mut(layer);
            let inputs = before.last().map_or(planes, Vec::as_slice);
            unfold(inputs, columns);
            self.convolve(index, columns, &mut after[0]);
            if config.ends_block(index) {
                let skipped = &before[layer - config.convolutions];
                after[0].iter_mut().zip(skipped).for_each(|(sum, value)| *sum += value);
            }
            relu(&mut after[0]);
        }
        let last = layers.last().expect("the stem is a layer");
        self.convolve(config.head_index(), last, &mut scratch.head);
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

    /// A convolution with its bias or norm, given the neighbourhood of each square.
    fn convolve(&self, index: usize, columns: &[f32], out: &mut Vec<f32>) {
        let (weight, bias) = (self.weights.part(index), self.weights.part(index + 1));
        let norm = self.config.batch_norm.then(|| self.norm(index));
        match &norm {
            Some(_) => {
                out.clear();
                out.resize(bias.len() * SQUARES, 0.0);
            }
            None => biased(bias, SQUARES, out),
        }
        multiply(weight, columns, out, (bias.len(), columns.len() / SQUARES, SQUARES));
        for (row, (factor, term)) in out.chunks_exact_mut(SQUARES).zip(norm.into_iter().flatten()) {
            row.iter_mut().for_each(|value| *value = *value * factor + term);
        }
    }

    /// Batch norm with its running statistics, as a factor and a term for each channel.
    fn norm(&self, convolution: usize) -> Vec<(f32, f32)> {
        let norm = self.config.norm_index(convolution);
        let [factors, means, variances] = [0, 1, 2].map(|part| self.weights.part(norm + part));
        let biases = self.weights.part(convolution + 1);
        let statistics = means.iter().zip(variances);
        let affine = |((factor, bias), (mean, variance)): ((&f32, &f32), (&f32, &f32))| {
            let factor = factor / (variance + NORM_EPSILON).sqrt();
            (factor, bias - mean * factor)
        };
        factors.iter().zip(biases).zip(statistics).map(affine).collect()
    }

    /// The same network without batch norm: its running statistics become part of the weights and
    /// biases of the convolutions.
    pub(super) fn folded(&self) -> Network {
        let config = ValueNetConfig { batch_norm: false, ..self.config };
        let mut folded = Network { config, weights: Parameters::zeros(&config.layout()) };
        // Without batch norm, the parts are the same up to the output.
        let shared = folded.weights.len();
        folded.weights.values.copy_from_slice(&self.weights.values[..shared]);
        if self.config.batch_norm {
            for index in config.tower().chain([config.head_index()]) {
                let norm = self.norm(index);
                let inputs = folded.weights.part(index).len() / norm.len();
                let rows = folded.weights.part_mut(index).chunks_exact_mut(inputs);
                for (row, (factor, _)) in rows.zip(&norm) {
                    row.iter_mut().for_each(|weight| *weight *= factor);
                }
                for (bias, (_, term)) in folded.weights.part_mut(index + 1).iter_mut().zip(norm) {
                    *bias = term;
                }
            }
        }
        folded
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
pub(super) mod tests {
    use super::*;
    use crate::file::WeightsInfo;

    /// Norms that are not the identity.
    pub(in super::super) fn randomise_norms(network: &mut Network) {
        let mut rng = Seed::new(4).rng();
        let config = network.config();
        for convolution in config.tower().chain([config.head_index()]) {
            let norm = config.norm_index(convolution);
            for (part, least, range) in [
                (norm, 0.5, 1.0),
                (norm + 1, -0.5, 1.0),
                (norm + 2, 0.5, 1.0),
                (convolution + 1, -0.5, 1.0),
            ] {
                let values = network.weights.part_mut(part).iter_mut();
                values.for_each(|value| *value = least + range * rng.unit() as f32);
            }
        }
    }

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
        let config = ValueNetConfig {
            channels: 4,
            blocks: 1,
            head: 2,
            hidden: 8,
            ..ValueNetConfig::default()
        };
        let network = Network::random(config, Seed::new(1)).unwrap();
        let bytes = network.encode(WeightsInfo { step: 3 }).unwrap();
        assert_eq!(Network::decode(&bytes).unwrap(), (network, WeightsInfo { step: 3 }));
        let error = Network::random(ValueNetConfig { blocks: 0, ..config }, Seed::new(1));
        assert_eq!(error.unwrap_err().to_string(), "blocks is 0: expected 1 to 32");
        let error = Network::random(ValueNetConfig { convolutions: 3, ..config }, Seed::new(1));
        assert_eq!(error.unwrap_err().to_string(), "convolutions is 3: expected 1 to 2");
    }

    #[test]
    fn files_of_networks_with_batch_norm_have_its_parts_and_others_are_unchanged() {
        let plain = ValueNetConfig {
            channels: 4,
            blocks: 1,
            head: 2,
            hidden: 8,
            ..ValueNetConfig::default()
        };
        let header = |config| {
            let network = Network::random(config, Seed::new(1)).unwrap();
            let bytes = network.encode(WeightsInfo { step: 3 }).unwrap();
            assert_eq!(Network::decode(&bytes).unwrap().0, network);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let shape = r#"{\"channels\":4,\"blocks\":1,\"head\":2,\"hidden\":8"#;
        let text = header(plain);
        assert!(text.contains(&format!("{shape}}}")) && !text.contains("norm"), "{text}");
        let text = header(ValueNetConfig { convolutions: 1, batch_norm: true, ..plain });
        let shape = format!(r#"{shape},\"convolutions\":1,\"batch_norm\":true}}"#);
        for part in [&*shape, "head.norm.running_var", "blocks.0.first.norm.bias"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("blocks.0.second") && !text.contains("first.bias"));
    }
}
