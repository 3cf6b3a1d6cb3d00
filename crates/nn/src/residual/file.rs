//! Weight files of the residual network.

use std::path::Path;

use safetensors::tensor::Dtype;
use selfmate_chess::env::ActionSpace;
use selfmate_encode::MoveSpace;
use serde::{Deserialize, Serialize};

use super::config::{Config, ConfigError};
use super::weights::Weights;
use crate::file::{
    self, Stored, WeightsError, WeightsInfo, check_encoding, check_same, wrong_names,
};

pub(crate) const ARCHITECTURE: &str = "residual";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    architecture: String,
    version: u32,
    positions: String,
    positions_version: u32,
    moves: String,
    moves_version: u32,
    shape: Config,
    step: u64,
}

impl From<ConfigError> for WeightsError {
    fn from(error: ConfigError) -> WeightsError {
        WeightsError::Config(error.to_string())
    }
}

/// Encodes weights as a weight file.
pub fn encode(weights: &Weights, info: WeightsInfo) -> Result<Vec<u8>, WeightsError> {
    encode_parts(&[("", weights)], info)
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
pub(crate) fn encode_parts(
    parts: &[(&str, &Weights)],
    info: WeightsInfo,
) -> Result<Vec<u8>, WeightsError> {
    let shape = parts[0].1.config();
    let header = Header {
        architecture: ARCHITECTURE.to_owned(),
        version: VERSION,
        positions: shape.encoding().name().to_owned(),
        positions_version: shape.encoding().version(),
        moves: MoveSpace::Az4672.name().to_owned(),
        moves_version: MoveSpace::Az4672.version(),
        shape,
        step: info.step,
    };
    let mut stored = Vec::new();
    for (prefix, weights) in parts {
        for tensor in weights.tensors() {
            let name = format!("{prefix}{}", tensor.name);
            stored.push(Stored::floats(name, tensor.shape.to_vec(), tensor.values)?);
        }
    }
    file::encode(&header, &stored)
}

/// Decodes the result of [`encode_parts`] with the same prefixes.
pub(crate) fn decode_parts(
    bytes: &[u8],
    prefixes: &[&str],
) -> Result<(Vec<Weights>, WeightsInfo), WeightsError> {
    let (header, tensors) = file::decode::<Header>(bytes, ARCHITECTURE)?;
    check_same("the version of the architecture", header.version.to_string(), VERSION.to_string())?;
    header.shape.check()?;
    let encoding = header.shape.encoding();
    check_encoding(
        "the encoding of positions",
        (&header.positions, header.positions_version),
        (encoding.name(), encoding.version()),
    )?;
    check_encoding(
        "the encoding of moves",
        (&header.moves, header.moves_version),
        (MoveSpace::Az4672.name(), MoveSpace::Az4672.version()),
    )?;
    // A header may describe more weights than the file has; do not allocate memory for those.
    let most = tensors.iter().map(|(_, view)| view.data().len() / 4).sum::<usize>();
    if header.shape.parameters() > most {
        return Err(WeightsError::Tensors {
            got: format!("{most} numbers"),
            expected: format!("at least {} for this shape", header.shape.parameters()),
        });
    }
    let mut parts = Vec::new();
    for prefix in prefixes {
        let mut weights = Weights::zeros(header.shape)?;
        let layout = weights.layout().clone();
        for entry in &layout.entries {
            let name = format!("{prefix}{}", entry.name);
            let wrong = |_| wrong_names(&tensors, layout.entries.len(), prefixes);
            let view = tensors.tensor(&name).map_err(wrong)?;
            if view.dtype() != Dtype::F32 || view.shape() != entry.shape {
                return Err(WeightsError::Shape {
                    name,
                    got: format!("{:?} {:?}", view.dtype(), view.shape()),
                    expected: format!("F32 {:?}", entry.shape),
                });
            }
            file::read_floats(&name, view.data(), &mut weights.values[entry.range.clone()])?;
        }
        if tensors.len() != prefixes.len() * layout.entries.len() {
            return Err(wrong_names(&tensors, layout.entries.len(), prefixes));
        }
        parts.push(weights);
    }
    check_variances(&parts[0])?;
    Ok((parts, WeightsInfo { step: header.step }))
}

/// A negative variance would give NaN in play.
fn check_variances(weights: &Weights) -> Result<(), WeightsError> {
    for place in weights.layout().convolutions() {
        let values = weights.at(&place.norm.variance);
        if let Some(index) = values.iter().position(|variance| *variance < 0.0) {
            let entry =
                weights.layout().entries.iter().find(|entry| entry.range == place.norm.variance);
            return Err(WeightsError::Shape {
                name: entry.map_or_else(String::new, |entry| entry.name.clone()),
                got: format!("{} at {index}", values[index]),
                expected: "variances of 0 or more".to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
