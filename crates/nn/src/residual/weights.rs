//! The f32 master weights by name, and their initialisation.
//!
//! All tensors are stored in one vector, in the order of [`Layout`], so that gradients and moments
//! are vectors of the same length.

use std::ops::Range;
use std::sync::Arc;

use selfmate_chess::{Rng, Seed};

use super::config::{Config, ConfigError, MOVES, POLICY_CHANNELS};

/// All tensors of a residual network; convolutions are [out, in, rank, file], matrices [out, in].
#[derive(Clone, Debug)]
pub struct Weights {
    layout: Arc<Layout>,
    pub(super) values: Vec<f32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tensor<'a> {
    /// For example `stem.conv.weight`.
    pub name: &'a str,
    pub shape: &'a [usize],
    /// The last dimension varies fastest.
    pub values: &'a [f32],
    /// False for running statistics, which have no gradient.
    pub trained: bool,
}

impl PartialEq for Weights {
    fn eq(&self, other: &Weights) -> bool {
        self.config() == other.config() && self.values == other.values
    }
}

impl Weights {
    /// Random weights (He et al. 2015). The last layers are small, so that a new network has an
    /// almost uniform policy and values near zero.
    pub fn random(config: Config, seed: Seed) -> Result<Weights, ConfigError> {
        let mut weights = Weights::zeros(config)?;
        let seed = seed.derive("residual");
        let layout = Arc::clone(&weights.layout);
        for entry in &layout.entries {
            let values = &mut weights.values[entry.range.clone()];
            if entry.name.ends_with("norm.weight") || entry.name.ends_with("running_var") {
                values.fill(1.0);
            } else if entry.shape.len() > 1 {
                let inputs: usize = entry.shape[1..].iter().product();
                let is_last =
                    matches!(&*entry.name, "policy.linear.weight" | "value.output.weight");
                let gain = if is_last { 0.1 } else { 2f32.sqrt() };
                fill(values, &mut seed.derive(&entry.name).rng(), gain / (inputs as f32).sqrt());
            }
        }
        Ok(weights)
    }

    pub fn zeros(config: Config) -> Result<Weights, ConfigError> {
        config.check()?;
        let layout = Layout::new(config);
        Ok(Weights { values: vec![0.0; layout.len], layout: layout.into() })
    }

    pub fn config(&self) -> Config {
        self.layout.config
    }

    /// Every tensor, in a fixed order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> {
        self.layout.entries.iter().map(|entry| Tensor {
            name: &entry.name,
            shape: &entry.shape,
            values: &self.values[entry.range.clone()],
            trained: entry.trained,
        })
    }

    pub fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        self.tensors().find(|tensor| tensor.name == name)
    }

    /// The values of the tensor with this name.
    pub fn tensor_mut(&mut self, name: &str) -> Option<&mut [f32]> {
        let entry = self.layout.entries.iter().find(|entry| entry.name == name)?;
        Some(&mut self.values[entry.range.clone()])
    }

    pub(super) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub(super) fn at(&self, range: &Range<usize>) -> &[f32] {
        &self.values[range.clone()]
    }
}

/// The ranges of all tensors in the vector.
#[derive(Debug)]
pub(super) struct Layout {
    pub config: Config,
    pub entries: Vec<Entry>,
    /// The stem, then two for each block.
    pub tower: Vec<Convolution>,
    /// One for each block; empty without squeeze and excitation.
    pub squeezes: Vec<Squeeze>,
    pub policy: Convolution,
    pub policy_linear: Linear,
    pub value: Convolution,
    pub value_hidden: Linear,
    pub value_output: Linear,
    pub len: usize,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub name: String,
    pub shape: Vec<usize>,
    pub range: Range<usize>,
    pub trained: bool,
}

/// A convolution and its batch norm.
#[derive(Clone, Debug)]
pub(super) struct Convolution {
    pub inputs: usize,
    pub outputs: usize,
    pub weight: Range<usize>,
    pub norm: Norm,
}

/// The ranges of a batch norm's tensors.
#[derive(Clone, Debug)]
pub(super) struct Norm {
    pub weight: Range<usize>,
    pub bias: Range<usize>,
    pub mean: Range<usize>,
    pub variance: Range<usize>,
}

/// The ranges of a matrix and its bias.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    pub weight: Range<usize>,
    pub bias: Range<usize>,
}

/// The ranges of a block's squeeze and excitation.
#[derive(Clone, Debug)]
pub(super) struct Squeeze {
    pub reduce: Linear,
    pub expand: Linear,
}

impl Layout {
    pub fn new(config: Config) -> Layout {
        let mut entries = Entries::default();
        let Config { planes, blocks, filters, squeeze, value, value_hidden } = config;
        let mut tower = vec![entries.convolution("stem", planes, filters, 3)];
        let mut squeezes = Vec::new();
        for block in 0..blocks {
            for part in ["first", "second"] {
                let name = format!("blocks.{block}.{part}");
                tower.push(entries.convolution(&name, filters, filters, 3));
            }
            if squeeze > 0 {
                let name = format!("blocks.{block}.squeeze");
                squeezes.push(Squeeze {
                    reduce: entries.linear(&format!("{name}.reduce"), filters, squeeze),
                    expand: entries.linear(&format!("{name}.expand"), squeeze, filters),
                });
            }
        }
        Layout {
            config,
            tower,
            squeezes,
            policy: entries.convolution("policy", filters, POLICY_CHANNELS, 1),
            policy_linear: entries.linear("policy.linear", POLICY_CHANNELS * 64, MOVES),
            value: entries.convolution("value", filters, 1, 1),
            value_hidden: entries.linear("value.hidden", 64, value_hidden),
            value_output: entries.linear("value.output", value_hidden, value.outputs()),
            len: entries.len,
            entries: entries.list,
        }
    }

    /// Every convolution: those of the tower, then those of the heads.
    pub fn convolutions(&self) -> impl Iterator<Item = &Convolution> {
        self.tower.iter().chain([&self.policy, &self.value])
    }
}

#[derive(Default)]
struct Entries {
    list: Vec<Entry>,
    len: usize,
}

impl Entries {
    fn add(&mut self, name: String, shape: &[usize], trained: bool) -> Range<usize> {
        let range = self.len..self.len + shape.iter().product::<usize>();
        self.len = range.end;
        self.list.push(Entry { name, shape: shape.to_vec(), range: range.clone(), trained });
        range
    }

    fn convolution(
        &mut self,
        name: &str,
        inputs: usize,
        outputs: usize,
        side: usize,
    ) -> Convolution {
        let shape = [outputs, inputs, side, side];
        let weight = self.add(format!("{name}.conv.weight"), &shape, true);
        let mut part =
            |part: &str, trained| self.add(format!("{name}.norm.{part}"), &[outputs], trained);
        let norm = Norm {
            weight: part("weight", true),
            bias: part("bias", true),
            mean: part("running_mean", false),
            variance: part("running_var", false),
        };
        Convolution { inputs, outputs, weight, norm }
    }

    fn linear(&mut self, name: &str, inputs: usize, outputs: usize) -> Linear {
        Linear {
            weight: self.add(format!("{name}.weight"), &[outputs, inputs], true),
            bias: self.add(format!("{name}.bias"), &[outputs], true),
        }
    }
}

/// Normal samples with this deviation, truncated at three deviations.
fn fill(values: &mut [f32], rng: &mut Rng, deviation: f32) {
    for value in values {
        *value = (rng.normal() as f32).clamp(-3.0, 3.0) * deviation;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_counts_the_trained_weights() {
        for squeeze in [0, 8] {
            let config = Config { squeeze, ..Config::small() };
            let weights = Weights::random(config, Seed::new(1)).unwrap();
            let trained = weights.tensors().filter(|tensor| tensor.trained);
            assert_eq!(trained.map(|t| t.values.len()).sum::<usize>(), config.parameters());
            let all: usize = weights.tensors().map(|tensor| tensor.values.len()).sum();
            assert_eq!(all, weights.values.len());
        }
    }

    #[test]
    fn names_and_shapes_match_the_file_format() {
        let config = Config { squeeze: 8, ..Config::small() };
        let weights = Weights::random(config, Seed::new(1)).unwrap();
        let shapes: &[(&str, &[usize])] = &[
            ("stem.conv.weight", &[32, 119, 3, 3]),
            ("blocks.3.second.norm.running_var", &[32]),
            ("blocks.0.squeeze.reduce.weight", &[8, 32]),
            ("policy.conv.weight", &[2, 32, 1, 1]),
            ("policy.linear.weight", &[4672, 128]),
            ("value.hidden.bias", &[256]),
            ("value.output.weight", &[1, 256]),
        ];
        for (name, shape) in shapes {
            assert_eq!(weights.tensor(name).unwrap().shape, *shape, "{name}");
        }
        assert!(weights.tensor("blocks.4.first.conv.weight").is_none());
        assert_ne!(weights, Weights::random(config, Seed::new(2)).unwrap());
        assert_eq!(weights, Weights::random(config, Seed::new(1)).unwrap());
    }
}
