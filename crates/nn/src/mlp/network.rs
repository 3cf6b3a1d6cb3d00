//! The network: its shape, its weights and its forward pass.

use std::sync::Arc;

use selfmate_chess::Seed;
use selfmate_encode::sparse::SPARSE768_LEN;
use serde::{Deserialize, Serialize};

use crate::file::{WeightsError, WeightsInfo};
use crate::small::{self, Layout, Shape};

/// Indices of the parts in the layout.
pub(super) const INPUT: usize = 0;
pub(super) const INPUT_BIAS: usize = 1;
pub(super) const MIDDLE: usize = 2;
pub(super) const MIDDLE_BIAS: usize = 3;
pub(super) const POLICY: usize = 4;
pub(super) const POLICY_BIAS: usize = 5;
pub(super) const VALUE: usize = 6;
pub(super) const VALUE_BIAS: usize = 7;

/// Moves are numbered from-square × 64 + to-square.
pub(crate) const MOVES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlpConfig {
    /// Units of the first layer.
    pub first: usize,
    /// Units of the second layer.
    pub second: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a layer of {0} units: expected 1 to 4096")]
pub struct MlpConfigError(usize);

impl Default for MlpConfig {
    fn default() -> MlpConfig {
        MlpConfig { first: 128, second: 128 }
    }
}

impl Shape for MlpConfig {
    const ARCHITECTURE: &'static str = "mlp";
    type Error = MlpConfigError;
    type Stored = MlpConfig;

    fn stored(self) -> MlpConfig {
        self
    }

    fn check(&self) -> Result<(), MlpConfigError> {
        let units = [self.first, self.second].into_iter();
        match units.clone().find(|units| !(1..=4096).contains(units)) {
            Some(units) => Err(MlpConfigError(units)),
            None => Ok(()),
        }
    }

    fn layout(&self) -> Arc<Layout> {
        Layout::new(&[
            ("input.weight", &[SPARSE768_LEN, self.first]),
            ("input.bias", &[self.first]),
            ("middle.weight", &[self.second, self.first]),
            ("middle.bias", &[self.second]),
            ("policy.weight", &[MOVES, self.second]),
            ("policy.bias", &[MOVES]),
            ("value.weight", &[self.second]),
            ("value.bias", &[1]),
        ])
    }
}

pub type Network = small::Network<MlpConfig>;

/// The architecture of networks that see the canonical board of an ending.
pub(crate) const CANONICAL: &str = "mlp-canonical";

/// The outputs for a position, and the activations of the hidden layers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forward {
    pub(super) first: Vec<f32>,
    pub(super) second: Vec<f32>,
    /// One for each legal move.
    pub logits: Vec<f32>,
    /// The expected result for the side to move, from -1 to 1.
    pub value: f32,
}

impl Network {
    /// Random weights; the initial policy is almost uniform and the initial value almost zero.
    pub fn random(config: MlpConfig, seed: Seed) -> Result<Network, MlpConfigError> {
        let mut network = Network::zeros(config)?;
        let weights = &mut network.weights;
        let mut rng = seed.derive("mlp").rng();
        // About thirty of the inputs are active.
        weights.randomise(INPUT, 32, 1.0, &mut rng);
        weights.randomise(MIDDLE, config.first, 1.0, &mut rng);
        weights.randomise(POLICY, config.second, 0.1, &mut rng);
        weights.randomise(VALUE, config.second, 0.1, &mut rng);
        Ok(network)
    }

    /// The file of a network that sees the canonical board of an ending.
    pub fn encode_canonical(&self, info: WeightsInfo) -> Result<Vec<u8>, WeightsError> {
        self.encode_as(CANONICAL, info)
    }

    /// Evaluates a position, given its active features and the numbers of its legal moves.
    pub fn forward(&self, features: &[u16], moves: &[u16], out: &mut Forward) {
        let MlpConfig { first, second } = self.config;
        let weights = &self.weights;
        out.first.clear();
        out.first.extend_from_slice(weights.part(INPUT_BIAS));
        let input = weights.part(INPUT);
        for &feature in features {
            let row = &input[usize::from(feature) * first..][..first];
            out.first.iter_mut().zip(row).for_each(|(sum, weight)| *sum += weight);
        }
        out.first.iter_mut().for_each(|value| *value = value.max(0.0));
        out.second.clear();
        let rows = weights.part(MIDDLE).chunks_exact(first).zip(weights.part(MIDDLE_BIAS));
        out.second.extend(rows.map(|(row, bias)| (bias + dot(row, &out.first)).max(0.0)));
        out.logits.clear();
        let (policy, bias) = (weights.part(POLICY), weights.part(POLICY_BIAS));
        out.logits.extend(moves.iter().map(|&m| {
            let m = usize::from(m);
            bias[m] + dot(&policy[m * second..][..second], &out.second)
        }));
        out.value =
            libm::tanhf(weights.part(VALUE_BIAS)[0] + dot(weights.part(VALUE), &out.second));
    }
}

/// A dot product with eight partial sums, which fit in one vector register.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_round_trip_through_files() {
        let config = MlpConfig { first: 16, second: 24 };
        let network = Network::random(config, Seed::new(1)).unwrap();
        let bytes = network.encode(WeightsInfo { step: 7 }).unwrap();
        assert_eq!(Network::decode(&bytes).unwrap(), (network, WeightsInfo { step: 7 }));
        assert!(Network::decode(&bytes[..bytes.len() - 1]).is_err());
        let many: Vec<Network> =
            (0..3).map(|seed| Network::random(config, Seed::new(seed)).unwrap()).collect();
        assert_eq!(Network::decode_many(&Network::encode_many(&many).unwrap()).unwrap(), many);
        assert!(Network::random(MlpConfig { first: 0, second: 1 }, Seed::new(1)).is_err());
    }

    #[test]
    fn the_default_shape_has_the_documented_size() {
        let network = Network::random(MlpConfig::default(), Seed::new(1)).unwrap();
        let expected = 768 * 128 + 128 + 128 * 128 + 128 + 4096 * 128 + 4096 + 128 + 1;
        assert_eq!(network.parameters(), expected);
        let mut out = Forward::default();
        network.forward(&[3, 77, 767], &[0, 4095, 100], &mut out);
        assert!(out.logits.len() == 3 && out.value.abs() < 0.5);
    }
}
