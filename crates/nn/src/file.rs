//! Weight files of every architecture: safetensors, with one JSON header in the metadata.
//!
//! Reading checks everything before it believes anything, and names what is wrong. The same
//! weights always give the same bytes. What the header holds and which tensors there are is the
//! architecture's to say.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The one key of the metadata: more than one would be written in random order.
const KEY: &str = "selfmate";

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
    #[error("{0}")]
    Config(String),
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

/// A tensor as it is stored.
pub(crate) struct Stored {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Stored {
    /// Floats, every one of which must be a number.
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
    let header = serde_json::to_string(header).expect("a header of plain fields");
    let views = tensors.iter().map(|Stored { name, dtype, shape, bytes }| {
        Ok((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes)?))
    });
    let views: Result<Vec<_>, safetensors::SafeTensorError> = views.collect();
    let metadata = HashMap::from([(KEY.to_owned(), header)]);
    safetensors::serialize(views.map_err(format)?, Some(metadata)).map_err(format)
}

/// The architecture that a file names; empty when it names none.
pub(crate) fn architecture(bytes: &[u8]) -> Result<String, WeightsError> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(format)?;
    let header = header(metadata.metadata().as_ref())?;
    let name = header.get("architecture").and_then(serde_json::Value::as_str);
    Ok(name.unwrap_or_default().to_owned())
}

/// The header and the tensors of a file of this architecture; neither is checked beyond its form.
pub(crate) fn decode<'a, H: DeserializeOwned>(
    bytes: &'a [u8],
    architecture: &str,
) -> Result<(H, SafeTensors<'a>), WeightsError> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(format)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(format)?;
    // The architecture first: another one's header has other fields, which would be blamed.
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

/// Fills floats from the bytes of a tensor of the same length.
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

/// Refuses what differs from what it should be.
pub(crate) fn check_same(
    what: &'static str,
    got: String,
    expected: String,
) -> Result<(), WeightsError> {
    if got == expected { Ok(()) } else { Err(WeightsError::Kind { what, got, expected }) }
}

/// Refuses an encoding of another name or version.
pub(crate) fn check_encoding(
    what: &'static str,
    got: (&str, u32),
    expected: (&str, u32),
) -> Result<(), WeightsError> {
    let named = |(name, version): (&str, u32)| format!("{name} version {version}");
    check_same(what, named(got), named(expected))
}

/// The names in a file are not those expected.
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

/// Writes a file: first beside its place, then into it.
pub(crate) fn save(bytes: &[u8], path: &Path) -> Result<(), WeightsError> {
    let beside = path.with_extension("partial");
    fs::write(&beside, bytes)
        .and_then(|()| fs::rename(&beside, path))
        .map_err(|source| WeightsError::Io { path: path.to_owned(), source })
}

/// Reads a file; errors name it.
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
