//! The network: its shape, its weights and its forward pass.

use std::sync::Arc;

use selfmate_chess::Seed;
use selfmate_encode::Planes;
use serde::{Deserialize, Serialize};

use super::trunk::{Activations, Trunk};
use crate::mlp::{MOVES, dot};
use crate::small::{self, Layout, Parameters, Shape};

/// The encoding of its inputs.
pub(super) const ENCODING: Planes = Planes::PlanesKrk;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvConfig {
    /// Channels of the convolutions.
    pub channels: usize,
    /// Blocks of two 3×3 convolutions each.
    pub blocks: usize,
    /// Whether the input of a block is added to its output.
    pub has_skips: bool,
    /// Channels of the 1×1 convolution after the blocks.
    pub head: usize,
    /// Hidden units between it and the outputs.
    pub hidden: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {got}: expected 1 to {most}")]
pub struct ConvConfigError {
    field: &'static str,
    got: usize,
    most: usize,
}

impl ConvConfig {
    pub(super) fn trunk(&self) -> Trunk {
        let ConvConfig { channels, blocks, has_skips, head, hidden } = *self;
        Trunk { planes: ENCODING.count(), channels, blocks, has_skips, head, hidden }
    }

    /// Indices of the outputs: each has its weight, then its bias.
    pub(super) fn policy_index(&self) -> usize {
        self.trunk().parts()
    }

    pub(super) fn value_index(&self) -> usize {
        self.trunk().parts() + 2
    }
}

impl Shape for ConvConfig {
    const ARCHITECTURE: &'static str = "conv";
    type Error = ConvConfigError;
    type Stored = ConvConfig;

    fn stored(self) -> ConvConfig {
        self
    }

    fn check(&self) -> Result<(), ConvConfigError> {
        let fields = [
            ("channels", self.channels, 512),
            ("blocks", self.blocks, 32),
            ("head", self.head, 512),
            ("hidden", self.hidden, 4096),
        ];
        for (field, got, most) in fields {
            if !(1..=most).contains(&got) {
                return Err(ConvConfigError { field, got, most });
            }
        }
        Ok(())
    }

    fn layout(&self) -> Arc<Layout> {
        self.trunk().layout(&[
            ("policy.weight", &[MOVES, self.hidden]),
            ("policy.bias", &[MOVES]),
            ("value.weight", &[self.hidden]),
            ("value.bias", &[1]),
        ])
    }
}

pub type Network = small::Network<ConvConfig>;

/// The outputs for a position, and the activations of its layers.
#[derive(Clone, Debug, Default)]
pub struct Forward {
    pub(super) activations: Activations,
    /// One for each legal move.
    pub logits: Vec<f32>,
    /// The expected result for the side to move, from -1 to 1.
    pub value: f32,
}

impl Network {
    /// Random weights; the initial policy is almost uniform and the initial value almost zero.
    pub fn random(config: ConvConfig, seed: Seed) -> Result<Network, ConvConfigError> {
        let mut network = Network::zeros(config)?;
        let mut rng = seed.derive("conv").rng();
        config.trunk().randomise(&mut network.weights, &mut rng);
        for output in [config.policy_index(), config.value_index()] {
            network.weights.randomise(output, config.hidden, 0.1, &mut rng);
        }
        Ok(network)
    }

    /// Evaluates a position, given its planes and the numbers of its legal moves.
    ///
    /// # Panics
    ///
    /// Panics unless there are nine planes of 64 squares.
    pub fn forward(&self, planes: &[f32], moves: &[u16], out: &mut Forward) {
        self.config.trunk().forward(&self.weights, planes, &mut out.activations);
        let hidden = &out.activations.hidden;
        out.value = outputs(self.config, &self.weights, hidden, moves, &mut out.logits);
    }
}

/// The logits of moves and the value, from the hidden units.
pub(super) fn outputs(
    config: ConvConfig,
    weights: &Parameters,
    hidden: &[f32],
    moves: &[u16],
    logits: &mut Vec<f32>,
) -> f32 {
    let index = config.policy_index();
    let (rows, biases) = (weights.part(index), weights.part(index + 1));
    logits.clear();
    logits.extend(moves.iter().map(|&m| {
        let m = usize::from(m);
        biases[m] + dot(&rows[m * config.hidden..][..config.hidden], hidden)
    }));
    let index = config.value_index();
    libm::tanhf(weights.part(index + 1)[0] + dot(weights.part(index), hidden))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;
    use crate::file::WeightsInfo;

    #[test]
    fn networks_round_trip_through_files() {
        for has_skips in [false, true] {
            let config = ConvConfig { channels: 4, blocks: 1, has_skips, head: 2, hidden: 8 };
            let network = Network::random(config, Seed::new(1)).unwrap();
            let bytes = network.encode(WeightsInfo { step: 3 }).unwrap();
            let (model, info) = Model::decode(&bytes).unwrap();
            assert_eq!((model, info.step), (Model::Conv(network.clone().into()), 3));
            let conv = |inputs: usize| 4 * inputs * 9 + 4;
            let outputs = 4096 * 8 + 4096 + 8 + 1;
            let expected = conv(9) + 2 * conv(4) + 2 * 4 + 2 + 8 * 128 + 8 + outputs;
            assert_eq!(network.parameters(), expected);
            let error = Network::random(ConvConfig { blocks: 33, ..config }, Seed::new(1));
            assert_eq!(error.unwrap_err().to_string(), "blocks is 33: expected 1 to 32");
        }
    }
}
