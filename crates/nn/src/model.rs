//! A network of either architecture, as read from a file.

use std::path::Path;
use std::sync::Arc;

use crate::file::{self, WeightsError, WeightsInfo};
use crate::small::Shape;
use crate::{conv, mlp, residual, sparse};

/// The weights of a network. [`Model::load`] reads a weight file of either architecture.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    Sparse(Box<sparse::Weights>),
    Residual(residual::Weights),
    /// Of a small network that sees the canonical board of an ending.
    Mlp(Arc<mlp::Network>),
    /// Of a small convolutional network for endings.
    Conv(Arc<conv::Network>),
}

impl Model {
    pub fn decode(bytes: &[u8]) -> Result<(Model, WeightsInfo), WeightsError> {
        match file::architecture(bytes)?.as_str() {
            residual::ARCHITECTURE => {
                let (weights, info) = residual::decode(bytes)?;
                Ok((Model::Residual(weights), info))
            }
            mlp::CANONICAL => {
                let (network, info) = mlp::Network::decode_as(bytes, mlp::CANONICAL)?;
                Ok((Model::Mlp(network.into()), info))
            }
            conv::ConvConfig::ARCHITECTURE => {
                let (network, info) = conv::Network::decode(bytes)?;
                Ok((Model::Conv(network.into()), info))
            }
            _ => {
                let (weights, info) = sparse::decode(bytes)?;
                Ok((Model::Sparse(weights.into()), info))
            }
        }
    }

    pub fn load(path: &Path) -> Result<(Model, WeightsInfo), WeightsError> {
        file::load(path, Model::decode)
    }

    /// The number of weights.
    pub fn parameters(&self) -> usize {
        match self {
            Model::Sparse(weights) => weights.config().parameters(),
            Model::Residual(weights) => weights.config().parameters(),
            Model::Mlp(network) => network.parameters(),
            Model::Conv(network) => network.parameters(),
        }
    }
}
