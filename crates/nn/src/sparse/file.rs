//! Weight files of the sparse network, in floats or quantised.

use std::path::Path;

use safetensors::tensor::Dtype;
use selfmate_encode::sparse::{THREAT_ROWS, THREAT_ROWS_VERSION, THREATS3084, THREATS3084_VERSION};
use serde::{Deserialize, Serialize};

use super::config::{ConfigError, SparseConfig};
use super::network::WEIGHT_ONE;
use super::weights::Weights;
use crate::file::{self, Stored, check_encoding, check_same, wrong_names};
pub use crate::file::{WeightsError, WeightsInfo};

const ARCHITECTURE: &str = "sparse";
const VERSION: u32 = 1;
/// Tensors of one set of weights.
const TENSORS: usize = 9;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    architecture: String,
    version: u32,
    features: String,
    features_version: u32,
    moves: String,
    moves_version: u32,
    shape: SparseConfig,
    step: u64,
}

impl From<ConfigError> for WeightsError {
    fn from(error: ConfigError) -> WeightsError {
        WeightsError::Config(error.to_string())
    }
}

/// Encodes weights as a weight file.
pub fn encode(weights: &Weights, info: WeightsInfo) -> Result<Vec<u8>, WeightsError> {
    encode_parts(&[("", weights)], info, Precision::Float)
}

/// Encodes weights as a file of half the size, rounded as in [`super::Network`], so that it plays
/// the same.
pub fn encode_for_play(weights: &Weights, info: WeightsInfo) -> Result<Vec<u8>, WeightsError> {
    let mut weights = weights.clone();
    weights.clip();
    encode_parts(&[("", &weights)], info, Precision::Play)
}

/// The precision of stored matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    Float,
    /// 16 bits, in units of 1/1024.
    Play,
}

/// Decodes a weight file.
pub fn decode(bytes: &[u8]) -> Result<(Weights, WeightsInfo), WeightsError> {
    let (mut parts, info) = decode_parts(bytes, &[""])?;
    Ok((parts.pop().expect("one prefix gives one part"), info))
}

pub fn load(path: &Path) -> Result<(Weights, WeightsInfo), WeightsError> {
    file::load(path, decode)
}

/// Encodes several sets of weights of one shape, each with a prefix to its tensor names.
pub(super) fn encode_parts(
    parts: &[(&str, &Weights)],
    info: WeightsInfo,
    precision: Precision,
) -> Result<Vec<u8>, WeightsError> {
    let header = Header {
        architecture: ARCHITECTURE.to_owned(),
        version: VERSION,
        features: THREATS3084.to_owned(),
        features_version: THREATS3084_VERSION,
        moves: THREAT_ROWS.to_owned(),
        moves_version: THREAT_ROWS_VERSION,
        shape: parts[0].1.config(),
        step: info.step,
    };
    let mut stored = Vec::new();
    for (prefix, weights) in parts {
        for tensor in weights.tensors() {
            let name = format!("{prefix}{}", tensor.name);
            let mut floats = Stored::floats(name, tensor.shape, tensor.values)?;
            if precision == Precision::Play && floats.shape.len() == 2 {
                let rounded = |v: &f32| ((v * WEIGHT_ONE).round() as i16).to_le_bytes();
                floats.bytes = tensor.values.iter().flat_map(rounded).collect();
                floats.dtype = Dtype::I16;
            }
            stored.push(floats);
        }
    }
    file::encode(&header, &stored)
}

/// Decodes the result of [`encode_parts`] with the same prefixes.
pub(super) fn decode_parts(
    bytes: &[u8],
    prefixes: &[&str],
) -> Result<(Vec<Weights>, WeightsInfo), WeightsError> {
    let (header, tensors) = file::decode::<Header>(bytes, ARCHITECTURE)?;
    check_header(&header)?;
    let mut parts = Vec::new();
    for prefix in prefixes {
        let mut weights = Weights::zeros(header.shape)?;
        for tensor in weights.tensors_mut() {
            let name = format!("{prefix}{}", tensor.name);
            let view =
                tensors.tensor(&name).map_err(|_| wrong_names(&tensors, TENSORS, prefixes))?;
            let is_rounded = view.dtype() == Dtype::I16 && tensor.shape.len() == 2;
            if !(is_rounded || view.dtype() == Dtype::F32) || view.shape() != tensor.shape {
                return Err(WeightsError::Shape {
                    name,
                    got: format!("{:?} {:?}", view.dtype(), view.shape()),
                    expected: format!("F32 {:?}", tensor.shape),
                });
            }
            if is_rounded {
                let (words, _) = view.data().as_chunks::<2>();
                for (value, word) in tensor.values.iter_mut().zip(words) {
                    *value = f32::from(i16::from_le_bytes(*word)) / WEIGHT_ONE;
                }
            } else {
                file::read_floats(&name, view.data(), tensor.values)?;
            }
        }
        parts.push(weights);
    }
    if tensors.len() != parts.len() * TENSORS {
        return Err(wrong_names(&tensors, TENSORS, prefixes));
    }
    Ok((parts, WeightsInfo { step: header.step }))
}

fn check_header(header: &Header) -> Result<(), WeightsError> {
    check_same("the version of the architecture", header.version.to_string(), VERSION.to_string())?;
    check_encoding(
        "the encoding of positions",
        (&header.features, header.features_version),
        (THREATS3084, THREATS3084_VERSION),
    )?;
    check_encoding(
        "the encoding of moves",
        (&header.moves, header.moves_version),
        (THREAT_ROWS, THREAT_ROWS_VERSION),
    )
}

#[cfg(test)]
mod tests;
