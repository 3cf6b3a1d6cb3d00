//! A network of either architecture, as read from a file.

use std::path::Path;

use crate::file::{self, WeightsError, WeightsInfo};
use crate::{residual, sparse};

/// The weights of a network. [`Model::load`] reads a weight file of either architecture.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    Sparse(Box<sparse::Weights>),
    Residual(residual::Weights),
}

impl Model {
    pub fn decode(bytes: &[u8]) -> Result<(Model, WeightsInfo), WeightsError> {
        if file::architecture(bytes)? == residual::ARCHITECTURE {
            let (weights, info) = residual::decode(bytes)?;
            return Ok((Model::Residual(weights), info));
        }
        let (weights, info) = sparse::decode(bytes)?;
        Ok((Model::Sparse(weights.into()), info))
    }

    pub fn load(path: &Path) -> Result<(Model, WeightsInfo), WeightsError> {
        file::load(path, Model::decode)
    }

    /// The number of weights.
    pub fn parameters(&self) -> usize {
        match self {
            Model::Sparse(weights) => weights.config().parameters(),
            Model::Residual(weights) => weights.config().parameters(),
        }
    }
}
