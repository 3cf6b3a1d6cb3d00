//! Weight files: safetensors, with the architecture and the encodings in the metadata.
//!
//! Reading checks everything before it believes anything, and names what is wrong. The same
//! weights always give the same bytes.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use selfmate_encode::sparse::{THREAT_ROWS, THREAT_ROWS_VERSION, THREATS3084, THREATS3084_VERSION};
use serde::{Deserialize, Serialize};

use super::config::{ConfigError, SparseConfig};
use super::network::WEIGHT_ONE;
use super::weights::Weights;

/// The one key of the metadata: more than one would be written in random order.
const KEY: &str = "selfmate";
const ARCHITECTURE: &str = "sparse";
const VERSION: u32 = 1;

/// What a weight file tells beside the weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeightsInfo {
    /// Batches the weights have learned from.
    pub step: u64,
}

/// What is wrong with a weight file.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What is wrong within a file.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Box<WeightsError>,
    },
    /// Cut off, or not in this format at all.
    #[error("not a whole safetensors file: {0}")]
    Format(String),
    /// No metadata of ours.
    #[error("the metadata do not describe a selfmate network: {0}")]
    Metadata(String),
    /// Another network or another version of one.
    #[error("{what} is {got}: expected {expected}")]
    Kind {
        /// What differs.
        what: &'static str,
        /// What the file says.
        got: String,
        /// What it should say.
        expected: String,
    },
    /// A shape that cannot be built.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A tensor is missing, or there is one too many.
    #[error("tensors are {got}: expected {expected}")]
    Tensors {
        /// Names in the file.
        got: String,
        /// Names that should be there.
        expected: String,
    },
    /// A tensor of another shape.
    #[error("tensor {name} is {got}: expected {expected}")]
    Shape {
        /// The tensor.
        name: String,
        /// Its type and shape.
        got: String,
        /// Those it should have.
        expected: String,
    },
    /// A number that is none.
    #[error("tensor {name} holds {value} at {index}")]
    NotFinite {
        /// The tensor.
        name: String,
        /// Where.
        index: usize,
        /// What stands there.
        value: f32,
    },
}

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

/// Weights as the bytes of a file.
pub fn encode(weights: &Weights, info: WeightsInfo) -> Result<Vec<u8>, WeightsError> {
    encode_parts(&[("", weights)], info, Precision::Float)
}

/// Weights as the bytes of a file half as large, rounded as a [`super::Network`] rounds them: it
/// plays the same.
pub fn encode_for_play(weights: &Weights, info: WeightsInfo) -> Result<Vec<u8>, WeightsError> {
    let mut weights = weights.clone();
    weights.clip();
    encode_parts(&[("", &weights)], info, Precision::Play)
}

/// How exactly matrices are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// As they are.
    Float,
    /// In 16 bits, in units of 1/1024.
    Play,
}

/// Weights from the bytes of a file.
pub fn decode(bytes: &[u8]) -> Result<(Weights, WeightsInfo), WeightsError> {
    let (mut parts, info) = decode_parts(bytes, &[""])?;
    Ok((parts.pop().expect("one name, one part"), info))
}

/// Writes a weight file: first beside its place, then into it.
pub fn save(weights: &Weights, info: WeightsInfo, path: &Path) -> Result<(), WeightsError> {
    let bytes = encode(weights, info)?;
    let beside = path.with_extension("partial");
    fs::write(&beside, bytes)
        .and_then(|()| fs::rename(&beside, path))
        .map_err(|source| WeightsError::Io { path: path.to_owned(), source })
}

/// Reads a weight file.
pub fn load(path: &Path) -> Result<(Weights, WeightsInfo), WeightsError> {
    let bytes =
        fs::read(path).map_err(|source| WeightsError::Io { path: path.to_owned(), source })?;
    decode(&bytes)
        .map_err(|error| WeightsError::File { path: path.to_owned(), source: error.into() })
}

/// Several sets of weights of one shape in one file, each with a prefix to its names.
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
    let header = serde_json::to_string(&header).expect("a header of plain fields");
    let mut data = Vec::new();
    for (prefix, weights) in parts {
        for tensor in weights.tensors() {
            let name = format!("{prefix}{}", tensor.name);
            finite(&name, tensor.values.iter().copied())?;
            let (dtype, bytes) = if precision == Precision::Play && tensor.shape.len() == 2 {
                let rounded = |v: &f32| (v * WEIGHT_ONE).round() as i16;
                let words = tensor.values.iter().flat_map(|v| rounded(v).to_le_bytes());
                (Dtype::I16, words.collect::<Vec<u8>>())
            } else {
                (Dtype::F32, tensor.values.iter().flat_map(|v| v.to_le_bytes()).collect())
            };
            data.push((name, dtype, tensor.shape, bytes));
        }
    }
    let views = data.iter().map(|(name, dtype, shape, bytes)| {
        Ok((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes)?))
    });
    let views: Result<Vec<_>, safetensors::SafeTensorError> = views.collect();
    let metadata = HashMap::from([(KEY.to_owned(), header)]);
    let format = |error: safetensors::SafeTensorError| WeightsError::Format(error.to_string());
    safetensors::serialize(views.map_err(format)?, Some(metadata)).map_err(format)
}

/// Reads what [`encode_parts`] wrote with the same prefixes.
pub(super) fn decode_parts(
    bytes: &[u8],
    prefixes: &[&str],
) -> Result<(Vec<Weights>, WeightsInfo), WeightsError> {
    let format = |error: safetensors::SafeTensorError| WeightsError::Format(error.to_string());
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(format)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(format)?;
    let header = metadata.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
    let header = header.ok_or_else(|| WeightsError::Metadata(format!("no key '{KEY}'")))?;
    let header: Header =
        serde_json::from_str(header).map_err(|error| WeightsError::Metadata(error.to_string()))?;
    check_header(&header)?;

    let mut parts = Vec::new();
    for prefix in prefixes {
        let mut weights = Weights::zeros(header.shape)?;
        for tensor in weights.tensors_mut() {
            let name = format!("{prefix}{}", tensor.name);
            let view = tensors.tensor(&name).map_err(|_| wrong_names(&tensors, prefixes))?;
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
                let (words, _) = view.data().as_chunks::<4>();
                for (value, word) in tensor.values.iter_mut().zip(words) {
                    *value = f32::from_le_bytes(*word);
                }
            }
            finite(&name, tensor.values.iter().copied())?;
        }
        parts.push(weights);
    }
    if tensors.len() != parts.len() * 9 {
        return Err(wrong_names(&tensors, prefixes));
    }
    Ok((parts, WeightsInfo { step: header.step }))
}

fn check_header(header: &Header) -> Result<(), WeightsError> {
    let same = |what, got: String, expected: String| {
        if got == expected { Ok(()) } else { Err(WeightsError::Kind { what, got, expected }) }
    };
    same("the architecture", header.architecture.clone(), ARCHITECTURE.to_owned())?;
    same("the version of the architecture", header.version.to_string(), VERSION.to_string())?;
    let named = |name: &str, version: u32| format!("{name} version {version}");
    same(
        "the encoding of positions",
        named(&header.features, header.features_version),
        named(THREATS3084, THREATS3084_VERSION),
    )?;
    same(
        "the encoding of moves",
        named(&header.moves, header.moves_version),
        named(THREAT_ROWS, THREAT_ROWS_VERSION),
    )
}

fn wrong_names(tensors: &SafeTensors, prefixes: &[&str]) -> WeightsError {
    let mut got = tensors.names();
    got.sort_unstable();
    let expected = prefixes.iter().map(|prefix| format!("9 with prefix '{prefix}'"));
    WeightsError::Tensors {
        got: got.join(" "),
        expected: expected.collect::<Vec<_>>().join(" and "),
    }
}

fn finite(name: &str, mut values: impl Iterator<Item = f32>) -> Result<(), WeightsError> {
    let mut bad = None;
    let found = values.position(|value| {
        bad = Some(value);
        !value.is_finite()
    });
    match (found, bad) {
        (Some(index), Some(value)) => {
            Err(WeightsError::NotFinite { name: name.to_owned(), index, value })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
