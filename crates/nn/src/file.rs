//! Weight files of all architectures: safetensors with one JSON header in the metadata.
//!
//! Everything in a file is checked before it is used, and errors name what is wrong. The same
//! weights always give the same bytes. Each architecture defines its header and its tensors.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The only key in the metadata: several keys would be written in random order.
const KEY: &str = "selfmate";

/// The information in a weight file besides the weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeightsInfo {
    /// Batches that the weights were trained on.
    pub step: u64,
}

/// Why a weight file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// An error within a file, with its path.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: Box<WeightsError> },
    /// Truncated, or not a safetensors file.
    #[error("not a whole safetensors file: {0}")]
    Format(String),
    /// Without our metadata.
    #[error("the metadata does not describe a selfmate network: {0}")]
    Metadata(String),
    /// A different network, version or encoding.
    #[error("{what} is {got}: expected {expected}")]
    Kind { what: &'static str, got: String, expected: String },
    /// An invalid network shape.
    #[error("{0}")]
    Config(String),
    /// A missing or an unexpected tensor.
    #[error("tensors are {got}: expected {expected}")]
    Tensors {
        /// Names in the file.
        got: String,
        /// Names that the shape requires.
        expected: String,
    },
    /// A tensor of the wrong type or shape.
    #[error("tensor {name} is {got}: expected {expected}")]
    Shape { name: String, got: String, expected: String },
    /// A weight that is NaN or infinite.
    #[error("tensor {name} holds {value} at {index}")]
    NotFinite { name: String, index: usize, value: f32 },
}

/// A tensor in the form in which it is stored.
pub(crate) struct Stored {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Stored {
    /// Fails unless all values are finite.
    pub fn floats(name: String, shape: Vec<usize>, values: &[f32]) -> Result<Stored, WeightsError> {
        check_finite(&name, values)?;
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Ok(Stored { name, dtype: Dtype::F32, shape, bytes })
    }
}

/// The bytes of a file.
pub(crate) fn encode<H: Serialize>(
    header: &H,
    tensors: &[Stored],
) -> Result<Vec<u8>, WeightsError> {
    let header = serde_json::to_string(header).expect("a header has only plain fields");
    let views = tensors.iter().map(|Stored { name, dtype, shape, bytes }| {
        Ok((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes)?))
    });
    let views: Result<Vec<_>, safetensors::SafeTensorError> = views.collect();
    let metadata = HashMap::from([(KEY.to_owned(), header)]);
    safetensors::serialize(views.map_err(format)?, Some(metadata)).map_err(format)
}

/// The architecture in a file's header; empty when the header has none.
pub fn architecture(bytes: &[u8]) -> Result<String, WeightsError> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(format)?;
    let header = header(metadata.metadata().as_ref())?;
    let name = header.get("architecture").and_then(serde_json::Value::as_str);
    Ok(name.unwrap_or_default().to_owned())
}

/// The header and the tensors of a file of this architecture. Only their form is checked.
pub(crate) fn decode<'a, H: DeserializeOwned>(
    bytes: &'a [u8],
    architecture: &str,
) -> Result<(H, SafeTensors<'a>), WeightsError> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(format)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(format)?;
    // The architecture is checked first: the header of another one has other fields, and the error
    // should not be about those.
    let header = header(metadata.metadata().as_ref())?;
    if let Some(got) = header.get("architecture").and_then(serde_json::Value::as_str) {
        check_same("the architecture", got.to_owned(), architecture.to_owned())?;
    }
    Ok((serde_json::from_value(header).map_err(metadata_error)?, tensors))
}

fn header(metadata: Option<&HashMap<String, String>>) -> Result<serde_json::Value, WeightsError> {
    let header = metadata.and_then(|metadata| metadata.get(KEY));
    let header = header.ok_or_else(|| WeightsError::Metadata(format!("no key '{KEY}'")))?;
    serde_json::from_str(header).map_err(metadata_error)
}

/// Reads floats from the bytes of a tensor of the same length.
pub(crate) fn read_floats(
    name: &str,
    bytes: &[u8],
    values: &mut [f32],
) -> Result<(), WeightsError> {
    let (words, _) = bytes.as_chunks::<4>();
    for (value, word) in values.iter_mut().zip(words) {
        *value = f32::from_le_bytes(*word);
    }
    check_finite(name, values)
}

/// An error when the two differ.
pub(crate) fn check_same(
    what: &'static str,
    got: String,
    expected: String,
) -> Result<(), WeightsError> {
    if got == expected { Ok(()) } else { Err(WeightsError::Kind { what, got, expected }) }
}

/// An error when name or version of the encoding differ.
pub(crate) fn check_encoding(
    what: &'static str,
    got: (&str, u32),
    expected: (&str, u32),
) -> Result<(), WeightsError> {
    let named = |(name, version): (&str, u32)| format!("{name} version {version}");
    check_same(what, named(got), named(expected))
}

/// The error for unexpected tensor names.
pub(crate) fn wrong_names(tensors: &SafeTensors, count: usize, prefixes: &[&str]) -> WeightsError {
    let mut got = tensors.names();
    got.sort_unstable();
    let expected = prefixes.iter().map(|prefix| format!("{count} with prefix '{prefix}'"));
    WeightsError::Tensors {
        got: got.join(" "),
        expected: expected.collect::<Vec<_>>().join(" and "),
    }
}

pub(crate) fn check_finite(name: &str, values: &[f32]) -> Result<(), WeightsError> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => {
            Err(WeightsError::NotFinite { name: name.to_owned(), index, value: values[index] })
        }
        None => Ok(()),
    }
}

/// Reads a file; errors name its path.
pub(crate) fn load<T>(
    path: &Path,
    decode: impl Fn(&[u8]) -> Result<T, WeightsError>,
) -> Result<T, WeightsError> {
    let bytes =
        fs::read(path).map_err(|source| WeightsError::Io { path: path.to_owned(), source })?;
    decode(&bytes)
        .map_err(|error| WeightsError::File { path: path.to_owned(), source: error.into() })
}

#[expect(clippy::needless_pass_by_value, reason = "map_err hands over the error")]
fn metadata_error(error: serde_json::Error) -> WeightsError {
    WeightsError::Metadata(error.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "map_err hands over the error")]
fn format(error: safetensors::SafeTensorError) -> WeightsError {
    WeightsError::Format(error.to_string())
}
