//! A network of any architecture, as its file says.

use std::path::Path;

use crate::file::{self, WeightsError, WeightsInfo};
use crate::{residual, sparse};

/// The weights of a network, whatever its architecture.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// Of the network made for CPUs.
    Sparse(Box<sparse::Weights>),
    /// Of a residual network.
    Residual(residual::Weights),
}

impl Model {
    /// Reads the bytes of a weight file.
    pub fn decode(bytes: &[u8]) -> Result<(Model, WeightsInfo), WeightsError> {
        if file::architecture(bytes)? == residual::ARCHITECTURE {
            let (weights, info) = residual::decode(bytes)?;
            return Ok((Model::Residual(weights), info));
        }
        let (weights, info) = sparse::decode(bytes)?;
        Ok((Model::Sparse(weights.into()), info))
    }

    /// Reads a weight file.
    pub fn load(path: &Path) -> Result<(Model, WeightsInfo), WeightsError> {
        file::load(path, Model::decode)
    }

    /// How many weights it has.
    pub fn parameters(&self) -> usize {
        match self {
            Model::Sparse(weights) => weights.config().parameters(),
            Model::Residual(weights) => weights.config().parameters(),
        }
    }
}
