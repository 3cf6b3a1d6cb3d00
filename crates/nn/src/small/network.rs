//! A small network of any shape: its weights and its files.

use std::sync::Arc;

use safetensors::SafeTensors;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::file;
use super::parameters::{Layout, Parameters};
use crate::file::{WeightsError, WeightsInfo};

/// The shape of a kind of small network.
pub trait Shape: Copy + Serialize + DeserializeOwned {
    /// The name of the architecture in files.
    const ARCHITECTURE: &'static str;
    /// Why a shape is invalid.
    type Error: std::fmt::Display;
    /// The shape as written to files.
    type Stored: Serialize;

    fn stored(self) -> Self::Stored;

    /// Checks that the shape is within the supported limits.
    fn check(&self) -> Result<(), Self::Error>;

    fn layout(&self) -> Arc<Layout>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Network<S> {
    pub(crate) config: S,
    pub(crate) weights: Parameters,
}

impl<S: Shape> Network<S> {
    /// A network of this shape with all weights zero.
    pub(crate) fn zeros(config: S) -> Result<Network<S>, S::Error> {
        config.check()?;
        Ok(Network { config, weights: Parameters::zeros(&config.layout()) })
    }

    pub fn config(&self) -> S {
        self.config
    }

    /// The number of weights.
    pub fn parameters(&self) -> usize {
        self.weights.len()
    }

    /// Encodes the network as a file.
    pub fn encode(&self, info: WeightsInfo) -> Result<Vec<u8>, WeightsError> {
        self.encode_as(S::ARCHITECTURE, info)
    }

    /// As [`Network::encode`], for networks of this shape that see another encoding.
    pub(crate) fn encode_as(
        &self,
        architecture: &'static str,
        info: WeightsInfo,
    ) -> Result<Vec<u8>, WeightsError> {
        file::encode(architecture, self.config.stored(), info.step, &[("", &self.weights)])
    }

    pub(crate) fn decode_as(
        bytes: &[u8],
        architecture: &'static str,
    ) -> Result<(Network<S>, WeightsInfo), WeightsError> {
        let (network, step, _) = Network::decode_set_as(bytes, architecture, "")?;
        Ok((network, WeightsInfo { step }))
    }

    /// Decodes a file.
    pub fn decode(bytes: &[u8]) -> Result<(Network<S>, WeightsInfo), WeightsError> {
        let (network, step, _) = Network::decode_set(bytes, "")?;
        Ok((network, WeightsInfo { step }))
    }

    /// Encodes several networks of one shape in one file.
    pub fn encode_many(networks: &[Network<S>]) -> Result<Vec<u8>, WeightsError> {
        let Some(first) = networks.first() else {
            return Err(WeightsError::Config("cannot write a file without networks".to_owned()));
        };
        let prefixes: Vec<String> = (0..networks.len()).map(|index| format!("{index}.")).collect();
        let weights = networks.iter().map(|network| &network.weights);
        let sets: Vec<(&str, &Parameters)> =
            prefixes.iter().map(String::as_str).zip(weights).collect();
        file::encode(S::ARCHITECTURE, first.config.stored(), 0, &sets)
    }

    /// Decodes a file written by [`Network::encode_many`].
    pub fn decode_many(bytes: &[u8]) -> Result<Vec<Network<S>>, WeightsError> {
        let (first, _, tensors) = Network::<S>::decode_set(bytes, "0.")?;
        let parts = first.weights.tensors().count();
        let network = |index| Ok(Network::decode_set(bytes, &format!("{index}."))?.0);
        (0..tensors.len() / parts).map(network).collect()
    }

    /// The weights with a prefix, the step, and all tensors of a file.
    pub(super) fn decode_set<'a>(
        bytes: &'a [u8],
        prefix: &str,
    ) -> Result<(Network<S>, u64, SafeTensors<'a>), WeightsError> {
        Network::decode_set_as(bytes, S::ARCHITECTURE, prefix)
    }

    fn decode_set_as<'a>(
        bytes: &'a [u8],
        architecture: &'static str,
        prefix: &str,
    ) -> Result<(Network<S>, u64, SafeTensors<'a>), WeightsError> {
        let (config, step, tensors) = file::decode::<S>(bytes, architecture)?;
        let mut network =
            Network::zeros(config).map_err(|error| WeightsError::Config(error.to_string()))?;
        file::read_part(&tensors, prefix, &mut network.weights)?;
        Ok((network, step, tensors))
    }
}
