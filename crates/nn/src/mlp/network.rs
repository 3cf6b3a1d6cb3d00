//! The network: its shape, its weights, what it says of a position.

use std::sync::Arc;

use selfmate_chess::Seed;
use selfmate_encode::sparse::SPARSE768_LEN;
use serde::{Deserialize, Serialize};

use crate::file::{WeightsError, WeightsInfo};
use crate::small::{self, Layout, Parameters};

pub(super) const ARCHITECTURE: &str = "mlp";

/// Places of the parts.
pub(super) const INPUT: usize = 0;
pub(super) const INPUT_BIAS: usize = 1;
pub(super) const MIDDLE: usize = 2;
pub(super) const MIDDLE_BIAS: usize = 3;
pub(super) const POLICY: usize = 4;
pub(super) const POLICY_BIAS: usize = 5;
pub(super) const VALUE: usize = 6;
pub(super) const VALUE_BIAS: usize = 7;

/// How many moves are numbered: from-square × 64 + to-square.
pub(super) const MOVES: usize = 4096;

/// The shape of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlpConfig {
    /// Units of the first layer.
    pub first: usize,
    /// Units of the second layer.
    pub second: usize,
}

/// A shape that cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a layer of {0} units: expected 1 to 4096")]
pub struct MlpConfigError(usize);

impl Default for MlpConfig {
    fn default() -> MlpConfig {
        MlpConfig { first: 128, second: 128 }
    }
}

impl MlpConfig {
    /// Says what is wrong with the shape, if anything is.
    pub fn check(&self) -> Result<(), MlpConfigError> {
        let units = [self.first, self.second].into_iter();
        match units.clone().find(|units| !(1..=4096).contains(units)) {
            Some(units) => Err(MlpConfigError(units)),
            None => Ok(()),
        }
    }

    pub(super) fn layout(&self) -> Arc<Layout> {
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

/// The network.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    config: MlpConfig,
    pub(super) weights: Parameters,
}

/// What a network says of a position, and what it computed on the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forward {
    pub(super) first: Vec<f32>,
    pub(super) second: Vec<f32>,
    /// One for each legal move.
    pub logits: Vec<f32>,
    /// What the side to move may expect, from -1 to 1.
    pub value: f32,
}

impl Network {
    /// Random weights; the first policy is almost uniform, the first value almost zero.
    pub fn random(config: MlpConfig, seed: Seed) -> Result<Network, MlpConfigError> {
        config.check()?;
        let mut weights = Parameters::zeros(&config.layout());
        let mut rng = seed.derive("mlp").rng();
        // About thirty of the inputs are on.
        weights.randomise(INPUT, 32, 1.0, &mut rng);
        weights.randomise(MIDDLE, config.first, 1.0, &mut rng);
        weights.randomise(POLICY, config.second, 0.1, &mut rng);
        weights.randomise(VALUE, config.second, 0.1, &mut rng);
        Ok(Network { config, weights })
    }

    /// The shape.
    pub fn config(&self) -> MlpConfig {
        self.config
    }

    /// How many weights there are.
    pub fn parameters(&self) -> usize {
        self.weights.len()
    }

    /// Looks at a position: the features that are on, and the numbers of its legal moves.
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
        out.value = (weights.part(VALUE_BIAS)[0] + dot(weights.part(VALUE), &out.second)).tanh();
    }
}

/// Eight sums side by side, which a compiler can keep in one register.
fn dot(a: &[f32], b: &[f32]) -> f32 {
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

/// A network as the bytes of a file.
pub fn encode(network: &Network, info: WeightsInfo) -> Result<Vec<u8>, WeightsError> {
    small::encode(ARCHITECTURE, network.config, info.step, &[("", &network.weights)])
}

/// A network from the bytes of a file.
pub fn decode(bytes: &[u8]) -> Result<(Network, WeightsInfo), WeightsError> {
    let (network, step, _) = decode_set(bytes, "")?;
    Ok((network, WeightsInfo { step }))
}

/// Several networks of one shape in one file; at least one.
pub fn encode_many(networks: &[Network]) -> Result<Vec<u8>, WeightsError> {
    let prefixes: Vec<String> = (0..networks.len()).map(|index| format!("{index}.")).collect();
    let sets: Vec<(&str, &Parameters)> =
        prefixes.iter().map(String::as_str).zip(networks.iter().map(|n| &n.weights)).collect();
    let config = networks.first().map_or(MlpConfig::default(), Network::config);
    small::encode(ARCHITECTURE, config, 0, &sets)
}

/// The networks of a file that [`encode_many`] wrote.
pub fn decode_many(bytes: &[u8]) -> Result<Vec<Network>, WeightsError> {
    let (first, _, tensors) = decode_set(bytes, "0.")?;
    let parts = first.weights.tensors().count();
    (0..tensors.len() / parts).map(|index| Ok(decode_set(bytes, &format!("{index}."))?.0)).collect()
}

/// The weights with a prefix, the step, and all tensors of a file.
pub(super) fn decode_set<'a>(
    bytes: &'a [u8],
    prefix: &str,
) -> Result<(Network, u64, safetensors::SafeTensors<'a>), WeightsError> {
    let (config, step, tensors) = small::decode::<MlpConfig>(bytes, ARCHITECTURE)?;
    config.check().map_err(|error| WeightsError::Config(error.to_string()))?;
    let mut weights = Parameters::zeros(&config.layout());
    small::read_part(&tensors, prefix, &mut weights)?;
    Ok((Network { config, weights }, step, tensors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_comes_back_from_its_file() {
        let config = MlpConfig { first: 16, second: 24 };
        let network = Network::random(config, Seed::new(1)).unwrap();
        let bytes = encode(&network, WeightsInfo { step: 7 }).unwrap();
        assert_eq!(decode(&bytes).unwrap(), (network, WeightsInfo { step: 7 }));
        assert!(decode(&bytes[..bytes.len() - 1]).is_err());
        let many: Vec<Network> =
            (0..3).map(|seed| Network::random(config, Seed::new(seed)).unwrap()).collect();
        assert_eq!(decode_many(&encode_many(&many).unwrap()).unwrap(), many);
        assert!(Network::random(MlpConfig { first: 0, second: 1 }, Seed::new(1)).is_err());
    }

    #[test]
    fn the_default_shape_is_the_one_it_is_named_after() {
        let network = Network::random(MlpConfig::default(), Seed::new(1)).unwrap();
        let expected = 768 * 128 + 128 + 128 * 128 + 128 + 4096 * 128 + 4096 + 128 + 1;
        assert_eq!(network.parameters(), expected);
        let mut out = Forward::default();
        network.forward(&[3, 77, 767], &[0, 4095, 100], &mut out);
        assert!(out.logits.len() == 3 && out.value.abs() < 0.5);
    }
}
